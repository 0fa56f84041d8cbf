"""Few users who all have the same value decide no number and no claim, although their interval has length zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfbench_recsys.analysis.measured_means import MeasuredMeans
from cfbench_recsys.analysis.published_claims import _verdict, decide
from cfbench_recsys.analysis.reproduction import _decided

LOWEST = {"statistic": "share-lowest", "metric": "POS-P", "relation": ">", "threshold": 0.5}


def frame(rows: list[dict[str, object]]) -> MeasuredMeans:
    usual = {"run": "", "dataset": "shop", "model": "mf", "scope": "", "level": "item", "format": "implicit"}
    usual |= {"k": "5", "rank": "", "metric": "POS-P", "variant": ""}
    table = pd.DataFrame([{**usual, **row} for row in rows])
    values = np.array(table.pop("values").tolist(), dtype=float).T
    return MeasuredMeans(table, values)


def claim(**given: object) -> dict[str, object]:
    empty = dict.fromkeys(("explainer", "model", "dataset", "level", "format", "k", "scope", "metric"), "")
    return {**empty, "contrast": "explainer", "subject": "a", "against": "b c", **given}


def drawn(mean: float, *others: float) -> list[float]:
    """The mean of all users, and means of forty draws of them, which alternate between the other values."""
    return [mean, *((others or (mean,)) * (40 // max(len(others), 1)))]


@pytest.mark.parametrize(("users", "word"), [(2, "undecided"), (35, "undecided"), (36, "confirmed")])
def test_means_of_few_users_with_the_same_value_decide_no_claim(users: int, word: str) -> None:
    """If 35 users have the same value, a tenth of all can differ with a probability of 0.9**35 = 0.0250 > 2.5%."""
    rows = [
        {"explainer": name, "users": users, "values": drawn(value)}
        for name, value in (("a", 0.1), ("b", 0.2), ("c", 0.3))
    ]
    one = claim(**LOWEST)
    found = _verdict(one, decide(one, frame(rows)))
    assert found.word == word
    assert (found.reason == f"all {users} users have the same value") == (word == "undecided")
    some_differ = [
        {**row, "users": 2, "values": drawn(0.1 * k, 0.1 * k + 0.01, 0.1 * k - 0.01)}
        for k, row in enumerate(rows, 1)
    ]
    assert _verdict(one, decide(one, frame(some_differ))).word == "confirmed"


def test_a_difference_that_is_the_same_for_few_users_is_undecided() -> None:
    """Both means differ from user to user, and their difference does not."""
    for users, word in ((5, "undecided"), (36, "confirmed")):
        rows = [
            {
                "explainer": name,
                "users": users,
                "level": "item",
                "metric": "PN-S",
                "values": drawn(0.5, 0.4, 0.6),
            }
            for name in ("a", "b")
        ]
        gap = {"statistic": "mean-gap", "metric": "PN-S", "subject": "a", "against": "b"}
        one = claim(**gap, relation="<=", threshold=0.1)
        assert _verdict(one, decide(one, frame(rows))).word == word


def test_few_equal_users_leave_decided_what_they_could_not_change() -> None:
    """One setting in which a is not the lowest refutes that it always is, whatever the other setting has."""
    rows = [
        {"explainer": name, "level": level, "users": users, "values": values}
        for level, users, by_name in (
            (
                "item",
                50,
                {"a": drawn(0.3, 0.31, 0.29), "b": drawn(0.2, 0.21, 0.19), "c": drawn(0.4, 0.41, 0.39)},
            ),
            ("list", 5, {"a": drawn(0.1), "b": drawn(0.2), "c": drawn(0.3)}),
        )
        for name, values in by_name.items()
    ]
    always = claim(**{**LOWEST, "relation": ">=", "threshold": 1.0})
    assert _verdict(always, decide(always, frame(rows))).word == "refuted"
    sometimes = claim(**{**LOWEST, "threshold": 0.4})
    found = _verdict(sometimes, decide(sometimes, frame(rows)))
    assert found == ("undecided", "all 5 users have the same value")


def test_a_number_of_few_users_with_the_same_value_is_undecided() -> None:
    mean = {
        "item": "table-5",
        "explainer": "cf2",
        "deviation": 0.0,
        "reason": "",
        "printed": 0.42,
        "ours": 0.8,
    }
    rows = [(5, 0.8, 0.8), (5, 0.7, 0.9), (36, 0.8, 0.8)]
    found = _decided(
        pd.DataFrame([{**mean, "users": users, "ci_low": low, "ci_high": high} for users, low, high in rows])
    )
    assert found["verdict"].tolist() == ["undecided", "refuted", "refuted"]
    assert found["reason"][0] == "all 5 users have the same value"
