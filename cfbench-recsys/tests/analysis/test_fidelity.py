"""Fidelity against the length of the explanation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_core.statistics import bootstrap_interval
from cfbench_recsys.analysis.fidelity import Fidelity

fidelity = Fidelity()


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """Two users with two items each: means over four items, intervals over two users."""
    run = write(make_cell("lime-rs", {"POS@5,1": [1, 1, 1, 0], "POS@5,2": [0, 1, 0, 0]}))
    assert fidelity.incompatibility([run]) == ""
    table = fidelity.table([run])
    assert table[["metric", "k_e", "mean", "ci_low", "ci_high", "n"]].values.tolist() == [
        ["POS@5", 1, 0.75, 0.5, 1.0, 4],
        ["POS@5", 2, 0.25, 0.0, 0.5, 4],
    ]
    assert table[
        ["dataset", "model", "level", "k", "explainer", "direction"]
    ].drop_duplicates().values.tolist() == [["shop", "mf", "item", 2, "lime-rs", "lower"]]


@pytest.mark.parametrize(
    ("column", "metric", "k_e"),
    [
        ("POS@20,5", "POS@20", 5),
        ("POS-all@10,3", "POS-all@10", 3),
        ("CDCG@4", "CDCG", 4),
        ("INS-raw-all@2", "INS-raw-all", 2),
        ("DEL@12", "DEL", 12),
    ],
)
def test_the_length_is_read_from_the_name_of_a_column(
    write: Any, make_cell: Any, column: str, metric: str, k_e: int
) -> None:
    other = column[: -len(str(k_e))] + "99"
    run = write(make_cell("lime-rs", {column: [1.0, 0.0], other: [1.0, 1.0], "POS-P@5": [1.0, 0.0]}))
    rows = fidelity.table([run])
    assert rows[["metric", "k_e"]].values.tolist() == [[metric, k_e], [metric, 99]]


def users(draw: np.random.Generator, *means: float) -> list[list[float]]:
    """Forty units around each mean; columns share the users' moods."""
    mood = draw.normal(0, 0.1, 40)
    return [[*(mean + mood + draw.normal(0, 0.05, 40))] for mean in means]


def test_a_leader_that_changes_is_reported_with_both_differences(write: Any, make_cell: Any) -> None:
    """a is better by 0.2 with one interaction, b by 0.3 with three."""
    draw = np.random.default_rng(0)
    names = ["INS@1", "INS@2", "INS@3"]
    values = {"a": (0.5, 0.5, 0.5), "b": (0.3, 0.5, 0.8), "c": (0.1, 0.1, 0.1)}
    scores = {name: dict(zip(names, users(draw, *means), strict=True)) for name, means in values.items()}
    run = write(*(make_cell(name, own, k=1) for name, own in scores.items()))
    table = fidelity.table([run])
    compared = table[table["against"] != ""]
    assert compared[["explainer", "against", "k_e"]].values.tolist() == [
        ["a", "b", 1],
        ["a", "b", 2],
        ["a", "b", 3],
    ]
    for at, row in enumerate(compared.to_dict("records")):
        difference = np.subtract(scores["a"][names[at]], scores["b"][names[at]])
        assert row["mean"] == pytest.approx(difference.mean())
        interval = bootstrap_interval(difference, clusters=[f"u{n}" for n in range(40)])
        assert [row["ci_low"], row["ci_high"]] == pytest.approx([float(end) for end in interval])
    words = fidelity.words(table)
    assert "in 1 of 1 comparison" in words and "a leads at K_e = 1 and b at K_e = 3" in words
    first, last = compared["mean"].iloc[[0, -1]]
    assert f"the difference of the two is {first:.3g} (" in words and f"then {last:.3g} (" in words


def test_a_leader_that_changes_by_chance_is_no_change(write: Any, make_cell: Any) -> None:
    draw = np.random.default_rng(1)
    one, two = draw.random((2, 2, 40))
    run = write(
        make_cell("a", {"INS@1": one[0], "INS@2": one[1]}, k=1),
        make_cell(
            "b", {"INS@1": one[0][::-1] - 1e-4, "INS@2": two[1] + (one[1].mean() - two[1].mean()) + 1e-4}, k=1
        ),
    )
    table = fidelity.table([run])
    assert (table["against"] == "b").any()
    words = fidelity.words(table)
    assert (
        "no significant change of the leader in 1 comparison. Most often that is b (with the longest in 1)."
        in words
    )


def test_bounds_and_floors_do_not_lead(write: Any, make_cell: Any) -> None:
    metrics = {"INS@1": [0.9, 0.8], "INS@2": [0.9, 0.8]}
    run = write(
        make_cell("greedy", metrics, role="reference"),
        make_cell("random", {"INS@1": [0.99, 0.99], "INS@2": [0.1, 0.1]}, role="baseline"),
        make_cell("a", {"INS@1": [0.1, 0.2], "INS@2": [0.1, 0.2]}),
    )
    table = fidelity.table([run])
    assert (table["against"] == "").all() and len(table) == 6
    assert fidelity.words(table) == ""  # no other explainer to compare with
    (figure,) = fidelity.figures(table)
    assert "greedy (reference)" in figure.svg and "random (baseline)" in figure.svg


def test_runs_without_these_metrics_have_a_reason(write: Any, make_cell: Any) -> None:
    run = write(make_cell("a", {"POS-P@5": [0.5, 0.5]}))
    assert "Refined fidelity" in fidelity.incompatibility([run])
    one_length = write(make_cell("a", {"POS@5,1": [0.5, 0.5]}), name="one")
    assert "several lengths" in fidelity.incompatibility([one_length])
    failed = write(make_cell("a", {"INS@1": [0.5, 0.5], "INS@2": [1, 1]}, status="failed"), name="failed")
    assert fidelity.incompatibility([failed]) != ""
