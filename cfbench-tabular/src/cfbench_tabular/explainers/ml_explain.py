"""ML-Explain: gradient descent on the probability of the other class and the distance to the factual.

Afonichkin 2019, "Explaining machine learning models by generating counterfactuals" (thesis, Aalto
University). From c = x,

    w loss(c) + l2 ||c - x||_2^2 + l1 ||c - x||_1,    loss(c) = -log P(other class | c)

is descended; w is doubled while c is in the class of the factual and halved while it is not, so that c
converges to the point of the boundary nearest to x. Of all iterates in the other class, the nearest one (by the last
two terms) is returned.

The adapter of CF-tabular minimises the probability of the desired class, so that it finds counterfactuals for 24% of
its factuals, by chance. Here a test checks the sign.

Departures: the length of a step is ``learning_rate`` until the class changes first, then decreases by a tenth with each
step, independent of the size of the gradient (which vanishes where the network is confident). The original does not
support categories (``one_hot: ignore``); by default the gradient is that at the row with the largest level of each
category and numbers at the steps of their columns, and such rows are returned. ``ranges`` enforces the range and
immutable and one-way columns, which the original does not support. The numbers of the result are moved back by
bisection. Where the network is flat, the last slope is used; where no iterate is in the other class, the nearest
training row there is moved back. Preset ``as-published``: the loop of the author's code, in
:mod:`ml_explain_published <.ml_explain_published>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.descent import (
    CLEAR_MARGIN,
    Columns,
    flips,
    gradient_model,
    in_parts,
    margin_gradients,
    margins,
    over_flats,
    pulled_back,
    signs,
)
from cfbench_tabular.explainers.ml_explain_published import last_points
from cfbench_tabular.explainers.nearest_enemy import nearest_enemies
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/ml-explain",
    summary="Gradient descent on the probability of the other class and on the distance",
    target=f"{__name__}:MLExplain",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"gradients", "scores"}}},
    papers=("afonichkin2019explaining",),
    presets="cfbench_tabular:presets/ml-explain.yaml",
)


HALVINGS = 8
"""Steps of the last bisection."""

FLAT = 1e-9
"""A gradient of this length is a rounding error."""


@dataclass(frozen=True, kw_only=True)
class Config:
    l1: Annotated[float, Range(minimum=0), Help("weight of the absolute distance")] = 0.1
    l2: Annotated[float, Range(minimum=0), Help("weight of the squared distance")] = 1.0
    learning_rate: Annotated[float, Range(above=0), Help("length of a step, in standard deviations")] = 0.2
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the author's code, with iterations, learning_rate and distance_weight alone"),
    ] = "cfbench"
    distance_weight: Annotated[float, Range(minimum=0), Help("of the Euclidean distance, as published")] = 1.0
    iterations: Annotated[int, Range(minimum=1), Help("maximum number of steps")] = 200
    refinement: Annotated[int, Range(minimum=0), Help("steps after the class has changed first")] = 20
    one_hot: Annotated[Literal["project", "ignore"], Help("rows only, or as published")] = "project"
    ranges: Annotated[bool, Help("respect ranges, immutable and one-way columns; false: as published")] = True


class MLExplain:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        if self.config.loop == "published":
            return Explanation(
                last_points(
                    gradient_model(model),
                    factuals.vectors,
                    factuals.classes,
                    iterations=self.config.iterations,
                    learning_rate=self.config.learning_rate,
                    distance_weight=self.config.distance_weight,
                )
            )
        found_rows, steps = no_counterfactuals(factuals), np.full(len(factuals), np.nan)
        for part in in_parts(len(factuals)):
            rows, classes = factuals.vectors[part], factuals.classes[part]
            search = _Search(self.config, model, context.encoding, rows, classes)
            found_rows[part], steps[part] = search.run()
        self._start_at_enemies(found_rows, model, factuals, context)
        return Explanation(found_rows, {"steps": steps})

    def _start_at_enemies(
        self, found_rows: FloatArray, model: Classifier, factuals: Factuals, context: Context
    ) -> None:
        """Where the descent found nothing, the nearest training row of the other class is moved back by bisection."""
        missing = np.flatnonzero(~complete(found_rows))
        if len(missing) == 0 or not self.config.ranges or self.config.one_hot == "ignore":
            return
        part = Factuals(
            factuals.vectors[missing], factuals.classes[missing], tuple(factuals.units[i] for i in missing)
        )
        enemies = nearest_enemies(model, part, context)
        search = _Search(self.config, model, context.encoding, part.vectors, part.classes)
        found_rows[missing] = search.pulled_back(enemies)


class _Search:
    """The search for the counterfactuals of factuals (n, d)."""

    def __init__(
        self, config: Config, model: Classifier, encoding: Encoding, factuals: FloatArray, classes: IntArray
    ) -> None:
        self.factuals, self.classes = factuals, classes
        self.limits = encoding.limits(factuals, config.ranges)
        self.config = config
        self.model = gradient_model(model)
        self.encoding = encoding
        self.columns = Columns(encoding)
        self.projecting = config.one_hot == "project" and not bool(encoding.numeric.all())

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, d) counterfactuals or NaN, and (n,) the number of steps."""
        n = len(self.factuals)
        found_rows, nearest, steps = np.full_like(self.factuals, np.nan), np.full(n, np.inf), np.zeros(n)
        active, points, rows = np.arange(n), self.factuals.copy(), self.factuals
        weight, length, since = np.ones(n), np.full(n, self.config.learning_rate), np.full(n, -1)
        factuals, classes, low, high = self.factuals, self.classes, self.limits.low, self.limits.high
        slopes = away = np.zeros_like(points)
        margin = margins(self.model, rows, self.classes)
        for step in range(1, self.config.iterations + 1):
            slopes = self._slopes(rows, slopes, classes)
            points = np.clip(self._stepped(points, away, slopes, margin, weight, length), low, high)
            rows = self._rows(points, active)
            margin = margins(self.model, rows, classes)
            away = rows - factuals
            turned = margin > CLEAR_MARGIN
            distance = self._distance(away)
            better = turned & (distance < nearest[active])
            if better.any():
                found_rows[active[better]], nearest[active[better]] = rows[better], distance[better]
            if rows is not points:
                away = points - factuals
            steps[active] = step
            weight = np.where(turned, weight / 2, weight * 2)
            since = np.where(turned | (since >= 0), since + 1, since)
            length = np.where(since >= 0, length * 0.9, length)
            going = since < self.config.refinement
            if not going.all():
                active, points, rows = active[going], points[going], rows[going]
                slopes, away = slopes[going], away[going]
                margin, weight, length, since = margin[going], weight[going], length[going], since[going]
                factuals, classes, low, high = factuals[going], classes[going], low[going], high[going]
            if len(active) == 0:
                break
        return self.pulled_back(found_rows), steps

    def _rows(self, points: FloatArray, active: IntArray) -> FloatArray:
        """The rows that are tested, of any points."""
        return self.limits.projected(points, active) if self.config.one_hot == "project" else points

    def _slopes(self, rows: FloatArray, last: FloatArray, classes: IntArray) -> FloatArray:
        found = margin_gradients(self.model, rows, classes)
        if self.projecting:
            found = self.columns.centred(found)
        return over_flats(found, last)

    def _stepped(
        self,
        points: FloatArray,
        away: FloatArray,
        slopes: FloatArray,
        margin: FloatArray,
        weight: FloatArray,
        length: FloatArray,
    ) -> FloatArray:
        """The points after one step, which are ``away`` from the factuals before it.

        The gradient of the loss is -P(class of the factual) times the slopes.
        """
        own = 1 / (1 + np.exp(np.minimum(margin, 700.0)))
        gradient = 2 * self.config.l2 * away
        gradient += self.config.l1 * signs(away)
        gradient -= (weight * own)[:, None] * slopes
        norms = np.sqrt((gradient * gradient).sum(axis=1))
        gradient *= (length / np.where(norms > FLAT, norms, np.inf))[:, None]
        moved: FloatArray = points - gradient
        return moved

    def _distance(self, away: FloatArray) -> FloatArray:
        found: FloatArray = self.config.l2 * (away**2).sum(axis=1) + self.config.l1 * np.abs(away).sum(axis=1)
        return found

    def pulled_back(self, found_rows: FloatArray) -> FloatArray:
        """The counterfactuals (n, d), or NaN, with their numbers moved back towards the factuals."""
        rows_found = np.flatnonzero(complete(found_rows))
        if len(rows_found):
            number = self.encoding.numeric if self.projecting else np.ones(self.encoding.width, dtype=bool)
            starts = np.where(number, self.factuals[rows_found], found_rows[rows_found])

            def found(tried: FloatArray) -> BoolArray:
                return flips(self.model, tried, self.classes[rows_found])

            found_rows[rows_found] = pulled_back(
                found,
                starts,
                found_rows[rows_found],
                HALVINGS,
                lambda points: self._rows(points, rows_found),
            )
        return found_rows
