"""The prototype-guided objective and its optimiser, shared by ALIBIC and its variant without gradients.

Van Looveren & Klaise 2021, "Interpretable counterfactual explanations guided by prototypes"; the optimiser is
that of Dhurandhar et al. 2018. With x and c as points with one coordinate per column (:mod:`levels
<.levels>`), d = c - x, and p the prototype, the mean of the ``neighbours`` training rows of the other class
(as the model predicts it) that are nearest to x, found in a k-d tree:

    cost max(0, kappa - margin(c)) + beta ||d||_1 + ||d||_2^2 + theta ||c - p||_2^2

FISTA: c_{t+1} = S(y_t - rate_t grad(y_t)), S shrinking each d_j by rate_t beta towards 0 (d_j = 0 where it is smaller)
and cutting at the range, then y_{t+1} = c_{t+1} + t / (t + 3) (c_{t+1} - c_t); rate_t falls with the root of what is
left of the iterations, from ``learning_rate`` / (1 + theta), so that no theta makes it unstable. The class is predicted
at the row of c_t only, with levels of categories and numbers at the steps of their columns: the hinge counts at y_t
while c_t is in the class of the factual, and of all c_t in the other class the one with the smallest sum of the last
three terms is returned. An outer loop searches ``cost``: it is multiplied by ten until a counterfactual is found, then
bisected between the largest cost without a counterfactual and the smallest with one. Afterwards (``refined``)
the counterfactual descends on the last three terms from several starts (:mod:`refinement <.refinement>`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, ROWS, in_parts, margins, over_flats
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.linear_problem import Linear, Terms
from cfbench_tabular.explainers.other_class import OtherClass
from cfbench_tabular.explainers.refinement import Refinement
from cfbench_tabular.grid import Limits
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

STARTS = 10
"""Training rows of the other class that the refinement starts from, the nearest."""

NUMBERS, MOST_ROWS = 400_000, 8_000
"""Numbers, and rows at most, that the refinement processes at once: narrow rows in larger parts than ``ROWS``."""


@dataclass(frozen=True)
class Derivatives:
    """How the margin changes, of a space, points (n, M) and classes (n,).

    Attributes:
        slopes: (n, M) its gradient.
        switches: (n, N) its slopes in the numbers, and (n, C, L) by how much it changes with a switch of each category to
            each level.
    """

    slopes: Callable[[Space, FloatArray, IntArray], FloatArray]
    switches: Callable[[Space, FloatArray, IntArray], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of both variants."""

    theta: Annotated[float, Range(minimum=0), Help("weight of the distance to the prototype")] = 0.2
    beta: Annotated[float, Range(minimum=0), Help("weight of the absolute distance")] = 0.5
    kappa: Annotated[float, Range(minimum=0), Help("required log-odds beyond the boundary")] = 0.0
    neighbours: Annotated[int, Range(minimum=1), Help("training rows that make a prototype")] = 1
    cost: Annotated[float, Range(above=0), Help("first weight of the class")] = 1.0
    rounds: Annotated[int, Range(minimum=1), Help("weights of the class tried")] = 4
    iterations: Annotated[int, Range(minimum=1), Help("steps for each of them")] = 30
    learning_rate: Annotated[float, Range(above=0), Help("first step size")] = 0.1
    refined: Annotated[
        bool, Help("improve the counterfactuals found by a descent from several starts; false: as published")
    ] = True
    categories: Annotated[
        Literal["mvdm", "abdm", "ignore"], Help("distance of levels, or each position a number")
    ] = "mvdm"


