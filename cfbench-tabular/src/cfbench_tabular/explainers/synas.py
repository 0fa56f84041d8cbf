"""SynAS: the cheapest sequence of one to three actions that changes the class.

Ramakrishnan, Lee & Albarghouthi 2020, "Synthesizing action sequences for modifying model decisions". Actions
are: add v to a number (v is free), or set a category to a level. An action costs ``action_cost_offset``, and ``number``
|v| (v in standard deviations) or ``category``. For a sequence the parameters v minimise, as in an adversarial
attack,

    sum of the costs + w max(0, kappa - margin(row after the actions))

by gradient descent, w doubled while the class is that of the factual and halved while it is not. Sequences
are searched best first, by length: each of the ``beam`` best of one length is extended by every action on a
column that it does not change; the value of a sequence is its cost plus an estimate of the cost of reaching the
boundary at a quarter of the steepest slope at the factual. The cheapest sequence that changes the
class is returned. The search ends when a longer one could not be cheaper.

Actions add whole steps to numbers whose column has a step, stay in the range and leave immutable and one-way columns
alone (their preconditions). As they change different columns, their order does not matter, and each set of actions is
evaluated once.

Departures: actions have no effects on other columns (a data set would have to specify them). The authors try every
sequence of a handful of actions, or order them by gradients; here the ``beam`` best are extended, by a first move of
3% to 100% of the way to either end of a range, and valued by ``PESSIMISM`` times the cost at the steepest slope. Their
Adam takes thousands of steps for each sequence; here ``steps`` steps of a shrinking length. Numbers are moved
back towards the factual by bisection, at the steps of their columns. Where three actions do not change the class, more
are tried, up to eight. Preset ``as-published``:
:mod:`synas_published <.synas_published>`. The adapter of CF-tabular is limited to one action, and finds
counterfactuals for 60% of its factuals; the limit here is ``length``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
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
    gradient_model,
    margin_gradients,
    margins,
    over_flats,
    pulled_back,
    signs,
)
from cfbench_tabular.explainers.synas_published import PublishedSearch, Settings
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/synas",
    summary="The cheapest one to three actions: add to a number, set a category",
    target=f"{__name__}:SynAS",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"gradients", "scores"}}},
    papers=("ramakrishnan2020synas",),
    presets="cfbench_tabular:presets/synas.yaml",
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of candidates that are held in memory at once."""

SHARES = (0.03, 0.1, 0.25, 0.5, 1.0)
"""How far a number is first moved, of the way to either end of its range."""

LENGTH, LONGEST = 3, 8
"""Actions at most, and where so many do not change the class."""

PESSIMISM = 4.0
"""Factor of the estimated remaining cost over that at the steepest slope, because ranges end and slopes flatten."""

HALVINGS = 8
"""Steps of the last bisection."""

FLAT = 1e-9
"""A gradient of this length is a rounding error."""


@dataclass(frozen=True, kw_only=True)
class Config:
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the authors' code, every sequence, with the costs, length and steps alone"),
    ] = "cfbench"
    length: Annotated[
        int | None,
        Range(minimum=1),
        Help("actions at most; none: three, and up to eight where three do not change the class"),
    ] = None
    action_cost_offset: Annotated[float, Range(minimum=0), Help("constant cost of each action")] = 0.5
    number: Annotated[float, Range(above=0), Help("cost of changing a number by a standard deviation")] = 1.0
    category: Annotated[float, Range(minimum=0), Help("cost of changing a category")] = 1.0
    kappa: Annotated[float, Range(minimum=0), Help("required log-odds beyond the boundary")] = 0.0
    beam: Annotated[int, Range(minimum=1), Help("sequences of each length that are extended")] = 5
    steps: Annotated[int, Range(minimum=1), Help("of gradient descent for each sequence")] = 20


