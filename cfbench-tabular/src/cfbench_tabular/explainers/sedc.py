"""SEDC: best-first search for the smallest set of columns whose typical values change the class.

Martens & Provost 2014, "Explaining data-driven document classifications"; for tabular data and costs
Fernández-Loría, Provost & Han 2020, "Explaining data-driven decisions made by AI systems: the counterfactual
approach".

Replacing a set E of columns by r (the mean of the training rows; the most frequent level, for categories) gives
x_E = (r_j if j in E else x_j). E explains x if M(x_E) != M(x). The search tries every single column; while no set
explains x, it expands the set that raised the probability of the other class most by each further column. Of the sets
that explain x first, the one with the highest probability is reduced until no proper subset explains x (all subsets
are tried up to ten columns; above, columns are first dropped one by one).

``cost: change`` is the cost-aware search: replacing column j costs |r_j - x_j| (encoded, Euclidean over the positions
of a category), sets are expanded in order of gain per cost, and the cheapest explaining set wins.

For linear log-odds the result is the smallest possible set; in general it is irreducible, but not always smallest.
Departures: replacements are returned exactly as they were tried (the adapter of CF-tabular truncates means); columns
whose typical value is not allowed (immutable, one-way) are in no set; the search ends after ``iterations`` expanded sets;
and where the typical values do not change the class (because the typical row is in the class of the factual), those of
the training rows in the other class replace them, then those of the nearest of these rows (``replacements``). Preset
``as-published``: :mod:`sedc_published <.sedc_published>`.

Several counterfactuals: the search goes on, without the sets that contain one found before, and each further set is reduced
in the same way, so that given enough ``iterations`` all irreducible sets are found. A counterfactual that is closer than
``minimum_distance`` to an earlier one, or contains the changes of another one, is left out. As published, there is one.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.explainers.nearest_enemy import nearest_enemies
from cfbench_tabular.explainers.sedc_published import published_rows
from cfbench_tabular.explainers.spaced_sets import MinimumDistance, SpacedSets
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/sedc",
    summary="Best-first search for the smallest set of columns whose typical value changes the class",
    target=f"{__name__}:SEDC",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=(
        "martens2014explaining",
        "fernandezloria2020explaining",
    ),
    presets="cfbench_tabular:presets/sedc.yaml",
)


EXHAUSTIVE = 10
"""Sets up to this size are reduced by trying every subset."""

Columns = frozenset[int]


@dataclass(frozen=True, kw_only=True)
class Config:
    iterations: Annotated[int, Range(minimum=1), Help("maximum number of expanded sets")] = 100
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the authors' code, with iterations alone, and positions set to their means"),
    ] = "cfbench"
    max_features: Annotated[int | None, Range(minimum=1), Help("largest set; none: all columns")] = None
    replacements: Annotated[
        Literal["typical", "contrasting"],
        Help(
            "typical: means of all training rows, as published; contrasting: where these do not change the class, those "
            "of the training rows in the other class, then the nearest such row"
        ),
    ] = "contrasting"
    cost: Annotated[Literal["none", "change"], Help("none: fewest columns; change: smallest change")] = "none"
    minimum_distance: MinimumDistance = 0.5


@dataclass
class _Search:
    """The state of the search for one factual.

    ``place`` is its number in the whole batch, and ``solutions`` are the irreducible sets found so far.
    """

    factual: int
    place: int
    costs: FloatArray
    baseline: float
    open: list[tuple[float, int, Columns]] = field(default_factory=list)
    seen: set[Columns] = field(default_factory=set)
    solutions: list[Columns] = field(default_factory=list)
    replaceable: list[int] = field(init=False)
    """The columns whose replacement changes something."""

    def __post_init__(self) -> None:
        self.replaceable = np.flatnonzero(self.costs).tolist()

    def solved(self, columns: Columns) -> bool:
        """Whether the set contains a solution."""
        return any(solution <= columns for solution in self.solutions)


class SEDC:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), those of the sets found first come first; (B, d) for k = 1, or as published."""
        if self.config.loop == "published":
            typical = context.background.mean(axis=0)
            return published_rows(model, factuals.vectors, factuals.classes, typical, self.config.iterations)
        size = context.counterfactuals_per_instance
        sets = SpacedSets(factuals.vectors, size, context.encoding, self.config.minimum_distance)
        for number, replacements in enumerate(self._replacements(model, factuals, context)):
            left = sets.unfilled()
            if len(left) == 0:
                break
            part = Factuals(
                factuals.vectors[left], factuals.classes[left], tuple(factuals.units[i] for i in left)
            )
            tried = _Replacement(model, part, context.encoding, replacements(part))
            self._search(tried, left, sets, with_all=number > 0)
        return sets.results()

    def _replacements(
        self, model: Classifier, factuals: Factuals, context: Context
    ) -> Iterator[Callable[[Factuals], FloatArray]]:
        """Functions that return the values (B, d) by which those of factuals are replaced, in the order in which they are
        tried; they equal the factual where there are none."""
        typical = context.encoding.typical(context.background)
        yield lambda part: np.broadcast_to(typical, part.vectors.shape)
        if self.config.replacements == "typical":
            return

        def of_other_class(part: Factuals) -> FloatArray:
            found = part.vectors.copy()
            predicted = predicted_classes(model, context.background)
            for label in (0, 1):
                others = context.background[predicted != label]
                if len(others):
                    found[part.classes == label] = context.encoding.typical(others)
            return found

        def nearest(part: Factuals) -> FloatArray:
            rows = nearest_enemies(model, part, context)
            return np.where(complete(rows)[:, None], rows, part.vectors)

        yield of_other_class
        yield nearest

    def _search(self, tried: _Replacement, places: IntArray, sets: SpacedSets, with_all: bool) -> None:
        """Fills the sets; ``with_all``: where the search ends without a solution, all columns are tried.

        places: (B,) of the factuals in ``sets``.
        """
        searches = [
            _Search(i, place, costs, baseline)
            for i, (place, costs, baseline) in enumerate(zip(places.tolist(), *tried.start(), strict=True))
        ]
        candidates = {s.factual: [frozenset([j]) for j in s.replaceable] for s in searches}
        active = searches
        for _ in range(self.config.iterations):
            self._try(tried, active, candidates, sets)
            active = [search for search in active if search.open and not sets.full(search.place)]
            if not active:
                break
            candidates = {search.factual: self._expand(search) for search in active}
        for search in searches:
            if with_all and not search.solutions:
                everything = self._of_all_columns(tried, search)
                if everything is not None:
                    self._add(tried, search, everything, sets)

    def _add(self, tried: _Replacement, search: _Search, columns: Columns, sets: SpacedSets) -> None:
        """Reduces a set that explains, and adds its row to the counterfactuals."""
        reduced = self._reduce(tried, search, columns)
        search.solutions.append(reduced)
        sets.add(search.place, tried.replaced(np.array([search.factual]), [reduced])[0])

    def _of_all_columns(self, tried: _Replacement, search: _Search) -> Columns | None:
        columns = frozenset(search.replaceable)
        if len(columns) > (self.config.max_features or len(search.costs)):
            return None
        return self._explaining(tried, search, [columns])

    def _try(
        self,
        tried: _Replacement,
        active: list[_Search],
        candidates: dict[int, list[Columns]],
        found: SpacedSets,
    ) -> None:
        """Queries the model for all candidates of all searches at once; updates solutions and open sets."""
        sets = [columns for search in active for columns in candidates[search.factual]]
        factuals = np.array([s.factual for s in active for _ in candidates[s.factual]], dtype=np.int64)
        gains, explains = tried.query(factuals, sets)
        explained = explains.tolist()
        start = 0
        for search in active:
            stop = start + len(candidates[search.factual])
            for columns, gain in zip(sets[start:stop], gains[start:stop].tolist(), strict=True):
                search.seen.add(columns)
                merit = self._merit(search, columns, gain - search.baseline)
                heapq.heappush(search.open, (-merit, len(search.seen), columns))
            good = [i for i in range(start, stop) if explained[i]]
            while good and not found.full(search.place):
                best = self._best(search, [sets[i] for i in good], gains[good])
                self._add(tried, search, best, found)
                good = [i for i in good if not search.solved(sets[i])]
            start = stop

    def _expand(self, search: _Search) -> list[Columns]:
        _, _, columns = heapq.heappop(search.open)
        while search.solved(columns) and search.open:
            _, _, columns = heapq.heappop(search.open)
        if len(columns) == (self.config.max_features or len(search.costs)) or search.solved(columns):
            return []
        wider = (columns | {j} for j in search.replaceable if j not in columns)
        return [
            candidate for candidate in wider if candidate not in search.seen and not search.solved(candidate)
        ]

    def _merit(self, search: _Search, columns: Columns, gain: float) -> float:
        return gain if self.config.cost == "none" else gain / _cost(search, columns)

    def _best(self, search: _Search, sets: list[Columns], gains: FloatArray) -> Columns:
        if self.config.cost == "none":
            return sets[int(gains.argmax())]
        return min(sets, key=lambda columns: _cost(search, columns))

    def _reduce(self, tried: _Replacement, search: _Search, columns: Columns) -> Columns:
        """A subset of ``columns`` that explains and of which no proper subset does."""
        while len(columns) > EXHAUSTIVE:
            smaller = self._explaining(tried, search, [columns - {j} for j in sorted(columns)])
            if smaller is None:
                return columns
            columns = smaller
        subsets = _subsets(columns)
        if self.config.cost == "change":
            subsets = iter([[subset for size in subsets for subset in size]])
        for of_one_size in subsets:
            smaller = self._explaining(tried, search, of_one_size)
            if smaller is not None:
                return smaller
        return columns

    def _explaining(self, tried: _Replacement, search: _Search, sets: list[Columns]) -> Columns | None:
        gains, explains = tried.query(np.full(len(sets), search.factual), sets)
        good = np.flatnonzero(explains)
        return self._best(search, [sets[i] for i in good], gains[good]) if len(good) else None


