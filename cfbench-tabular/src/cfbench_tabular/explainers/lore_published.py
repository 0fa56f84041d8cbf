"""LORE as in its authors' code (Guidotti et al. 2019): ``loop: published``.

Read from github.com/riccotti/LORE (``lore.py``, ``gpdatagenerator.py``, ``pyyadt.py``), which differs from the paper:

- The distance of two rows is, of their categories, the share that differ, and of their numbers var(x - y) / 2 (var(x) +
  var(y)) over the numbers of a row, in the units of the table. Without categories it is 0, so that similarity counts for
  nothing.
- A row is mutated with probability ``mutation``, and each of its columns then with the same probability, to an observed
  value, or to one of 1,000 normal numbers with the mean and the deviation of the column (for categories, 1,000 more
  observed ones).
- The neighbours are those rows of the last generation, and of the best tenth that were ever bred, whose fitness is above
  the widest gap of the fitnesses of the last generation.
- The tree is that of the program YaDT, :mod:`c45`; numbers of whole columns are cut to whole numbers for it.
- A counterfactual rule is compared with the rule that holds for x, not with x, see :mod:`lore_deltas`.

The code ends with an error where all neighbours are of one class, where nothing is above the gap, and for tables whose
columns are all categories; here the first has no counterfactual, the second takes all rows, and in the third the numbers'
part of the distance is 0. The code gives the shortest rules, which it does not try on the model. The counterfactual is x
moved to satisfy one of them: the nearest such row in the other class, or if none is, the nearest, which is then invalid.
Immutable columns, which it does not know, keep their value.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers import c45
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.lore_deltas import Delta, rows_of, shortest_deltas
from cfbench_tabular.explainers.lore_neighbourhood import TOURNAMENT, PackedRows
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

VALUES = 1000
"""Values of a column that are drawn in addition to the observed ones."""
BEST = 0.1
"""Share of a population that the best ever bred amount to."""


class PublishedSearch:
    """The search of the authors' code.

    Args:
        population, generations, crossover, mutation: options of the explainer.
    """

    def __init__(
        self,
        model: Classifier,
        context: Context,
        *,
        population: int,
        generations: int,
        crossover: float,
        mutation: float,
    ) -> None:
        self.model, self.context = model, context
        self.half, self.generations = population // 2, generations
        self.crossover, self.mutation = crossover, mutation
        self.table = _RawRows(context.encoding)
        self.background = self.table.raw(context.background)

    def explanation(self, factuals: Factuals) -> Explanation:
        """(B, d) counterfactuals, NaN without neighbours of both classes, and the details of LORE."""
        found = np.full_like(factuals.vectors, np.nan)
        fidelity, length = (np.full(len(factuals), np.nan) for _ in range(2))
        for place, unit in enumerate(factuals.units):
            row, label = factuals.vectors[place], int(factuals.classes[place])
            stream = self.context.generator(unit)
            values = self.values(stream)
            neighbours = self.neighbours(row, label, values, Draws(stream))
            classes = predicted_classes(self.model, self.table.encoded(neighbours))
            tree = self.tree(neighbours, classes)
            if tree is None:
                continue
            fidelity[place] = (c45.predict(tree, self.table.seen(neighbours)) == classes).mean()
            deltas = shortest_deltas(tree, self.table.raw(row[None])[0], label, self.table.numeric)
            if deltas:
                found[place], length[place] = self.chosen(deltas, row, label)
        return Explanation(found, {"fidelity": fidelity, "rule_length": length})

    def values(self, stream: np.random.Generator) -> list[FloatArray]:
        """For each column what a mutation may set it to."""
        found = []
        for column, observed in enumerate(self.background.T):
            if self.table.numeric[column]:
                drawn = stream.normal(observed.mean(), observed.std(), VALUES)
            else:
                drawn = stream.choice(observed, VALUES)
            found.append(np.concatenate([observed, drawn]))
        return found

    def neighbours(
        self, row: FloatArray, label: int, values: Sequence[FloatArray], draws: Draws
    ) -> FloatArray:
        """(R, C) raw rows bred around a factual (d,): first those of its own class, then of the other."""
        own = self.table.raw(row[None])[0]
        return np.concatenate([self._bred(own, wanted, values, draws) for wanted in (label, 1 - label)])

    def chosen(self, deltas: list[Delta], row: FloatArray, label: int) -> tuple[FloatArray, int]:
        """(d,) the row that satisfies one of the rules, and the number of columns of this rule."""
        rows, columns = rows_of(deltas, row, self.table.raw(row[None])[0], self.context.encoding)
        other = predicted_classes(self.model, rows) != label
        first = int(other.argmax())  # 0 if none is
        return rows[first], int(columns[first])

    def tree(self, neighbours: FloatArray, classes: IntArray) -> c45.Node | None:
        """That of neighbours (R, C) and the classes that the model gives them; None where all are of one class."""
        if len(np.unique(classes)) < 2:
            return None
        return c45.fit(self.table.seen(neighbours), classes, self.table.levels)

    def _bred(self, own: FloatArray, wanted: int, values: Sequence[FloatArray], draws: Draws) -> FloatArray:
        current = np.tile(own, (self.half, 1))
        fitness = self._fitness(current, own, wanted)
        best = _Best(int(np.round(self.half * BEST)))
        best.update(current, fitness)
        for _ in range(self.generations):
            current = current[self._selected(fitness, draws)]
            self._cross(current, draws)
            self._mutate(current, values, draws)
            fitness = self._fitness(current, own, wanted)
            best.update(current, fitness)
        return _above_the_gap(current, fitness, best)

    def _fitness(self, rows: FloatArray, own: FloatArray, wanted: int) -> FloatArray:
        """(R,)."""
        similarity = 1.0 - self._distance(rows, own)
        similarity = np.where(similarity >= 1.0, 0.0, similarity)
        reached = predicted_classes(self.model, self.table.encoded(rows)) == wanted
        return np.asarray(0.5 * similarity + 0.5 * reached)

    def _distance(self, rows: FloatArray, own: FloatArray) -> FloatArray:
        """(R,) of rows (R, C)."""
        numeric = self.table.numeric
        count, categories = len(numeric), int((~numeric).sum())
        if not categories:
            return np.zeros(len(rows))
        differing = 1.0 - (rows[:, ~numeric] == own[~numeric]).sum(axis=1) / categories
        distance = categories / count * differing
        if numeric.any():
            spread = rows[:, numeric].var(axis=1) + own[numeric].var()
            away = 0.5 * (own[numeric] - rows[:, numeric]).var(axis=1)
            distance = distance + numeric.sum() / count * np.where(
                spread > 0, away / np.where(spread > 0, spread, 1), 0
            )
        return np.asarray(distance)

    def _selected(self, fitness: FloatArray, draws: Draws) -> IntArray:
        """(R,) the fittest of three random rows each."""
        drawn = (draws.many(self.half * TOURNAMENT) * self.half).astype(np.int64).reshape(-1, TOURNAMENT)
        return np.asarray(drawn[np.arange(self.half), fitness[drawn].argmax(axis=1)])

    def _cross(self, rows: FloatArray, draws: Draws) -> None:
        """Neighbouring rows exchange the columns between two different cuts."""
        columns = rows.shape[1]
        if columns < 2:
            return
        for place in range(0, len(rows) - 1, 2):
            if draws.one() < self.crossover:
                first, second = 1 + draws.below(columns), 1 + draws.below(columns - 1)
                start, stop = (first, second + 1) if second >= first else (second, first)
                rows[place : place + 2, start:stop] = rows[place : place + 2, start:stop][::-1].copy()

    def _mutate(self, rows: FloatArray, values: Sequence[FloatArray], draws: Draws) -> None:
        for row in rows:
            if draws.one() < self.mutation:
                for column, of_column in enumerate(values):
                    if draws.one() <= self.mutation:
                        value = of_column[draws.below(len(of_column))]
                        row[column] = row[column] if self.table.immutable[column] else value


class Draws:
    """Uniform numbers of a random stream, one after the other."""

    BLOCK = 10_000

    def __init__(self, stream: np.random.Generator) -> None:
        self._stream = stream
        self._numbers: list[float] = []
        self._next = 0

    def one(self) -> float:
        if self._next == len(self._numbers):
            self._numbers, self._next = self._stream.random(self.BLOCK).tolist(), 0
        self._next += 1
        return self._numbers[self._next - 1]

    def many(self, count: int) -> FloatArray:
        """(count,) the next ones."""
        return np.array([self.one() for _ in range(count)])

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count`` - 1."""
        return int(self.one() * count)


