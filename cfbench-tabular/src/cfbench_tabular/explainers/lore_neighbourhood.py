"""The neighbourhood of LORE: two populations around each factual, bred by a genetic algorithm.

Rows are bred *packed*, with one entry for each column: the encoded number, or the position of the level of a category.
They are unpacked to encoded rows only where the model or the tree reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

TOURNAMENT = 3
SAMPLE = 1000
"""Training rows of the other class among which the nearest are looked for."""
NEAREST = 50
"""Training rows of the other class with which the first generation is mixed."""


class Options(Protocol):
    """What breeding reads of the configuration."""

    @property
    def start(self) -> str: ...
    @property
    def generations(self) -> int: ...
    @property
    def crossover(self) -> float: ...
    @property
    def mutation(self) -> float: ...


class PackedRows:
    """The encoded rows of an encoding with one entry for each column."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.starts = np.array([block.start for block in encoding.blocks])
        self.numeric: BoolArray = encoding.numeric[self.starts]
        self._in_group = np.zeros(encoding.width, dtype=bool)
        for block in encoding.groups:
            self._in_group[block] = True
        self._level = (np.arange(encoding.width) - self.starts[encoding.column_of])[self._in_group]

    def packed(self, rows: FloatArray) -> FloatArray:
        """(n, C) of encoded rows (n, d)."""
        found = rows[:, self.starts].copy()
        for column, block in enumerate(self.encoding.blocks):
            if block.stop - block.start > 1:
                found[:, column] = rows[:, block].argmax(axis=1)
        return found

    def unpacked(self, packed: FloatArray) -> FloatArray:
        """(..., d) of packed rows (..., C)."""
        if not self._in_group.any():
            return packed
        found = packed[..., self.encoding.column_of]
        found[..., self._in_group] = found[..., self._in_group] == self._level
        return found

    def allowed(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, C) and (n, C): the least and greatest entry that counterfactuals of the rows (n, d) may have."""
        low, high = (side[:, self.starts].copy() for side in self.encoding.allowed(rows))
        own = self.packed(rows)
        for column, block in enumerate(self.encoding.blocks):
            if block.stop - block.start > 1:
                fixed = self.encoding.columns[column].immutable
                low[:, column] = own[:, column] if fixed else 0.0
                high[:, column] = own[:, column] if fixed else block.stop - block.start - 1.0
        return low, high


class Neighbourhoods:
    """Breeds the two populations of A factuals: (A, 2, H, C) packed, that of the same class first."""

    def __init__(self, options: Options, model: Classifier, context: Context, half: int) -> None:
        self.options, self.model, self.half = options, model, half
        self.rows = PackedRows(context.encoding)
        self.background = self.rows.packed(context.background)
        low, high = context.encoding.bounds
        span = np.where(high > low, high - low, 1.0)[self.rows.starts]
        self.span = np.where(self.rows.numeric, span, 1.0)
        self.of_class: list[IntArray] = []
        if options.start == "enemies":
            found = predicted_classes(model, context.background)
            self.of_class = [np.flatnonzero(found == label) for label in (0, 1)]

    def bred(
        self, factuals: FloatArray, classes: IntArray, streams: Sequence[np.random.Generator]
    ) -> tuple[FloatArray, IntArray]:
        """(A, 2 H, d) encoded neighbours of the factuals (A, d), and the classes (A, 2 H) that the model gives them."""
        own = self.rows.packed(factuals)[:, None, None]
        low, high = (side[:, None, None] for side in self.rows.allowed(factuals))

        def allowed(rows: FloatArray) -> FloatArray:
            return np.where((rows < low) | (rows > high), own, rows)

        current = allowed(self._first(own, classes, streams))
        found, encoded = self._predicted(current)
        for _ in range(self.options.generations):
            chosen = self._selected(current, self._fitness(current, own, classes, found), streams)
            current = allowed(self._mutated(self._crossed(chosen, streams), streams))
            found, encoded = self._predicted(current)
        labels = (found[..., 1] > found[..., 0]).astype(np.int64)
        return encoded.reshape(len(factuals), -1, factuals.shape[1]), labels.reshape(len(factuals), -1)

    def _first(
        self, own: FloatArray, classes: IntArray, streams: Sequence[np.random.Generator]
    ) -> FloatArray:
        """(A, 2, H, C) copies of the factuals; with ``start: enemies`` changed, see :mod:`lore`."""
        current = np.tile(own, (1, 2, self.half, 1))
        if self.options.start == "copies":
            return current
        same = self._mutated(current[:, :1], streams)[:, 0]
        for place, stream in enumerate(streams):
            current[place, 0] = same[place]
            enemies = self.of_class[1 - int(classes[place])]
            if len(enemies):
                current[place, 1] = self._mixed(own[place, 0, 0], enemies, stream)
        return current

    def _mixed(self, own: FloatArray, enemies: IntArray, stream: np.random.Generator) -> FloatArray:
        """(H, C) the factual with some columns of one of the nearest rows of the other class each."""
        drawn = self.background[enemies[stream.integers(len(enemies), size=SAMPLE)]]
        order = np.argsort(self._distance(drawn, own), kind="stable")[:NEAREST]
        donors = drawn[order][stream.integers(len(order), size=self.half)]
        shares = stream.random((self.half, 1))
        return np.where(stream.random(donors.shape) < shares, donors, own)

    def _predicted(self, current: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(A, 2, H, 2) probabilities of class 0 and class 1, and the encoded rows (A, 2, H, d)."""
        encoded = self.rows.unpacked(current)
        flat = encoded.reshape(-1, encoded.shape[-1])
        return probabilities(self.model, flat).reshape(*current.shape[:-1], 2), encoded

    def _fitness(
        self, current: FloatArray, own: FloatArray, classes: IntArray, found: FloatArray
    ) -> FloatArray:
        """(A, 2, H)."""
        distance = self._distance(current, own)
        wanted = np.stack([classes, 1 - classes], axis=1)[:, :, None]
        reached = (found[..., 1] > found[..., 0]) == (wanted == 1)
        chance = np.where(wanted == 1, found[..., 1], found[..., 0])
        return np.asarray(np.where(reached, 1.0, chance) + 1 - distance - (distance == 0))

    def _distance(self, rows: FloatArray, own: FloatArray) -> FloatArray:
        """(...) the paper's distance of packed rows (..., C)."""
        numeric = self.rows.numeric
        away = (rows - own) / self.span
        squares = (away[..., numeric] ** 2).sum(axis=-1) if not numeric.all() else (away**2).sum(axis=-1)
        distance = np.sqrt(squares * numeric.sum()) / len(numeric)
        if not numeric.all():
            distance = distance + (away[..., ~numeric] != 0).sum(axis=-1) / len(numeric)
        return np.asarray(distance)

    def _selected(
        self, current: FloatArray, fitness: FloatArray, streams: Sequence[np.random.Generator]
    ) -> FloatArray:
        """Tournament selection: the fittest of three random neighbours."""
        shape = (2, self.half, TOURNAMENT)
        drawn = np.stack([stream.integers(self.half, size=shape, dtype=np.int32) for stream in streams])
        who, kind = np.arange(len(current))[:, None, None], np.arange(2)[None, :, None]
        best = fitness[who[..., None], kind[..., None], drawn].argmax(axis=-1)
        winner = np.take_along_axis(drawn, best[..., None], axis=-1)[..., 0]
        return np.asarray(current[who, kind, winner])

    def _crossed(self, current: FloatArray, streams: Sequence[np.random.Generator]) -> FloatArray:
        """Neighbours exchange the columns between two cuts."""
        columns, shape = current.shape[-1], (2, self.half // 2)
        cuts = np.stack([stream.integers(columns + 1, size=(*shape, 2)) for stream in streams])
        cuts.sort(axis=-1)
        crossing = np.stack([stream.random(shape) for stream in streams]) < self.options.crossover
        number = np.arange(columns)
        between = (number >= cuts[..., :1]) & (number < cuts[..., 1:]) & crossing[..., None]
        pairs = current.reshape(*current.shape[:2], self.half // 2, 2, columns)
        return np.where(between[..., None, :], pairs[..., ::-1, :], pairs).reshape(current.shape)

    def _mutated(self, current: FloatArray, streams: Sequence[np.random.Generator]) -> FloatArray:
        """Each column takes, with probability ``mutation``, the value of a random training row."""
        mutated, columns = current.copy(), current.shape[-1]
        for rows, stream in zip(mutated, streams, strict=True):
            flat = rows.reshape(-1)
            places = np.flatnonzero(stream.random(flat.shape, dtype=np.float32) < self.options.mutation)
            donors = stream.integers(len(self.background), size=len(places))
            flat[places] = self.background[donors, places % columns]
        return mutated
