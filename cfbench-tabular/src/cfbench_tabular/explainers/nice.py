"""NICE: the nearest unlike neighbour, copied column by column only as far as needed.

Brughmans, Leyman & Martens 2023, "NICE: an algorithm for nearest instance counterfactual explanations".

1. The neighbour u is the training row with M(u) != M(x) = c nearest to x, of those that the model classifies
   correctly. Distance (HEOM): sum over the numbers of |x_j - u_j| / range_j, plus the categories that differ;
   ``scale: deviation`` divides by the standard deviation instead, as the authors' package offers.
2. Start at z = x. Of the columns in which z and u still differ, copy the one with the highest reward, until
   M(z) != c. With p the probability of the other class and z' the row after the copy:

   - ``sparsity``:     p(z') - p(z)
   - ``proximity``:    (p(z') - p(z)) / (d(x, z') - d(x, z)), with the distance above
   - ``plausibility``: (p(z') - p(z)) (t(z) - t(z')), t measuring how unusual a row is

It ends with u at the latest, so that a counterfactual is found wherever there is such a neighbour.

Departures. t is the mean distance to the ``neighbours`` nearest training rows that the model puts into the
other class; the paper measures the error of an autoencoder, which would have to be trained and tuned for each
data set. A product of two losses is a loss here, not a reward as the bare formula has it. Where the model is
right about no row of the other class, any that it puts there will do. Immutable columns and columns that only
go one way are not copied when that is forbidden: u is then the nearest row of which what may be copied
suffices.

Several counterfactuals: the same with the second nearest such row, the third, and so on; a counterfactual that is closer
than ``minimum_distance`` to an earlier one, or contains the changes of another one, is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.spatial.distance import cdist

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.explainers.nearest_enemy import exceeded
from cfbench_tabular.explainers.spaced_sets import MinimumDistance, SpacedSets
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/nice",
    summary="Columns of the nearest training row of the other class, copied only as far as needed",
    target=f"{__name__}:NICE",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("brughmans2023nice",),
    presets="cfbench_tabular:presets/nice.yaml",
)


NUMBERS = 4_000_000
"""Maximum number of distances, or coordinates of candidate rows, that are held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    reward: Annotated[
        Literal["sparsity", "proximity", "plausibility"], Help("what the order of copying optimises")
    ] = "sparsity"
    scale: Annotated[
        Literal["range", "deviation"], Help("unit of numbers in the distance: range, or standard deviation")
    ] = "range"
    right: Annotated[bool, Help("copy only from training rows that the model classifies correctly")] = True
    neighbours: Annotated[
        int, Range(minimum=1), Help("nearest rows that the plausibility is measured with")
    ] = 5
    minimum_distance: MinimumDistance = 0.5


