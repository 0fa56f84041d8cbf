"""cfnow: tabu search for counterfactuals, ``find_tabular`` of the library cfnow.

de Oliveira, Sörensen & Martens, "A model-agnostic and data-independent tabu search algorithm to generate
counterfactuals for tabular, image, and text data" (European Journal of Operational Research). Two phases from the row x:

1. Search. A change multiplies a number by 0.9 or 1.1, flips a two-valued column, or switches to another level.
   ``greedy`` makes the change that raises the probability of the other class most; where it gets stuck, the columns
   changed last are forbidden for some rounds (tabu) and the steps of numbers grow by 1 a round. ``random`` draws sets
   of 1, 2, ... changes, 100 of each size; ``random-sequential`` continues from the best set.
2. Fine tuning, ``iterations`` times: undo a change (a tenth of it, for a number) where the least probability is lost
   for the gained distance; if the class is lost, phase 1 repairs it, with that column tabu.

The result is the counterfactual with the least Manhattan distance of all that were found.

Steps are shares of a number, so the origin of a number matters, and a zero never moves. cfnow receives encoded rows,
as its authors do: standardised numbers, categories one-hot. It supports neither immutable columns nor ranges, and does
not use the training rows. Nor does it know that numbers come in steps (whole numbers, quarters, ordered levels): its
numbers are moved to the nearest value of their column before the model receives them, and the row that the model
received is returned.

The wrapper adds: a random stream for each row (cfnow draws from NumPy's global one, which is restored afterwards);
class 1 only where its probability is larger, as in the suite, where cfnow accepts a tie; a tabu list that leaves at
least one movable column, without which the greedy search does not end on tables of few columns; an end where cfnow no
longer queries the model; a second run where it fails, see ``FAILURE``. By default it takes seconds for each row: set
``seconds`` or ``iterations`` (200 instead of 1000 are five times as fast, with slightly larger distances).
"""

import contextlib
import io
import logging
import random
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/cfnow",
    summary="Greedy or random changes until the class flips, then tabu search back to the row: the library cfnow",
    target=f"{__name__}:Cfnow",
    config=f"{__name__}:Config",
    provides={"columns": {"numeric", "categorical"}, "constraints": {"one-hot"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("deoliveira2024cfnow",),
    version="2",
)

MIN_DIFFERENCE = 1e-12
"""Minimum difference of the two probabilities, so that the rounding of cfnow does not create a tie."""

FAILURE = "must have same number of dimensions"
"""The error of cfnow 0.0.6 when a step of its fine tuning finds only known counterfactuals."""

MAX_IDLE_ROUNDS = 100
"""Rounds without a model query after which the search is ended, because cfnow does not end it."""


@dataclass(frozen=True, kw_only=True)
class Config:
    strategy: Annotated[
        Literal["greedy", "random", "random-sequential"], Help("the best change, or random sets of changes")
    ] = "greedy"
    rounds: Annotated[int, Range(minimum=1), Help("maximum number of rounds of each search")] = 5000
    iterations: Annotated[
        int | None,
        Range(minimum=0),
        Help("of fine tuning; none: the defaults of cfnow, greedy 1000, random 5000"),
    ] = None
    tabu: Annotated[
        int | None, Range(minimum=0), Help("columns forbidden at a time; none: 5, random a fifth of them")
    ] = None
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help(
            "approximate time limit per row; none: that of the protocol. Results then depend on the machine"
        ),
    ] = None


