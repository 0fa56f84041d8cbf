"""Claims of which some settings lack a mean (an explainer on one data set, a model with one length of lists), and claims
about the gap of two means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cfbench_recsys.analysis.measured_means import MeasuredMeans, measure
from cfbench_recsys.analysis.published_claims import _verdict, decide


def frame(rows: list[dict[str, object]]) -> MeasuredMeans:
    usual = {"run": "", "dataset": "shop", "model": "mf", "scope": "", "level": "item", "format": "implicit"}
    usual |= {"k": "5", "rank": "", "metric": "POS-P", "variant": ""}
    table = pd.DataFrame([{**usual, **row} for row in rows])
    values = np.array(table.pop("values").tolist(), dtype=float).T
    return MeasuredMeans(table, values)


def claim(**given: object) -> dict[str, object]:
    empty = dict.fromkeys(("explainer", "model", "dataset", "level", "format", "k", "scope", "metric"), "")
    usual = {"contrast": "explainer", "subject": "a", "against": "b c", "relation": ">", "threshold": 0.5}
    return {**empty, **usual, **given}


LOWEST = {"statistic": "share-lowest", "metric": "POS-P", "relation": ">", "threshold": 0.5}

LOW_PLACE = {"statistic": "place-from-top", "metric": "PN-S", "relation": "<=", "threshold": 1}
CORRELATED = {
    **{"statistic": "rank-correlation", "contrast": "model", "subject": "mf", "against": "vae"},
    **{"model": "mf vae", "explainer": "a b c d", "threshold": 0.5},
}
FALLING = {
    **{"statistic": "share-falling", "contrast": "metric", "subject": "PN-S NEG-P POS-P", "against": ""},
    **{"explainer": "a", "relation": ">=", "threshold": 0.9, "metric": ""},
}


@pytest.mark.parametrize(
    ("gap", "given", "word"),
    [
        # a is the lowest of all in four settings, whatever the mean of c is in one: in three of four at least.
        ({"explainer": "c", "dataset": "store", "k": "3"}, LOWEST, "confirmed"),
        ({"explainer": "c", "dataset": "store"}, LOWEST, "confirmed in part"),
        ({"explainer": "a", "dataset": "store"}, LOWEST, "confirmed in part"),
        (
            {"explainer": "b", "dataset": "store", "k": "3"},
            LOWEST | {"subject": "b", "against": "a c"},
            "refuted",
        ),
        # d is the highest where all were run; a setting without c leaves its place there open.
        ({"explainer": "c", "k": "3"}, LOW_PLACE | {"subject": "d", "against": "a b c"}, "confirmed in part"),
        ({}, LOW_PLACE | {"subject": "d", "against": "a b c"}, "confirmed"),
        # Two of the four settings are missing for lists of three, although other models have them.
        ({"model": "vae", "k": "3"}, CORRELATED, "confirmed in part"),
        ({"model": "vae", "explainer": "c"}, CORRELATED, "confirmed in part"),
        ({}, CORRELATED, "confirmed"),
        ({"model": "vae", "k": "3"}, LOWEST | {"model": "mf vae", "threshold": 0.7}, "confirmed"),
        ({"model": "vae"}, LOWEST | {"model": "mf vae"}, "not reproducible"),
        # A step of a curve between metrics of which one is missing.
        ({"metric": "POS-P"}, FALLING, "confirmed in part"),
        ({}, FALLING, "confirmed"),
    ],
)
def test_a_claim_that_means_missing_in_some_settings_could_change_is_decided_in_part(
    gap: dict[str, str], given: dict[str, object], word: str
) -> None:
    """a, b, c and d have rising means on two data sets, by two models and with two lengths of lists, but for the gap."""
    rows = [
        {
            "explainer": name,
            "dataset": place,
            "model": model,
            "k": k,
            "metric": metric,
            "values": [value + less],
        }
        for name, value in (("a", 0.3), ("b", 0.4), ("c", 0.5), ("d", 0.6))
        for place in ("shop", "store")
        for model in ("mf", "vae")
        for k in ("5", "3")
        for metric, less in (("PN-S", 0.0), ("NEG-P", -0.1), ("POS-P", -0.2))
    ]
    present = [row for row in rows if not gap or any(row[label] != gap[label] for label in gap)]
    usual = {"dataset": "shop store", "k": "5 3", "metric": "PN-S", "model": "mf", "against": "b c"}
    one = claim(**(usual | given))
    found, reason = _verdict(one, decide(one, frame(present)))
    assert found == word, reason


def test_what_an_explainer_cannot_explain_is_not_missing() -> None:
    """b cannot explain lists: a is the lowest of those that can, and lists have lower means than items."""
    values = {"a": {"item": 0.1, "list": 0.05}, "b": {"item": 0.2}, "c": {"item": 0.3, "list": 0.2}}
    means = frame(
        [
            {"explainer": name, "level": level, "values": [value]}
            for name, by_level in values.items()
            for level, value in by_level.items()
        ]
    )
    of_lists = {"contrast": "level", "subject": "list", "against": "item", "explainer": "a b c"}
    lowest = claim(**LOWEST | {"level": "item list", "threshold": 0.9})
    lower = claim(**{"statistic": "share-above", **of_lists, "relation": "<=", "threshold": 0.1})
    for one, form in ((lowest, "implicit"), (lower, "")):
        assert _verdict(one, decide(one, means)).word == "confirmed in part"
        able = MeasuredMeans(means.frame, means.values, frozenset({("b", "list", form)}))
        assert _verdict(one, decide(one, able)).word == "confirmed"


def test_an_explainer_of_which_all_cells_are_skipped_cannot_explain_them(write: Any, make_cell: Any) -> None:
    """b is skipped for lists of every length, c for one; a for lists as importances, not as edits."""
    scores = {"POS-P": [0.1, 0.2]}
    states = {("b", "list", "implicit", 5): "skipped", ("b", "list", "implicit", 3): "skipped"}
    states |= {("c", "list", "implicit", 5): "skipped", ("a", "list", "implicit", 5): "skipped"}
    cells = [
        make_cell(
            name, scores, level=level, format=form, k=k, status=states.get((name, level, form, k), "ok")
        )
        for name, level, form, k in (
            *((name, level, "implicit", 5) for name in "abc" for level in ("item", "list")),
            *((name, "list", "implicit", 3) for name in "bc"),
            ("a", "list", "explicit", 5),
        )
    ]
    means = measure([write(*cells)], ("a", "b", "c"), ("POS-P",), ())
    assert means.unsupported == {("b", "list", "implicit"), ("b", "list", ""), ("a", "list", "implicit")}


def test_equal_means_do_not_refute_that_their_gap_is_small() -> None:
    """Levels have the same mean, and in every draw of the users means that differ by 0.2 or 0.3."""
    draws = {"item": [0.5, *[0.4, 0.6] * 20], "list": [0.5, *[0.6, 0.3] * 20]}
    means = frame([{"explainer": "a", "level": level, "values": of} for level, of in draws.items()])
    levels = {"statistic": "mean-gap", "contrast": "level", "subject": "item", "against": "list"}
    one = claim(**levels, relation="<=", threshold=0.1)
    found = decide(one, means)
    assert found.statistic.value == 0 and found.statistic.low == pytest.approx(0.2)
    assert _verdict(one, found) == ("undecided", "0 to 0.3 against <= 0.1")
