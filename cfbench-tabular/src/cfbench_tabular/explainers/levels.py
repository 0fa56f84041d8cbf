"""Levels of categories as positions on a line, so that gradient descent can move between them.

Van Looveren & Klaise 2021, "Interpretable counterfactual explanations guided by prototypes":
distances between the levels of a column are measured on the training rows, then multidimensional scaling puts
the levels on a line that approximates the distances.

- MVDM (modified value difference metric, Cost & Salzberg 1993): d(a, b) = sum over the classes y, as the
  model predicts them, of |P(y | a) - P(y | b)|.
- ABDM (association-based, Le & Ho 2005): d(a, b) = sum over the other columns of the symmetric Kullback-Leibler
  divergence of their values given a and given b; numbers in ``BINS`` bins with equally many rows; one row is
  added to every count, so that no probability is 0.

Scaling is the classical one (double centring, first eigenvector), the line is stretched until two levels are
1 apart on average, and levels closer than ``GAP`` are moved apart in their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray, IntArray

BINS = 10
GAP = 0.05


def levels_in(rows: FloatArray, encoding: Encoding, column: int) -> IntArray:
    """(n,) the level that each of the rows (n, d) has in a categorical column."""
    part = rows[:, encoding.blocks[column]]
    found: IntArray = part[:, 0].astype(np.int64) if part.shape[1] == 1 else part.argmax(axis=1)
    return found


def mvdm(levels: IntArray, size: int, classes: IntArray) -> FloatArray:
    """(size, size) distances of the levels of a column, from the levels (n,) and predicted classes (n,) of rows.

    A level without rows gets the class shares of all rows.
    """
    counts = np.stack([np.bincount(levels[classes == label], minlength=size) for label in (0, 1)], axis=1)
    totals = counts.sum(axis=1, keepdims=True)
    overall = counts.sum(axis=0) / max(1, counts.sum())
    shares = np.where(totals > 0, counts / np.maximum(totals, 1), overall)
    found: FloatArray = np.abs(shares[:, None] - shares[None]).sum(axis=2)
    return found


def abdm(levels: IntArray, size: int, others: list[IntArray]) -> FloatArray:
    """(size, size) distances of the levels of a column, from those (n,) of all other columns, numbers in bins."""
    found = np.zeros((size, size))
    for other in others:
        values = int(other.max(initial=0)) + 1
        counts = np.bincount(levels * values + other, minlength=size * values).reshape(size, values) + 1.0
        shares = counts / counts.sum(axis=1, keepdims=True)
        logs = np.log2(shares)
        own = (shares * logs).sum(axis=1)
        cross = shares @ logs.T
        found += own[:, None] + own[None] - cross - cross.T
    return found


def binned(values: FloatArray) -> IntArray:
    """(n,) the bin of each number, of ``BINS`` with about equally many."""
    edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS)) if len(values) else values
    found: IntArray = np.searchsorted(edges, values, side="right").astype(np.int64)
    return found


def on_a_line(distances: FloatArray) -> FloatArray:
    """(L,) positions of L levels on a line, whose differences approximate the distances (L, L)."""
    size = len(distances)
    centring = np.eye(size) - 1 / size
    _, vectors = np.linalg.eigh(-0.5 * centring @ distances**2 @ centring)
    places: FloatArray = vectors[:, -1] if distances.any() else np.arange(size, dtype=np.float64)
    places *= 1.0 if places[np.abs(places).argmax()] > 0 else -1.0
    places /= np.abs(places[:, None] - places[None]).sum() / (size * (size - 1))
    order = np.argsort(places.round(9), kind="stable")
    for before, after in pairwise(order):
        places[after] = max(places[after], places[before] + GAP)
    return places


@dataclass(frozen=True)
class Line:
    """A column as one coordinate.

    Attributes:
        places: (L,) where its levels are, ascending; empty for a number.
        positions: (L,) the position in the encoded vector of each of these levels; (1,) for a number.
        values: (L,) the value at that position for the level: 1, but 0 for the first of two levels.
    """

    places: FloatArray
    positions: IntArray
    values: FloatArray


class Space:
    """Rows as points with one coordinate per column, for moves between levels.

    The arrays of the lines are padded to the same length, so that all columns are processed at once.

    Attributes:
        groups: categories that have about equally many levels, by their places in ``categories``, and the most levels.
    """

    def __init__(self, lines: list[Line], width: int) -> None:
        self.width = width
        self.numbers = np.flatnonzero([len(line.places) == 0 for line in lines])
        self.number_positions = np.array(
            [lines[column].positions[0] for column in self.numbers], dtype=np.int64
        )
        self.categories = np.flatnonzero([len(line.places) > 0 for line in lines])
        categories = [lines[column] for column in self.categories]
        longest = max((len(line.places) for line in categories), default=0)
        self.sizes = np.array([len(line.places) for line in categories], dtype=np.int64)
        self.places = np.full((len(categories), longest), np.inf)
        self.positions = np.zeros((len(categories), longest), dtype=np.int64)
        self.values = np.zeros((len(categories), longest))
        for row, line in enumerate(categories):
            size = len(line.places)
            self.places[row, :size], self.positions[row, :size] = line.places, line.positions
            self.values[row, :size] = line.values
        self.each = np.arange(len(categories))[None, :]
        doublings = np.ceil(np.log2(self.sizes))
        members = [np.flatnonzero(doublings == each) for each in np.unique(doublings)]
        self.groups = [(part, int(self.sizes[part].max())) for part in members]

    @property
    def size(self) -> int:
        """M, the number of coordinates."""
        return len(self.numbers) + len(self.categories)

    @staticmethod
    def of_places(encoding: Encoding) -> Space:
        """Every position of the encoded vector is a coordinate; categories are ignored."""
        none = np.empty(0)
        return Space([Line(none, np.array([place]), none) for place in range(encoding.width)], encoding.width)

    @staticmethod
    def of_columns(encoding: Encoding, background: FloatArray, classes: IntArray, metric: str) -> Space:
        """One coordinate per column; levels on lines by the ``metric`` mvdm or abdm.

        background: (n, d) rows; classes: (n,) as predicted.
        """
        coded = [
            binned(background[:, block.start]) if column.scalar else levels_in(background, encoding, place)
            for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True))
        ]
        lines = []
        for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True)):
            start = block.start
            if column.scalar:
                lines.append(Line(np.empty(0), np.array([start]), np.empty(0)))
                continue
            size = len(column.levels)
            if metric == "mvdm":
                distances = mvdm(coded[place], size, classes)
            else:
                distances = abdm(coded[place], size, coded[:place] + coded[place + 1 :])
            line = on_a_line(distances)
            order = np.argsort(line, kind="stable")
            grouped = block.stop - start > 1
            positions = start + order if grouped else np.full(size, start)
            lines.append(Line(line[order], positions, np.ones(size) if grouped else order.astype(np.float64)))
        return Space(lines, encoding.width)

    def points(self, rows: FloatArray) -> FloatArray:
        """(n, M) of encoded rows (n, d)."""
        found = np.empty((len(rows), self.size))
        found[:, self.numbers] = rows[:, self.number_positions]
        for members, longest in self.groups:
            positions, values, places = (
                part[members, :longest] for part in (self.positions, self.values, self.places)
            )
            matches = (rows[:, positions] == values) & np.isfinite(places)
            found[:, self.categories[members]] = places[np.arange(len(members)), matches.argmax(axis=2)]
        return found

    def limits(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, M) twice, the limits of the coordinates, from those of the encoded positions (n, d)."""
        ends = np.empty((len(low), self.size)), np.empty((len(low), self.size))
        for end, given in zip(ends, (low, high), strict=True):
            end[:, self.numbers] = given[:, self.number_positions]
        if len(self.categories):
            allowed = (low[:, self.positions] <= self.values) & (self.values <= high[:, self.positions])
            allowed &= np.isfinite(self.places)
            ends[0][:, self.categories] = np.where(allowed, self.places, np.inf).min(axis=2)
            ends[1][:, self.categories] = np.where(allowed, self.places, -np.inf).max(axis=2)
        return ends

    def rows(self, points: FloatArray) -> FloatArray:
        """(n, d) the rows nearest to the points (n, M)."""
        found = np.zeros((len(points), self.width))
        found[:, self.number_positions] = points[:, self.numbers]
        if len(self.categories):
            left, share, _ = self._between(points)
            level = left + (share >= 0.5)
            places = self.positions[self.each, level]
            found[np.arange(len(points))[:, None], places] = self.values[self.each, level]
        return found

    def mixtures(self, points: FloatArray) -> FloatArray:
        """(n, d) the vectors at the points: between two levels, a mixture of both, extrapolated beyond the ends."""
        found = np.zeros((len(points), self.width))
        found[:, self.number_positions] = points[:, self.numbers]
        if len(self.categories):
            left, share, _ = self._between(points)
            every = np.arange(len(points))[:, None]
            for level, part in ((left, 1.0 - share), (left + 1, share)):
                found[every, self.positions[self.each, level]] += part * self.values[self.each, level]
        return found

    def pulled(self, points: FloatArray, gradients: FloatArray) -> FloatArray:
        """(n, M) the gradient at the points of a function whose gradient at their mixtures is ``gradients`` (n, d)."""
        found = np.empty((len(points), self.size))
        found[:, self.numbers] = gradients[:, self.number_positions]
        if len(self.categories):
            left, _, gap = self._between(points)
            every = np.arange(len(points))[:, None]
            slopes = [
                self.values[self.each, level] * gradients[every, self.positions[self.each, level]]
                for level in (left, left + 1)
            ]
            found[:, self.categories] = (slopes[1] - slopes[0]) / gap
        return found

    def switches(self, points: FloatArray, gradients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, N) and (n, C, L): the first-order changes of a function with the ``gradients`` (n, d) at the ``points``.

        They are its slopes in the numbers, and its changes by a switch of each category to each of its levels.
        """
        every = np.arange(len(points))[:, None, None]
        changes = self.values * gradients[every, self.positions]
        left, share, _ = self._between(points)
        own = [np.take_along_axis(changes, level[:, :, None], axis=2)[:, :, 0] for level in (left, left + 1)]
        changes -= ((1 - share) * own[0] + share * own[1])[:, :, None]
        return gradients[:, self.number_positions], changes

    def _between(self, points: FloatArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """(n, C) the level to the left, the share of the way to the next one, and how far apart the two are."""
        if len(self.categories) == 0:
            none = np.empty((len(points), 0))
            return none.astype(np.int64), none, none
        here = points[:, self.categories]
        left = np.empty(here.shape, dtype=np.int64)
        for row, places in enumerate(self.places):
            left[:, row] = places.searchsorted(here[:, row], side="right")
        left = np.clip(left - 1, 0, self.sizes - 2)
        start = self.places[self.each, left]
        gap = self.places[self.each, left + 1] - start
        return left, (here - start) / gap, gap
