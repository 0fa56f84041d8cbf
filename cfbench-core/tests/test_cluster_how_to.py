"""The page docs/how-to/run-on-a-cluster.md: its configurations are read, and Dask's commands have the options shown."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from toy_runs import configuration

from cfbench_core.api import prepare
from cfbench_core.registry import Registry

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "run-on-a-cluster.md"


def blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


def test_every_configuration_of_the_page_can_be_read(registry: Registry) -> None:
    documents = [yaml.safe_load(block) for block in blocks("yaml")]
    assert len(documents) == 5
    for document in documents:
        prepared = prepare({**configuration(), **document}, registry=registry)
        assert prepared.config.executor.spec.id == "core/executor/dask"
        given = prepared.document["executor"]
        assert {key: given[key] for key in document["executor"]} == document["executor"]


@pytest.mark.parametrize("command", ["scheduler", "worker"])
def test_the_commands_of_dask_have_the_options_of_the_page(command: str) -> None:
    pytest.importorskip("distributed", reason="needs distributed: pip install 'cfbench-core[dask]'")
    lines = [
        line for block in blocks("sh") for line in block.splitlines() if line.startswith(f"dask {command} ")
    ]
    options = {option for line in lines for option in re.findall(r"--[a-z-]+", line)}
    assert "--host" in options or "--nthreads" in options
    done = subprocess.run(
        [sys.executable, "-m", "dask", command, "--help"], capture_output=True, text=True, check=True
    )
    assert options <= set(re.findall(r"--[a-z-]+", done.stdout))
