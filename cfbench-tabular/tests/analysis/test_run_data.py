"""What the analyses have in common."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from cfbench_core.component_specs import component_specs
from cfbench_core.run_directory import Run
from cfbench_core.specs import resolve
from cfbench_tabular.analysis.run_data import comparable, masked, studies, type_of


def made(name: str) -> Any:
    (spec,) = (spec for spec in component_specs("cfbench_tabular", "analysis") if spec.name == name)
    return resolve(spec.target)(resolve(spec.config)() if spec.config else None)


@pytest.mark.parametrize(
    ("summary", "name"),
    [
        ({"numeric_columns": 3, "categorical_columns": 0}, "numerical"),
        ({"numeric_columns": 0, "categorical_columns": 1}, "categorical"),
        ({"numeric_columns": 3, "categorical_columns": 1}, "mixed"),
        ({}, ""),
    ],
)
def test_the_type_of_a_data_set_is_that_of_its_columns(summary: dict[str, int], name: str) -> None:
    assert type_of(summary) == name


def test_runs_over_different_data_are_one_study_and_the_later_cell_counts(write: Any, make_cell: Any) -> None:
    metrics = {"validity": [1, 1], "L2": [1.0, 2.0]}
    first = write(*(make_cell(who, metrics, dataset="one") for who in "ab"), name="first", data={"one": {}})
    second = write(
        *(make_cell(who, metrics, dataset="two") for who in "ab"),
        make_cell("a", {"validity": [0, 0], "L2": [1.0, 2.0]}, dataset="one"),
        name="second",
        data={"one": {}, "two": {}},
    )
    (study,) = studies([first, second])
    assert [dataset.name for dataset in study.datasets] == ["one", "two"]
    table = (
        made("validity").table([first, second]).query("criterion == 'valid'").set_index("explainer")["mean"]
    )
    assert table.to_dict() == {"a": 0.5, "b": 1.0}


def test_every_analysis_supports_runs_without_data_summaries(write: Any, make_cell: Any) -> None:
    """Runs of earlier versions have no summaries and no facts of the factuals."""
    draw = np.random.default_rng(0)
    names = ["x", "y", "z"]
    cells = [
        make_cell(
            who,
            {
                "feasible": [1] * 9,
                "validity": [1] * 9,
                "L2": draw.uniform(size=9),
                "stability": [1] * 9,
            },
            dataset=name,
        )
        for who in "ab"
        for name in names
    ]
    run = write(*cells)
    plan = json.loads((run.directory / "plan.json").read_text())
    del plan["summaries"]
    (run.directory / "plan.json").write_text(json.dumps(plan))
    old = Run(run.directory)
    assert old.summaries("data") == {}
    for spec in component_specs("cfbench_tabular", "analysis"):
        analysis = made(spec.name)
        if spec.name == "reproduction":  # of the published study alone, see test_reproduction.py
            assert "protocol: paper" in analysis.incompatibility([old])
            continue
        assert analysis.incompatibility([old]) == ""
        table = analysis.table([old])
        assert len(table) and analysis.figures(table) and analysis.words(table), spec.name


def test_runs_of_other_suites_are_no_question(write: Any, make_cell: Any) -> None:
    run = write(*(make_cell(who, {"validity": [1], "L2": [1.0]}) for who in "ab"))
    plan = json.loads((run.directory / "plan.json").read_text())
    (run.directory / "plan.json").write_text(json.dumps({**plan, "suite": "recsys"}))
    assert all(
        made(spec.name).incompatibility([Run(run.directory)])
        for spec in component_specs("cfbench_tabular", "analysis")
    )


def test_equal_counterfactuals_tie_whatever_the_last_digits_and_failures_are_blank() -> None:
    values = np.array([[2.0, 2.0 + 1e-13, 2.0 + 1e-6], [1e-7, 1e-7 + 1e-19, 0.0], [-3.0, 3.0, np.inf]])
    judged = np.array([[1, 1, 1], [1, 1, 1], [1, 0, 1]])
    found = comparable(masked(values, judged))
    assert found[0, 0] == found[0, 1] < found[0, 2] and found[1, 0] == found[1, 1] > found[1, 2] == 0
    assert found[2, 0] == -3.0 and np.isnan(found[2, 1]) and np.isinf(found[2, 2])
    assert found[:2] == pytest.approx(values[:2], rel=1e-9)
