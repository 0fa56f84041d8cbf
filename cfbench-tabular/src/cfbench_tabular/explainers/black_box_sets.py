"""What the model-agnostic variants of DiCE share: options, random values of columns, and the choice of the set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.explainers.counterfactual_sets import (
    SetSparsifier,
    apart,
    distances,
    diverse_subset,
    inverse_deviations,
)
from cfbench_tabular.explainers.descent import flips
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

ROUNDS = 8
"""How often a set is filled up at most."""


@dataclass(frozen=True, kw_only=True)
class SetOptions:
    """The objective of a set, and how the set is made sparse."""

    proximity: Annotated[float, Range(minimum=0), Help("weight of the distance to the factual")] = 0.5
    changes: Annotated[float, Range(minimum=0), Help("weight of the share of changed columns")] = 0.2
    diversity: Annotated[float, Range(minimum=0), Help("weight of the determinant")] = 1.0
    minimum_distance: Annotated[
        float,
        Range(minimum=0),
        Help(
            "between two counterfactuals of a factual: L2 of encoded rows, 0.5 is half a standard deviation"
        ),
    ] = 0.5
    sparsity: Annotated[Literal["linear", "binary", "none"], Help("how numbers are reset")] = "binary"
    restored: Annotated[Literal["numbers", "all"], Help("columns that are reset")] = "all"


class SetSearch:
    """Model queries, random values and the objective, for B factuals.

    Attributes:
        size: k, the number of counterfactuals of a factual.
        free: (M,) which columns are not immutable.
        streams: the random stream of each factual.
    """

    def __init__(self, options: SetOptions, model: Classifier, factuals: Factuals, context: Context) -> None:
        self.options, self.model, self.factuals = options, model, factuals
        self.encoding, self.background = context.encoding, context.background
        self.size = context.counterfactuals_per_instance
        self.limits = self.encoding.limits(factuals.vectors)
        self.dominance = Dominance(self.encoding, factuals.vectors)
        self.weights = inverse_deviations(context.background, self.encoding)
        self.free = np.array([not column.immutable for column in self.encoding.columns])
        self.streams = [context.generator(unit) for unit in factuals.units]

    def valid(self, rows: FloatArray, owner: IntArray) -> BoolArray:
        """(r,) whether the rows (r, d) are in the other class than their factuals, and fulfil all constraints."""
        found: BoolArray = flips(self.model, rows, self.factuals.classes[owner])
        return found & self.encoding.constraints_hold(rows)

    def admissible(self, rows: FloatArray, place: int) -> FloatArray:
        """(r, d) the rows with columns outside the limits of factual ``place`` reset, and numbers at their steps."""
        own, low, high = self.factuals.vectors[place], self.limits.low[place], self.limits.high[place]
        allowed = allowed_only(self.encoding, low, high, own, rows)
        snapped: FloatArray = self.limits.snapped(allowed[None], np.array([place]))[0]
        return snapped

    def random_rows(self, place: int, count: int) -> FloatArray:
        """(count, d) admissible rows in which every free column has a random value.

        Numbers are uniform in their range; each category has a level other than the factual's.
        """
        stream, own = self.streams[place], self.factuals.vectors[place]
        low, high = self.limits.low[place], self.limits.high[place]
        rows: FloatArray = low + stream.random((count, self.encoding.width)) * (high - low)
        for column, block in zip(self.encoding.columns, self.encoding.blocks, strict=True):
            width = block.stop - block.start
            if column.scalar:
                continue
            if width == 1:
                rows[:, block] = 1 - own[block]
                continue
            level = (own[block].argmax() + 1 + stream.integers(width - 1, size=count)) % width
            rows[:, block] = np.eye(width)[level]
        return self.admissible(rows, place)

    def costs(self, rows: FloatArray, place: int) -> FloatArray:
        """(r,) proximity times the distance per position, plus ``changes`` times the share of changed columns."""
        own = self.factuals.vectors[place]
        starts = [block.start for block in self.encoding.blocks]
        changed = np.logical_or.reduceat(rows != own, starts, axis=1).mean(axis=1)
        away = distances(rows, own, self.weights) / self.encoding.width
        found: FloatArray = self.options.proximity * away + self.options.changes * changed
        return found

    def subset(
        self,
        rows: FloatArray,
        place: int,
        penalty: FloatArray | None = None,
        chosen: Sequence[int] = (),
    ) -> list[int]:
        """The indices of at most k of the rows (r, d): a diverse set of low costs, plus ``penalty`` (r,).

        They are ``minimum_distance`` apart, and of those without a penalty none contains the changes of another one.

        chosen: what is in the set in any case.
        """
        costs = self.costs(rows, place) + (0.0 if penalty is None else penalty)
        fine = np.ones(len(rows), dtype=np.bool_) if penalty is None else penalty == 0

        def alternatives(index: int) -> BoolArray:
            found = apart(rows, rows[index], self.options.minimum_distance)
            if fine[index] and self.size > 1:
                contains = self.dominance.of(place, rows, rows[index])
                found &= ~((contains | self.dominance.of(place, rows[index], rows)) & fine)
            found[index] = False
            return found

        worth = self.options.diversity
        return diverse_subset(rows, costs, self.size, self.weights, worth, alternatives, chosen)

    def results(self, pools: list[FloatArray]) -> FloatArray:
        """(B, k, d) a set from the valid rows (r, d) of each factual, made sparse; the closest first, then NaN.

        Where rows turn out not to be alternatives once they are sparse, others from the pool take their places.
        """
        sparsifier = SetSparsifier(
            self.encoding,
            self.dominance,
            self.limits,
            self.valid,
            self.weights,
            self.options.minimum_distance,
            self.options.sparsity,
            self.options.restored,
        )
        sets: FloatArray = np.full((len(self.factuals), self.size, self.encoding.width), np.nan)
        settled = np.zeros(len(sets), dtype=np.int64)
        left = [np.unique(pool + 0.0, axis=0) for pool in pools]  # + 0.0 turns -0.0 into 0.0
        for _ in range(ROUNDS):
            added = [self._fill(sets[place], int(settled[place]), left, place) for place in range(len(sets))]
            if not any(added):
                break
            sets = sparsifier.sparse(sets, settled)
            settled = complete(sets.reshape(-1, sets.shape[2])).reshape(sets.shape[:2]).sum(axis=1)
        return sets

    def _fill(self, rows: FloatArray, count: int, left: list[FloatArray], place: int) -> bool:
        """Adds to the first ``count`` of the rows (k, d) others, which are then no longer ``left``."""
        pool = left[place]
        if count == self.size or len(pool) == 0:
            return False
        both = np.concatenate([rows[:count], pool])
        chosen = np.array(self.subset(both, place, chosen=range(count)), dtype=np.int64)
        rows[: len(chosen)] = both[chosen]
        left[place] = np.delete(pool, chosen[count:] - count, axis=0)
        return len(chosen) > count
