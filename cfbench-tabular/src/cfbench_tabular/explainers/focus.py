"""FOCUS: gradient descent through trees whose tests are replaced by sigmoids.

Lucic, Oosterhuis, Haned & de Rijke 2022, "FOCUS: Flexible Optimizable Counterfactual Explanations for Tree Ensembles".
With the soft ensemble of ``soft_trees.py``, whose probability of the factual's class y is p~(y | c) (softmax of its votes
times ``temperature``), Adam descends from c = x

    [M(c) = y] p~(y | c) + distance_weight d(x, c)

where M is the ensemble itself: as soon as c is in the other class, only the distance counts. Of all c on the way that M
puts into the other class, the nearest to x is returned.

The preset ``as-published`` has the settings of the authors' code, with distances, thresholds and learning rate in
units of the range of each column, 1,000 steps, and each leaf as a vote for its more frequent class. Their paper chooses
sharpness (1 to 10), temperature (1 to 20), weight (.01 to .5) and learning rate (.001 to .1) by the data set; the
authors study forests, trees and AdaBoost.

Departures. For boosted trees the leaves keep their log-odds, because they are not votes. A row is tested at the values that
its columns may have (``one_hot: project``: one level of each category, numbers at their steps; ``ignore`` is as published
for categories), within the limits of the factual. With ``halvings``, numbers are moved back towards x by bisection and
changed columns are reset, those with the smallest changes first, as long as the row is in the other class (0: neither, as
published). A row that has a counterfactual after ``iterations`` steps may not have the nearest: see ``tree-optimum``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from scipy.special import expit

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import TreeClassifier
from cfbench_tabular.classifiers.targets import votes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.explainers.descent import Adam, flips, pulled_back, steps_undone
from cfbench_tabular.explainers.soft_trees import SoftTrees
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/focus",
    summary="Gradient descent through trees whose tests are sigmoids",
    target=f"{__name__}:FOCUS",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores", "trees"}}},
    papers=("lucic2022focus",),
    presets="cfbench_tabular:presets/focus.yaml",
)

NUMBERS = 2_000_000
"""Pairs of rows and nodes that are processed at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    sharpness: Annotated[float, Range(above=0), Help("of the sigmoids in place of tests, sigma")] = 5.0
    temperature: Annotated[float, Range(above=0), Help("factor of the votes, or of the log-odds, tau")] = 1.0
    distance_weight: Annotated[float, Range(minimum=0), Help("weight of the distance, beta")] = 0.05
    learning_rate: Annotated[float, Range(above=0), Help("size of Adam's steps, in the unit of 'scale'")] = (
        0.1
    )
    iterations: Annotated[int, Range(minimum=1), Help("steps")] = 200
    scale: Annotated[
        Literal["deviation", "range"], Help("unit of numbers: standard deviation, or range as published")
    ] = "deviation"
    leaves: Annotated[
        Literal["shares", "votes"],
        Help(
            "what a leaf of a forest adds: the shares of the classes, or a vote for one of them, as published"
        ),
    ] = "shares"
    loss: Annotated[
        Literal["log", "probability"],
        Help("-log(1 - p~), or p~ as published, which is flat where the model is sure"),
    ] = "log"
    one_hot: Annotated[
        Literal["project", "ignore"], Help("test rows of one level each, or treat levels as numbers")
    ] = "project"
    halvings: Annotated[
        int, Range(minimum=0), Help("bisection steps back to the factual, and changes reset; 0: as published")
    ] = 8


