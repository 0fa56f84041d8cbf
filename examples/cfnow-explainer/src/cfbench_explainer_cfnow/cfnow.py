"""Changes until the class flips, then back towards the row with a tabu list: ``find_tabular`` of the library cfnow.

de Oliveira, Sorensen & Martens 2023, "A model-agnostic and data-independent tabu search algorithm to generate
counterfactuals for tabular, image, and text data". In two phases, from the row x:

1. Search. A change is a number times 0.9 or 1.1, a two-valued column turned over, or another level. ``greedy``
   makes the one that raises the probability of the other class most; where that gets stuck, the columns changed
   last are forbidden for some rounds (tabu) and the steps of numbers grow by 1 a round. ``random`` draws sets of
   1, 2, ... changes, 100 of each size; ``random-sequential`` goes on from the best set.
2. Fine tuning, ``iterations`` times: undo a change (a tenth of it, for a number) where least probability is lost
   for the distance won; what leaves the class is repaired by phase 1, with that column tabu.

The answer is the counterfactual with the least Manhattan distance of all that were found.

Steps are shares of a number, so what a number is measured from matters, and a zero never moves. cfnow is given
encoded rows, as its authors do: standardised numbers, categories one-hot. It knows neither immutable columns
nor ranges, and asks nothing of the training rows.

Around it: a random stream for each row (cfnow draws from NumPy's global one, which is put back); class 1 only
where its probability is larger, as the suite decides, where cfnow takes a tie for a counterfactual; a tabu list
that leaves at least one column that can move, without which its greedy search runs for ever (tables of few
columns); a stop where it no longer asks the model anything; another run where it breaks off, see ``BREAKS``.
Left to itself it takes seconds for each row: set ``seconds`` or ``iterations`` (200 instead of 1000 are five
times as fast, and some answers are farther).
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
from cfbench_tabular.classifiers.base import Classifier, probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals, no_answers
from cfbench_tabular.table import FloatArray

DECIDED = 1e-12
"""How far apart two probabilities are held, so that cfnow's rounding does not turn them into a tie."""

BREAKS = "must have same number of dimensions"
"""What the error says when a step of cfnow's fine tuning (0.0.6) meets only counterfactuals that it has."""

IDLE = 100
"""Rounds without a question to the model before the search is ended: it would not end itself."""


@dataclass(frozen=True, kw_only=True)
class Config:
    strategy: Annotated[
        Literal["greedy", "random", "random-sequential"], Help("the best change, or sets drawn at random")
    ] = "greedy"
    rounds: Annotated[int, Range(minimum=1), Help("of each search, at most")] = 5000
    iterations: Annotated[
        int | None, Range(minimum=0), Help("of fine tuning; none: as cfnow, greedy 1000, random 5000")
    ] = None
    tabu: Annotated[
        int | None, Range(minimum=0), Help("columns forbidden at a time; none: 5, random a fifth of them")
    ] = None
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help("for each row, a little more at most; none: as the protocol says. Then nothing repeats exactly"),
    ] = None


