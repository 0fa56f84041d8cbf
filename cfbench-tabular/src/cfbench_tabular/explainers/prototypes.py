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
bisected between the largest cost without a counterfactual and the smallest with one. Afterwards (``refined``) the
counterfactual is moved to where the last three terms are smaller, by bisection, in all coordinates and then in each;
so is p, and the better of the two is returned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from scipy.spatial import cKDTree

from cfbench_core.config import Help, Range
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, in_parts, margins, over_flats, pulled_back
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.grid import Limits
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

HALVINGS = 8
"""Steps of a bisection."""

REFINED_COLUMNS = 60
"""Coordinates that are refined, of those that are farthest from where the objective is smallest."""

Slopes = Callable[[Space, FloatArray, IntArray], FloatArray]
"""``slopes(space, points, classes)``: (n, M) the gradient of the margin at points (n, M)."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of both variants."""

    theta: Annotated[float, Range(minimum=0), Help("weight of the distance to the prototype")] = 0.2
    beta: Annotated[float, Range(minimum=0), Help("weight of the absolute distance")] = 0.5
    kappa: Annotated[float, Range(minimum=0), Help("required log-odds beyond the boundary")] = 0.0
    neighbours: Annotated[int, Range(minimum=1), Help("training rows that make a prototype")] = 1
    cost: Annotated[float, Range(above=0), Help("first weight of the class")] = 1.0
    rounds: Annotated[int, Range(minimum=1), Help("weights of the class tried")] = 6
    iterations: Annotated[int, Range(minimum=1), Help("steps for each of them")] = 60
    learning_rate: Annotated[float, Range(above=0), Help("first step size")] = 0.1
    refined: Annotated[
        bool, Help("improve the counterfactuals found, coordinate by coordinate; false: as published")
    ] = True
    categories: Annotated[
        Literal["mvdm", "abdm", "ignore"], Help("distance of levels, or each position a number")
    ] = "mvdm"


def guided(
    options: Options,
    model: Classifier,
    factuals: Factuals,
    context: Context,
    slopes: Slopes,
    kind: type[Search] | None = None,
) -> Explanation:
    """Counterfactuals with the details ``cost``, the weight of the class, and ``to_prototype``, the distance."""
    kind = kind or Search
    classes = predicted_classes(model, context.background)
    if options.categories == "ignore":
        space = Space.of_places(context.encoding)
    else:
        space = Space.of_columns(context.encoding, context.background, classes, options.categories)
    known = space.points(context.background)
    limits = context.encoding.limits(factuals.vectors)
    low, high = space.limits(limits.low, limits.high)
    starts = space.points(factuals.vectors)
    prototypes = nearest_means(starts, factuals.classes, known, classes, options.neighbours)
    found_rows = no_counterfactuals(factuals)
    details = {name: np.full(len(factuals), np.nan) for name in ("cost", "to_prototype")}
    for part in in_parts(len(factuals)):
        search = kind(options, model, space, slopes, starts[part], factuals.classes[part])
        search.low, search.high, search.prototypes = low[part], high[part], prototypes[part]
        search.limits, search.part = limits, part
        found, details["cost"][part] = search.run()
        given = ~np.isnan(found[:, 0])
        rows = space.rows(found[given])
        # Columns that did not move get their exact original values.
        same = (found[given] == starts[part][given])[:, _columns_of(space)]
        found_rows[part][given] = np.where(same, factuals.vectors[part][given], rows)
        details["to_prototype"][part] = np.linalg.norm(found - prototypes[part], axis=1)
    return Explanation(found_rows, details)