class NICE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), those of the nearest rows first; (B, d) for k = 1."""
        size, encoding = context.counterfactuals_per_instance, context.encoding
        sets = SpacedSets(factuals.vectors, size, encoding, self.config.minimum_distance)
        classes = predicted_classes(model, context.background)
        heom = _HEOM(encoding, self.config.scale)
        for label in (0, 1):
            members = np.flatnonzero(factuals.classes == label)
            donors = context.background[self._donors(context, classes, label)]
            if len(members) == 0 or len(donors) == 0:
                continue
            enemies = donors
            if self.config.reward == "plausibility":
                enemies = context.background[classes != label]
            step = max(1, NUMBERS // len(donors))
            for start in range(0, len(members), step):
                block = members[start : start + step]
                rows = factuals.vectors[block]
                grafts = _Grafts(model, encoding, heom, donors, label)
                if size == 1:
                    targets = grafts.nearest(rows)
                    sets.rows[block, 0] = self._copy(model, heom, rows, targets, label, enemies)
                    continue
                distances = heom.between(rows, donors)
                for place, row, away in zip(block.tolist(), rows, distances, strict=True):
                    for targets in grafts.in_order(row, away):
                        given = np.broadcast_to(row, targets.shape)
                        for found in self._copy(model, heom, given, targets, label, enemies):
                            sets.add(place, found)
                        if sets.full(place):
                            break
        return sets.results()

    def _donors(self, context: Context, classes: IntArray, label: int) -> BoolArray:
        """(n,) the enemies of class ``label`` that are classified correctly; all enemies, if none is."""
        enemy: BoolArray = classes != label
        if not self.config.right or context.labels is None:
            return enemy
        right: BoolArray = enemy & (context.labels == classes)
        return right if right.any() else enemy

    def _copy(
        self,
        model: Classifier,
        heom: _HEOM,
        rows: FloatArray,
        targets: FloatArray,
        label: int,
        enemies: FloatArray,
    ) -> FloatArray:
        """(A, d) from rows (A, d) as far as needed towards targets (A, d); NaN where the target is NaN."""
        current = np.where(np.isnan(targets), np.nan, rows)
        active = np.flatnonzero(~np.isnan(targets).any(axis=1))
        chance = np.zeros(len(rows))
        chance[active] = probabilities(model, rows[active])[:, 1 - label]
        while len(active):
            owner, column = np.nonzero(heom.differing(current[active], targets[active]))
            tried = current[active[owner]]
            copied = heom.column_of[None, :] == column[:, None]
            tried[copied] = targets[active[owner]][copied]
            found = probabilities(model, tried)
            gain = found[:, 1 - label] - chance[active[owner]]
            reward = self._reward(heom, gain, tried, current[active], rows[active], owner, enemies)
            table = np.full((len(active), heom.columns), -np.inf)
            table[owner, column] = reward
            position = np.full(table.shape, -1)
            position[owner, column] = np.arange(len(owner))
            best = position[np.arange(len(active)), table.argmax(axis=1)]
            current[active], chance[active] = tried[best], found[best, 1 - label]
            flipped = (found[best, 1] > found[best, 0]) != (label == 1)
            arrived = (current[active] == targets[active]).all(axis=1)
            active = active[~flipped & ~arrived]
        return current

    def _reward(
        self,
        heom: _HEOM,
        gain: FloatArray,
        tried: FloatArray,
        current: FloatArray,
        rows: FloatArray,
        owner: IntArray,
        enemies: FloatArray,
    ) -> FloatArray:
        """(T,) for rows ``tried`` (T, d), each one copy away from its ``current`` (A, d)[owner]."""
        if self.config.reward == "sparsity":
            return gain
        if self.config.reward == "proximity":
            farther = heom.paired(rows[owner], tried) - heom.paired(rows, current)[owner]
            return np.asarray(gain / farther)
        better = self._unusual(heom, current, enemies)[owner] - self._unusual(heom, tried, enemies)
        product = gain * better
        return np.where((gain < 0) & (better < 0), -product, product)

    def _unusual(self, heom: _HEOM, rows: FloatArray, enemies: FloatArray) -> FloatArray:
        count = min(self.config.neighbours, len(enemies))
        step = max(1, NUMBERS // len(enemies))
        blocks = [heom.between(rows[at : at + step], enemies) for at in range(0, len(rows), step)]
        return np.concatenate([np.partition(b, count - 1, axis=1)[:, :count].mean(axis=1) for b in blocks])


class _HEOM:
    """The distance of the paper between encoded rows, and what belongs to which column."""

    def __init__(self, encoding: Encoding, scale: str) -> None:
        self.columns = len(encoding.columns)
        self.column_of = encoding.column_of
        self.starts = [block.start for block in encoding.blocks]
        self.numeric = encoding.numeric
        low, high = encoding.bounds
        # Encoded numbers are in standard deviations.
        span = np.where((high > low) & (scale == "range"), high - low, 1.0)
        in_group = np.zeros(encoding.width, dtype=bool)
        for group in encoding.groups:
            in_group[group] = True
        # A category that changes moves two places by 1 each, a two-valued column one place.
        self.weight = np.where(encoding.numeric, 1 / span, np.where(in_group, 0.5, 1.0))

    def between(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """(A, n) for rows (A, d) and others (n, d)."""
        scale = self.weight[self.numeric]
        numbers = cdist(rows[:, self.numeric] * scale, others[:, self.numeric] * scale, "cityblock")
        if self.numeric.all():
            return np.asarray(numbers)
        # |a - b| = a + b - 2ab for zeros and ones: one matrix product instead of a distance.
        mine, theirs = rows[:, ~self.numeric], others[:, ~self.numeric]
        weight = self.weight[~self.numeric]
        shared = (mine * (2 * weight)) @ theirs.T
        return np.asarray(numbers + (mine @ weight)[:, None] + (theirs @ weight)[None, :] - shared)

    def paired(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        """(A,) for rows and others (A, d)."""
        return np.asarray(np.abs(rows - others) @ self.weight)

    def differing(self, rows: FloatArray, others: FloatArray) -> BoolArray:
        """(A, M) in which columns rows and others (A, d) differ."""
        return np.asarray(np.logical_or.reduceat(rows != others, self.starts, axis=1))


@dataclass(frozen=True)
class _Grafts:
    """Rows with all columns of a donor that may be copied: the donor itself without constraints."""

    model: Classifier
    encoding: Encoding
    heom: _HEOM
    donors: FloatArray
    label: int

    def nearest(self, rows: FloatArray) -> FloatArray:
        """(A, d) for each row (A, d) the graft of the nearest donor whose graft is of the other class, or NaN."""
        distances = self.heom.between(rows, self.donors)
        if not len(exceeded(self.encoding, rows, self.donors)):
            return np.asarray(self.donors[distances.argmin(axis=1)])
        found = np.full_like(rows, np.nan)
        for place, row in enumerate(rows):
            for grafts in self.in_order(row, distances[place]):
                found[place] = grafts[0]
                break
        return found

    def in_order(self, row: FloatArray, distances: FloatArray) -> Iterator[FloatArray]:
        """The grafts (n, d) of one row (d,) that are of the other class, a part at a time, those of near donors first.

        distances: (D,) of the donors.
        """
        constrained = len(self.encoding.restricted) > 0
        low, high = (side[0] for side in self.encoding.allowed(row[None]))
        order = distances.argsort(kind="stable")
        for part in _growing(len(order)):
            donors = self.donors[order[part]]
            if constrained:
                grafts = allowed_only(self.encoding, low, high, row, donors)
                donors = grafts[predicted_classes(self.model, grafts) != self.label]
            if len(donors):
                yield donors


def _growing(length: int) -> Iterator[slice]:
    """Slices of 64, 128, 256, ... that make up ``range(length)``."""
    start, size = 0, 64
    while start < length:
        yield slice(start, start + size)
        start, size = start + size, size * 2
