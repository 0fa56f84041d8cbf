"""What a configuration uses is recorded with its papers, and nothing that it names is without effect."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from toy_runs import run

from cfbench_core import cite
from cfbench_core.config import ConfiguredComponent, Document
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, Plan, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Stage
from cfbench_core.used_components import check_all_contribute, configured, describe_used


def component(kind: str, name: str, **spec: Any) -> ConfiguredComponent:
    declared = ComponentSpec(id=f"toy/{kind}/{name}", summary=".", target="toy_suite:Digits", **spec)
    return ConfiguredComponent(kind, name, declared)


@dataclass(frozen=True)
class Study:
    data: ConfiguredComponent
    explainers: tuple[ConfiguredComponent, ...]
    metrics: tuple[ConfiguredComponent, ...] = ()
    nested: Any = field(default=None)


STUDY = Study(
    component("dataset", "numbers"),
    (component("explainer", "digits"),),
    (
        component("metric", "sum"),
        component("metric", "half", needs={"explainer": {"format": {"explicit"}}}),
    ),
)
YAML = "suite: toy\ndata: numbers\nexplainers: [digits]\nmetrics: [sum, {import: 'm:Half'}]\n"


def plan(*metrics: str, skipped: str = "") -> Plan:
    parameters = {"metrics": [{"component": f"toy/metric/{name}"} for name in metrics]}
    stages = {
        "scores": Stage(
            "scores", "scores", "m:f", {"data": {"component": "toy/dataset/numbers"}, **parameters}
        )
    }
    cell = Cell({"model": "times", "explainer": "digits"}, stages={} if skipped else stages, skipped=skipped)
    return Plan("toy", (cell,), TableLayout(("model",), "explainer"))


def test_a_metric_that_no_cell_computes_is_an_error_with_its_line() -> None:
    with pytest.raises(UserError) as raised:
        check_all_contribute(STUDY, plan("sum"), Document(YAML, "study.yaml", Path()))

    assert raised.value.lines == (
        "study.yaml:4: metrics[1]: metric 'half' applies to no cell of this configuration: "
        "it needs format explicit; remove it or extend the protocol",
    )


def test_components_that_a_stage_or_a_label_names_are_used() -> None:
    check_all_contribute(STUDY, plan("sum", "half"), Document(YAML, "study.yaml", Path()))


def test_defaults_and_plans_without_a_cell_to_run_are_not_checked() -> None:
    check_all_contribute(STUDY, plan("sum"), Document("suite: toy\n", "study.yaml", Path()))
    check_all_contribute(STUDY, plan(skipped="no list level"), Document(YAML, "study.yaml", Path()))


def test_components_are_found_wherever_a_configuration_holds_them() -> None:
    inner = component("classifier", "second")
    study = Study(STUDY.data, STUDY.explainers, nested=(Study(inner, ()),))

    assert [place for place, _ in configured(study)] == ["data", "explainers[0]", "nested[0].data"]


def test_a_run_records_its_components_and_cites_their_papers(registry: Registry, tmp_path: Path) -> None:
    finished = run(registry, tmp_path / "run", count=2)
    path = finished.directory / "components.json"
    recorded = json.loads(path.read_text())

    assert [entry["id"] for entry in recorded] == [
        "toy/dataset/numbers",
        "toy/recommender/times",
        "toy/explainer/digits",
        "toy/suite/toy",
    ]
    assert cite(finished) == []

    zed = {"key": "zed2020", "authors": ["Zed, Zoe"], "title": "T", "venue": "J", "year": 2020}
    other = {**zed, "key": "alp2019", "doi": "10.1/2", "arxiv": "", "entry": ""}
    recorded[1]["papers"], recorded[2]["papers"] = [zed, other], [zed]
    path.write_text(json.dumps(recorded))
    assert [paper.key for paper in cite(finished.directory)] == ["alp2019", "zed2020"]


def test_a_paper_that_is_not_listed_does_not_stop_the_run() -> None:
    broken = Study(component("dataset", "numbers", papers=("missing1999",)), ())

    (recorded,) = describe_used("toy", broken, plan(skipped="."), Registry([]))

    assert recorded["papers"] == []


def test_components_that_only_stages_name_are_recorded(registry: Registry) -> None:
    stage = Stage("scores", "scores", "m:f", {"metrics": [{"component": "toy/explainer/plain"}]})
    planned = Plan(
        "toy", (Cell({"model": "m"}, stages={"scores": stage}),), TableLayout(("model",), "explainer")
    )

    recorded = describe_used("toy", Study(component("dataset", "numbers"), ()), planned, registry)

    assert [entry["id"] for entry in recorded] == [
        "toy/dataset/numbers",
        "toy/suite/toy",
        "toy/explainer/plain",
    ]


@pytest.mark.parametrize("content", [None, "not JSON", '[{"papers": [{"key": "k"}]}]'])
def test_a_run_without_a_readable_record_is_one_error_line(
    registry: Registry, tmp_path: Path, content: str | None
) -> None:
    finished = run(registry, tmp_path / "run", count=2)
    path = finished.directory / "components.json"
    path.unlink()
    if content is not None:
        path.write_text(content)

    with pytest.raises(UserError, match=r"components\.json: "):
        cite(finished)
