"""The problem of ALIBIC's refinement with the margin linearised.

Without the class, the objective is a sum over the coordinates, f(c) = sum_j f_j(c_j), each f_j with one minimum
(:mod:`prototypes <.prototypes>`). With the margin linearised at a point c0,

    min f(c)  subject to  margin(c0) + change(c0, c) >= required

has a closed solution for each multiplier of the condition: a number is where f_j(c_j) - multiplier slope_j c_j is
smallest, a category at the level where f_j - multiplier change_j is. The smallest multiplier that meets the condition is
found by bisection, for numbers with interpolations in the end. Where categories jump at it, the levels on both sides
are tried, with the numbers solved again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.table import FloatArray, IntArray

MULTIPLIER_HALVINGS, LEVEL_HALVINGS = 10, 10
"""Steps of the bisection of the multiplier: for numbers alone, and with categories."""

INTERPOLATIONS = 12
"""The most steps by interpolation."""

MULTIPLIERS = (1e-4, 1e6)
"""Range of the multiplier, times the squared norm of the changes of the margin."""

ROUNDING = 1e-12
"""Log-odds that a solution may lack."""


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

    def values(self, points: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """(a,) f at points (a, M) of ``rows`` (a,), by default all."""
        away = points - self.starts[rows]
        toward = points - self.goals[rows]
        found: FloatArray = self.beta * np.abs(away).sum(axis=1)
        found += np.einsum("aj,aj->a", away, away)
        found += self.theta[rows] * np.einsum("aj,aj->a", toward, toward)
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


class Numbers:
    """Where f_j(c_j) - multiplier slope_j c_j is smallest for the numbers, prepared for many multipliers.

    Relative to x_j: base_j + multiplier rate_j, ``bound`` nearer to 0 (0 if it is within that), and cut at the limits.
    """

    def __init__(self, terms: Terms, columns: IntArray, slopes: FloatArray, points: FloatArray) -> None:
        starts = terms.starts[:, columns]
        share = 1 / (2 * (1 + terms.theta[:, None]))
        self.slopes, self.rate, self.bound = slopes, slopes * share, terms.beta * share
        self.base = 2 * terms.theta[:, None] * (terms.goals[:, columns] - starts) * share
        self.low, self.high = terms.low[:, columns] - starts, terms.high[:, columns] - starts
        self.before = np.einsum("aj,aj->a", slopes, points[:, columns] - starts)

    def gain(self, multiplier: FloatArray) -> FloatArray:
        """(A,) by how much the margin grows from the points to where the numbers are for a multiplier (A,)."""
        away = multiplier[:, None] * self.rate
        away += self.base
        away -= np.minimum(np.maximum(away, -self.bound), self.bound)
        np.maximum(away, self.low, out=away)
        np.minimum(away, self.high, out=away)
        found: FloatArray = np.einsum("aj,aj->a", self.slopes, away)
        found -= self.before
        return found


class Levels:
    """The levels where f_j - multiplier change_j is smallest, prepared for many multipliers.

    In groups of categories with about equally many levels, so that few of the compared ones are padding.
    """

    def __init__(self, levels: FloatArray, changes: FloatArray, space: Space) -> None:
        self.size, self.groups = levels.shape[:2], space.groups
        self.parts: list[tuple[FloatArray, FloatArray]] = []
        self.first: list[IntArray] = []
        for members, longest in self.groups:
            parts = (np.ascontiguousarray(part[:, members, :longest]) for part in (levels, changes))
            own, other = parts
            self.parts.append((own, other))
            count = len(levels) * len(members)
            self.first.append(longest * np.arange(count).reshape(len(levels), len(members)))

    def at(self, multiplier: FloatArray) -> IntArray:
        """(A, C) the levels for a multiplier (A,)."""
        found = np.empty(self.size, dtype=np.int64)
        for (members, _), (levels, changes) in zip(self.groups, self.parts, strict=True):
            found[:, members] = (levels - multiplier[:, None, None] * changes).argmin(axis=2)
        return found

    def gain(self, multiplier: FloatArray) -> FloatArray:
        """(A,) by how much the margin grows with them."""
        found = np.zeros(self.size[0])
        for first, (levels, changes) in zip(self.first, self.parts, strict=True):
            chosen = (levels - multiplier[:, None, None] * changes).argmin(axis=2)
            chosen += first
            found += changes.ravel().take(chosen).sum(axis=1)
        return found


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
        self.terms, self.space, self.linear = terms, space, linear
        self.lacking = required - linear.margin
        self.numbers = Numbers(terms, space.numbers, linear.slopes, points)
        self.levels = Levels(levels, linear.changes, space)
        norm = (linear.slopes**2).sum(axis=1)
        if len(space.categories):
            norm += (np.where(np.isfinite(levels), np.abs(linear.changes), 0.0).max(axis=2) ** 2).sum(axis=1)
        self.unit = np.log(1 / np.where(norm > 0, norm, 1.0))

    def solutions(self) -> list[FloatArray]:
        """(A, M) each: one solution without categories, else the ones with the levels on both sides of the multiplier."""
        if not len(self.space.categories):
            return [self._written(self._of_numbers(self.lacking), None)]
        below, above = self._bisected(self.lacking, LEVEL_HALVINGS, self._gain)
        sides = [self.levels.at(above), self.levels.at(below)]
        if (sides[0] == sides[1]).all():
            del sides[1]
        if not len(self.space.numbers):
            return [self._written(above, side) for side in sides]
        return [self._written(self._of_numbers(self.lacking - self._switched(side)), side) for side in sides]

    def _of_numbers(self, lacking: FloatArray) -> FloatArray:
        """(A,) the smallest multiplier for which the numbers make up for what is ``lacking`` (A,).

        Between the breakpoints of its numbers, the gain is linear in the multiplier, so the bisection is followed by
        interpolations. They move both ends (the Illinois method: an end that stays counts half), until no breakpoint is
        left between these; then one step is exact.
        """
        below, above = self._bisected(lacking, MULTIPLIER_HALVINGS, self.numbers.gain)
        short, over = (self.numbers.gain(end) - lacking for end in (below, above))
        moved = np.zeros(len(lacking), dtype=np.int64)  # the end that the last step moved: 1 above, -1 below
        for _ in range(INTERPOLATIONS):
            with np.errstate(divide="ignore", invalid="ignore"):
                share = short / (short - over)
            between = below + np.where((share > 0) & (share < 1), share, 1.0) * (above - below)
            gain = self.numbers.gain(between) - lacking
            enough = gain >= -ROUNDING
            above, below = np.where(enough, between, above), np.where(enough, below, between)
            over = np.where(enough, gain, np.where(moved < 0, over / 2, over))
            short = np.where(enough, np.where(moved > 0, short / 2, short), gain)
            moved = np.where(enough, 1, -1)
            if (np.abs(gain) <= ROUNDING).all():
                break
        return above

    def _bisected(
        self, lacking: FloatArray, halvings: int, gain: Callable[[FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """(A,) twice, the largest multiplier found not to be enough and the smallest found to be."""
        below, above = (np.log(end) + self.unit for end in MULTIPLIERS)
        for _ in range(halvings):
            middle = (below + above) / 2
            enough = gain(np.exp(middle)) >= lacking
            above, below = np.where(enough, middle, above), np.where(enough, below, middle)
        return np.exp(below), np.exp(above)

    def _gain(self, multiplier: FloatArray) -> FloatArray:
        """(A,) the change of the margin with numbers and categories where they are for a multiplier (A,)."""
        return self.numbers.gain(multiplier) + self.levels.gain(multiplier)

    def _switched(self, levels: IntArray) -> FloatArray:
        """(A,) the change of the margin by switching the categories to the ``levels`` (A, C)."""
        each = np.take_along_axis(self.linear.changes, levels[:, :, None], axis=2)
        found: FloatArray = each[:, :, 0].sum(axis=1)
        return found

    def _written(self, multiplier: FloatArray, levels: IntArray | None) -> FloatArray:
        numbers = self.space.numbers
        found = np.empty_like(self.terms.starts)
        found[:, numbers] = self.terms.minimum(multiplier[:, None] * self.linear.slopes, numbers)
        if levels is not None:
            found[:, self.space.categories] = self.space.places[self.space.each, levels]
        return found
