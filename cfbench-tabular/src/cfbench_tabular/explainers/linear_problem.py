"""The problem of ALIBIC's refinement with the margin linearised.

Without the class, the objective is a sum over the coordinates, f(c) = sum_j f_j(c_j), each f_j with one minimum
(:mod:`prototypes <.prototypes>`). With the margin linearised at a point c0,

    min f(c)  subject to  margin(c0) + change(c0, c) >= required

has a closed solution for each multiplier of the condition: a number is where f_j(c_j) - multiplier slope_j c_j is
smallest, a category at the level where f_j - multiplier change_j is. The smallest multiplier that meets the condition is
found by bisection. Where categories jump at it, the levels on both sides are tried, with the numbers solved again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.table import FloatArray, IntArray

MULTIPLIER_HALVINGS, LEVEL_HALVINGS = 18, 12
"""Steps of the bisection of the multiplier: for numbers alone, and with categories."""

MULTIPLIERS = (1e-4, 1e6)
"""Range of the multiplier, times the squared norm of the changes of the margin."""


@dataclass(frozen=True)
class Terms:
    """f for A points: beta ||c - x||_1 + ||c - x||_2^2 + theta ||c - p||_2^2, within limits.

    Attributes:
        starts, goals: (A, M) x and p.
        beta: the weight of the absolute distance.
        theta: (A,) that of the distance to p.
        low, high: (A, M) limits of the coordinates.
    """

    starts: FloatArray
    goals: FloatArray
    beta: float
    theta: FloatArray
    low: FloatArray
    high: FloatArray

    def of(self, rows: IntArray) -> Terms:
        """The terms of the points ``rows`` (a,)."""
        arrays = (part[rows] for part in (self.starts, self.goals, self.theta, self.low, self.high))
        starts, goals, theta, low, high = arrays
        return Terms(starts, goals, self.beta, theta, low, high)

    def values(self, points: FloatArray) -> FloatArray:
        """(A,) f at points (A, M)."""
        found: FloatArray = self.each(points).sum(axis=1)
        return found

    def each(self, values: FloatArray, columns: IntArray | slice = slice(None)) -> FloatArray:
        """(A, ..., m) f_j of values (A or 1, ..., m) of the coordinates ``columns``."""
        between = [None] * (values.ndim - 2)
        starts, goals = (part[:, columns][:, *between] for part in (self.starts, self.goals))
        away = values - starts
        found: FloatArray = self.beta * np.abs(away) + away**2
        found += self.theta[:, None, *between] * (values - goals) ** 2
        return found

    def minimum(self, pull: FloatArray | float = 0.0, columns: IntArray | slice = slice(None)) -> FloatArray:
        """(A, m) where f_j(c_j) - pull_j c_j is smallest for the coordinates ``columns``; pull: (A, m)."""
        starts, theta = self.starts[:, columns], self.theta[:, None]
        toward = (2 * theta * (self.goals[:, columns] - starts) + pull) / (2 * (1 + theta))
        away = np.sign(toward) * np.maximum(np.abs(toward) - self.beta / (2 * (1 + theta)), 0.0)
        found: FloatArray = np.clip(starts + away, self.low[:, columns], self.high[:, columns])
        return found

    def of_levels(self, space: Space) -> FloatArray:
        """(A, C, L) f_j of each level of each category; infinite where it is not allowed, and in the padding."""
        at = space.categories
        places = np.where(np.isfinite(space.places), space.places, 0.0)[None]
        away = places - self.starts[:, at, None]
        found = self.beta * np.abs(away) + away**2
        found += self.theta[:, None, None] * (places - self.goals[:, at, None]) ** 2
        outside = (space.places < self.low[:, at, None]) | (space.places > self.high[:, at, None])
        found[outside | ~np.isfinite(space.places)] = np.inf
        return found


@dataclass(frozen=True)
class Linear:
    """The margin at A points, and its changes to first order.

    Attributes:
        margin: (A,).
        slopes: (A, N) in the numbers.
        changes: (A, C, L) by a switch of each category to each level.
    """

    margin: FloatArray
    slopes: FloatArray
    changes: FloatArray


class LinearProblem:
    """The linearised problem at A points: terms, the f_j of the levels, the points, and the lead that lacks (A,)."""

    def __init__(
        self,
        terms: Terms,
        levels: FloatArray,
        space: Space,
        points: FloatArray,
        linear: Linear,
        required: float,
    ) -> None:
        self.terms, self.levels, self.space, self.points, self.linear = terms, levels, space, points, linear
        self.lacking = required - linear.margin
        norm = (linear.slopes**2).sum(axis=1)
        if len(space.categories):
            norm += (np.where(np.isfinite(levels), np.abs(linear.changes), 0.0).max(axis=2) ** 2).sum(axis=1)
        self.unit = np.log(1 / np.where(norm > 0, norm, 1.0))

    def solutions(self) -> list[FloatArray]:
        """(A, M) each: one solution without categories, else the ones with the levels on both sides of the multiplier."""
        categories = len(self.space.categories)
        if not categories:
            return [self._written(self._bisected(MULTIPLIER_HALVINGS)[1], None)]
        below, above = self._bisected(LEVEL_HALVINGS)
        sides = [self._levels_at(above), self._levels_at(below)]
        if (sides[0] == sides[1]).all():
            del sides[1]
        if not len(self.space.numbers):
            return [self._written(above, side) for side in sides]
        return [self._written(self._bisected(MULTIPLIER_HALVINGS, side)[1], side) for side in sides]

    def _bisected(self, halvings: int, fixed: IntArray | None = None) -> tuple[FloatArray, FloatArray]:
        """(A,) twice, the largest multiplier found not to be enough and the smallest found to be.

        fixed: (A, C) the levels, if only the numbers depend on the multiplier.
        """
        below, above = (np.log(end) + self.unit for end in MULTIPLIERS)
        lacking = self.lacking if fixed is None else self.lacking - self._switched(fixed)
        for _ in range(halvings):
            middle = (below + above) / 2
            multiplier = np.exp(middle)
            moved = self._numbers_at(multiplier) - self.points[:, self.space.numbers]
            gain = (self.linear.slopes * moved).sum(axis=1)
            if fixed is None and len(self.space.categories):
                gain += self._switched(self._levels_at(multiplier))
            enough = gain >= lacking
            above, below = np.where(enough, middle, above), np.where(enough, below, middle)
        return np.exp(below), np.exp(above)

    def _numbers_at(self, multiplier: FloatArray) -> FloatArray:
        return self.terms.minimum(multiplier[:, None] * self.linear.slopes, self.space.numbers)

    def _levels_at(self, multiplier: FloatArray) -> IntArray:
        found: IntArray = (self.levels - multiplier[:, None, None] * self.linear.changes).argmin(axis=2)
        return found

    def _switched(self, levels: IntArray) -> FloatArray:
        """(A,) the change of the margin by switching the categories to the ``levels`` (A, C)."""
        each = np.take_along_axis(self.linear.changes, levels[:, :, None], axis=2)
        found: FloatArray = each[:, :, 0].sum(axis=1)
        return found

    def _written(self, multiplier: FloatArray, levels: IntArray | None) -> FloatArray:
        found = np.empty_like(self.points)
        found[:, self.space.numbers] = self._numbers_at(multiplier)
        if levels is not None:
            found[:, self.space.categories] = self.space.places[self.space.each, levels]
        return found