class SynAS:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        """With details: ``actions``, how many, and ``cost``."""
        if self.config.loop == "published":
            return self._as_published(model, factuals, context)
        found_rows = no_counterfactuals(factuals)
        details = {name: np.full(len(factuals), np.nan) for name in ("actions", "cost")}
        width = context.encoding.width
        step = max(1, NUMBERS // (width * self.config.beam * (width + 2 * len(SHARES))))
        for start in range(0, len(factuals), step):
            part = slice(start, start + step)
            search = _Search(
                self.config, model, context.encoding, factuals.vectors[part], factuals.classes[part]
            )
            found_rows[part], details["actions"][part], details["cost"][part] = search.run()
        return Explanation(found_rows, details)

    def _as_published(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        settings = Settings(**{field.name: getattr(self.config, field.name) for field in fields(Settings)})
        search = PublishedSearch(
            settings, gradient_model(model), context.encoding, factuals.vectors, factuals.classes
        )
        found_rows, actions, cost = search.run()
        return Explanation(found_rows, {"actions": actions, "cost": cost})


@dataclass
class _Sequences:
    """S sequences of actions of one length.

    Attributes:
        of: (S,) the factual that each belongs to.
        rows: (S, d) after its actions.
        changed: (S, M) the columns that it changes.
        names: (S,) an identifier of the set of its actions.
        value: (S,) its cost plus the estimated remaining cost; lower is better.
    """

    of: IntArray
    rows: FloatArray
    changed: BoolArray
    names: IntArray
    value: FloatArray

    def part(self, chosen: BoolArray | IntArray) -> _Sequences:
        arrays = (self.of, self.rows, self.changed, self.names, self.value)
        return _Sequences(*(array[chosen] for array in arrays))  # type: ignore[arg-type]


class _Search:
    """The search for the counterfactuals of factuals (n, d)."""

    def __init__(
        self, config: Config, model: Classifier, encoding: Encoding, factuals: FloatArray, classes: IntArray
    ) -> None:
        self.config = config
        self.model = gradient_model(model)
        self.factuals = factuals
        self.classes = classes
        self.columns = Columns(encoding)
        self.numeric = encoding.numeric
        self.limits = encoding.limits(factuals)
        self.low, self.high = self.limits.low, self.limits.high
        self.step = np.zeros(encoding.width)  # between two values of a column
        self.step[encoding.grid.positions] = encoding.grid.step / encoding.grid.scale
        self._list_actions(encoding)

    def _list_actions(self, encoding: Encoding) -> None:
        """Actions by the place they change; a number has one for each share of the way to either end."""
        numbers = np.flatnonzero(self.numeric)
        levels = np.flatnonzero(~self.numeric)
        shares = np.array([*SHARES, *(-share for share in SHARES)])
        self.place = np.concatenate([levels, np.repeat(numbers, len(shares))])
        self.share = np.concatenate([np.zeros(len(levels)), np.tile(shares, len(numbers))])
        self.column = self.columns.of[self.place]
        self.cleared = ~self.numeric & (self.columns.of[None, :] == self.column[:, None])
        self.name = np.random.default_rng(0).integers(1 << 62, size=encoding.width)

    def run(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n, d) counterfactuals or NaN, (n,) their numbers of actions, and (n,) their costs."""
        config, n = self.config, len(self.factuals)
        self.solutions, self.cheapest = np.full_like(self.factuals, np.nan), np.full(n, np.inf)
        lengths = np.full(n, np.nan)
        slopes = np.abs(margin_gradients(self.model, self.factuals, self.classes)).max(axis=1)
        self.steepest = np.where(slopes > 0, slopes, 1.0) / config.number
        none = np.zeros((n, len(self.columns.starts)), dtype=bool)
        beam = _Sequences(np.arange(n), self.factuals, none, np.zeros(n, dtype=np.int64), np.zeros(n))
        for length in range(1, (config.length or LONGEST) + 1):
            going = self.cheapest[beam.of] > self._least(length, beam.of)
            if config.length is None and length > LENGTH:
                going &= np.isinf(self.cheapest[beam.of])
            beam = beam.part(going)
            if len(beam.of) == 0:
                break
            before = self.cheapest.copy()
            beam = self._polished(self._best(self._extended(beam)))
            lengths = np.where(self.cheapest < before, length, lengths)
        return self.solutions, lengths, np.where(np.isfinite(self.cheapest), self.cheapest, np.nan)

    def _least(self, length: int, of: IntArray) -> FloatArray:
        """(S,) the minimum cost of a sequence of this length."""
        movable = np.any((self.low < self.high) & self.numeric, axis=1)[of]
        each = self.config.action_cost_offset + np.where(movable, 0.0, self.config.category)
        return np.asarray(length * each)

    def _extended(self, beam: _Sequences) -> _Sequences:
        """Every sequence, extended by every action on a column that it does not change."""
        s, a = len(beam.of), len(self.place)
        here = beam.rows[:, self.place]
        low, high = self.low[beam.of][:, self.place], self.high[beam.of][:, self.place]
        move = self.share * np.where(self.share > 0, high - here, here - low)
        step = self.step[self.place]  # a shorter move would change nothing
        there = np.clip(here + np.sign(self.share) * np.maximum(np.abs(move), step), low, high)
        number = self.numeric[self.place]
        turned = np.where(self.columns.grouped[self.column], 1.0, 1.0 - here)
        there = np.where(number, there, turned)
        possible = ~beam.changed[:, self.column] & (there != here) & (low <= there) & (there <= high)
        which, action = np.nonzero(possible.reshape(s, a))
        rows = np.where(self.cleared[action], 0.0, beam.rows[which])
        rows[np.arange(len(rows)), self.place[action]] = there[which, action]
        rows = self.limits.snapped(rows, beam.of[which])
        changed = beam.changed[which]
        changed[np.arange(len(rows)), self.column[action]] = True
        names = beam.names[which] ^ self.name[self.place[action]]
        found = _Sequences(beam.of[which], rows, changed, names, np.zeros(len(rows)))
        found.value, _, taken = self._evaluated(found)
        self._pull_back(found.part(taken))
        return found

    def _evaluated(self, sequences: _Sequences) -> tuple[FloatArray, FloatArray, IntArray]:
        """(S,) the values of the sequences, (S,) their margins, and the indices of those accepted as solutions."""
        margin = margins(self.model, sequences.rows, self.classes[sequences.of])
        cost = self._cost(sequences)
        taken = self._accept(sequences, margin, cost)
        missing = PESSIMISM * np.maximum(0.0, self.config.kappa - margin) / self.steepest[sequences.of]
        return cost + missing, margin, taken

    def _cost(self, sequences: _Sequences) -> FloatArray:
        away = np.abs(sequences.rows - self.factuals[sequences.of])[:, self.numeric].sum(axis=1)
        categories = (sequences.changed & ~self.columns.numeric).sum(axis=1)
        found: FloatArray = (
            self.config.action_cost_offset * sequences.changed.sum(axis=1)
            + self.config.number * away
            + self.config.category * categories
        )
        return found

    def _accept(self, sequences: _Sequences, margin: FloatArray, cost: FloatArray) -> IntArray:
        """The sequences that are cheaper than all before for their factual."""
        turned = np.flatnonzero(margin > max(self.config.kappa, CLEAR_MARGIN))
        turned = turned[np.lexsort((cost[turned].round(9), sequences.of[turned]))]
        of, first = np.unique(sequences.of[turned], return_index=True)
        best = turned[first]
        better = cost[best] < self.cheapest[of] - 1e-9
        self.solutions[of[better]], self.cheapest[of[better]] = (
            sequences.rows[best[better]],
            cost[best[better]],
        )
        taken: IntArray = best[better]
        return taken

    def _best(self, sequences: _Sequences) -> _Sequences:
        """The ``beam`` best different sequences of each factual."""
        order = np.lexsort((sequences.value.round(9), sequences.of))
        pairs = np.stack([sequences.of[order], sequences.names[order]])
        _, first = np.unique(pairs, axis=1, return_index=True)
        order = order[np.sort(first)]
        of = sequences.of[order]
        starts = np.searchsorted(of, of, side="left")
        return sequences.part(order[np.arange(len(of)) - starts < self.config.beam])

    def _polished(self, sequences: _Sequences) -> _Sequences:
        """The same with the parameters of their actions found by gradient descent."""
        free = sequences.changed[:, self.columns.of] & self.numeric
        value, margin, _ = self._evaluated(sequences)
        points = rows = sequences.rows
        best = _Sequences(**vars(sequences))
        best.value, best.rows = value, rows.copy()
        flipped_rows, cheapest = np.full_like(rows, np.nan), np.full(len(rows), np.inf)
        weight, length = np.ones(len(rows)), np.full(len(rows), 0.5)
        slopes = np.zeros_like(rows)
        classes, starts = self.classes[sequences.of], self.factuals[sequences.of]
        low, high = self.low[sequences.of], self.high[sequences.of]
        for _ in range(self.config.steps if free.any() else 0):
            turned = margin > max(self.config.kappa, CLEAR_MARGIN)
            cost = self._cost(sequences)
            better = turned & (cost < cheapest)
            flipped_rows[better], cheapest[better] = rows[better], cost[better]
            weight = np.where(turned, weight / 2, weight * 2)
            length = np.where(np.isfinite(cheapest), length * 0.8, length)
            slopes = over_flats(margin_gradients(self.model, rows, classes), slopes)
            gradient = self.config.number * signs(rows - starts) - (weight / self.steepest[sequences.of])[
                :, None
            ] * np.where(turned[:, None], 0.0, slopes)
            gradient = np.where(free, gradient, 0.0)
            norms = np.linalg.norm(gradient, axis=1)
            points = points - (length / np.where(norms > FLAT, norms, np.inf))[:, None] * gradient
            points = np.clip(points, low, high)
            sequences.rows = rows = self.limits.snapped(points, sequences.of)
            value, margin, _ = self._evaluated(sequences)
            closer = value < best.value
            best.rows[closer], best.value[closer] = rows[closer], value[closer]
        chosen = best.part(np.isfinite(cheapest))
        chosen.rows = flipped_rows[np.isfinite(cheapest)]
        self._pull_back(chosen)
        return best

    def _pull_back(self, sequences: _Sequences) -> None:
        """Moves the numbers of solutions towards the factual as far as the class is unchanged, and accepts the results."""
        classes, starts = self.classes[sequences.of], self.factuals[sequences.of]

        def found(tried: FloatArray) -> BoolArray:
            turned: BoolArray = margins(self.model, tried, classes) > max(self.config.kappa, CLEAR_MARGIN)
            return turned

        starts = np.where(self.numeric, starts, sequences.rows)
        sequences.rows = pulled_back(
            found,
            starts,
            sequences.rows,
            HALVINGS,
            lambda points: self.limits.snapped(points, sequences.of),
        )
        self._evaluated(sequences)