class Cfnow:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.find = _find_tabular()

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, d) encoded rows; NaN where cfnow finds none."""
        answers = no_answers(factuals)
        probabilities(model, factuals.vectors)  # a faulty model is named here; cfnow would hide its error
        for place, (row, unit) in enumerate(zip(factuals.vectors, factuals.units, strict=True)):
            seed = int(context.generator(unit).integers(2**32))
            found = self._answer(model, row, seed, context)
            if found is not None:
                answers[place] = found
        return answers

    def _answer(self, model: Classifier, row: FloatArray, seed: int, context: Context) -> FloatArray | None:
        """(d,) the nearest counterfactual that cfnow finds for one row (d,).

        Where its fine tuning breaks off with an error, it is run again, the same way, with half the iterations.
        """
        encoding, iterations = context.encoding, self._iterations()
        if _movable(encoding, row) == 0:
            return None
        while True:
            try:
                with _apart(seed):
                    found = self._found(model, row, iterations, context)
                break
            except ValueError as error:
                if BREAKS not in str(error) or iterations == 0:
                    raise
                iterations //= 2
        return tidied(encoding, row, np.asarray(found[0], dtype=np.float64)) if len(found) else None

    def _found(self, model: Classifier, row: FloatArray, iterations: int, context: Context) -> Any:
        """(n, d) what cfnow finds, the nearest first."""
        import pandas as pd

        encoding, seconds = context.encoding, self.config.seconds or context.seconds or np.inf
        names, asked = names_of(encoding), _Asked(model)
        kinds = {
            name: "num" if numeric else "cat" for name, numeric in zip(names, encoding.numeric, strict=True)
        }
        return self.find(
            factual=pd.Series(row, index=names),
            model_predict_proba=asked,
            feat_types=kinds,
            cf_strategy=self.config.strategy,
            it_max=_Patience(self.config.rounds, asked, seconds),
            limit_seconds=seconds,
            ft_it_max=iterations,
            size_tabu=min(self._tabu(len(row)), _movable(encoding, row) - 1),
            has_ohe=len(encoding.groups) > 0,
        ).cfs

    def _iterations(self) -> int:
        """Its default, where no other number is asked for."""
        if self.config.iterations is not None:
            return self.config.iterations
        return 1000 if self.config.strategy == "greedy" else 5000

    def _tabu(self, places: int) -> int:
        """Its default, where no other size is asked for."""
        if self.config.tabu is not None:
            return self.config.tabu
        return 5 if self.config.strategy == "greedy" else round(0.2 * places)


def names_of(encoding: Encoding) -> list[str]:
    """(d,) one name a place: cfnow takes places for one category whose names agree up to an underscore."""
    names = []
    for place, column in enumerate(encoding.column_of):
        block = encoding.blocks[column]
        level = f"_{place - block.start}" if block.stop - block.start > 1 else ""
        names.append(f"c{column}{level}")
    return names


def tidied(encoding: Encoding, row: FloatArray, found: FloatArray) -> FloatArray:
    """(d,) with levels exactly 0 or 1, which cfnow adds and subtracts, and what it leaves exactly as it was."""
    levels = np.where(encoding.numeric, found, np.round(found))
    return np.where(np.abs(levels - row) < 1e-9, row, levels)


def _movable(encoding: Encoding, row: FloatArray) -> int:
    """How many columns cfnow can change: a number that is zero stays zero."""
    stuck = encoding.numeric & (row == 0)
    return len(np.unique(encoding.column_of[~stuck]))


class _Asked:
    """The model as cfnow wants it, (n, 2) probabilities, with every tie in favour of class 0."""

    def __init__(self, model: Classifier) -> None:
        self.model = model
        self.questions = 0

    def __call__(self, rows: Any) -> FloatArray:
        self.questions += 1
        found = probabilities(self.model, np.asarray(rows, dtype=np.float64)).copy()
        larger = found[:, 1] > found[:, 0]
        close = np.abs(found[:, 1] - found[:, 0]) < DECIDED
        found[close, 1] = found[close, 0] + np.where(larger[close], DECIDED, -DECIDED)
        return found


class _Patience(int):
    """The number of rounds after which a search ends; over sooner when time is up or nothing is asked any more.

    cfnow compares ``iterations >= it_max`` before each round, also before those that it does not count. Python
    lets an int of a class of its own answer that.
    """

    asked: _Asked
    end: float
    idle: int
    seen: int

    def __new__(cls, rounds: int, asked: _Asked, seconds: float) -> "_Patience":
        made = super().__new__(cls, rounds)
        made.asked, made.end = asked, time.perf_counter() + seconds
        made.idle, made.seen = 0, 0
        return made

    def __le__(self, iterations: int) -> bool:
        self.idle = self.idle + 1 if self.asked.questions == self.seen else 0
        self.seen = self.asked.questions
        return int(self) <= iterations or self.idle > IDLE or time.perf_counter() > self.end


@contextlib.contextmanager
def _apart(seed: int) -> Iterator[None]:
    """Global random streams seeded, and put back afterwards; nothing printed, warned or logged."""
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
        logging.root.handlers[:] = handlers  # cfnow's first message would add one
        random.setstate(state)
        np.random.set_state(numpy_state)


def _find_tabular() -> Callable[..., Any]:
    """cfnow's function. Importing cfnow downloads a dictionary for its text part: tables do without."""
    import nltk

    download = nltk.download
    nltk.download = lambda *_, **__: False
    try:
        from cfnow import find_tabular
    finally:
        nltk.download = download
    found: Callable[..., Any] = find_tabular
    return found
