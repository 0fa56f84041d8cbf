"""Interactions that must stay cannot be edited, and are no candidates for recommendation either."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from cfbench_explainers_native import accent, beam, exhaustive, greedy, greedy_edits, prince, smallest
from cfbench_recsys.targets import Answer

K = 2
EXACT = {
    "exhaustive": exhaustive.Exhaustive(exhaustive.Config(max_size=5)),
    "exhaustive without weights": exhaustive.Exhaustive(exhaustive.Config(max_size=5)),
    "smallest": smallest.Smallest(smallest.Config()),
    "beam": beam.Beam(beam.Config(width=64)),
}
OTHERS = {
    "greedy": greedy.Greedy(greedy.Config()),
    "greedy-edits": greedy_edits.GreedyEdits(greedy_edits.Config()),
    "accent": accent.Accent(accent.Config(stopping_rule="verified")),
    "prince": prince.Prince(prince.Config()),
}


class OnlyScores:
    """The same recommender, which does not say that it is linear."""

    def __init__(self, model):
        self.score_profiles = model.score_profiles


def removals(edits) -> list[int]:
    return [int(item) for item, op in zip(edits.edge_items, edits.ops, strict=True) if op < 0]


def cases(world, linear) -> Iterator[tuple]:
    """A setting, a target of which two interactions must stay, and the size of its smallest answer (0: none).

    What the user has scores higher than anything else, as with recommenders that are trained on such profiles.
    """
    for seed in range(40):
        draw = np.random.default_rng(seed)
        W = np.abs(draw.normal(size=(10, 10))) + 2 * np.eye(10)
        setting = world(linear(W, draw.normal(size=10) / 3), [draw.choice(10, 5, replace=False)], 10)
        target = setting.targets([0], setting.lists(K)[0][:1], K)
        history = target.history[0].tolist()
        free = replace(
            target, history=target.history[:, 2:], padding=target.padding[:, 2:], fixed=tuple(history[:2])
        )
        sizes = [
            size
            for size in (1, 2, 3)
            for some in combinations(history[2:], size)
            if leaves(setting, target, some)
        ]
        yield setting, free, min(sizes, default=0)


def leaves(setting, target, removed) -> bool:
    """Whether the item is beyond the first K of what the user did not have, counted one by one."""
    profile = setting.profiles.toarray()
    profile[0, list(removed)] = 0
    (scores,) = profile @ setting.model.W + setting.model.bias
    item = int(target.items[0, 0])
    others = [other for other in range(len(scores)) if other not in target.history[0]]
    return sum((scores[other], -other) > (scores[item], -item) for other in others) >= K


@pytest.mark.parametrize("name", EXACT)
def test_the_smallest_answer_without_them_is_brute_force(name, world, linear):
    found_some = 0
    for setting, target, size in cases(world, linear):
        if name == "exhaustive without weights":
            setting = replace(setting, model=OnlyScores(setting.model))
        found = EXACT[name].counterfactuals(target, setting.context)
        edits = Answer.of(found).edits
        assert len(edits.rows) == size
        assert not set(removals(edits)) & set(target.fixed)
        found_some += size > 0
    assert found_some > 10


@pytest.mark.parametrize("name", OTHERS)
def test_other_searches_find_answers_without_them(name, world, linear):
    for setting, target, size in cases(world, linear):
        found = OTHERS[name].counterfactuals(target, setting.context)
        edits = Answer.of(found).edits
        whole = setting.targets([0], target.items[0], K)
        assert not set(removals(edits)) & set(target.fixed)
        if len(edits.rows):
            assert leaves(setting, whole, removals(edits))
        if name.startswith("greedy"):
            assert bool(len(edits.rows)) == (size > 0)


class Saturated:
    """Scores that are not linear in the profile, with gradients."""

    def __init__(self, W: np.ndarray) -> None:
        self.W = W

    def score_profiles(self, profiles):
        return np.tanh(profiles @ self.W)

    def score_dense(self, profiles):
        return torch.tanh(profiles @ torch.from_numpy(self.W))


def test_accent_takes_gradients_at_the_whole_profile(world):
    W = np.random.default_rng(3).normal(size=(10, 10)) / 2
    setting = world(Saturated(W), [[0, 2, 4, 5, 7]], 10)
    target = setting.targets([0], setting.lists(K)[0][:1], K)
    free = replace(target, history=target.history[:, 2:], padding=target.padding[:, 2:], fixed=(0, 2))
    method = accent.Accent(accent.Config(effect="input-gradient", rivals=1))
    whole, part = (method.importances(some, setting.context) for some in (target, free))
    np.testing.assert_allclose(part[0], whole[0, 2:], atol=1e-8)


def test_walks_of_prince_still_leave_along_what_stays():
    """Without row 0, the difference of the one that stays decides; alone, nothing would be left to walk on."""
    assert prince.smallest_sets(np.array([[2.0]])) == []
    assert prince.smallest_sets(np.array([[2.0]]), np.array([[1.0]])) == []
    (found,) = prince.smallest_sets(np.array([[2.0]]), np.array([[-1.0]]))
    assert found.tolist() == [0]
