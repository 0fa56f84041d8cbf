"""The refinement of ALIBIC's counterfactuals: descent on its own objective from several starts.

Each step linearises the margin and solves that problem (:mod:`linear_problem <.linear_problem>`). The numbers move half
the way to the solution, categories all of it, and the margin is linearised again (sequential linear programming; for
f = ||c - x||_2^2 a step is that of DeepFool, Moosavi-Dezfooli et al. 2016).

That is done from several starts at once: the row found by FISTA, the factual, the prototype, and the nearest admissible
training rows of the other class. Each has its own best point; a solution that is not in the other class is moved towards
it by bisection. After each of the ``PHASES`` only the starts with the best points go on. These points are then moved
towards the minimum of f by bisection, in all coordinates together and in one after the other, while they stay in the other
class. In the end the ``EXCHANGED`` best points of each factual exchange one move for another one as long as that is
better (:mod:`exchanges <.exchanges>`). The best of all points that were tested, the starts included, is the
counterfactual: by f it is not worse than any start of the other class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cfbench_tabular.explainers.exchanges import Exchanges
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.linear_problem import Linear, LinearProblem, Terms
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

PHASES = ((1, 8), (1, 4), (2, 2))
"""Linearisations, and the starts of each factual that are retained afterwards."""

HALVINGS, FEW_HALVINGS = 6, 4
"""Steps of a bisection along a line: for the best points in the end, and for solutions."""

REFINED_COLUMNS = 60
"""Coordinates that are refined in the end, of those that are farthest from where f is smallest."""

EXCHANGED, EXCHANGES = 3, 3
"""Best points of each factual that exchange moves, and how often at most."""

WORTH = 0.01
"""Share of f by which an exchange has to improve a point, for it to be exchanged again."""


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
        steps: FloatArray,
        required: float,
        settled: Callable[[FloatArray, IntArray], FloatArray],
        margins: Callable[[FloatArray, IntArray], FloatArray],
        linearised: Callable[[FloatArray, IntArray], Linear],
    ) -> None:
        """A row is in the other class if its margin exceeds ``required``. Of factuals (a,):

        steps: (M,) of the coordinates, or 0; settled: (a, d) the admissible rows nearest to points (a, M); margins: (a,)
        of rows (a, d); linearised: the margin at points (a, M), and its changes.
        """
        self.of, self.terms, self.space, self.steps, self.required = of, terms, space, steps, required
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
        best = leading(self.of, self.merit, EXCHANGED)
        best = best[np.isfinite(self.merit[best])]
        for _ in range(EXCHANGES):
            best = self._exchange(best)
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

    def _exchange(self, rows: IntArray) -> IntArray:
        """Exchanges one move for another one at the best points of ``rows``; returns those that became much better."""
        if len(rows) == 0:
            return rows
        terms, of, points = self.terms.of(rows), self.of[rows], self.best[rows]
        ends = self.space.points(self.settled(terms.minimum(), of))
        exchanges = Exchanges(terms, self.space, self.steps, self.required)
        which, tried = exchanges.most_promising(points, ends, self.linearised(points, of))
        vectors = self.settled(tried, of[which])
        turned = self.margins(vectors, of[which]) > self.required
        settled, before = self.space.points(vectors), self.merit[rows]
        merit = np.where(turned, terms.values(settled, which), np.inf)
        chosen = leading(which, merit, 1)
        chosen = chosen[turned[chosen]]
        self._retain(settled[chosen], rows[which[chosen]])
        return rows[self.merit[rows] < (1 - WORTH) * before]

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
        """Stores points of the other class where they are the best so far; each of ``rows`` is there once."""
        merit = self.terms.values(points, rows)
        better = merit < self.merit[rows]
        self.best[rows[better]], self.merit[rows[better]] = points[better], merit[better]


def leading(of: IntArray, merit: FloatArray, count: int) -> IntArray:
    """The indices, ascending, of the ``count`` smallest ``merit`` (A,) of each factual ``of`` (A,); the first of equals."""
    order = np.lexsort((merit, of))
    first = np.flatnonzero(np.r_[True, np.diff(of[order]) > 0])
    place = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    found: IntArray = np.sort(order[place < count])
    return found
