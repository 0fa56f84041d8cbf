"""Small recommenders and data sets to explain, shared by the tests of all explainers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from cfbench_core.lifecycle.streams import generator
from cfbench_recsys.edits import Edits
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_once
from cfbench_recsys.targets import Context, Targets


@dataclass
class Linear:
    """Logit ``bias + x W``. Access scores and weights. Counts how many profiles it scored."""

    W: np.ndarray
    bias: np.ndarray
    scored: int = 0

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        self.scored += profiles.shape[0]
        return profiles @ self.W + self.bias

    def weights(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        return self.W[rows, columns]


@dataclass
class Curved:
    """Logit ``tanh(x W) V``: items of a profile act together. Access scores only."""

    W: np.ndarray
    V: np.ndarray

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        hidden = np.tanh(profiles @ self.W)
        return np.stack([(hidden * column).sum(axis=1) for column in self.V.T], axis=1)


class Strongest:
    """Score ``max_i x_i W[i, y]``: not linear, and its parameters happen to be called ``weights``. Access scores only."""

    def __init__(self, weights: np.ndarray) -> None:
        self.weights = weights

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        return np.stack([(self.weights * row[:, None]).max(axis=0) for row in profiles.toarray()])


@dataclass(frozen=True)
class World:
    """A recommender and the profiles it recommends from; training users are those given apart."""

    model: Any
    profiles: sparse.csr_matrix
    training: sparse.csr_matrix

    @staticmethod
    def of(
        model: Any, histories: Sequence[Iterable[int]], items: int, training: Sequence[Iterable[int]] = ()
    ) -> World:
        return World(model, binary(histories, items), binary(training, items))

    @property
    def context(self) -> Context:
        return Context(self.model, self.profiles, self.training, functools.partial(generator, 0))

    def targets(
        self, users: Sequence[int], items: Sequence[int] | Sequence[Sequence[int]], k: int = 1
    ) -> Targets:
        """Item level when each user has one item, else list level."""
        columns = np.array(items, dtype=np.int64).reshape(len(users), -1)
        level = "item" if columns.shape[1] == 1 else "list"
        return Targets.of(self.profiles, np.array(users), columns, k, level, "user-vector")

    def lists(self, k: int) -> np.ndarray:
        """(users, k) what is recommended."""
        all_users = np.arange(self.profiles.shape[0])
        seen = self.targets(all_users, np.zeros(len(all_users)))
        scores = score_once(self.model, Edits.nothing(all_users), self.profiles)
        return top_k(scores, seen.history, seen.padding, k)


def binary(rows: Sequence[Iterable[int]], items: int) -> sparse.csr_matrix:
    matrix = np.zeros((len(rows), items))
    for row, chosen in enumerate(rows):
        matrix[row, list(chosen)] = 1.0
    return sparse.csr_matrix(matrix)


@pytest.fixture
def world() -> Callable[..., World]:
    return World.of


@pytest.fixture
def linear() -> Callable[..., Linear]:
    """A linear recommender with random coefficients, or with those given."""

    def make(W: Any = None, bias: Any = None, items: int = 12, seed: int = 0) -> Linear:
        draw = np.random.default_rng(seed)
        matrix = draw.normal(size=(items, items)) if W is None else np.array(W, dtype=np.float64)
        return Linear(matrix, np.zeros(len(matrix)) if bias is None else np.array(bias, dtype=np.float64))

    return make


@pytest.fixture
def curved() -> Callable[[int, int], Curved]:
    def make(items: int, seed: int) -> Curved:
        draw = np.random.default_rng(seed)
        return Curved(draw.normal(size=(items, 5)), draw.normal(size=(5, items)))

    return make


@pytest.fixture
def assert_each_unit_stands_alone() -> Callable[..., None]:
    """Bit for bit: units explained one by one, in another order, and together give the same numbers."""

    def check(explainer: Any, targets: Targets, context: Context) -> None:
        together = explainer.importances(targets, context)
        backwards = explainer.importances(targets.take(np.arange(len(targets))[::-1]), context)[::-1]
        assert np.array_equal(together, backwards)
        for unit in range(len(targets)):
            alone = explainer.importances(targets.take(slice(unit, unit + 1)), context)[0]
            assert np.array_equal(together[unit, : len(alone)], alone)

    return check


@pytest.fixture
def awkward(world: Any, linear: Any) -> World:
    """Users with one interaction, with all but one, and with hundreds; two equal users; 420 items."""
    draw = np.random.default_rng(5)
    histories = [
        [7],
        range(419),
        draw.choice(400, 150, replace=False),
        [1, 2, 3],
        [1, 2, 3],
        draw.choice(400, 20, replace=False),
    ]
    training = [draw.choice(419, 30, replace=False) for _ in range(40)]
    return world(linear(items=420), histories, 420, training)


@pytest.fixture
def step_that_pools_miss(world: Any, linear: Any) -> tuple[World, Targets]:
    """After 0, the best alone, 1 (the next best alone) lowers the margin of item 3 no more, but 2 does and succeeds.

    Item 3 scores 2.4; its rivals 4 and 5 have 0 and -1. Without 0 item 5 has 2; 1 is about item 4 only.
    """
    W = np.zeros((6, 6))
    W[0, 5], W[1, 4], W[2, 3] = -3.0, -1.0, 0.5
    setting = world(linear(W, bias=[0, 0, 0, 1.9, 1.0, 2.0]), [[0, 1, 2]], 6)
    return setting, setting.targets([0], [3])


@pytest.fixture(scope="session")
def make_world() -> Callable[..., World]:
    """The same as ``world``, for tests that hypothesis runs many times."""
    return World.of


@pytest.fixture(scope="session")
def make_models() -> Callable[[int, int, bool], Any]:
    """A recommender with random numbers on a coarse grid, so that ties happen; linear, or bent."""

    def make(items: int, seed: int, bent: bool) -> Any:
        draw = np.random.default_rng(seed)
        if bent:
            return Curved(draw.integers(-2, 3, (items, 3)) / 2, draw.integers(-2, 3, (3, items)) / 2)
        return Linear(draw.integers(-3, 4, (items, items)) / 4, draw.integers(-1, 2, items) / 4)

    return make


@pytest.fixture(scope="session")
def strongest() -> Callable[[int, int], Strongest]:
    """A recommender that is not linear but has an attribute ``weights``."""
    return lambda items, seed: Strongest(np.random.default_rng(seed).integers(0, 4, (items, items)) / 4)


@pytest.fixture(scope="session")
def count_gone() -> Callable[..., int]:
    """How many of some items leave the user's top K when interactions are removed: the slow, literal way."""

    def count(setting: World, user: int, removed: Iterable[int], items: Iterable[int], k: int) -> int:
        profile = setting.profiles[[user]].tolil()
        profile[0, list(removed)] = 0.0
        scores = np.rint(setting.model.score_profiles(profile.tocsr())[0] * 2.0**30)
        scores[setting.profiles[user].indices] = -np.inf
        ahead = [
            sum(scores[j] > scores[i] or (scores[j] == scores[i] and j < i) for j in range(len(scores)))
            for i in items
            if i >= 0
        ]
        return sum(number >= k for number in ahead)

    return count


@pytest.fixture(scope="session")
def smallest_by_brute_force(count_gone: Callable[..., int]) -> Callable[..., tuple[int, int]]:
    """(most items that some set of at most ``max_size`` displaces, fewest removals that do; 0 when none does)."""

    def search(
        setting: World, user: int, items: Sequence[int], k: int, max_size: int = 99
    ) -> tuple[int, int]:
        history = setting.profiles[user].indices
        most, size = 0, 0
        for count in range(1, min(max_size, len(history)) + 1):
            gone = max(count_gone(setting, user, s, items, k) for s in combinations(history, count))
            if gone > most:
                most, size = gone, count
        return most, size

    return search