def guided(
    options: Options,
    model: Classifier,
    factuals: Factuals,
    context: Context,
    derivatives: Derivatives,
    kind: type[Search] | None = None,
) -> Explanation:
    """Counterfactuals with the details ``cost``, the weight of the class, and ``to_prototype``, the distance."""
    kind = kind or Search
    classes = predicted_classes(model, context.background)
    if options.categories == "ignore":
        space = Space.of_places(context.encoding)
    else:
        space = Space.of_columns(context.encoding, context.background, classes, options.categories)
    known = OtherClass(space.points(context.background), classes)
    limits = context.encoding.limits(factuals.vectors)
    low, high = space.limits(limits.low, limits.high)
    starts = space.points(factuals.vectors)
    several = STARTS if options.refined else 0
    inside = (low, high) if len(context.encoding.restricted) else None
    enemies = known.nearest_rows(starts, factuals.classes, several, inside)
    if options.neighbours == 1 and several and inside is None:
        prototypes = enemies[:, 0]
    else:
        prototypes = known.nearest_means(starts, factuals.classes, options.neighbours)
    found_rows = no_counterfactuals(factuals)
    details = {name: np.full(len(factuals), np.nan) for name in ("cost", "to_prototype")}
    for part in in_parts(len(factuals)):
        search = kind(options, model, space, derivatives, starts[part], factuals.classes[part])
        search.low, search.high, search.prototypes = low[part], high[part], prototypes[part]
        search.limits, search.part = limits, part
        search.enemies = enemies[part]
        found, details["cost"][part] = search.run()
        given = ~np.isnan(found[:, 0])
        rows = space.rows(found[given])
        # Columns that did not move get their exact original values.
        same = (found[given] == starts[part][given])[:, _columns_of(space)]
        found_rows[part][given] = np.where(same, factuals.vectors[part][given], rows)
        details["to_prototype"][part] = np.linalg.norm(found - prototypes[part], axis=1)
    return Explanation(found_rows, details)


def shrunk(points: FloatArray, starts: FloatArray, by: FloatArray | float) -> FloatArray:
    """The points (n, M) moved towards ``starts`` by ``by`` in each coordinate, but not beyond."""
    away = points - starts
    found: FloatArray = starts + np.sign(away) * np.maximum(np.abs(away) - by, 0.0)
    return found


def _columns_of(space: Space) -> IntArray:
    """(d,) the coordinate of each position of the vector."""
    owner = np.empty(space.width, dtype=np.int64)
    owner[space.number_positions] = space.numbers
    for row, column in enumerate(space.categories):
        owner[space.positions[row, : space.sizes[row]]] = column
    return owner


