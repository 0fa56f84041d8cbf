"""A tiny recommender written out in plain Python: what the metrics' formulas are checked against.

Nothing here uses the package's ranking, observations or answers; it only packs the same case into their
arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from cfbench_recsys.edits import ADD, REMOVE, Edits
from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations
from cfbench_recsys.targets import Targets

Edit = dict[int, int]
"""An edit of one profile: item -> REMOVE or ADD."""


class ProfileModel:
    """The score of j for profile x is b_j + sum_i x_i W_ij: whole numbers, so that many items tie."""

    def __init__(self, weights: Sequence[Sequence[int]], bias: Sequence[int], link: str) -> None:
        self.link = link
        self.weights, self.bias = np.array(weights, dtype=float), np.array(bias, dtype=float)

    def score_profiles(self, profiles: sparse.csr_matrix) -> np.ndarray:
        assert profiles.has_canonical_format
        return profiles @ self.weights + self.bias


class GraphModel:
    """The same model with the interface of a graph recommender."""

    def __init__(
        self, weights: Sequence[Sequence[int]], bias: Sequence[int], link: str, histories: Sequence[set[int]]
    ) -> None:
        self.profile_model, self.histories = ProfileModel(weights, bias, link), histories
        self.link = link

    def score_edits(self, edits: Edits) -> np.ndarray:
        rows = []
        for b, user in enumerate(edits.users):
            profile = set(self.histories[user])
            for e in np.flatnonzero(edits.rows == b):
                item = int(edits.edge_items[e])
                assert (item in profile) == (edits.ops[e] == REMOVE)
                profile ^= {item}
            rows.append(self.profile_model.bias + self.profile_model.weights[sorted(profile)].sum(axis=0))
        return np.array(rows)


@dataclass
class Case:
    """Users with their histories, a model, and the units to explain: (user, the items of the target)."""

    weights: list[list[int]]
    bias: list[int]
    histories: list[set[int]]
    k: int
    level: str
    graph: bool = False
    link: str = "sigmoid"

    # The literal side

    def score(self, profile: set[int], item: int) -> int:
        return self.bias[item] + sum(self.weights[i][item] for i in profile)

    def value(self, profile: set[int], item: int) -> float:
        """f(x)_y by the formula of the link, one number after the other."""
        own = self.score(profile, item)
        if self.link == "sigmoid":
            return 1 / (1 + math.exp(-own))
        if self.link == "softmax":
            return math.exp(own) / sum(math.exp(self.score(profile, j)) for j in range(len(self.bias)))
        return own

    def candidates(self, user: int) -> list[int]:
        return [item for item in range(len(self.bias)) if item not in self.histories[user]]

    def rank(self, user: int, profile: set[int], item: int) -> int:
        own, rank = self.score(profile, item), 1
        for other in self.candidates(user):
            theirs = self.score(profile, other)
            if theirs > own or (theirs == own and other < item):
                rank += 1
        return rank

    def top(self, user: int) -> list[int]:
        ranked = sorted(self.candidates(user), key=lambda item: self.rank(user, self.histories[user], item))
        return ranked[: self.k]

    def units(self) -> list[tuple[int, list[int]]]:
        if self.level == "list":
            return [(user, self.top(user)) for user in range(len(self.histories))]
        return [(user, [item]) for user in range(len(self.histories)) for item in self.top(user)]

    def order(self, user: int, importances: dict[int, float]) -> list[int]:
        """The user's items, the most important first; of equally important ones the lower index first."""
        return sorted(self.histories[user], key=lambda item: (-importances[item], item))

    def after(self, user: int, edit: Edit) -> set[int]:
        added = {item for item, op in edit.items() if op == ADD}
        removed = {item for item, op in edit.items() if op == REMOVE}
        return (self.histories[user] - removed) | added

    def displaced(self, user: int, items: list[int], profile: set[int]) -> int:
        return sum(self.rank(user, profile, item) > self.k for item in items)

    # The same as arrays

    def model(self) -> ProfileModel | GraphModel:
        if self.graph:
            return GraphModel(self.weights, self.bias, self.link, self.histories)
        return ProfileModel(self.weights, self.bias, self.link)

    def interactions(self) -> sparse.csr_matrix:
        dense = np.zeros((len(self.histories), len(self.bias)))
        for user, history in enumerate(self.histories):
            dense[user, sorted(history)] = 1
        return sparse.csr_matrix(dense)

    def targets(self) -> Targets:
        users = np.array([user for user, _ in self.units()])
        width = self.k if self.level == "list" else 1
        items = np.array([items + [-1] * (width - len(items)) for _, items in self.units()])
        return Targets.of(self.interactions(), users, items, self.k, self.level, "user-vector")

    def importance_array(self, importances: list[dict[int, float]]) -> np.ndarray:
        """(units, H), NaN at padding: it must not matter."""
        targets = self.targets()
        array = np.full(targets.history.shape, np.nan)
        for b, of_unit in enumerate(importances):
            for h in np.flatnonzero(~targets.padding[b]):
                array[b, h] = of_unit[int(targets.history[b, h])]
        return array

    def edits(self, edits: list[Edit]) -> Edits:
        rows = [(b, item, op) for b, edit in enumerate(edits) for item, op in edit.items()]
        b, items, ops = (
            (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
            if rows
            else (np.empty(0, dtype=np.int64),) * 3
        )
        users = self.targets().users
        return Edits(users, b, users[b], items, ops.astype(np.int8))

    def implicit(self, importances: list[dict[int, float]]) -> ImplicitObservations:
        return ImplicitObservations(
            self.model(), self.targets(), self.importance_array(importances), self.interactions()
        )

    def explicit(self, edits: list[Edit]) -> ExplicitObservations:
        return ExplicitObservations(self.model(), self.targets(), self.edits(edits), self.interactions())


def _case(draw: Callable, level: str) -> Case:
    items = draw(st.integers(2, 7), label="items")
    small = st.integers(-2, 2)
    return Case(
        weights=draw(
            st.lists(st.lists(small, min_size=items, max_size=items), min_size=items, max_size=items)
        ),
        bias=draw(st.lists(small, min_size=items, max_size=items)),
        histories=draw(
            st.lists(
                st.sets(st.integers(0, items - 1), min_size=1, max_size=items - 1), min_size=1, max_size=3
            )
        ),
        k=draw(st.integers(1, 4), label="k"),
        level=level,
        graph=draw(st.booleans(), label="graph"),
    )


@pytest.fixture(scope="session")
def draw_case() -> Callable[..., Case]:
    """``draw_case(data, level)``: a random case."""
    return lambda data, level: _case(data.draw, level)


@pytest.fixture(scope="session")
def draw_implicit() -> Callable[..., tuple[Case, list[dict[int, float]]]]:
    """``draw_implicit(data, level)``: a random case, and importances for each unit; many are equal."""

    def draw(data: st.DataObject, level: str) -> tuple[Case, list[dict[int, float]]]:
        case = _case(data.draw, level)
        values = st.sampled_from([-1.0, 0.0, 0.5, 2.0])
        return case, [
            {item: data.draw(values) for item in sorted(case.histories[user])} for user, _ in case.units()
        ]

    return draw


@pytest.fixture(scope="session")
def draw_explicit() -> Callable[..., tuple[Case, list[Edit]]]:
    """``draw_explicit(data, level)``: a random case, and an edit for each of its units; some are empty."""

    def draw(data: st.DataObject, level: str) -> tuple[Case, list[Edit]]:
        case = _case(data.draw, level)
        chosen = st.sets(st.integers(0, len(case.bias) - 1), max_size=4)
        return case, [
            {item: REMOVE if item in case.histories[user] else ADD for item in sorted(data.draw(chosen))}
            for user, _ in case.units()
        ]

    return draw


@pytest.fixture(scope="session")
def awkward() -> Callable[[str], Case]:
    """``awkward(level)``: users with 1, 3, 7 and 13 interactions; fewer candidates than K."""

    def make(level: str) -> Case:
        rng = np.random.default_rng(0)
        histories = [{4}, {0, 3, 5}, set(range(13)), {1, 2, 4, 8, 9, 11, 12}, set(range(14)) - {6}]
        return Case(
            rng.integers(-3, 4, (14, 14)).tolist(), rng.integers(-3, 4, 14).tolist(), histories, 4, level
        )

    return make
