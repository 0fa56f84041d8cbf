"""The refinement of ALIBIC's counterfactuals: descent on its own objective from several starts.

Without the class, the objective is a sum over the coordinates, f(c) = sum_j f_j(c_j), each f_j with one minimum
(:mod:`prototypes <.prototypes>`). With the margin linearised at a point c0,

    min f(c)  subject to  margin(c0) + change(c0, c) >= required

has a closed solution for each multiplier of the condition: a number is where f_j(c_j) - multiplier slope_j c_j is
smallest, a category at the level where f_j - multiplier change_j is. The smallest multiplier that meets the condition is
found by bisection. Where categories jump at it, the levels on both sides are tried, with the numbers solved again. The
numbers move half the way to the solution, categories all of it, and the margin is linearised again (sequential linear
programming; for f = ||c - x||_2^2 a step is that of DeepFool, Moosavi-Dezfooli et al. 2016).

That is done from several starts at once: the row found by FISTA, the factual, the prototype, and the nearest admissible
training rows of the other class. Each has its own best point; a solution that is not in the other class is moved towards
it by bisection. After each of the ``PHASES`` only the starts with the best points go on. These points are then moved
towards the minimum of f by bisection, in all coordinates together and in one after the other, while they stay in the other
class. The best of all points that were tested, the starts included, is the counterfactual: by f it is not worse than any
start of the other class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

PHASES = ((3, 4), (4, 2))
"""Linearisations, and the starts of each factual that are retained afterwards."""

HALVINGS, FEW_HALVINGS = 8, 4
"""Steps of a bisection along a line: for the best points in the end, and for solutions."""

MULTIPLIER_HALVINGS, LEVEL_HALVINGS = 18, 12
"""Steps of the bisection of the multiplier: for numbers alone, and with categories."""

MULTIPLIERS = (1e-4, 1e6)
"""Range of the multiplier, times the squared norm of the changes of the margin."""

REFINED_COLUMNS = 60
"""Coordinates that are refined in the end, of those that are farthest from where f is smallest."""


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
        away = points - self.starts
        found: FloatArray = self.beta * np.abs(away).sum(axis=1) + (away**2).sum(axis=1)
        found += self.theta * ((points - self.goals) ** 2).sum(axis=1)
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


class Refinement:
    """The descent from A starts, one or more for each factual, each with its own best point.

    Attributes:
        of: (A,) the factual of each start.
        best: (A, M) the best points; NaN where none is known.
        merit: (A,) f there; infinite where none is known.
    """

    def __init__(
        self,
        of: IntArray,
        terms: Terms,
        space: Space,
        required: float,
        settled: Callable[[FloatArray, IntArray], FloatArray],
        margins: Callable[[FloatArray, IntArray], FloatArray],
        linearised: Callable[[FloatArray, IntArray], Linear],
    ) -> None:
        """A row is in the other class if its margin exceeds ``required``. Of factuals (a,):

        settled: (a, d) the admissible rows nearest to points (a, M); margins: (a,) of rows (a, d); linearised: the
        margin at points (a, M), and its changes.
        """
        self.of, self.terms, self.space, self.required = of, terms, space, required
        self.settled, self.margins, self.linearised = settled, margins, linearised
        self.best, self.merit = np.full_like(terms.starts, np.nan), np.full(len(of), np.inf)

    def run(self, points: FloatArray) -> IntArray:
        """Descends from ``points`` (A, M). Returns for each factual the start with the best point."""
        rows, levels = np.arange(len(points)), self.terms.of_levels(self.space)
        points, _ = self._test(points, rows)
        for count, retained in PHASES:
            for _ in range(count):
                points = self._step(points, rows, levels)
            chosen = leading(self.of[rows], self.merit[rows], retained)
            points, rows, levels = points[chosen], rows[chosen], levels[chosen]
        self._improve(rows[np.isfinite(self.merit[rows])])
        return leading(self.of, self.merit, 1)

    def _step(self, points: FloatArray, rows: IntArray, levels: FloatArray) -> FloatArray:
        """(a, M) where to linearise next, after points (a, M) of the starts ``rows``; tests the solutions."""
        terms, linear = self.terms.of(rows), self.linearised(points, self.of[rows])
        tried = LinearProblem(terms, levels, self.space, points, linear, self.required).solutions()
        values = []
        for solution in tried:
            settled, turned = self._test(solution, rows)
            merit = terms.values(solution)
            near = ~turned & (merit < self.merit[rows])
            self._pull(rows[near], settled[near], FEW_HALVINGS)
            values.append(np.where(turned, merit, np.inf))
        found = tried[0]
        if len(tried) == 2:
            found = np.where((values[0] <= values[1])[:, None], *tried)
        numbers = self.space.numbers
        found[:, numbers] = (found[:, numbers] + points[:, numbers]) / 2
        return found

    def _improve(self, rows: IntArray) -> None:
        """Moves the best points of ``rows`` to where f is smaller, as far as they stay in the other class."""
        if len(rows) == 0:
            return
        ends = self.terms.of(rows).minimum()
        self._pull(rows, ends, HALVINGS)
        far = np.argsort(-np.abs(self.best[rows] - ends), axis=1, kind="stable")[:, :REFINED_COLUMNS]
        for column in far.T:
            toward = self.best[rows].copy()
            np.put_along_axis(
                toward, column[:, None], np.take_along_axis(ends, column[:, None], axis=1), axis=1
            )
            self._pull(rows, toward, HALVINGS)

    def _pull(self, rows: IntArray, ends: FloatArray, halvings: int) -> None:
        """Moves the best points of ``rows`` towards ``ends`` while they are in the other class."""
        moving = (ends != self.best[rows]).any(axis=1) & np.isfinite(self.merit[rows])
        rows, ends = rows[moving], ends[moving]
        if len(rows) == 0:
            return
        of, starts = self.of[rows], self.best[rows]
        near, far = np.zeros(len(rows)), np.ones(len(rows))
        found, middle = self.space.rows(starts), near  # the end itself is tried first
        for _ in range(halvings + 1):
            tried = self.settled(ends + middle[:, None] * (starts - ends), of)
            turned = self.margins(tried, of) > self.required
            found[turned] = tried[turned]
            far, near = np.where(turned, middle, far), np.where(turned, near, middle)
            middle = (near + far) / 2
        self._retain(self.space.points(found), rows)

    def _test(self, points: FloatArray, rows: IntArray) -> tuple[FloatArray, BoolArray]:
        """(a, M) the points (a, M) of the starts ``rows``, settled, and (a,) whether they are in the other class.

        Retains those that are the best so far.
        """
        vectors = self.settled(points, self.of[rows])
        turned: BoolArray = self.margins(vectors, self.of[rows]) > self.required
        settled = self.space.points(vectors)
        self._retain(settled[turned], rows[turned])
        return settled, turned

    def _retain(self, points: FloatArray, rows: IntArray) -> None:
        """Stores points of the other class where they are the best so far."""
        merit = self.terms.of(rows).values(points)
        better = merit < self.merit[rows]
        self.best[rows[better]], self.merit[rows[better]] = points[better], merit[better]


def leading(of: IntArray, merit: FloatArray, count: int) -> IntArray:
    """The indices, ascending, of the ``count`` smallest ``merit`` (A,) of each factual ``of`` (A,); the first of equals."""
    order = np.lexsort((merit, of))
    first = np.flatnonzero(np.r_[True, np.diff(of[order]) > 0])
    place = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    found: IntArray = np.sort(order[place < count])
    return found
