"""CADEX: Adam on the difference to the factual, until the class changes.

Moore, Hammerla & Watkins 2019, "Explaining deep learning models with constrained adversarial examples". The
counterfactual is c = x + delta. Adam descends the loss of the other class with respect to delta alone, from
delta = 0, and stops as soon as the class changes: no penalty is needed, since delta starts at 0.
Constraints:

- Direction: a gradient that would move a column beyond its limits is set to 0 (immutable columns, one-way
  columns, the end of the observed range).
- Number of changes: only the ``features`` columns with the largest gradients at x may change; ``skip`` leaves
  out the largest ones, for alternative explanations. The merit of a category is that of its best switch, g_v
  less g_u.
- Categories: the current level u and the level v with the largest value compete for each category; when the
  value of v exceeds that of u, c switches to v. Two-valued columns flip at 1/2.

The loss is the log loss; its gradient is used without the factor 1 - P(other class), which lies between 1/2
and 1 until the class changes (Adam would divide it out). With ``project`` the gradient is that at the current
row, not at a mixture of levels.

Departures: if several categories would switch in the same step, only the one with the largest gain switches, and
the class is predicted again, because with the equal first steps of Adam all would switch together. The mean over
the levels of a category is subtracted from gradients, because Adam would move all levels with a positive gradient
equally. The numbers of the counterfactual are moved back towards x by bisection (``halvings``; 0 as published),
because the last step oversteps the boundary by up to its size, then those with steps by one step at a time, because
rounding moves several of them at once. Where the network is flat, the last slope is used.
Counterfactuals stay in the range, and numbers are tested and returned at the steps of their columns, while the
difference that Adam descends is continuous. Preset ``as-published``: :mod:`cadex_published <.cadex_published>`.

The adapter of CF-tabular declares every column of a mixed table as categorical, which sets each number to 1.0; here
the encoding determines which columns are numeric.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier, DifferentiableClassifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.cadex_published import PublishedSearch, Settings
from cfbench_tabular.explainers.descent import (
    Adam,
    Columns,
    flips,
    gradient_model,
    in_parts,
    margin_gradients,
    over_flats,
    pulled_back,
    steps_undone,
)
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/cadex",
    summary="Gradient steps towards the other class; levels switched one at a time",
    target=f"{__name__}:CADEX",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"gradients", "scores"}}},
    papers=("moore2019cadex",),
    presets="cfbench_tabular:presets/cadex.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    learning_rate: Annotated[float, Range(above=0), Help("size of Adam's steps, in standard deviations")] = (
        0.1
    )
    iterations: Annotated[int, Range(minimum=1), Help("maximum number of steps")] = 200
    features: Annotated[int | None, Range(minimum=1), Help("columns that may change; none: all")] = None
    skip: Annotated[int, Range(minimum=0), Help("columns of the largest gradients to leave out")] = 0
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the authors' code; then halvings and one_hot have no effect"),
    ] = "cfbench"
    switch_above: Annotated[
        float,
        Range(minimum=0, below=1),
        Help("value at which a level replaces the largest one, as published"),
    ] = 0.2
    halvings: Annotated[
        int, Range(minimum=0), Help("bisection steps back to the factual; 0: as published")
    ] = 8
    one_hot: Annotated[Literal["project", "ignore"], Help("switch levels, or treat them as numbers")] = (
        "project"
    )


class CADEX:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows, steps = no_counterfactuals(factuals), np.full(len(factuals), np.nan)
        for part in in_parts(len(factuals)):
            of_rows = gradient_model(model), context.encoding, factuals.vectors[part], factuals.classes[part]
            if self.config.loop == "published":
                found_rows[part], steps[part] = PublishedSearch(self._published(), *of_rows).run()
            else:
                found_rows[part], steps[part] = _Search(self.config, *of_rows).run()
        return Explanation(found_rows, {"steps": steps})

    def _published(self) -> Settings:
        given = {field.name: getattr(self.config, field.name) for field in fields(Settings)}
        return Settings(**given)


class _Search:
    """The search for the counterfactuals of factuals (n, d)."""

    def __init__(
        self,
        config: Config,
        model: DifferentiableClassifier,
        encoding: Encoding,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.config = config
        self.model = model
        self.factuals = factuals
        self.classes = classes
        self.columns = Columns(encoding)
        self.limits = encoding.limits(factuals)
        self.low, self.high = self.limits.low, self.limits.high
        self.number = encoding.numeric
        self.switching = config.one_hot == "project" and not bool(self.number.all())
        if config.one_hot == "ignore":
            self.number = np.ones_like(self.number)

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, d) counterfactuals or NaN, and (n,) the number of steps."""
        found_rows, steps = np.full_like(self.factuals, np.nan), np.full(len(self.factuals), np.nan)
        active = np.arange(len(self.factuals))
        gradients = margin_gradients(self.model, self.factuals, self.classes)
        free = self._free(gradients)
        adam = Adam(self.config.learning_rate, *self.factuals.shape)
        rows, targets = self.factuals.copy(), self.factuals.copy()
        for step in range(1, self.config.iterations + 1):
            if step > 1:
                found = margin_gradients(self.model, rows, self.classes[active])
                gradients = over_flats(found, gradients)
            open_ = self._open(active, rows, gradients, free)
            slopes = self.columns.centred(gradients) if self.switching else gradients
            targets = targets - adam.step(-np.where(open_, slopes, 0.0))
            rows = self._rows(active, rows, targets, gradients, free, adam)
            done = flips(self.model, rows, self.classes[active])
            if done.any():
                found_rows[active[done]], steps[active[done]] = rows[done], step
                active, free = active[~done], free[~done]
                rows, targets, gradients = rows[~done], targets[~done], gradients[~done]
                adam.select(~done)
            if len(active) == 0:
                break
        return self._pulled_back(found_rows), steps

    def _free(self, gradients: FloatArray) -> BoolArray:
        """(n, d) the positions that may change: those of the columns with the largest gradients."""
        all_rows = np.arange(len(self.factuals))
        free: BoolArray = self.low < self.high
        if self.config.features is None and self.config.skip == 0:
            return free
        strength = np.where(self._open(all_rows, self.factuals, gradients, free), np.abs(gradients), 0.0)
        if self.switching:
            switch = self.columns.switches(self.factuals, gradients)
            strength = np.where(self.number, strength, np.where(free, np.maximum(switch, 0.0), 0.0))
        merits = self.columns.largest(strength)
        place = np.argsort(np.argsort(-merits, axis=1, kind="stable"), axis=1)
        features = merits.shape[1] if self.config.features is None else self.config.features
        chosen = (place >= self.config.skip) & (place < self.config.skip + features)
        chosen_places: BoolArray = free & chosen[:, self.columns.of]
        return chosen_places

    def _open(self, active: IntArray, rows: FloatArray, gradients: FloatArray, free: BoolArray) -> BoolArray:
        """(n, d) the free positions, without numbers at the limit that their gradient points to."""
        end = np.where(gradients > 0, self.high[active], self.low[active])
        found: BoolArray = free & (~self.number | (rows != end))
        return found

    def _rows(
        self,
        active: IntArray,
        rows: FloatArray,
        targets: FloatArray,
        gradients: FloatArray,
        free: BoolArray,
        adam: Adam,
    ) -> FloatArray:
        """The next rows; ``targets`` (n, d), the unconstrained x + delta, is updated to agree with them."""
        numbers = np.clip(targets, self.low[active], self.high[active])
        targets[:, self.number] = numbers[:, self.number]
        moved = np.where(self.number, self._snapped(numbers, active), rows)
        if not self.switching:
            return moved
        lead = self.columns.switches(rows, targets - np.where(self._two_valued, 0.5, 0.0))
        gain = np.where((lead > 0) & free, self.columns.switches(rows, gradients), -np.inf)
        best = gain.argmax(axis=1)
        switching = np.flatnonzero(gain[np.arange(len(rows)), best] > 0)
        if len(switching):
            moved[switching] = self.columns.switched(moved[switching], best[switching])
            touched = self.columns.of[None, :] == self.columns.of[best[switching]][:, None]
            where = np.zeros_like(free)
            where[switching] = touched
            targets[where] = moved[where]
            adam.first[where] = 0.0
        return moved

    def _snapped(self, points: FloatArray, of: IntArray) -> FloatArray:
        """Numbers at the steps of their columns; unchanged where every position is a number."""
        return points if self.config.one_hot == "ignore" else self.limits.snapped(points, of)

    @property
    def _two_valued(self) -> BoolArray:
        found: BoolArray = self.columns.two_valued[self.columns.of]
        return found

    def _pulled_back(self, found_rows: FloatArray) -> FloatArray:
        rows_found = np.flatnonzero(complete(found_rows))
        if self.config.halvings == 0 or len(rows_found) == 0:
            return found_rows
        nearest = np.where(self.number, self.factuals[rows_found], found_rows[rows_found])

        def found(tried: FloatArray) -> BoolArray:
            return flips(self.model, tried, self.classes[rows_found])

        def snapped(points: FloatArray) -> FloatArray:
            return self._snapped(points, rows_found)

        ends = found_rows[rows_found]
        ends = pulled_back(found, nearest, ends, self.config.halvings, snapped)
        if self.config.one_hot == "project":
            ends = steps_undone(found, self.factuals[rows_found], ends, self.limits.grid, snapped)
        found_rows[rows_found] = ends
        return found_rows