def nearest_means(
    points: FloatArray, classes: IntArray, known: FloatArray, known_classes: IntArray, neighbours: int
) -> FloatArray:
    """(n, M) the mean of the nearest known points of the other class; NaN where there is none."""
    found = np.full_like(points, np.nan)
    for label in (0, 1):
        enemies, members = known[known_classes != label], classes == label
        if len(enemies) and members.any():
            count = min(neighbours, len(enemies))
            _, nearest = cKDTree(enemies).query(points[members], k=np.arange(1, count + 1))
            found[members] = enemies[nearest].mean(axis=1)
    return found


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
    limits: Limits
    part: slice

    def __init__(
        self,
        options: Options,
        model: Classifier,
        space: Space,
        slopes: Slopes,
        starts: FloatArray,
        classes: IntArray,
    ) -> None:
        self.options = options
        self.model = model
        self.space = space
        self.slopes = slopes
        self.starts = starts
        self.classes = classes

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, M) the best points or NaN, and (n,) the cost at which they were found."""
        n = len(self.starts)
        missing = np.isnan(self.prototypes)
        self.theta = np.where(missing, 0.0, self.options.theta)
        self.goals = np.where(missing, 0.0, self.prototypes)
        self.best, self.merit = np.full_like(self.starts, np.nan), np.full(n, np.inf)
        self.first = self.slopes(self.space, self.starts, self.classes)
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
        """Improves the best points and the prototypes themselves, and retains the better of the two."""
        self._improve()
        best, merit = self.best, self.merit
        self.best, self.merit = np.full_like(best, np.nan), np.full_like(merit, np.inf)
        rows = self._rows(
            np.clip(np.where(np.isnan(self.prototypes), self.starts, self.prototypes), self.low, self.high)
        )
        turned = margins(self.model, rows, self.classes) > max(self.options.kappa, CLEAR_MARGIN)
        self._update_best(rows, turned)
        self._improve()
        worse = self.merit >= merit
        self.best[worse], self.merit[worse] = best[worse], merit[worse]

    def _improve(self) -> None:
        """Moves the best points to where the last three terms are smaller, as far as they stay in the other class.

        These terms are a sum over the coordinates, each with one minimum. All coordinates go together first, then one
        after the other, beginning with those that are farthest from their minimum.
        """
        rows = np.flatnonzero(~np.isnan(self.best[:, 0]))
        if len(rows) == 0:
            return
        ends = self._minimum()[rows]
        self._pull(rows, ends)
        far = np.argsort(-np.abs(self.best[rows] - ends), axis=1, kind="stable")[:, :REFINED_COLUMNS]
        for column in far.T:
            start = self.best[rows].copy()
            np.put_along_axis(
                start, column[:, None], np.take_along_axis(ends, column[:, None], axis=1), axis=1
            )
            self._pull(rows, start)

    def _minimum(self) -> FloatArray:
        """(n, M) where beta |c - x| + (c - x)^2 + theta (c - p)^2 is smallest in each coordinate."""
        options = self.options
        if options.theta == 0:
            return np.clip(self.starts, self.low, self.high)
        toward = np.nan_to_num(self.prototypes - self.starts)
        pull = np.maximum(2 * options.theta * np.abs(toward) - options.beta, 0.0)
        away = np.sign(toward) * pull / (2 * (1 + options.theta))
        return np.clip(self.starts + away, self.low, self.high)

    def _pull(self, rows: IntArray, starts: FloatArray) -> None:
        """Moves the best points of ``rows`` towards ``starts`` while they are in the other class."""
        moving = (starts != self.best[rows]).any(axis=1)
        rows, starts = rows[moving], starts[moving]
        if len(rows) == 0:
            return

        def settled(points: FloatArray) -> FloatArray:
            return self.space.points(self._rows(points, rows))

        def found(points: FloatArray) -> BoolArray:
            margin = margins(self.model, self.space.rows(points), self.classes[rows])
            turned: BoolArray = margin > max(self.options.kappa, CLEAR_MARGIN)
            return turned

        moved = pulled_back(found, starts, self.best[rows], HALVINGS, settled)
        merit = self._merit(moved, rows)
        better = merit < self.merit[rows]
        self.best[rows[better]], self.merit[rows[better]] = moved[better], merit[better]

    def _merit(self, points: FloatArray, rows: IntArray | slice = slice(None)) -> FloatArray:
        """(n,) the last three terms of the objective at points (n, M) of ``rows``."""
        away = points - self.starts[rows]
        found: FloatArray = self.options.beta * np.abs(away).sum(axis=1) + (away**2).sum(axis=1)
        found += (self.theta[rows] * (points - self.goals[rows]) ** 2).sum(axis=1)
        return found

    def _fista(self, cost: FloatArray) -> BoolArray:
        """(n,) whether a point of the other class was found; updates the best points."""
        options, starts = self.options, self.starts
        met = np.zeros(len(starts), dtype=bool)
        point = ahead = starts
        slopes = self.first
        margin = margins(self.model, self._rows(ahead), self.classes)
        for step in range(options.iterations):
            rate = options.learning_rate / (1 + options.theta) * np.sqrt(1 - step / options.iterations)
            short = margin <= max(options.kappa, CLEAR_MARGIN)
            if step > 0 and short.any():
                slopes = slopes.copy()
                new = self.slopes(self.space, ahead[short], self.classes[short])
                slopes[short] = over_flats(new, slopes[short])
            gradient = 2 * (ahead - starts) + 2 * self.theta * (ahead - self.goals)
            gradient -= np.where(short, cost / self.unit, 0.0)[:, None] * slopes
            moved = shrunk(ahead - rate * gradient, starts, rate * options.beta)
            moved = np.clip(moved, self.low, self.high)
            ahead = np.clip(moved + step / (step + 3) * (moved - point), self.low, self.high)
            point = moved
            rows = self._rows(point)
            margin = margins(self.model, rows, self.classes)
            flipped = margin > max(options.kappa, CLEAR_MARGIN)
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
        merit = self._merit(settled, turned)
        better = merit < self.merit[turned]
        self.best[turned[better]], self.merit[turned[better]] = settled[better], merit[better]