class FOCUS:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: TreeClassifier, factuals: Factuals, context: Context) -> FloatArray:
        found = no_counterfactuals(factuals)
        trees, offset = model.ensemble()
        weight = 1.0
        if votes(trees, offset):  # the mean over trees of (share of class 1 less that of class 0)
            weight = 2.0 / len(trees.roots)
            if self.config.leaves == "votes":
                trees = replace(trees, value=(trees.value > 0.5).astype(np.float64))
        unit = _units(context.encoding, self.config.scale)
        soft = SoftTrees(trees, self.config.sharpness / unit)
        step = max(1, NUMBERS // soft.nodes)
        for start in range(0, len(factuals), step):
            part = slice(start, start + step)
            search = _Search(self.config, model, soft, offset, weight, unit, context.encoding)
            found[part] = search.run(factuals.vectors[part], factuals.classes[part])
        return found


@dataclass(frozen=True)
class _Search:
    """The descent of factuals (n, d) of classes (n,).

    Attributes:
        offset, weight: the log-odds before the temperature are weight * (sum of the soft trees + offset).
        unit: (d,) that distances and steps are measured in.
    """

    config: Config
    model: TreeClassifier
    soft: SoftTrees
    offset: float
    weight: float
    unit: FloatArray
    encoding: Encoding

    def run(self, factuals: FloatArray, classes: IntArray) -> FloatArray:
        """(n, d) the nearest rows of the other class, or NaN."""
        limits = self.encoding.limits(factuals)
        points, adam = factuals.copy(), Adam(self.config.learning_rate, *factuals.shape)
        best, nearest = np.full_like(factuals, np.nan), np.full(len(factuals), np.inf)
        inside: BoolArray = np.ones(len(factuals), dtype=np.bool_)
        fixed = limits.low == limits.high
        for _ in range(self.config.iterations):
            gradient = self._gradient(points, factuals, classes, inside)
            gradient[fixed] = 0.0
            points = np.clip(points - self.unit * adam.step(gradient * self.unit), limits.low, limits.high)
            rows = limits.projected(points) if self.config.one_hot == "project" else points
            inside = ~flips(self.model, rows, classes)
            away = (((rows - factuals) / self.unit) ** 2).sum(axis=1)
            better = ~inside & (away < nearest)
            best[better], nearest[better] = rows[better], away[better]
        return self._reset(best, factuals, classes) if self.config.halvings else best

    def _gradient(
        self, points: FloatArray, factuals: FloatArray, classes: IntArray, inside: BoolArray
    ) -> FloatArray:
        """(n, d) of the loss; ``inside`` (n,): the row is still in the factual's class."""
        total, slope = self.soft.total(points)
        toward = np.where(classes == 0, 1.0, -1.0) * self.config.temperature * self.weight
        own = expit(-toward * (total + self.offset))
        away = (points - factuals) / self.unit
        length = np.sqrt((away**2).sum(axis=1, keepdims=True))
        distance = away / np.where(length > 0, length, 1.0) / self.unit
        steepness = own if self.config.loss == "log" else own * (1 - own)
        prediction = -(inside * toward * steepness)[:, None] * slope
        found: FloatArray = prediction + self.config.distance_weight * distance
        return found

    def _reset(self, best: FloatArray, factuals: FloatArray, classes: IntArray) -> FloatArray:
        """(n, d) the rows with changes undone as far as the other class allows; NaN stays NaN."""
        given = np.flatnonzero(complete(best))
        rows, start, own = best[given], factuals[given], classes[given]
        limits = self.encoding.limits(start)

        def found(tried: FloatArray) -> BoolArray:
            return flips(self.model, tried, own)

        rows = self._columns_reset(found, rows, start)
        level_start = np.where(self.encoding.numeric, start, rows)
        rows = pulled_back(found, level_start, rows, self.config.halvings, limits.snapped)
        best[given] = steps_undone(found, start, rows, limits.grid, limits.snapped)
        return best

    def _columns_reset(
        self, found: Callable[[FloatArray], BoolArray], rows: FloatArray, start: FloatArray
    ) -> FloatArray:
        """(n, d) with each changed column at the factual's value where the class allows, the smallest change first."""
        blocks, column_of = self.encoding.blocks, self.encoding.column_of
        sizes = np.add.reduceat(np.abs(rows - start) / self.unit, [block.start for block in blocks], axis=1)
        for column in sizes.argsort(axis=1, kind="stable").T:
            tried = np.where(column_of[None] == column[:, None], start, rows)
            good = found(tried)
            rows = np.where(good[:, None], tried, rows)
        return rows


def _units(encoding: Encoding, scale: str) -> FloatArray:
    """(d,) the range of numbers, or 1 standard deviation; 1 for positions of categories."""
    low, high = encoding.bounds
    wide = encoding.numeric & (high > low) & (scale == "range")
    return np.where(wide, np.where(wide, high - low, 1.0), 1.0)
