"""CADEX: Adam on the difference to the factual, until the class changes.

Moore, Hammerla & Watkins 2019, "Explaining deep learning models with constrained adversarial examples". The
counterfactual is c = x + delta. Adam descends the loss of the other class with respect to delta alone, from
delta = 0, and stops as soon as the class changes: no penalty is needed, since delta starts at nothing.
Constraints on the way:

- Direction: a gradient that would move a column where it may not go is set to 0 (immutable columns, one-way
  columns, the end of the observed range).
- Number of changes: only the ``features`` columns with the largest gradients at x may change; ``skip`` leaves
  out the very largest, for another explanation. The merit of a category is that of its best switch, g_v
  less g_u.
- Categories: the level u that the row has and the level v with the largest value compete for each category;
  when v has overtaken u, c takes v and drops u. Two-valued columns turn when they pass 1/2.

The loss is the log loss; its gradient is used without the factor 1 - P(other class), which lies between 1/2
and 1 until the class changes (Adam would divide it out). In ``project`` the gradient is that at the row whose
levels have won so far, not at a mixture of levels.

Departures: of several categories whose challenger has won in the same step, only the one whose switch gains
most is switched, then the class is looked at again: with Adam's first steps, all of one size, all would
switch together; and gradients are taken less their mean over the levels of a category, since Adam would move
all levels whose gradient is positive alike. The numbers of the answer are pulled back towards x by bisection
(``halvings``; 0 as published), since the last step goes beyond the boundary by up to its size. Where the
network is flat, the last slope is followed. Answers stay in the observed range.

The study's adapter named every column of a mixed table as categorical, which made each number 1.0; here a
number is what the encoding says is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.classifiers.base import Classifier
from cfbench_tabular.explainers.base import Answer, Context, Factuals, no_answers
from cfbench_tabular.explainers.descent import (
    Adam,
    Columns,
    flips,
    gradient_model,
    in_parts,
    margin_gradients,
    over_flats,
    pulled_back,
)
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete


@dataclass(frozen=True, kw_only=True)
class Config:
    rate: Annotated[float, Range(above=0), Help("size of Adam's steps, in standard deviations")] = 0.1
    iterations: Annotated[int, Range(minimum=1), Help("steps before giving up")] = 200
    features: Annotated[int | None, Range(minimum=1), Help("columns that may change; none: all")] = None
    skip: Annotated[int, Range(minimum=0), Help("columns of the largest gradients to leave out")] = 0
    halvings: Annotated[int, Range(minimum=0), Help("of the way back to the factual; 0: as published")] = 8
    one_hot: Annotated[Literal["project", "ignore"], Help("switch levels, or take them for numbers")] = (
        "project"
    )


class CADEX:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Answer:
        answers, steps = no_answers(factuals), np.full(len(factuals), np.nan)
        low, high = context.encoding.allowed(factuals.vectors)
        for part in in_parts(len(factuals)):
            search = _Search(self.config, model, context, factuals.vectors[part], factuals.classes[part])
            search.low, search.high = low[part], high[part]
            answers[part], steps[part] = search.run()
        return Answer(answers, {"steps": steps})


class _Search:
    """Some factuals (n, d), and the row that the search for each has reached."""

    low: FloatArray
    high: FloatArray

    def __init__(
        self, config: Config, model: Classifier, context: Context, factuals: FloatArray, classes: IntArray
    ) -> None:
        self.config = config
        self.model = gradient_model(model)
        self.factuals = factuals
        self.classes = classes
        self.columns = Columns(context.encoding)
        self.number = context.encoding.numeric
        self.switching = config.one_hot == "project" and not bool(self.number.all())
        if config.one_hot == "ignore":
            self.number = np.ones_like(self.number)

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(n, d) answers or NaN, and (n,) steps taken."""
        answers, steps = np.full_like(self.factuals, np.nan), np.full(len(self.factuals), np.nan)
        active = np.arange(len(self.factuals))
        gradients = margin_gradients(self.model, self.factuals, self.classes)
        free = self._free(gradients)
        adam = Adam(self.config.rate, *self.factuals.shape)
        rows, wishes = self.factuals.copy(), self.factuals.copy()
        for step in range(1, self.config.iterations + 1):
            if step > 1:
                found = margin_gradients(self.model, rows, self.classes[active])
                gradients = over_flats(found, gradients)
            open_ = self._open(active, rows, gradients, free)
            slopes = self.columns.centred(gradients) if self.switching else gradients
            wishes = wishes - adam.step(-np.where(open_, slopes, 0.0))
            rows = self._rows(active, rows, wishes, gradients, free, adam)
            done = flips(self.model, rows, self.classes[active])
            if done.any():
                answers[active[done]], steps[active[done]] = rows[done], step
                active, free = active[~done], free[~done]
                rows, wishes, gradients = rows[~done], wishes[~done], gradients[~done]
                adam.keep(~done)
            if len(active) == 0:
                break
        return self._pulled_back(answers), steps

    def _free(self, gradients: FloatArray) -> BoolArray:
        """(n, d) the places that may change: those of the columns whose gradients promise most."""
        everyone = np.arange(len(self.factuals))
        free: BoolArray = self.low < self.high
        if self.config.features is None and self.config.skip == 0:
            return free
        promise = np.where(self._open(everyone, self.factuals, gradients, free), np.abs(gradients), 0.0)
        if self.switching:
            switch = self.columns.switches(self.factuals, gradients)
            promise = np.where(self.number, promise, np.where(free, np.maximum(switch, 0.0), 0.0))
        merits = self.columns.largest(promise)
        place = np.argsort(np.argsort(-merits, axis=1, kind="stable"), axis=1)
        features = merits.shape[1] if self.config.features is None else self.config.features
        chosen = (place >= self.config.skip) & (place < self.config.skip + features)
        chosen_places: BoolArray = free & chosen[:, self.columns.of]
        return chosen_places

    def _open(self, active: IntArray, rows: FloatArray, gradients: FloatArray, free: BoolArray) -> BoolArray:
        """(n, d) free, and not a number that is at the end that its gradient pulls to."""
        end = np.where(gradients > 0, self.high[active], self.low[active])
        found: BoolArray = free & (~self.number | (rows != end))
        return found

    def _rows(
        self,
        active: IntArray,
        rows: FloatArray,
        wishes: FloatArray,
        gradients: FloatArray,
        free: BoolArray,
        adam: Adam,
    ) -> FloatArray:
        """The next rows; ``wishes`` (n, d), x + delta before any rule, is brought into line with them."""
        numbers = np.clip(wishes, self.low[active], self.high[active])
        wishes[:, self.number] = numbers[:, self.number]
        moved = np.where(self.number, numbers, rows)
        if not self.switching:
            return moved
        lead = self.columns.switches(rows, wishes - np.where(self._two_valued, 0.5, 0.0))
        gain = np.where((lead > 0) & free, self.columns.switches(rows, gradients), -np.inf)
        best = gain.argmax(axis=1)
        switching = np.flatnonzero(gain[np.arange(len(rows)), best] > 0)
        if len(switching):
            moved[switching] = self.columns.switched(moved[switching], best[switching])
            touched = self.columns.of[None, :] == self.columns.of[best[switching]][:, None]
            where = np.zeros_like(free)
            where[switching] = touched
            wishes[where] = moved[where]
            adam.first[where] = 0.0
        return moved

    @property
    def _two_valued(self) -> BoolArray:
        found: BoolArray = self.columns.two_valued[self.columns.of]
        return found

    def _pulled_back(self, answers: FloatArray) -> FloatArray:
        given = np.flatnonzero(complete(answers))
        if self.config.halvings == 0 or len(given) == 0:
            return answers
        nearest = np.where(self.number, self.factuals[given], answers[given])

        def found(tried: FloatArray) -> BoolArray:
            return flips(self.model, tried, self.classes[given])

        answers[given] = pulled_back(found, nearest, answers[given], self.config.halvings)
        return answers
