"""The sentence at the end of a run, and those of ``cfbench explain``."""

from __future__ import annotations

from types import SimpleNamespace

import pandas as pd

from cfbench_tabular.verbalization import best_explanation


def run(*results):
    """A run of cells with one unit each: (cell, role, realistic, L2, changes as (column, original, value))."""
    reported, scores, cells = [], [], []
    for cell, role, realistic, distance, changes in results:
        cells.append(SimpleNamespace(id=cell, role=role))
        scores += [("realistic", realistic), ("L2", distance)]
        for column, original, value in changes:
            reported.append(
                {
                    "cell": cell,
                    "unit": "7",
                    "row": 7,
                    "answer": 1,
                    "column": column,
                    "level": None,
                    "model": "mlp",
                }
                | {"original": original, "value": value, "dataset": "people", "explainer": cell}
                | {"factual_class": "poor", "wanted_class": "rich"}
            )
    table = pd.DataFrame(
        [
            {"cell": cell.id, "unit": "7", "metric": name, "value": value}
            for place, cell in enumerate(cells)
            for name, value in scores[2 * place : 2 * place + 2]
        ]
    )
    return SimpleNamespace(
        cells=lambda: cells,
        scores=table,
        explanations=pd.DataFrame(reported),
        summaries=lambda kind: {},
    )


ONE = [("age", "30.0", "41.25")]
TWO = [("age", "30.0", "31.0"), ("job", "cook", "clerk")]


def test_the_realistic_counterfactual_with_fewest_changes_then_the_nearest():
    words = best_explanation(run(("a", "", 1, 2.0, TWO), ("b", "", 1, 3.0, ONE), ("c", "", 0, 1.0, ONE)))
    assert words == (
        "row 7 of people counts as poor for mlp; with age 41.25 instead of 30 it would count as rich (b)."
    )
    assert "(c)" in best_explanation(run(("b", "", 1, 3.0, ONE), ("c", "", 1, 1.0, ONE)))


def test_a_control_is_verbalized_only_if_there_is_no_other_explainer():
    assert "(a)" in best_explanation(run(("a", "", 1, 2.0, TWO), ("best", "bound", 1, 1.0, ONE)))
    assert "(best)" in best_explanation(run(("best", "bound", 1, 1.0, ONE)))


def test_nearly_equal_numbers_get_enough_digits():
    words = best_explanation(run(("a", "", 1, 2.0, [("age", "6.1", "6.10003"), ("job", "cook", "clerk")])))
    assert "with age 6.10003 instead of 6.1 and job clerk instead of cook it would" in words


def test_thousands_are_reported_in_full():
    words = best_explanation(
        run(("a", "", 1, 2.0, [("income", "47750.12", "47047.5"), ("rate", "0.05", "1e-7")]))
    )
    assert "income 47,050 instead of 47,750 and rate 1e-07 instead of 0.05 it would" in words


def test_many_changes_are_counted():
    many = [(f"x{place}", "1.0", "2.0") for place in range(9)]
    words = best_explanation(run(("a", "", 1, 2.0, many)))
    assert "x4 2 instead of 1 and 4 other changes it would" in words and "x5" not in words


def test_without_a_realistic_counterfactual_there_is_nothing_to_tell():
    assert best_explanation(run(("a", "", 0, 2.0, ONE))) == ""


def test_all_counterfactuals_of_a_row_are_listed():
    given = run(("a", "", 1, 2.0, [*ONE, *TWO]), ("b", "", 1, 1.0, TWO))
    given.explanations["counterfactual"] = [1, 3, 3, 1, 1]
    assert best_explanation(given) == (
        "row 7 of people counts as poor for mlp; with age 41.25 instead of 30, or with age 31 instead of 30 and "
        "job clerk instead of cook, it would count as rich (a)."
    )


def test_a_predicted_number_that_would_leave_its_range_is_said_in_plain_words():
    given = run(("a", "", 1, 2.0, ONE))
    given.explanations["factual_class"] = "from 1 to 2"
    given.explanations["wanted_class"] = "not from 1 to 2"
    given.summaries = lambda kind: {"people": {"predicts": "rent"}}
    assert best_explanation(given) == (
        "row 7 of people: the rent that mlp predicts is from 1 to 2; with age 41.25 instead of 30 it would not be "
        "from 1 to 2 (a)."
    )
