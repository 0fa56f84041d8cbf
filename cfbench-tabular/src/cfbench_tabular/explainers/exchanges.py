"""Exchanges, the last part of ALIBIC's refinement: one column is reset and another one moves, in the same step.

A descent ends at points where no column can be moved alone. Between wide steps and levels, where the linearised problem
is solved with fractions, a better row often differs from them in two columns. With the margin linearised at a point c,
each of the ``RESET`` columns that contribute most to f is set to where f_j is smallest, or none is. What the margin then
lacks is made up by one other column:

- a number moves by what is lacking over its slope, also ``STRETCHES`` times that far, rounded up to its step;
- a category switches to a level that makes up ``SHARE`` of it or more.

Where nothing is lacking, a column moves towards where f_j is smallest, by what the margin has to spare. Stretches and shares
allow for a margin that is not linear. The ``TRIED`` exchanges after which f is smallest are tested by the model.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cfbench_tabular.explainers.descent import CLEAR_MARGIN
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.linear_problem import Linear, Terms
from cfbench_tabular.table import FloatArray, IntArray

RESET = 8
"""Columns of each point that are reset in turn."""

TRIED = 32
"""Exchanges of each point that are tested."""

STRETCHES = (1.0, 1.6)
"""How far a number moves, as a multiple of what the linearised margin requires."""

SHARE = 0.6
"""Share of what is lacking that a category has to make up by the linearised margin."""

ROUNDING = 1e-9
"""How far a value at the end of a range may be beyond it, by rounding."""

NUMBERS = 250_000
"""Exchanges that are compared at once, so that they fit into the cache of the processor."""


class Exchanges:
    """The exchanges at points by which f becomes smaller.

    Attributes:
        terms: of A points.
        space: of the coordinates.
        steps: (M,) the steps of the numbers; 0 where there is none, and for categories.
        required: a row is in the other class if its margin exceeds it.
    """

    def __init__(self, terms: Terms, space: Space, steps: FloatArray, required: float) -> None:
        self.terms, self.space, self.steps, self.required = terms, space, steps, required
        self.row, self.level = np.nonzero(np.isfinite(space.places))
        numbers = np.tile(space.numbers, len(STRETCHES))
        self.columns = np.concatenate([numbers, space.categories[self.row]])

    def most_promising(
        self, points: FloatArray, ends: FloatArray, linear: Linear
    ) -> tuple[IntArray, FloatArray]:
        """(b,) which of the points (A, M), and (b, M) what they are after an exchange by which f becomes smaller.

        ends: (A, M) where each f_j is smallest.
        """
        each = max(1, NUMBERS // ((RESET + 1) * max(1, len(self.columns))))
        found = [
            self._of_part(np.arange(start, min(start + each, len(points))), points, ends, linear)
            for start in range(0, len(points), each)
        ]
        return np.concatenate([of for of, _ in found]), np.concatenate([moved for _, moved in found])

    def _of_part(
        self, rows: IntArray, points: FloatArray, ends: FloatArray, linear: Linear
    ) -> tuple[IntArray, FloatArray]:
        points, ends, terms = points[rows], ends[rows], self.terms.of(rows)
        linear = Linear(linear.margin[rows], linear.slopes[rows], linear.changes[rows])
        own = terms.each(points)
        saved = own - terms.each(ends)
        saved[saved <= 1e-9] = -np.inf
        reset = np.argsort(-saved, axis=1, kind="stable")[:, :RESET]
        saved, gained = (
            np.take_along_axis(part, reset, axis=1) for part in (saved, self._gained(points, ends, linear))
        )
        saved, gained = _with_none(saved), _with_none(gained)
        reset = np.pad(reset, ((0, 0), (0, 1)), constant_values=-1)
        lacking = self.required + CLEAR_MARGIN - linear.margin[:, None] - gained
        moves = list(self._number_moves(terms, points, ends, lacking, linear))
        if len(self.row):
            moves.append(self._level_moves(terms, points, lacking, linear))
        values, costs = (np.concatenate(parts, axis=2) for parts in zip(*moves, strict=True))
        costs -= own[:, None, self.columns] + saved[:, :, None]
        costs[self.columns == reset[:, :, None]] = np.inf
        which, move = _smallest(costs.reshape(len(rows), -1))
        turn, place = np.divmod(move, len(self.columns))
        column, found, at = reset[which, turn], points[which], np.arange(len(which))
        found[at, column] = np.where(column >= 0, ends[which, column], found[at, column])
        found[at, self.columns[place]] = values[which, turn, place]
        return rows[which], found

    def _gained(self, points: FloatArray, ends: FloatArray, linear: Linear) -> FloatArray:
        """(a, M) the change of the margin by setting each coordinate to its end."""
        numbers, categories = self.space.numbers, self.space.categories
        found = np.empty_like(points)
        found[:, numbers] = linear.slopes * (ends - points)[:, numbers]
        if len(categories):
            level = (self.space.places == ends[:, categories, None]).argmax(axis=2)
            found[:, categories] = np.take_along_axis(linear.changes, level[:, :, None], axis=2)[:, :, 0]
        return found

    def _number_moves(
        self, terms: Terms, points: FloatArray, ends: FloatArray, lacking: FloatArray, linear: Linear
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """(a, R, N) what numbers move to if ``lacking`` (a, R) is lacking, and f_j there; infinite if it is not allowed."""
        numbers = self.space.numbers
        here, least, slopes = points[:, None, numbers], ends[:, None, numbers], linear.slopes[:, None]
        spare = (lacking < 0)[:, :, None]
        for stretch in STRETCHES:
            with np.errstate(divide="ignore", invalid="ignore"):
                by = lacking[:, :, None] * np.where(spare, 1 / stretch, stretch) / np.abs(slopes)
                values = here + np.sign(slopes) * rounded_up(by, self.steps[numbers])
            back = np.clip(values, np.minimum(here, least), np.maximum(here, least))
            # all the way, if that adds to the margin
            back = np.where(slopes * (least - here) > 0, least, back)
            values = np.where(spare, back, values)
            within = np.clip(values, terms.low[:, None, numbers], terms.high[:, None, numbers])
            outside = ~(np.abs(values - within) <= ROUNDING) | (within == here)
            within = np.where(outside, here, within)
            yield within, np.where(outside, np.inf, terms.each(within, numbers))

    def _level_moves(
        self, terms: Terms, points: FloatArray, lacking: FloatArray, linear: Linear
    ) -> tuple[FloatArray, FloatArray]:
        """(a, R, Q) the same for all levels of the categories."""
        columns, places = self.columns[-len(self.row) :], self.space.places[self.row, self.level]
        merit = terms.each(places[None], columns)
        outside = (places < terms.low[:, columns]) | (places > terms.high[:, columns])
        merit[outside | (places == points[:, columns])] = np.inf
        enough = linear.changes[:, None, self.row, self.level] >= SHARE * lacking[:, :, None]
        return np.broadcast_to(places, enough.shape), np.where(enough, merit[:, None], np.inf)


def rounded_up(by: FloatArray, steps: FloatArray) -> FloatArray:
    """(..., m) moves, up to the next multiple of the steps (m,); unchanged where the step is 0."""
    whole = np.where(steps > 0, steps, 1.0)
    found: FloatArray = np.where(steps > 0, np.ceil(by / whole - ROUNDING) * whole, by)
    return found


def _with_none(parts: FloatArray) -> FloatArray:
    """(a, R + 1) the parts (a, R) of the columns that are reset, and 0 where none is."""
    return np.pad(parts, ((0, 0), (0, 1)))


def _smallest(costs: FloatArray) -> tuple[IntArray, IntArray]:
    """(b,) and (b,) the rows and columns of the ``TRIED`` smallest of each row (a, W) that are below 0."""
    count = min(TRIED, costs.shape[1])
    first = np.argpartition(costs, count - 1, axis=1)[:, :count]
    row, place = np.nonzero(np.take_along_axis(costs, first, axis=1) < -1e-9)
    return row, first[row, place]
