"""SynAS as in its authors' code (Ramakrishnan, Lee & Albarghouthi 2020): ``loop: published``.

All sequences of up to ``length`` actions are tried (mode ``vanilla`` of the code). For each, Adam descends

    costs of the actions + penalties + w max(0, z_own - z_other)

from parameters of 0, with the settings of the code: the weight w starts at 100,000, is divided by ten when a check
finds the other class, and doubled otherwise; the checks are 100 steps apart at first, 10,000 after the first success.
The search for one sequence ends when, at one of a hundred points of ``steps``, the last point is no better than the
best one. The cheapest point in the other class of all sequences is the result: it is neither moved back by
bisection nor rounded to the steps of its columns. The end of a range is a condition, whose penalty on a raw number v is
s exp(1000 (low - v) / r) + s exp(1000 (v - high) / r) with r = high - low and s = 1000 / r. A point outside its ranges is no
result.

Departures: the actions (the code has a handful for each of its data sets) are those of :mod:`synas <.synas>`: add to a
number, set a category. As they change different columns, one order of each set is tried. Sequences whose categories
alone cost as much as the cheapest result so far are left out, because they cannot become the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice, product

import numpy as np

from cfbench_tabular.classifier_contracts import DifferentiableClassifier
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.descent import CLEAR_MARGIN, ROWS, margin_gradients, margins
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

LEARNING_RATE, FIRST_DECAY, SECOND_DECAY, SMALL = 0.005, 0.99, 0.999, 1e-8
"""Of Adam."""

FIRST_WEIGHT, LEAST_WEIGHT, MOST_WEIGHT = 1e5, 1e-5, 1e9
"""Of the class in the loss."""

FIRST_CHECK, RARE_CHECK, LEAST_CHECK = 100, 10_000, 10
"""Steps between two checks of the weight: at first, after a success (at least), after a failure (at least)."""

STEEPNESS = 1000.0
"""Of the penalties of conditions."""

ENOUGH = 0.9999
"""A search ends at this share of the best value."""

LARGEST = 80.0
"""Exponent above which a penalty no longer grows, so that it is finite."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of SynAS that count in this loop."""

    length: int
    action_cost_offset: float
    number: float
    category: float
    steps: int


@dataclass
class Sequences:
    """T sequences of actions, each with m parameters.

    Attributes:
        of: (T,) the factual that each belongs to.
        rows: (T, d) after the actions on categories.
        places: (T, m) the positions of the numbers to which the parameters are added.
        cost: of the categories and of the actions themselves; the same for all.
    """

    of: IntArray
    rows: FloatArray
    places: IntArray
    cost: float