class Search:
    """The search for the counterfactuals of factuals, as points (n, M)."""

    low: FloatArray
    high: FloatArray
    prototypes: FloatArray
    enemies: FloatArray
    limits: Limits
    part: slice

    def __init__(
        self,
        options: Options,
        model: Classifier,
        space: Space,
        derivatives: Derivatives,
        starts: FloatArray,
        classes: IntArray,
    ) -> None:
        self.options = options
        self.model = model
        self.space = space
        self.derivatives = derivatives
        self.starts = starts
        self.classes = classes

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, M) the best points or NaN, and (n,) the cost at which they were found."""
        n, missing = len(self.starts), np.isnan(self.prototypes[:, :1])
        self.required = max(self.options.kappa, CLEAR_MARGIN)
        goals, theta = (
            np.where(missing, 0.0, self.prototypes),
            np.where(missing[:, 0], 0.0, self.options.theta),
        )
        self.terms = Terms(self.starts, goals, self.options.beta, theta, self.low, self.high)
        self.best, self.merit = np.full_like(self.starts, np.nan), np.full(n, np.inf)
        self.first = self.derivatives.slopes(self.space, self.starts, self.classes)
        norms = np.linalg.norm(self.first, axis=1)
        self.unit = np.where(norms > 0, norms, 1.0)  # the hinge is measured in standard deviations
        lower, upper, cost = np.zeros(n), np.full(n, np.inf), np.full(n, self.options.cost)
        found_at = np.full(n, np.nan)
        for _ in range(self.options.rounds):
            before = self.merit.copy()
            found = self._fista(cost)
            found_at = np.where(self.merit < before, cost, found_at)
            upper, lower = np.where(found, np.minimum(cost, upper), upper), np.where(found, lower, cost)
            cost = np.where(np.isinf(upper), cost * 10, (lower + np.minimum(upper, 1e300)) / 2)
        if self.options.refined:
            self._refine()
        return self.best, found_at

    def _refine(self) -> None:
        """Descends on the objective from the best points, the factuals, prototypes and training rows."""
        starts = min(max(NUMBERS // self.space.width, ROWS), MOST_ROWS)
        size = max(1, starts // STARTS)
        for first in range(0, len(self.starts), size):
            self._refine_part(np.arange(first, min(first + size, len(self.starts))))

    def _refine_part(self, at: IntArray) -> None:
        prototypes = np.clip(self.prototypes[at], self.low[at], self.high[at])
        prototypes[(prototypes == self.enemies[at, 0]).all(axis=1)] = np.nan  # the same start twice
        starts = [self.best[at], self.starts[at], prototypes, *np.moveaxis(self.enemies[at], 1, 0)]
        given = [~np.isnan(points[:, 0]) for points in starts]
        of = np.concatenate([at[part] for part in given])
        points = np.concatenate([points[part] for points, part in zip(starts, given, strict=True)])
        search = Refinement(
            of,
            self.terms.of(of),
            self.space,
            self._steps(),
            self.required,
            self._rows,
            lambda rows, of: margins(self.model, rows, self.classes[of]),
            self._linearised,
        )
        chosen = search.run(points)
        better = chosen[search.merit[chosen] < self.merit[of[chosen]]]
        self.best[of[better]], self.merit[of[better]] = search.best[better], search.merit[better]

    def _steps(self) -> FloatArray:
        """(M,) the steps of the coordinates; 0 where there is none."""
        grid, steps = self.limits.grid, np.zeros(self.space.width)
        if self.options.categories != "ignore":
            steps[grid.positions] = grid.step / grid.scale
        found = np.zeros(self.space.size)
        found[self.space.numbers] = steps[self.space.number_positions]
        return found

    def _linearised(self, points: FloatArray, of: IntArray) -> Linear:
        """The margin at points (a, M) of the factuals ``of`` (a,), and its changes to first order."""
        classes = self.classes[of]
        margin = margins(self.model, self.space.mixtures(points), classes)
        return Linear(margin, *self.derivatives.switches(self.space, points, classes))

    def _fista(self, cost: FloatArray) -> BoolArray:
        """(n,) whether a point of the other class was found; updates the best points."""
        options, starts = self.options, self.starts
        met = np.zeros(len(starts), dtype=bool)
        point = ahead = starts
        slopes = self.first
        margin = margins(self.model, self._rows(ahead), self.classes)
        for step in range(options.iterations):
            rate = options.learning_rate / (1 + options.theta) * np.sqrt(1 - step / options.iterations)
            short = margin <= self.required
            if step > 0 and short.any():
                slopes = slopes.copy()
                new = self.derivatives.slopes(self.space, ahead[short], self.classes[short])
                slopes[short] = over_flats(new, slopes[short])
            gradient = 2 * (ahead - starts) + 2 * self.terms.theta[:, None] * (ahead - self.terms.goals)
            gradient -= np.where(short, cost / self.unit, 0.0)[:, None] * slopes
            moved = shrunk(ahead - rate * gradient, starts, rate * options.beta)
            moved = np.clip(moved, self.low, self.high)
            ahead = np.clip(moved + step / (step + 3) * (moved - point), self.low, self.high)
            point = moved
            rows = self._rows(point)
            margin = margins(self.model, rows, self.classes)
            flipped = margin > self.required
            self._update_best(rows, flipped)
            met |= flipped
        return met

    def _rows(self, points: FloatArray, of: IntArray | None = None) -> FloatArray:
        """The rows that are tested: the nearest levels, and numbers at the steps of their columns."""
        rows = self.space.rows(points)
        if self.options.categories == "ignore":
            return rows
        members = self.part if of is None else self.part.start + of
        return self.limits.snapped(rows, members)

    def _update_best(self, rows: FloatArray, flipped: BoolArray) -> None:
        """Stores the rows that ``flipped`` and improve on the best points so far."""
        turned = np.flatnonzero(flipped)
        settled = self.space.points(rows[turned])
        merit = self.terms.values(settled, turned)
        better = merit < self.merit[turned]
        self.best[turned[better]], self.merit[turned[better]] = settled[better], merit[better]
