"""Item-level metrics by the rank of the explained item."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cfbench_core.statistics import bootstrap_interval
from cfbench_recsys.analysis.positions import ALL, Config, Positions

positions = Positions(Config())


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    """Three users with the items in places 1 and 2: POS-P falls by 0.5, 0.2 and 0.2."""
    run = write(make_cell("lime-rs", {"POS-P@2": [0.9, 0.4, 0.6, 0.4, 0.3, 0.1]}))
    assert positions.incompatibility([run]) == ""
    table = positions.table([run])
    assert table[["explainer", "metric", "direction"]].drop_duplicates().values.tolist() == [
        ["lime-rs", "POS-P@2", "lower"]
    ]
    assert table["rank"].tolist() == [1, 2, 2] and table["against"].fillna(0).tolist() == [0, 0, 1]
    assert table["mean"].tolist() == pytest.approx([0.6, 0.3, -0.3])
    assert table["n"].tolist() == [3, 3, 3]
    difference = table.iloc[2]
    assert [difference["ci_low"], difference["ci_high"]] == pytest.approx(
        [float(end) for end in bootstrap_interval([-0.5, -0.2, -0.2])]
    )


def test_the_difference_is_tested_in_pairs_not_by_two_means(write: Any, make_cell: Any) -> None:
    """Users differ far more than places do: by pairs the difference is certain."""
    draw = np.random.default_rng(0)
    mood = draw.uniform(0.2, 0.8, 30)
    values = np.column_stack([mood, mood + 0.05 + draw.normal(0, 0.005, 30)]).ravel()
    table = positions.table([write(make_cell("lime-rs", {"PN-S@2": values}))])
    first, last, difference = table.to_dict("records")
    assert first["ci_high"] > last["ci_low"]  # overlapping
    assert 0.04 < difference["ci_low"] < 0.05 < difference["ci_high"] < 0.06


def test_a_user_whose_list_is_shorter_is_in_no_pair(write: Any, make_cell: Any) -> None:
    """u2 has one item only; its value counts at rank 1."""
    table = positions.table([write(make_cell("lime-rs", {"PN-S@2": [0, 1, 0, 1, 1]}))])
    assert table["n"].tolist() == [3, 2, 2]
    assert table["mean"].tolist() == pytest.approx([1 / 3, 1.0, 1.0])


def test_an_answer_that_fails_has_no_number_of_edits(write: Any, make_cell: Any) -> None:
    values = [3, 1, None, 2, 5, 2]
    table = positions.table([write(make_cell("a", {"#Perturb given success@2": values}, format="explicit"))])
    assert table["mean"].tolist() == pytest.approx([4.0, 5 / 3, -2.5])
    assert table["n"].tolist() == [2, 3, 2]


def test_the_mean_of_all_takes_users_whom_all_explain_and_no_controls(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"PN-S@2": [0, 1, 0, 1, 0, 0]}),
        make_cell("b", {"PN-S@2": [0, 1, 0, 0, None, 0]}),
        make_cell("random", {"PN-S@2": [1, 0, 1, 0, 1, 0]}, role="baseline"),
    )
    table = positions.table([run])
    pooled = table[table["explainer"] == ALL].to_dict("records")
    assert len(pooled) == 1  # u0: 1 and 1; u1: 1 and 0; u2 is without a pair for b
    assert pooled[0]["mean"] == pytest.approx(0.75) and pooled[0]["n"] == 2
    assert table[table["against"].notna()]["explainer"].tolist() == ["a", "b", "random", ALL]


def test_the_summary_reports_in_how_many_comparisons_the_last_place_is_easier(
    write: Any, make_cell: Any
) -> None:
    draw = np.random.default_rng(0)
    easier, level = np.tile([0.5, 0.9], 30), np.tile([0.5, 0.5], 30)
    noise = [draw.normal(0, 0.02, 60) for _ in range(4)]
    run = write(
        make_cell("a", {"PN-S@2": easier + noise[0]}),
        make_cell("b", {"PN-S@2": easier + noise[1]}),
        make_cell("a", {"PN-S@2": level + noise[2]}, model="ease"),
        make_cell("b", {"PN-S@2": level + noise[3]}, model="ease"),
    )
    table = positions.table([run])
    words = positions.words(table)
    assert words.startswith(
        "The item in the last place is easier to displace than the one in the first in 1 of 2"
    )
    pooled = table[(table["explainer"] == ALL) & (table["model"] == "mf")]["mean"].item()
    assert f"Most for PN-S@2 (mf): in the last place it is higher by {pooled:.3g} (" in words


def test_a_decrease_is_reported_as_lower(write: Any, make_cell: Any) -> None:
    falling = {"POS-P@2": [0.9, 0.4] * 5}
    table = positions.table([write(make_cell("a", falling), make_cell("b", falling))])
    assert "in the last place it is lower by 0.5 (0.5 to 0.5)" in positions.words(table)


def test_lists_of_one_and_list_level_have_no_places(write: Any, make_cell: Any) -> None:
    assert positions.incompatibility([write(make_cell("a", {"PN-S@1": [1.0, 0.0]}, k=1))])
    assert positions.incompatibility(
        [write(make_cell("a", {"PN-S@2": [1.0, 0.0]}, level="list"), name="list")]
    )


def test_other_metrics_can_be_chosen(write: Any, make_cell: Any) -> None:
    run = write(make_cell("a", {"Gini": [0.1, 0.3], "POS-P@2": [0, 0]}))
    table = Positions(Config(metrics=("Gini",))).table([run])
    assert table["metric"].unique().tolist() == ["Gini"]


def test_figures_have_a_line_for_each_explainer_and_only_the_longest_lists(
    write: Any, make_cell: Any
) -> None:
    run = write(
        make_cell("a", {"PN-S@2": [0, 1, 0, 1]}),
        make_cell("a", {"PN-S@3": [0, 0, 1, 0, 1, 1]}, k=3),
        make_cell("b", {"PN-S@3": [0, 0, 0, 0, 1, 1]}, k=3),
    )
    table = positions.table([run])
    (figure,) = positions.figures(table)
    assert figure.title.startswith("PN-S@3") and ">a<" in figure.svg and ">b<" in figure.svg