class PublishedSearch:
    """The search for the counterfactuals of factuals (n, d)."""

    def __init__(
        self,
        settings: Settings,
        model: DifferentiableClassifier,
        encoding: Encoding,
        factuals: FloatArray,
        classes: IntArray,
    ) -> None:
        self.settings, self.model, self.encoding = settings, model, encoding
        self.factuals, self.classes = factuals, classes
        self.low, self.high = encoding.allowed(factuals)
        self.scale = encoding.scale[encoding.column_of]

    def run(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n, d) counterfactuals or NaN, (n,) their numbers of actions, and (n,) their costs."""
        n = len(self.factuals)
        found_rows, cheapest = np.full_like(self.factuals, np.nan), np.full(n, np.inf)
        lengths = np.full(n, np.nan)
        for length in range(1, self.settings.length + 1):
            for categories in range(length + 1):
                fixed = self.settings.action_cost_offset * length + self.settings.category * categories
                for part in self._sequences(np.flatnonzero(fixed < cheapest), length, categories, fixed):
                    rows, costs = Descent(self, part).run()
                    for place in np.argsort(costs, kind="stable"):
                        factual = part.of[place]
                        if costs[place] < cheapest[factual]:
                            found_rows[factual], cheapest[factual] = rows[place], costs[place]
                            lengths[factual] = length
        return found_rows, lengths, np.where(np.isfinite(cheapest), cheapest, np.nan)

    def _sequences(
        self, factuals: IntArray, length: int, categories: int, fixed: float
    ) -> Iterator[Sequences]:
        """Those of these factuals, with so many actions on categories and the rest on numbers, in parts."""
        single = self._single(factuals, length, categories)
        while part := list(islice(single, ROWS)):
            of, rows, places = zip(*part, strict=True)
            chosen = np.array(places, dtype=np.int64).reshape(len(part), length - categories)
            yield Sequences(np.array(of, dtype=np.int64), np.array(rows), chosen, fixed)

    def _single(
        self, factuals: IntArray, length: int, categories: int
    ) -> Iterator[tuple[int, FloatArray, tuple[int, ...]]]:
        for factual in factuals.tolist():
            movable = self.encoding.numeric & (self.low[factual] < self.high[factual])
            numbers = np.flatnonzero(movable).tolist()
            for row in self._changed(factual, categories):
                for chosen in combinations(numbers, length - categories):
                    yield factual, row, chosen

    def _changed(self, factual: int, categories: int) -> Iterator[FloatArray]:
        """(d,) the factual with that many of its categories set to other levels, in every possible way."""
        row, low, high = self.factuals[factual], self.low[factual], self.high[factual]
        turned = 1.0 - row
        possible = ~self.encoding.numeric & (low <= turned) & (turned <= high)
        levels = []
        for block in self.encoding.blocks:
            single = block.stop - block.start == 1
            others = [place for place in range(block.start, block.stop) if single or row[place] == 0.0]
            levels.append([place for place in others if possible[place]])
        for columns in combinations(
            [place for place, of_column in enumerate(levels) if of_column], categories
        ):
            for chosen in product(*(levels[column] for column in columns)):
                changed = row.copy()
                for column, place in zip(columns, chosen, strict=True):
                    changed[self.encoding.blocks[column]] = 0.0
                    changed[place] = turned[place]
                yield changed


class Descent:
    """The search for the parameters of sequences (T)."""

    def __init__(self, search: PublishedSearch, sequences: Sequences) -> None:
        self.settings, self.model, self.sequences = search.settings, search.model, sequences
        size = len(sequences.of)
        each, self.each = sequences.of[:, None], np.arange(size)[:, None]
        self.low, self.high = search.low[each, sequences.places], search.high[each, sequences.places]
        self.starts = search.factuals[each, sequences.places]
        self.raw = search.scale[sequences.places]
        self.classes = search.classes[sequences.of]
        self.best_parameters = np.zeros_like(self.low)
        self.least_cost = np.full(size, np.inf)
        self.least_missing = np.full(size, np.inf)

    def run(self) -> tuple[FloatArray, FloatArray]:
        """(T, d) the cheapest points in the other class, and (T,) their costs; infinite where there is none."""
        active = np.arange(len(self.classes))
        parameters = np.zeros_like(self.low)
        first, second = np.zeros_like(parameters), np.zeros_like(parameters)
        weight: FloatArray = np.full(len(active), FIRST_WEIGHT)
        last: FloatArray = np.full(len(active), np.nan)
        every: FloatArray = np.full(len(active), float(FIRST_CHECK))
        reached: BoolArray = np.zeros(len(active), dtype=np.bool_)
        interval = max(1, self.settings.steps // 100)
        for step in range(self.settings.steps if parameters.size else 1):
            missing, slopes = self._missing(active, parameters)
            cost, rise = self._cost(active, parameters)
            gradient: FloatArray = rise - weight[:, None] * slopes
            first = FIRST_DECAY * first + (1 - FIRST_DECAY) * gradient
            second = SECOND_DECAY * second + (1 - SECOND_DECAY) * gradient**2
            rate = LEARNING_RATE * np.sqrt(1 - SECOND_DECAY ** (step + 1)) / (1 - FIRST_DECAY ** (step + 1))
            moved = parameters - rate * first / (np.sqrt(second) + SMALL)
            checked = step % every == 0
            weight, every = _weights(weight, every, missing, reached, last, checked)
            reached = reached | (checked & (missing == 0))
            last = np.where(checked, missing, last)
            ended = self._ended(active, missing, cost) if step % interval == 0 else None
            self._record(active, parameters, missing, cost)
            parameters = moved
            if ended is not None and ended.any():
                kept = ~ended
                active, parameters, first, second = active[kept], parameters[kept], first[kept], second[kept]
                weight, every, reached, last = weight[kept], every[kept], reached[kept], last[kept]
            if len(active) == 0:
                break
        return self._results()

    def _points(self, of: IntArray, parameters: FloatArray) -> FloatArray:
        points = self.sequences.rows[of]
        points[self.each[: len(of)], self.sequences.places[of]] += parameters
        return points

    def _missing(self, of: IntArray, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """max(0, z_own - z_other), and minus its gradient by the parameters."""
        points, classes = self._points(of, parameters), self.classes[of]
        margin = margins(self.model, points, classes)
        wrong = np.flatnonzero(margin <= CLEAR_MARGIN)
        slopes = np.zeros_like(parameters)
        if parameters.size and len(wrong):
            gradients = margin_gradients(self.model, points[wrong], classes[wrong])
            slopes[wrong] = gradients[self.each[: len(wrong)], self.sequences.places[of[wrong]]]
        missing = np.zeros(len(of))
        missing[wrong] = np.maximum(-margin[wrong], CLEAR_MARGIN)
        return missing, slopes

    def _cost(self, of: IntArray, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The costs with the penalties of the conditions, and their gradient by the parameters."""
        values, room = self.starts[of] + parameters, self.high[of] - self.low[of]
        share = STEEPNESS / (room * self.raw[of])
        below = share * np.exp(np.minimum(STEEPNESS * (self.low[of] - values) / room, LARGEST))
        above = share * np.exp(np.minimum(STEEPNESS * (values - self.high[of]) / room, LARGEST))
        cost = self.sequences.cost + self.settings.number * np.abs(parameters).sum(axis=1)
        rise = self.settings.number * np.sign(parameters) + STEEPNESS / room * (above - below)
        return cost + (below + above).sum(axis=1), rise

    def _ended(self, of: IntArray, missing: FloatArray, cost: FloatArray) -> BoolArray:
        """Which searches do not get better any more."""
        success = np.isfinite(self.least_cost[of])
        worse_cost = (missing > 0) | (cost > ENOUGH * self.least_cost[of])
        return np.where(success, worse_cost, missing > ENOUGH * self.least_missing[of])

    def _record(self, of: IntArray, parameters: FloatArray, missing: FloatArray, cost: FloatArray) -> None:
        """The cheapest points in the other class; before there is one, the nearest to it."""
        turned = missing == 0
        cheaper = turned & (cost < self.least_cost[of])
        nearer = ~turned & (missing < self.least_missing[of])
        self.best_parameters[of[cheaper]] = parameters[cheaper]
        self.least_cost[of[cheaper]] = cost[cheaper]
        self.least_missing[of[nearer]] = missing[nearer]

    def _results(self) -> tuple[FloatArray, FloatArray]:
        everything = np.arange(len(self.classes))
        values = self.starts + self.best_parameters
        inside = ((self.low <= values) & (values <= self.high)).all(axis=1)
        return self._points(everything, self.best_parameters), np.where(inside, self.least_cost, np.inf)


def _weights(
    weight: FloatArray,
    every: FloatArray,
    missing: FloatArray,
    reached: BoolArray,
    last: FloatArray,
    checked: BoolArray,
) -> tuple[FloatArray, FloatArray]:
    """(T,) the weights of the class, and the steps between their checks, where they are ``checked``."""
    turned = missing == 0
    lower, higher = np.maximum(LEAST_WEIGHT, weight / 10), np.minimum(MOST_WEIGHT, 2 * weight)
    stuck = ~reached & (last == missing)
    changed = np.where(turned, lower, np.where(stuck, 1.0, higher))
    rarer, oftener = np.maximum(2 * every, RARE_CHECK), np.maximum(every / 2, LEAST_CHECK)
    distance = np.where(turned, rarer, np.where(reached, oftener, every))
    return np.where(checked, changed, weight), np.where(checked, distance, every)