class Cfnow:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.find = _find_tabular()

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, d) encoded rows; NaN where cfnow finds none."""
        found_rows = no_counterfactuals(factuals)
        probabilities(model, factuals.vectors)  # reports a faulty model, whose error cfnow would hide
        for place, (row, unit) in enumerate(zip(factuals.vectors, factuals.units, strict=True)):
            seed = int(context.generator(unit).integers(2**32))
            found = self._nearest(model, row, seed, context)
            if found is not None:
                found_rows[place] = found
        return found_rows

    def _nearest(self, model: Classifier, row: FloatArray, seed: int, context: Context) -> FloatArray | None:
        """(d,) the nearest counterfactual that cfnow finds for one row (d,).

        If its fine tuning fails, it is run again with half the iterations.
        """
        encoding, iterations = context.encoding, self._iterations()
        if _movable(encoding, row) == 0:
            return None
        while True:
            try:
                with _isolated(seed):
                    found = self._found(model, row, iterations, context)
                break
            except ValueError as error:
                if FAILURE not in str(error) or iterations == 0:
                    raise
                iterations //= 2
        return _Steps(encoding, row).cleaned(np.asarray(found[0], dtype=np.float64)) if len(found) else None

    def _found(self, model: Classifier, row: FloatArray, iterations: int, context: Context) -> Any:
        """(n, d) what cfnow finds, the nearest first."""
        import pandas as pd

        encoding, seconds = context.encoding, self.config.seconds or context.seconds or np.inf
        names, queries = names_of(encoding), _Queries(model, _Steps(encoding, row))
        kinds = {
            name: "num" if numeric else "cat" for name, numeric in zip(names, encoding.numeric, strict=True)
        }
        return self.find(
            factual=pd.Series(row, index=names),
            model_predict_proba=queries,
            feat_types=kinds,
            cf_strategy=self.config.strategy,
            it_max=_RoundLimit(self.config.rounds, queries, seconds),
            limit_seconds=seconds,
            ft_it_max=iterations,
            size_tabu=min(self._tabu(len(row)), _movable(encoding, row) - 1),
            has_ohe=len(encoding.groups) > 0,
        ).cfs

    def _iterations(self) -> int:
        """The configured number of iterations, or the default of cfnow."""
        if self.config.iterations is not None:
            return self.config.iterations
        return 1000 if self.config.strategy == "greedy" else 5000

    def _tabu(self, places: int) -> int:
        """The configured size of the tabu list, or the default of cfnow."""
        if self.config.tabu is not None:
            return self.config.tabu
        return 5 if self.config.strategy == "greedy" else round(0.2 * places)


def names_of(encoding: Encoding) -> list[str]:
    """(d,) a name for each position: cfnow treats positions as one category if their names agree up to an underscore."""
    names = []
    for place, column in enumerate(encoding.column_of):
        block = encoding.blocks[column]
        level = f"_{place - block.start}" if block.stop - block.start > 1 else ""
        names.append(f"c{column}{level}")
    return names


class _Steps:
    """The values of the columns next to one row (d,)."""

    def __init__(self, encoding: Encoding, row: FloatArray) -> None:
        self.encoding, self.row = encoding, row
        self.limits = encoding.limits(row[None], ranges=False)
        ordered = np.array([column.ordered for column in encoding.columns])[encoding.column_of]
        self.ranks = np.flatnonzero(encoding.numeric & ordered)

    def at(self, vectors: FloatArray) -> FloatArray:
        """(n, d) with each number at the nearest value of its column, or as in the row; ranks within the levels."""
        found: FloatArray = np.array(self.limits.snapped(vectors))
        low, high = (side[self.ranks] for side in self.encoding.bounds)
        found[:, self.ranks] = np.clip(found[:, self.ranks], low, high)
        return found

    def cleaned(self, found: FloatArray) -> FloatArray:
        """(d,) with levels exactly 0 or 1 and unchanged values exactly equal, without the rounding errors of cfnow."""
        levels = self.at(np.where(self.encoding.numeric, found, np.round(found))[None])[0]
        return np.where(np.abs(levels - self.row) < 1e-9, self.row, levels)


def _movable(encoding: Encoding, row: FloatArray) -> int:
    """The number of columns that cfnow can change: a number that is zero stays zero."""
    stuck = encoding.numeric & (row == 0)
    return len(np.unique(encoding.column_of[~stuck]))


class _Queries:
    """The model with the interface of cfnow: (n, 2) probabilities of rows at the steps of their columns.

    Every tie is in favour of class 0.
    """

    def __init__(self, model: Classifier, steps: _Steps) -> None:
        self.model, self.steps = model, steps
        self.count = 0

    def __call__(self, rows: Any) -> FloatArray:
        self.count += 1
        found = probabilities(self.model, self.steps.at(np.asarray(rows, dtype=np.float64))).copy()
        larger = found[:, 1] > found[:, 0]
        close = np.abs(found[:, 1] - found[:, 0]) < MIN_DIFFERENCE
        found[close, 1] = found[close, 0] + np.where(larger[close], MIN_DIFFERENCE, -MIN_DIFFERENCE)
        return found


class _RoundLimit(int):
    """The number of rounds after which a search ends; also ends it after a time limit and without model queries.

    cfnow compares ``iterations >= it_max`` before each round, also before those that it does not count, so a subclass
    of int can decide the comparison.
    """

    queries: _Queries
    end: float
    idle: int
    seen: int

    def __new__(cls, rounds: int, queries: _Queries, seconds: float) -> "_RoundLimit":
        made = super().__new__(cls, rounds)
        made.queries, made.end = queries, time.perf_counter() + seconds
        made.idle, made.seen = 0, 0
        return made

    def __le__(self, iterations: int) -> bool:
        self.idle = self.idle + 1 if self.queries.count == self.seen else 0
        self.seen = self.queries.count
        return int(self) <= iterations or self.idle > MAX_IDLE_ROUNDS or time.perf_counter() > self.end


@contextlib.contextmanager
def _isolated(seed: int) -> Iterator[None]:
    """Seeds and restores the global random streams; suppresses output, warnings and logging."""
    state, numpy_state = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed)
    handlers, disabled = logging.root.handlers[:], logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    silence = io.StringIO()
    try:
        with (
            contextlib.redirect_stdout(silence),
            contextlib.redirect_stderr(silence),
            warnings.catch_warnings(action="ignore"),
        ):
            yield
    finally:
        logging.disable(disabled)
        logging.root.handlers[:] = handlers  # the first message of cfnow adds one
        random.setstate(state)
        np.random.set_state(numpy_state)


def _find_tabular() -> Callable[..., Any]:
    """The function of cfnow. Importing cfnow downloads a dictionary for its text part, which is prevented."""
    import nltk

    download = nltk.download
    nltk.download = lambda *_, **__: False
    try:
        from cfnow import find_tabular
    finally:
        nltk.download = download
    found: Callable[..., Any] = find_tabular
    return found