class _Best:
    """The fittest different rows that were ever bred; of rows that tie, those bred first stay."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: list[tuple[float, ...]] = []  # the fittest first, of rows that tie the latest
        self.fitness: list[float] = []  # the same, ascending
        self._known: set[tuple[float, ...]] = set()

    def update(self, rows: FloatArray, fitness: FloatArray) -> None:
        for row, value in zip(rows, fitness.tolist(), strict=True):
            full = len(self.rows) == self.size
            if self.size and (not full or value > self.fitness[0]):
                self._add(tuple(row.tolist()), value, full)

    def _add(self, row: tuple[float, ...], value: float, full: bool) -> None:
        if row in self._known:
            return
        if full:
            self._known.remove(self.rows.pop())
            del self.fitness[0]
        at = bisect_right(self.fitness, value)
        self.rows.insert(len(self.rows) - at, row)
        self.fitness.insert(at, value)
        self._known.add(row)


def _above_the_gap(rows: FloatArray, fitness: FloatArray, best: _Best) -> FloatArray:
    """The rows, and the best ones, that are fitter than the fitness below the widest gap (of several, the highest)."""
    ordered = np.sort(fitness)
    gaps = np.diff(ordered)
    threshold = ordered[np.flatnonzero(gaps == gaps.max(initial=0.0))[-1]] if len(gaps) else -np.inf
    chosen = [row for row, value in zip(best.rows, reversed(best.fitness), strict=True) if value > threshold]
    found = np.concatenate([rows[fitness > threshold], np.array(chosen).reshape(-1, rows.shape[1])])
    return found if len(found) else rows


class _RawRows:
    """Rows with one entry for each column: the number in the table's units, or the position of the level of a category."""

    def __init__(self, encoding: Encoding) -> None:
        self.packed_rows = PackedRows(encoding)
        self.numeric: BoolArray = self.packed_rows.numeric
        self.mean = np.where(self.numeric, encoding.mean, 0.0)
        self.scale = np.where(self.numeric, encoding.scale, 1.0)
        self.immutable = np.array([column.immutable for column in encoding.columns])
        self.whole = np.array(
            [column.spacing is not None and float(column.spacing).is_integer() for column in encoding.columns]
        )
        widths = [block.stop - block.start for block in encoding.blocks]
        self.levels = [
            0 if scalar else max(width, 2) for scalar, width in zip(self.numeric, widths, strict=True)
        ]

    def raw(self, vectors: FloatArray) -> FloatArray:
        """(n, C) of encoded rows (n, d)."""
        return np.asarray(self.packed_rows.packed(vectors) * self.scale + self.mean)

    def seen(self, rows: FloatArray) -> FloatArray:
        """(n, C) as the tree sees them: numbers of whole columns without their fraction."""
        return np.where(self.whole, np.trunc(rows), rows)

    def encoded(self, rows: FloatArray) -> FloatArray:
        """(n, d)."""
        return self.packed_rows.unpacked((rows - self.mean) / self.scale)
