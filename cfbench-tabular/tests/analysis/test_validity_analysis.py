"""Shares of answered factuals, by type of data."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_tabular.analysis.validity import Validity

analysis = Validity()
NUMBERS, WORDS = {"numeric_columns": 2}, {"categorical_columns": 2}


def test_the_smallest_example(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("a", {"validity": [1, 1, 1, 0], "realistic": [1, 0, 0, 0]}),
        make_cell("b", {"validity": [1, 1, 1, 1], "realistic": [1, 1, 0, 0]}, role="baseline"),
    )
    assert analysis.incompatibility([run]) == ""
    table = analysis.table([run]).set_index(["criterion", "explainer"])
    assert table.loc[("valid", "a"), "mean"] == 0.75 and table.loc[("valid", "a"), "explained"] == 3
    assert table.loc[("realistic", "a"), "mean"] == 0.25
    assert table.loc[("realistic", "b"), "role"] == "baseline" and set(table["n"]) == {4}


def test_groups_failures_and_who_did_not_run(write: Any, make_cell: Any) -> None:
    """b failed on the words: none answered there. c does not run on words, and has no bar for all data."""
    run = write(
        make_cell("a", {"validity": [1, 1]}, dataset="n"),
        make_cell("b", {"validity": [1, 0]}, dataset="n"),
        make_cell("c", {"validity": [1, 0]}, dataset="n"),
        make_cell("a", {"validity": [1, 1]}, dataset="w"),
        make_cell("b", {"validity": [1, 1]}, dataset="w", status="timeout"),
        make_cell("c", {"validity": [1, 1]}, dataset="w", status="skipped"),
        data={"n": NUMBERS, "w": WORDS},
    )
    table = analysis.table([run]).set_index(["group", "explainer"])["mean"]
    assert table["total", "a"] == 1.0 and table["total", "b"] == 0.25
    assert table["categorical", "b"] == 0.0 and table["numerical", "c"] == 0.5
    assert ("total", "c") not in table.index


def test_words_name_all_who_tie(write: Any, make_cell: Any) -> None:
    run = write(*(make_cell(n, {"validity": v}) for n, v in (("a", [1, 1]), ("b", [1, 1]), ("c", [1, 0]))))
    assert analysis.words(analysis.table([run])) == (
        "Valid counterfactuals: most by a and b (100.0%, 2 of 2), fewest by c (50.0%, 1 of 2)."
    )


@pytest.mark.parametrize(("values", "share"), [([0, 0], "0.0%, 0 of 2"), ([1, 0], "50.0%, 1 of 2")])
def test_words_name_nobody_where_all_are_equal(
    write: Any, make_cell: Any, values: list[int], share: str
) -> None:
    run = write(*(make_cell(name, {"validity": values}) for name in "abc"))
    assert analysis.words(analysis.table([run])) == f"Valid counterfactuals: as many by all ({share})."


def test_of_a_real_run_means_are_those_of_its_summary(real_run: Any) -> None:
    table = analysis.table([real_run]).query("group == 'total'")
    scores = real_run.scores[real_run.scores["metric"] == "realistic"]
    expected = scores.groupby("explainer")["value"].mean()
    found = table[table["criterion"] == "realistic"].set_index("explainer")["mean"]
    assert found.to_dict() == pytest.approx(expected.to_dict())
    figures = analysis.figures(analysis.table([real_run]))
    assert len(figures) == 9 and "Validity, valid counterfactuals: numerical data" in [
        f.title for f in figures
    ]


def test_without_the_metric_it_is_no_question(write: Any, make_cell: Any) -> None:
    assert analysis.incompatibility([write(make_cell("a", {"L2": [1.0]}))]) == "needs the metric validity"
