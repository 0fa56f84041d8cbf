"""DiCE: several counterfactuals at once, close to the factual and diverse.

Mothilal, Sharma & Tan 2020, "Explaining machine learning classifiers through diverse counterfactual
explanations". For k counterfactuals c_1 ... c_k of x, Adam descends

    1/k sum_i hinge(c_i) + proximity/k sum_i dist(c_i, x) / d - diversity det(K) + categories sum_i penalty(c_i)

- hinge(c) = max(0, 1 - margin(c)), the margin being the log-odds of the other class;
- dist(a, b) = sum_j w_j |a_j - b_j|, w_j = 1 / MAD_j of the training rows for numbers and 1 for places of
  categories (a column whose MAD is 0: its mean absolute deviation instead, or 1);
- K_ij = 1 / (1 + dist(c_i, c_j)), with 1e-4 added on the diagonal;
- penalty(c) = sum over one-hot categories of (sum of its places - 1)^2.

k is ``protocol.counterfactuals_per_instance``. The first c starts at x, the others around it.

Two counterfactuals of a factual are at least ``minimum_distance`` apart (L2 of encoded rows, so in standard deviations of
numbers; 0: they only differ). What is nearer to one before it counts as none in the search.
No counterfactual contains the changes of another one (:mod:`dominance <.dominance>`), in the search and in the result.

Afterwards the counterfactuals are made sparse, one after the other: columns are reset to x in order of increasing
|c_j - x_j| / MAD_j, as long as the class and the distances to the rest of the set allow it; then the remaining numbers
are moved towards x as far as these allow, in steps of a tenth (``linear``) or by bisection (``binary``). The paper resets
numbers only (``restored: numbers``). The adapter of CF-tabular edits single one-hot positions, which breaks categories,
and sets all two-valued columns to 1; here a category is reset as a whole or not at all.

Departures: every iterate is projected onto rows (largest level of each category, steps, range, immutable and one-way
columns respected) and predicted; of all iterates the set with most valid rows is returned, of
these the one with the lowest proximity minus diversity; the paper returns the last one, valid or not. Invalid rows are
not returned. ``one_hot: project`` has the gradient at the rows themselves, so that the descent and the result agree;
``penalise`` has it between levels, as published. A search ends after ``patience`` steps without improvement; as long as
some of the k rows are not valid, the weight of the proximity is halved instead. Where the network is flat, the last
slope is used. Preset ``as-published``: :mod:`dice_published <.dice_published>`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.counterfactual_sets import (
    SetSparsifier,
    distances,
    distinct,
    diversity,
    diversity_gradient,
    inverse_deviations,
)
from cfbench_tabular.explainers.descent import (
    CLEAR_MARGIN,
    Adam,
    Columns,
    flips,
    gradient_model,
    in_parts,
    margin_gradients,
    margins,
    over_flats,
    signs,
)
from cfbench_tabular.explainers.dice_published import LinearReset, PublishedSearch, Settings
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/dice",
    summary="Several diverse counterfactuals by gradient descent, made sparse",
    target=f"{__name__}:DiCE",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"gradients", "scores"}}},
    papers=("mothilal2020dice",),
    presets="cfbench_tabular:presets/dice.yaml",
    version="2",
)


NEARBY = 1.0
"""Standard deviation of the starting points of all but the first counterfactual: where points nearly coincide, the
determinant is nearly 0, and so is its gradient, which could not move them apart."""


@dataclass(frozen=True, kw_only=True)
class Config:
    proximity: Annotated[float, Range(minimum=0), Help("weight of the distance to the factual")] = 0.5
    diversity: Annotated[float, Range(minimum=0), Help("weight of the determinant")] = 1.0
    minimum_distance: Annotated[
        float,
        Range(minimum=0),
        Help(
            "between two counterfactuals of a factual: L2 of encoded rows, 0.5 is half a standard deviation"
        ),
    ] = 0.5
    categories: Annotated[float, Range(minimum=0), Help("weight of the penalty of penalise")] = 0.1
    learning_rate: Annotated[float, Range(above=0), Help("of Adam, in standard deviations")] = 0.05
    iterations: Annotated[int, Range(minimum=1), Help("steps at most")] = 400
    patience: Annotated[int, Range(minimum=1), Help("maximum number of steps without improvement")] = 20
    one_hot: Annotated[Literal["project", "penalise"], Help("gradient at rows, or between levels")] = (
        "project"
    )
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the authors' code; then patience and one_hot have no effect"),
    ] = "cfbench"
    sparsity: Annotated[Literal["linear", "binary", "none"], Help("how numbers are reset")] = "binary"
    restored: Annotated[Literal["numbers", "all"], Help("columns that are reset")] = "all"


class DiCE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        """(B, k, d), the closest first."""
        k, d = context.counterfactuals_per_instance, context.encoding.width
        found_rows = np.full((len(factuals), k, d), np.nan)
        steps = np.full(len(factuals), np.nan)
        weights = inverse_deviations(context.background, context.encoding)
        reset = LinearReset(context.encoding, context.background) if self._resets_as_published() else None
        for part in in_parts(len(factuals)):
            of_rows = context.encoding, weights, factuals.vectors[part], factuals.classes[part]
            if self.config.loop == "published":
                published = PublishedSearch(
                    self._published(),
                    gradient_model(model),
                    context.encoding,
                    context.background,
                    factuals.vectors[part],
                    factuals.classes[part],
                )
                found, steps[part] = published.run(k)
                if reset is not None:
                    found = published.sparse(found, reset)
            else:
                found, steps[part] = _Search(self.config, model, *of_rows).run(
                    self._starts(factuals, part, k, context)
                )
            found_rows[part] = self._sparse(found, model, *of_rows)
        return Explanation(found_rows, {"steps": steps})

    def _starts(self, factuals: Factuals, part: slice, k: int, context: Context) -> FloatArray:
        """(n, k, d) the first counterfactual of a set starts at its factual, the others around it."""
        starts = np.repeat(factuals.vectors[part][:, None], k, axis=1)
        for row, unit in zip(starts, factuals.units[part], strict=True):
            row[1:] += NEARBY * context.generator(unit).standard_normal((k - 1, starts.shape[2]))
        return starts

    def _sparse(
        self,
        sets: FloatArray,
        model: Classifier,
        encoding: Encoding,
        weights: FloatArray,
        factuals: FloatArray,
        classes: IntArray,
    ) -> FloatArray:
        """(n, k, d) the sets (n, k, d) made sparse."""
        return SetSparsifier(
            encoding,
            Dominance(encoding, factuals),
            encoding.limits(factuals),
            lambda rows, owner: flips(model, rows, classes[owner]),
            weights,
            self.config.minimum_distance,
            "none" if self._resets_as_published() else self.config.sparsity,
            self.config.restored,
            self.config.loop != "published",
        ).sparse(sets)

    def _resets_as_published(self) -> bool:
        return self.config.loop == "published" and self.config.sparsity == "linear"

    def _published(self) -> Settings:
        return Settings(**{field.name: getattr(self.config, field.name) for field in fields(Settings)})


class _Search:
    """Some factuals (n, d)."""

    def __init__(
        self,
        config: Config,
        model: Classifier,
        encoding: Encoding,
        weights: FloatArray,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.config = config
        self.factuals, self.classes = factuals, classes
        self.limits = encoding.limits(factuals)
        self.low, self.high = self.limits.low, self.limits.high
        self.model = gradient_model(model)
        self.encoding = encoding
        self.columns = Columns(encoding)
        self.weights = weights

    def run(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, k, d) rows or NaN, from ``points`` (n, k, d), and (n,) steps taken."""
        n, k, _ = points.shape
        best, merit, since = np.full_like(points, np.nan), np.full(n, -np.inf), np.zeros(n)
        pull, steps = np.full(n, self.config.proximity), np.zeros(n)
        adam, active = Adam(self.config.learning_rate, *points.shape), np.arange(n)
        rows = self.limits.projected(points, active)
        margin = self._margins(rows, active)
        last = np.zeros_like(points)
        for step in range(1, self.config.iterations + 1):
            gradient, last = self._gradient(points, rows, margin, last, pull[active], active)
            points = points - adam.step(gradient)
            points = np.clip(points, self.low[active, None], self.high[active, None])
            rows = self.limits.projected(points, active)
            margin = self._margins(rows, active)
            valid = self._alternatives(rows, margin, active)
            found = self._merit(rows, valid, active)
            better = found > merit[active] + 1e-6
            best[active[better]] = np.where(valid[better, :, None], rows[better], np.nan)
            merit[active] = np.maximum(found, merit[active])
            since[active] = np.where(better, 0, since[active] + 1)
            steps[active] = step
            stuck = since[active] >= self.config.patience
            incomplete = merit[active] < k
            pull[active[stuck & incomplete]] /= 2
            since[active[stuck & incomplete]] = 0
            going = ~stuck | incomplete
            if not going.all():
                points, rows, margin, last = points[going], rows[going], margin[going], last[going]
                active = active[going]
                adam.select(going)
            if len(active) == 0:
                break
        return best, steps

    def _gradient(
        self,
        points: FloatArray,
        rows: FloatArray,
        margin: FloatArray,
        last: FloatArray,
        pull: FloatArray,
        active: IntArray,
    ) -> tuple[FloatArray, FloatArray]:
        """(a, k, d) the gradient of the loss, times k, and (a, k, d) the last slopes of the hinge."""
        _, k, d = points.shape
        config = self.config
        queries = rows
        if config.one_hot == "penalise":
            queries, margin = points, self._margins(points, active)
        short = margin < 1
        classes = np.repeat(self.classes[active, None], k, axis=1)
        slopes = margin_gradients(self.model, queries[short], classes[short])
        if config.one_hot == "project":
            slopes = self.columns.centred(slopes)
        last = last.copy()
        last[short] = over_flats(-slopes, last[short])
        gradient = np.where(short[:, :, None], last, 0.0)
        gradient += (pull / d)[:, None, None] * self.weights * signs(points - self.factuals[active, None])
        if k > 1 and config.diversity > 0:
            gradient -= k * config.diversity * diversity_gradient(points, self.weights)
        if config.one_hot == "penalise":
            for group in self.encoding.groups:
                excess = points[:, :, group].sum(axis=2, keepdims=True) - 1
                gradient[:, :, group] += 2 * k * config.categories * excess
        return gradient, last

    def _alternatives(self, rows: FloatArray, margin: FloatArray, active: IntArray) -> BoolArray:
        """(a, k) which of the rows (a, k, d) are valid, apart, and contain the changes of no other one that is."""
        valid = distinct(rows, margin > CLEAR_MARGIN, self.config.minimum_distance)
        return Dominance(self.encoding, self.factuals[active]).undominated(rows, valid)

    def _margins(self, rows: FloatArray, active: IntArray) -> FloatArray:
        """(a, k) of rows (a, k, d)."""
        a, k, d = rows.shape
        return margins(self.model, rows.reshape(a * k, d), np.repeat(self.classes[active], k)).reshape(a, k)

    def _merit(self, rows: FloatArray, valid: BoolArray, active: IntArray) -> FloatArray:
        """(a,) the number of valid rows plus diversity minus proximity, scaled below 1."""
        _, k, d = rows.shape
        away = distances(rows, self.factuals[active, None], self.weights) / d
        worth = -self.config.proximity * np.where(valid, away, 0.0).sum(axis=1) / k
        if k > 1:
            worth = worth + self.config.diversity * diversity(rows, self.weights)
        count: FloatArray = valid.sum(axis=1) + 0.5 + 0.4 * worth / (1 + np.abs(worth))
        return np.where(valid.any(axis=1), count, -np.inf)
