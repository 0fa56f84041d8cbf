"""SPINRec against closed forms, the completeness of integrated gradients, and a loop over single points."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_explainers_native.spinrec import Config, SPINRec
from cfbench_recsys.targets import Context, Targets


@dataclass
class Network:
    """Scores ``tanh(x W) V``, differentiable, with one of the links."""

    link: str
    items: int = 9
    seed: int = 0

    def __post_init__(self) -> None:
        draw = np.random.default_rng(self.seed)
        self.first = torch.from_numpy(draw.normal(size=(self.items, 4)))
        self.second = torch.from_numpy(draw.normal(size=(4, self.items)))

    def score_dense(self, profiles: torch.Tensor) -> torch.Tensor:
        return torch.tanh(profiles @ self.first) @ self.second

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        return self.score_dense(torch.from_numpy(profiles.toarray())).numpy()

    def value(self, profile: np.ndarray, items: np.ndarray) -> float:
        """The mean of f over items, for one profile."""
        scores = self.score_dense(torch.from_numpy(profile[None].astype(np.float64)))[0]
        if self.link == "sigmoid":
            scores = scores.sigmoid()
        if self.link == "softmax":
            scores = scores.softmax(dim=0)
        return float(scores[torch.from_numpy(items)].mean())


PROFILES = np.array(
    [
        [1, 1, 1, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 1, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 1, 0, 0],
        [0, 0, 1, 1, 0, 0, 0, 1, 0],
    ],
    dtype=np.float64,
)
TRAINING = np.vstack([np.zeros((2, 9)), PROFILES[2:]])
"""Users 0 and 1 are explained."""


def setting(model: Network, items: object = ((7,), (8,)), level: str = "item") -> tuple[Targets, Context]:
    profiles, training = sparse.csr_matrix(PROFILES), sparse.csr_matrix(TRAINING)
    users = np.arange(len(items))
    targets = Targets.of(profiles, users, np.array(items), 2, level, "user-vector")
    return targets, Context(model, profiles, training, functools.partial(generator, 0))


def on_all_items(targets: Targets, importances: np.ndarray) -> np.ndarray:
    found = np.zeros((len(targets), PROFILES.shape[1]))
    for unit in range(len(targets)):
        held = ~targets.padding[unit]
        found[unit, targets.history[unit, held]] = importances[unit, held]
    return found


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "identity"])
def test_importances_from_the_empty_profile_sum_to_the_change_of_the_value(link: str) -> None:
    model = Network(link)
    targets, context = setting(model)
    found = SPINRec(Config(baseline="empty", steps=2000)).importances(targets, context)
    for unit, row in enumerate(on_all_items(targets, found)):
        items = targets.items[unit]
        change = model.value(PROFILES[unit], items) - model.value(np.zeros(9), items)
        assert row.sum() == pytest.approx(change, abs=2e-3)


@pytest.mark.parametrize("steps", [1, 7])
def test_on_linear_scores_it_is_the_exact_contribution_of_what_the_other_user_lacks(steps: int) -> None:
    weights = np.random.default_rng(3).normal(size=(9, 9))

    class Linear(Network):
        def score_dense(self, profiles: torch.Tensor) -> torch.Tensor:
            return profiles @ torch.from_numpy(weights)

    targets, context = setting(Linear("identity"))
    found = on_all_items(
        targets, SPINRec(Config(baseline="empty", steps=steps)).importances(targets, context)
    )
    expected = PROFILES[:2] * weights[:, [7, 8]].T
    assert np.abs(found - expected).max() < 1e-8
    sampled = on_all_items(targets, SPINRec(Config(samples=1, steps=steps)).importances(targets, context))
    for unit in range(2):
        (start,) = generator(0, "spinrec", unit).choice([2, 3], 1)
        assert np.abs(sampled[unit] - expected[unit] * (1 - TRAINING[start])).max() < 1e-8


def by_loops(model: Network, user: int, items: np.ndarray, config: Config) -> np.ndarray:
    """One path and one point at a time, gradients by central differences, curves by removing items in a loop."""
    profile = PROFILES[user]
    best, lowest = None, np.inf
    for start in generator(0, "spinrec", user).choice([2, 3], config.samples):
        other = TRAINING[start]
        gradients = []
        for step in range(1, config.steps + 1):
            point = other + step / config.steps * (profile - other)
            gradient = np.zeros(9)
            for item in range(9):
                up, down = point.copy(), point.copy()
                up[item] += 1e-5
                down[item] -= 1e-5
                gradient[item] = (model.value(up, items) - model.value(down, items)) / 2e-5
            gradients.append(gradient)
        importance = profile * np.mean(gradients, axis=0) * (profile - other)
        order = sorted(np.flatnonzero(profile), key=lambda item: (-round(importance[item], 7), item))
        curve, left = [], profile.copy()
        for chunk in np.array_split(order, 10):
            left[chunk.astype(int)] = 0
            curve.append(model.value(left, items))
        if np.mean(curve) < lowest - 1e-9:
            best, lowest = importance, np.mean(curve)
    assert best is not None
    return best


@pytest.mark.parametrize("link", ["sigmoid", "softmax", "identity"])
@pytest.mark.parametrize(("items", "level"), [(((7,), (8,)), "item"), (((7, 8), (6, 8)), "list")])
def test_it_is_the_most_faithful_of_the_paths_that_a_loop_follows(
    link: str, items: object, level: str
) -> None:
    for seed in range(4):
        model, config = Network(link, seed=seed), Config(samples=4, steps=5)
        targets, context = setting(model, items, level)
        found = on_all_items(targets, SPINRec(config).importances(targets, context))
        for unit in range(2):
            expected = by_loops(model, unit, targets.items[unit], config)
            assert np.abs(found[unit] - expected).max() < 1e-6


def test_an_interaction_that_the_only_other_user_has_too_counts_nothing() -> None:
    targets, context = setting(Network("sigmoid"))
    found = on_all_items(targets, SPINRec(Config(samples=1)).importances(targets, context))
    for unit in range(2):
        (start,) = generator(0, "spinrec", unit).choice([2, 3], 1)
        shared = (PROFILES[unit] > 0) & (TRAINING[start] > 0)
        assert not found[unit, shared].any()


def test_units_do_not_depend_on_each_other(assert_each_unit_stands_alone) -> None:
    profiles, training = sparse.csr_matrix(PROFILES), sparse.csr_matrix(TRAINING)
    targets = Targets.of(
        profiles, np.array([0, 1, 0, 0]), np.array([[7], [8], [6], [8]]), 2, "item", "user-vector"
    )
    context = Context(Network("softmax"), profiles, training, functools.partial(generator, 0))
    assert_each_unit_stands_alone(SPINRec(Config()), targets, context)


def test_without_users_to_learn_from_it_says_what_to_do() -> None:
    targets, context = setting(Network("sigmoid"))
    empty = Context(context.model, context.interactions, context.training * 0, context.generator)
    empty.training.eliminate_zeros()
    with pytest.raises(UserError, match=r"spinrec: .* there are none; explain fewer"):
        SPINRec(Config()).importances(targets, empty)


def test_a_number_of_paths_from_the_empty_profile_is_refused() -> None:
    with pytest.raises(UserError, match="samples: has no effect with baseline: empty"):
        Config(baseline="empty", samples=3)
