"""What the tests of runs have in common: studies and cells of the toy suite, and runs of them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfbench_core.api import Prepared, execute, prepare
from cfbench_core.plan import Cell, Column, Plan, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.run_directory import Run
from cfbench_core.stages import UNITS, Stage
from cfbench_core.store import Store

SAMPLES = Path(__file__).parent

DRIVER = """
import sys; sys.path.insert(0, {samples!r})
from cfbench_core.api import execute, prepare
from cfbench_core.registry import Component, Plugin, Registry
import cfbench_core.plugin, toy_suite
def plugin(name, specs): return Plugin(name, name, "1", name, tuple(Component(s, name, "1") for s in specs))
registry = Registry([plugin("toy", toy_suite.SPECS), plugin("core", cfbench_core.plugin.cfbench_components())])
execute(prepare({configuration!r}, registry=registry), out={out!r})
"""


def configuration(count: int = 8, **changes: Any) -> dict[str, Any]:
    """A study of the digits of 0, ..., ``count`` - 1."""
    return {
        "suite": "toy",
        "data": {"name": "numbers", "count": count},
        "models": "times",
        "explainers": ["digits"],
        "executor": "inline",
        "chunk": 4,
        **changes,
    }


def run(registry: Registry, out: Path, fresh: bool = False, **changes: Any) -> Run:
    return execute(prepare(configuration(**changes), registry=registry), out=out, fresh=fresh)


def cell(name: str, **targets: str) -> Cell:
    """A cell of the toy suite, with other functions behind some of its stages."""
    target = {
        "data": "toy_suite:make_data",
        "model": "toy_suite:fit",
        "units": "toy_suite:choose",
        "explanations": "toy_suite:explain",
        "scores": "toy_suite:score",
        **{role: f"awkward_stages:{function}" for role, function in targets.items()},
    }
    data = Stage("data", "numbers", target["data"], {"data": {"options": {"count": 8}}})
    model = Stage("model", "times", target["model"], {"model": {"options": {"factor": 2}}}, {"data": data})
    units = Stage("units", "units", target["units"], {}, {"data": data, "model": model})
    options = {"explainer": {"options": {"misbehave": ""}}}
    explained = Stage(
        "explanations", name, target["explanations"], options, {"model": model, UNITS: units}, chunked=True
    )
    scored = Stage(
        "scores", name, target["scores"], {}, {"explanations": explained, UNITS: units}, chunked=True
    )
    stages = {"model": model, "units": units, "explanations": explained, "scores": scored}
    labels = {"dataset": "numbers", "model": "times", "explainer": name}
    return Cell(labels, (Column("sum"), Column("noise")), stages)


def prepared_with(
    registry: Registry,
    *cells: Cell,
    chunk: int = 4,
    unit_columns: tuple[str, ...] = (),
    tables: Mapping[str, str] | None = None,
) -> Prepared:
    """A run of just these cells."""
    layout = TableLayout(("dataset", "model"), "explainer", unit_columns=unit_columns, tables=tables or {})
    plan = Plan("toy", cells, layout)
    return dataclasses.replace(prepare(configuration(chunk=chunk), registry=registry), plan=plan)


def ends(directory: Path) -> list[Mapping[str, Any]]:
    """How each piece of work ended, in the order of the log."""
    return [json.loads(line) for line in (directory / "outcomes.jsonl").read_text().splitlines()]


def artifacts(kind: str) -> list[Path]:
    """Where the cache holds the artifacts of a kind."""
    return [entry.path for entry in Store().entries() if entry.kind == kind]


def script_of(configuration: Mapping[str, Any], out: Path) -> str:
    """Python source of a run, for a process of its own."""
    return DRIVER.format(samples=str(SAMPLES), configuration=configuration, out=str(out))


def wait_for(child: subprocess.Popen[Any], out: Path) -> None:
    """Until its first explanations are there."""
    deadline = time.monotonic() + 120
    log = out / "outcomes.jsonl"
    while not (log.exists() and '"explanations"' in log.read_text()):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.02)