class _Replacement:
    """Rows with some columns replaced, and their predictions."""

    def __init__(
        self, model: Classifier, factuals: Factuals, encoding: Encoding, replacements: FloatArray
    ) -> None:
        self.model = model
        self.factuals = factuals
        self.blocks = encoding.blocks
        self.column_of_place = encoding.column_of
        allowed, rows = encoding.allowed(factuals.vectors), factuals.vectors
        self.typical = allowed_only(encoding, *allowed, rows, replacements)

    def start(self) -> tuple[FloatArray, list[float]]:
        """(B, M) the cost of replacing each column, 0 where it changes nothing; P(other class) before."""
        squares = (self.factuals.vectors - self.typical) ** 2
        costs = np.sqrt(np.add.reduceat(squares, [block.start for block in self.blocks], axis=1))
        everyone = np.arange(len(self.factuals))
        gains, _ = self._judged(self.factuals.vectors, everyone)
        return costs, gains.tolist()

    def replaced(self, factuals: IntArray, sets: list[Columns]) -> FloatArray:
        """(S, d) factual s with the columns of set s replaced."""
        chosen = np.zeros((len(sets), len(self.blocks)), dtype=bool)
        for place, columns in enumerate(sets):
            chosen[place, list(columns)] = True
        return np.where(
            chosen[:, self.column_of_place], self.typical[factuals], self.factuals.vectors[factuals]
        )

    def query(self, factuals: IntArray, sets: list[Columns]) -> tuple[FloatArray, BoolArray]:
        """(S,) the probability of the other class of factual s, and whether it is the predicted one."""
        return self._judged(self.replaced(factuals, sets), factuals)

    def _judged(self, rows: FloatArray, factuals: IntArray) -> tuple[FloatArray, BoolArray]:
        """The same of rows (S, d)."""
        found = probabilities(self.model, rows)
        classes = self.factuals.classes[factuals]
        other = found[np.arange(len(rows)), 1 - classes]
        return other, (found[:, 1] > found[:, 0]) != (classes == 1)


def _subsets(columns: Columns) -> Iterator[list[Columns]]:
    """The proper, non-empty subsets, those of one size together, smallest first."""
    for size in range(1, len(columns)):
        yield [frozenset(subset) for subset in combinations(sorted(columns), size)]


def _cost(search: _Search, columns: Columns) -> float:
    return float(search.costs[list(columns)].sum())
