"""Counterfactuals that break a constraint win nothing: no column of a table, no rank, no advice."""

from __future__ import annotations

import pytest

import cfbench_core
from cfbench_core.api import analyse
from cfbench_core.reports.tables import tables


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    config = {
        "suite": "tabular",
        "data": [{"name": "wine", "immutable": ["alcohol", "proline"], "direction": {"hue": "up"}}],
        "classifiers": ["mlp"],
        "explainers": [
            {"name": "nearest-enemy", "constraints": "ignore", "label": "any-row"},
            "nice",
            "growing-spheres",
        ],
        "protocol": {"factuals": 10},
        "metrics": ["validity", "feasibility", "l2", "sparsity"],
        "executor": "inline",
    }
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("winners")
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        yield cfbench_core.run(config, out=folder / "run")


@pytest.mark.slow
def test_the_rows_are_valid_and_not_feasible(run):
    means = run.summary.pivot(index="explainer", columns="metric", values="mean").loc["any-row"]
    assert means["validity"] == 1.0
    assert means["feasible"] < 0.1


def test_no_column_is_won(run):
    (table,) = tables(run)
    row = next(row for row in table.rows if row.name == "any-row")
    emphasis = {h.column.name: e.emphasis for h, e in zip(table.headers, row.entries, strict=True)}
    assert not {name for name, given in emphasis.items() if given == "best" and name != "time"}
    assert [header.column.name for header in table.headers if header.column.required] == ["feasible"]


def test_it_ranks_last_and_is_never_advised(run):
    ranks = analyse("rankings", [run]).query("criterion == 'feasible'")
    for _, group in ranks.groupby("metric"):
        assert group.loc[group["rank"].idxmax(), "explainer"] == "any-row"
    advice = analyse("advice", [run])
    trees = advice[advice["part"] == "tree"]
    assert len(trees) and (trees["criterion"] == "feasible").all()
    assert "any-row" not in set(trees["explainer"])
