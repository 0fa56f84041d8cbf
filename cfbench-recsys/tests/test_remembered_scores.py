"""Scores that are looked up are those of the model, bit by bit, and each edit is scored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_recsys import remembered_scores
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.recommenders import lightgcn
from cfbench_recsys.remembered_scores import remembering, remembering_for_all
from cfbench_recsys.scoring import counted


class Counting(lightgcn.LightGCN):
    """LightGCN with random embeddings that counts the edits it is queried with."""

    queries = 0

    def score_edits(self, edits: Edits) -> FloatArray:
        self.queries += len(edits)
        return super().score_edits(edits)


@pytest.fixture
def model() -> Counting:
    draw = np.random.default_rng(0)
    graph = sparse.csr_matrix((draw.random((40, 60)) < 0.2).astype(float))
    state = {"user_embedding.weight": (40, 16), "item_embedding.weight": (60, 16)}
    found = Counting(lightgcn.Config(device="cpu"))
    found.load_state({name: draw.standard_normal(shape) for name, shape in state.items()}, graph)
    return found


def removals(model: Any, seed: int, count: int) -> Edits:
    """``count`` edits of five users, of at most three of their interactions each; some of nothing."""
    draw = np.random.default_rng(seed)
    users = draw.integers(0, 5, count)
    items = [
        np.sort(draw.permutation(model._interactions[user].indices[:4])[: draw.integers(0, 4)])
        for user in users
    ]
    rows = np.repeat(np.arange(count), [len(own) for own in items])
    ops = np.full(len(rows), -1, dtype=np.int8)
    return Edits(users, rows, users[rows], np.concatenate(items).astype(np.int64), ops)


def test_scores_are_those_of_the_model_and_each_edit_is_scored_once(model: Counting) -> None:
    batches = [removals(model, seed, 30) for seed in range(6)]
    expected = [model.score_edits(batch) for batch in batches]
    different = {
        (int(batch.users[n]), batch.edge_items[batch.rows == n].tobytes())
        for batch in batches
        for n in range(len(batch))
    }
    for remembered in (remembering(model), remembering(model)):  # each task of an explainer begins anew
        model.queries = 0
        for _ in range(2):
            for batch, scores in zip(batches, expected, strict=True):
                assert (remembered.score_edits(batch) == scores).all()
        assert model.queries == len(different) < 180
    model.queries = 0
    for batch, scores in zip(batches, expected, strict=True):  # metrics of all tasks share what they know
        assert (remembering_for_all(remembering(model)).score_edits(batch) == scores).all()
    assert model.queries == len(different)


def test_queries_are_counted_as_if_nothing_were_remembered(model: Counting) -> None:
    seen = counted(remembering(model))
    for _ in range(3):
        seen.score_edits(removals(model, 1, 30))
    assert seen.queries == 90


def test_of_too_many_scores_only_some_are_stored(model: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_scores, "MOST_BYTES", 20 * 60 * 8)
    for seed in range(6):
        batch = removals(model, seed, 30)
        assert (remembering_for_all(remembering(model)).score_edits(batch) == model.score_edits(batch)).all()
        assert len(remembered_scores._scores[model]) <= 20


def test_another_model_has_scores_of_its_own(model: Counting) -> None:
    batch, other = removals(model, 0, 10), Counting(lightgcn.Config(device="cpu"))
    other.load_state({name: 2 * value for name, value in model.state().items()}, model._interactions)
    remembering_for_all(remembering(model)).score_edits(batch)
    assert (remembering_for_all(remembering(other)).score_edits(batch) == other.score_edits(batch)).all()


def test_a_model_that_does_not_say_that_edits_are_scored_alone_is_not_wrapped(model: Counting) -> None:
    model.scores_alone = False
    assert remembering(model) is remembering_for_all(model) is model
