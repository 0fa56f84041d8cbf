"""Quality on held-out data: by hand, and against the definitions written out."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from cfbench_core.errors import ResultWarning, UserError
from cfbench_recsys.edits import Edits
from cfbench_recsys.quality import evaluate, report
from cfbench_recsys.splits import Holdout

ITEMS = 7


class Table:
    """Gives the profile with the number ``sum_i 2^i x_i`` the scores that stand in its row."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        return self.scores[(profiles @ 2 ** np.arange(ITEMS)).astype(int)].astype(float)


class GraphTable:
    """Gives each user of the graph the scores that stand in its row."""

    def __init__(self, scores: np.ndarray) -> None:
        self.scores = scores

    def score_edits(self, edits: Edits) -> np.ndarray:
        assert len(edits.rows) == 0
        return self.scores[edits.users].astype(float)


def rows_of(sets: list[set[int]]) -> sparse.csr_matrix:
    return sparse.csr_matrix([[float(item in items) for item in range(ITEMS)] for items in sets])


def test_two_users_by_hand() -> None:
    scores = np.array([[9, 8, 7, 6, 5, 4, 3], [0, 0, 0, 0, 0, 0, 1]])
    inputs = rows_of([{0}, {5}])  # lists: 1 2 3 4 5 6; and 6 0 1 2 3 4
    holdout = Holdout(np.array([0, 1]), inputs, rows_of([{2, 5}, {1}]))
    quality = evaluate(GraphTable(scores), holdout, inputs, ks=(2, 3))
    assert quality["HR@2"] == 1 / 2
    assert quality["HR@3"] == 1.0
    assert quality["Recall@2"] == (1 / 2 + 0) / 2
    assert quality["Recall@3"] == (1 / 2 + 1) / 2
    second, third = 1 / math.log2(3), 1 / math.log2(4)
    assert quality["NDCG@2"] == pytest.approx((second / (1 + second) + 0) / 2)
    assert quality["NDCG@3"] == pytest.approx((second / (1 + second) + third) / 2)


@st.composite
def cases(draw: st.DrawFn) -> tuple[np.ndarray, list[set[int]], list[set[int]]]:
    kinds = draw(
        st.lists(
            st.lists(st.sampled_from(["input", "target", "other"]), min_size=ITEMS, max_size=ITEMS).filter(
                lambda row: "target" in row
            ),
            min_size=1,
            max_size=5,
        )
    )
    inputs = [{item for item, kind in enumerate(row) if kind == "input"} for row in kinds]
    targets = [{item for item, kind in enumerate(row) if kind == "target"} for row in kinds]
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).integers(0, 4, (2**ITEMS, ITEMS)), inputs, targets


def literal(scores: np.ndarray, inputs: list[set[int]], targets: list[set[int]], k: int) -> dict[str, float]:
    hit, recall, ndcg = [], [], []
    for own, wanted in zip(inputs, targets, strict=True):
        row = scores[sum(2**item for item in own)]
        candidates = [item for item in range(ITEMS) if item not in own]
        best = sorted(candidates, key=lambda item: (-row[item], item))[:k]
        found = [item in wanted for item in best]
        hit.append(any(found))
        recall.append(sum(found) / len(wanted))
        gain = sum(1 / math.log2(place + 2) for place, is_hit in enumerate(found) if is_hit)
        ndcg.append(gain / sum(1 / math.log2(place + 2) for place in range(min(k, len(wanted)))))
    return {f"HR@{k}": np.mean(hit), f"NDCG@{k}": np.mean(ndcg), f"Recall@{k}": np.mean(recall)}


@settings(deadline=None, max_examples=50)
@given(cases())
def test_quality_equals_its_definition_ties_included(
    case: tuple[np.ndarray, list[set[int]], list[set[int]]],
) -> None:
    scores, inputs, targets = case
    holdout = Holdout(np.arange(len(inputs)), rows_of(inputs), rows_of(targets))
    quality = evaluate(Table(scores), holdout, holdout.inputs, ks=(1, 3, 20))
    expected = {name: v for k in (1, 3, 20) for name, v in literal(scores, inputs, targets, k).items()}
    assert quality == pytest.approx(expected)


def test_more_users_than_a_block_are_all_counted() -> None:
    users = 150
    scores = np.zeros((users, ITEMS))
    scores[:, 3] = 1.0
    scores[100, 3] = -1.0
    holdout = Holdout(np.arange(users), rows_of([{0}] * users), rows_of([{3}] * users))
    assert evaluate(GraphTable(scores), holdout, holdout.inputs, ks=(1,))["HR@1"] == pytest.approx(149 / 150)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda scores: np.where(np.arange(ITEMS) == 2, np.nan, scores), "gives scores that are NaN"),
        (lambda scores: scores[:, :-1], r"must give scores as .*; got ndarray \(64, 6\) of float64"),
        (lambda scores: np.hstack([scores, scores]), r"; got ndarray \(64, 14\)"),
        (lambda scores: scores[:1], r"; got ndarray \(1, 7\)"),
        (lambda scores: scores.tolist(), "; got list$"),
        (lambda scores: sparse.csr_matrix(scores), "; got csr_matrix"),
        (lambda scores: scores.astype(complex), "of complex128"),
    ],
)
def test_what_are_no_scores_of_all_items_has_no_quality(change: Callable[[Any], Any], said: str) -> None:
    class Wrong(GraphTable):
        def score_edits(self, edits: Edits) -> np.ndarray:
            changed: np.ndarray = change(super().score_edits(edits))
            return changed

    holdout = Holdout(np.array([0]), rows_of([{0}]), rows_of([{1}]))
    with pytest.raises(UserError, match=said) as caught:
        evaluate(Wrong(np.ones((1, ITEMS))), holdout, holdout.inputs)
    assert len(caught.value.lines) == 1


def test_without_held_out_users_there_is_no_quality() -> None:
    no_users = Holdout(np.empty(0, dtype=np.int64), rows_of([set()])[:0], rows_of([set()])[:0])
    assert evaluate(Table(np.zeros((1, ITEMS))), no_users, rows_of([{0}])) == {}


def test_a_report_has_users_and_intervals_and_warns_where_users_are_few() -> None:
    """Two users, one of them with a hit among the first ten: 0.5, from 0.09 to 0.91."""
    scores = np.array([[9, 8, 7, 6, 5, 4, 3], [0, 0, 0, 0, 0, 0, 1]])
    inputs = rows_of([{0}, {5}])
    holdout = Holdout(np.array([0, 1]), inputs, rows_of([{2, 5}, {1}]))
    with pytest.warns(ResultWarning, match="measured on 2 users with held-out interactions"):
        reported = report(GraphTable(scores), holdout, inputs)
    plain = evaluate(GraphTable(scores), holdout, inputs)
    assert {name: one["value"] for name, one in reported.items()} == plain
    assert {one["n"] for one in reported.values()} == {2}
    for one in reported.values():
        assert 0 <= one["ci_low"] <= one["value"] <= one["ci_high"] <= 1
    many = Holdout(np.tile([0, 1], 15), inputs[[0, 1] * 15], holdout.targets[[0, 1] * 15])
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResultWarning)
        assert report(GraphTable(scores), many, inputs)["HR@10"]["n"] == 30
