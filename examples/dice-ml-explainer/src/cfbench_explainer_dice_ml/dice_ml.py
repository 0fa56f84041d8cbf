"""dice-ml: random sampling, genetic search, or training rows of the other class, for any model.

The library of Mothilal, Sharma & Tan 2020, "Explaining machine learning classifiers through diverse counterfactual
explanations". Its gradient method needs torch or TensorFlow (cfbench implements it as ``dice``). The methods of the
library for any model are

- ``random``: ``samples`` copies of the row; one random column of each is redrawn, round after round, until enough
  copies are in the other class. Counterfactuals are drawn from these.
- ``genetic``: a population of ten times as many rows as counterfactuals, from the nearest training rows of the other
  class; mated and mutated for a smaller sum of class loss, distance and number of changes.
- ``kdtree``: training rows of the other class near the row, by distance and number of changes.

``random`` and ``kdtree`` then move numbers that are already close to those of the row back towards them, step by step
(``sparsity``). The library does not rank several counterfactuals; they are returned in its order.

dice-ml receives raw columns: numbers with as many decimals as the training rows have (at most a thousandth of a
standard deviation), categories as text. Immutable columns are not varied, and numbers stay in the range of
:meth:`~cfbench_tabular.encoding.Encoding.allowed` (``random`` may exceed it by the last decimal).

The wrapper adds: a random stream for each row (dice-ml draws from the global ones of Python and NumPy, which are
restored afterwards); class 1 only where its probability is larger, as in the suite, where dice-ml accepts a tie for
either class; exact values of unchanged numbers (it computes with 32 bits). It is stopped after ``max_queries`` model
queries, because ``genetic`` does not end if the model never predicts the other class. No counterfactual is found for a
row with a level that no training row has, or with a fraction in a column of integers, which dice-ml refuses.
"""

import contextlib
import io
import random
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from pandas import DataFrame

SPEC = ComponentSpec(
    id="tabular/explainer/dice-ml",
    summary="Random sampling, genetic search, or training rows of the other class: the library dice-ml",
    target=f"{__name__}:DiceML",
    config=f"{__name__}:Config",
    provides={
        "columns": {"numeric", "categorical"},
        "constraints": {"immutable", "ranges", "one-hot"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("mothilal2020dice",),
)

OUTCOME = "class"
"""A column that dice-ml requires; these methods do not use its values."""

WHOLE = 2**31 - 1
"""The largest integer that dice-ml can represent."""

NOT_FOUND = "No counterfactuals found"


@dataclass(frozen=True, kw_only=True)
class Config:
    method: Annotated[Literal["random", "genetic", "kdtree"], Help("method of the library")] = "random"
    samples: Annotated[int, Range(minimum=1), Help("random: copies of the row in a round")] = 1000
    iterations: Annotated[int, Range(minimum=1), Help("genetic: maximum number of generations")] = 500
    sparsity: Annotated[
        Literal["linear", "binary"] | None, Help("how numbers are moved back to the row; none: not at all")
    ] = "linear"
    max_queries: Annotated[int, Range(minimum=1), Help("maximum number of model queries per row")] = 50_000
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help("time limit per row; none: that of the protocol. Results then depend on the machine"),
    ] = None


class DiceML:
    def __init__(self, config: Config) -> None:
        import dice_ml

        self.config = config
        self.library = dice_ml

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, n, d) encoded rows; NaN where dice-ml finds fewer than n = ``context.counterfactuals_per_instance``."""
        found_rows = np.full(
            (len(factuals), context.counterfactuals_per_instance, context.encoding.width), np.nan
        )
        if len(factuals) == 0:
            return found_rows
        with _quiet():
            frames = Frames(context.encoding, context.background)
            data = self.library.Data(
                dataframe=frames.of(context.background).assign(**{OUTCOME: 0}),
                continuous_features=frames.numbers,
                outcome_name=OUTCOME,
                continuous_features_precision=frames.decimals,
            )
            for place, unit in enumerate(factuals.units):
                with _streams(context.generator(unit)):
                    row, label = factuals.vectors[place], int(factuals.classes[place])
                    found = self._generated(data, frames, model, row, label, context)
                found_rows[place, : len(found)] = found[: context.counterfactuals_per_instance]
        return found_rows

    def _generated(
        self, data: Any, frames: "Frames", model: Classifier, row: FloatArray, label: int, context: Context
    ) -> FloatArray:
        """(up to n, d) the counterfactuals of dice-ml for one row (d,)."""
        from raiutils.exceptions import UserConfigValidationException

        nothing = np.empty((0, len(row)))
        varied, ranges = frames.allowed(row)
        if not varied or not frames.known(row):
            return nothing
        seconds = self.config.seconds or context.seconds or np.inf
        limited = _LimitedModel(model, frames, row, self.config.max_queries, seconds)
        try:
            explainer = self.library.Dice(
                data, self.library.Model(model=limited, backend="sklearn"), method=self.config.method
            )
            found = explainer.generate_counterfactuals(
                frames.of(row[None]),
                total_CFs=context.counterfactuals_per_instance,
                desired_class=1 - label,
                features_to_vary=varied,
                permitted_range=ranges,
                **self._options(),
            ).cf_examples_list[0]
        except _LimitReached:
            return nothing
        except UserConfigValidationException as error:
            if NOT_FOUND in str(error):
                return nothing
            raise
        last = found.final_cfs_df if found.final_cfs_df_sparse is None else found.final_cfs_df_sparse
        return frames.vectors(last, row)

    def _options(self) -> dict[str, Any]:
        sparse = {
            "posthoc_sparsity_param": None if self.config.sparsity is None else 0.1,
            "posthoc_sparsity_algorithm": self.config.sparsity or "linear",
        }
        if self.config.method == "random":
            return {**sparse, "sample_size": self.config.samples}
        if self.config.method == "genetic":
            return {"maxiterations": self.config.iterations}
        return sparse


class Frames:
    """Encoded rows as the data frames of raw columns that dice-ml works with, named c000, c001, ...: no name begins
    another one, by which dice-ml finds the columns of a category.

    Attributes:
        numbers: the numeric columns.
        decimals: the number of decimals of each; 0 if all training rows are integers.
    """

    def __init__(self, encoding: Encoding, background: FloatArray) -> None:
        self.encoding = encoding
        self.names = [f"c{place:03d}" for place in range(len(encoding.columns))]
        numeric = [column.kind == "numeric" for column in encoding.columns]
        self.numbers = [name for name, number in zip(self.names, numeric, strict=True) if number]
        self.levels: dict[str, list[str]] = {}
        self.decimals: dict[str, int] = {}
        self.whole: list[str] = []
        raw = encoding.decode(background)
        for name, column, scale in zip(self.names, encoding.columns, encoding.scale, strict=True):
            values = raw[column.name]
            if column.kind != "numeric":
                self.levels[name] = sorted(set(values))
            elif (values == np.round(values)).all() and np.abs(values).max(initial=0) < WHOLE:
                self.whole.append(name)
                self.decimals[name] = 0
            else:
                self.decimals[name] = decimals_of(values, scale)

    def of(self, vectors: FloatArray) -> "DataFrame":
        """Encoded rows (N, d) as a frame."""
        import pandas as pd

        raw = self.encoding.decode(vectors)
        frame = pd.DataFrame(
            {name: raw[column.name] for name, column in zip(self.names, self.encoding.columns, strict=True)}
        )
        return frame.astype(dict.fromkeys(self.whole, np.int64))

    def vectors(self, frame: "DataFrame", row: FloatArray) -> FloatArray:
        """(N, d) encoded rows of a frame; numbers equal to those of ``row`` (d,) get their exact values.

        dice-ml knows decimals but no other steps, such as terms of 12, 24 and 36 months: its numbers are moved to the
        nearest value of their column before the model receives them.
        """
        parts = []
        for place, (name, column) in enumerate(zip(self.names, self.encoding.columns, strict=True)):
            block = self.encoding.blocks[place]
            if column.kind != "numeric":
                parts.append(self.encoding.encode_column(place, frame[name].to_numpy()))
                continue
            values = frame[name].to_numpy().astype(np.float64)
            rounded = np.round(values, self.decimals[name])
            own = self.encoding.decode_number(place, row[block])[0]
            near = max(0.5 * 10.0 ** -self.decimals[name], 1e-6 * abs(own))
            part = self.encoding.encode_column(place, rounded)
            parts.append(np.where(np.abs(values - own)[:, None] < near, row[block], part))
        vectors = np.concatenate(parts, axis=1)
        return self.encoding.snapped(vectors, np.broadcast_to(row, vectors.shape))

    def allowed(self, row: FloatArray) -> tuple[list[str], dict[str, list[Any]]]:
        """The names of the columns that may change, and their ranges or levels."""
        low, high = (bound[0] for bound in self.encoding.allowed(row[None]))
        varied, ranges = [], {}
        for place, (name, column) in enumerate(zip(self.names, self.encoding.columns, strict=True)):
            block = self.encoding.blocks[place]
            if column.immutable:
                continue
            varied.append(name)
            if column.kind == "numeric":
                ends = [self.encoding.decode_number(place, bound[block])[0] for bound in (low, high)]
                ranges[name] = [round(end) for end in ends] if name in self.whole else ends
            elif block.stop - block.start == 1:
                least, most = (self.encoding.decode_number(place, bound[block])[0] for bound in (low, high))
                within = [level for n, level in enumerate(column.levels) if least <= n <= most]
                ranges[name] = [level for level in within if level in self.levels[name]]
        return varied, ranges

    def known(self, row: FloatArray) -> bool:
        """Whether dice-ml accepts the row: its levels occur in the training rows, and integers have no fraction."""
        raw = self.encoding.decode(row[None])
        for name, column in zip(self.names, self.encoding.columns, strict=True):
            value = raw[column.name][0]
            if name in self.levels and value not in self.levels[name]:
                return False
            if name in self.whole and value != round(value):
                return False
        return True


def decimals_of(values: FloatArray, scale: float) -> int:
    """The number of decimals of the values (N,), from 1 to those of a thousandth of the ``scale``."""
    most = max(1, int(np.ceil(3 - np.log10(scale))))
    for decimals in range(1, most):
        if np.abs(values - np.round(values, decimals)).max() < 1e-9 * scale:
            return decimals
    return most


class _LimitReached(Exception):  # noqa: N818 (not an error)
    """The limit of queries or seconds was reached."""


class _LimitedModel:
    """The model with the interface of dice-ml, for one row: (n, 2) probabilities of frames, up to a limit."""

    def __init__(
        self, model: Classifier, frames: Frames, row: FloatArray, max_queries: int, seconds: float
    ) -> None:
        self.model, self.frames, self.row = model, frames, row
        self.left, self.end = max_queries, time.perf_counter() + seconds

    def predict_proba(self, frame: "DataFrame") -> FloatArray:
        self.left -= len(frame)
        if self.left < 0 or time.perf_counter() > self.end:
            raise _LimitReached
        found = probabilities(self.model, self.frames.vectors(frame, self.row)).copy()
        return np.where(self._tied(found)[:, None], [0.5 + 1e-9, 0.5 - 1e-9], found)

    def predict(self, frame: "DataFrame") -> IntArray:
        found = self.predict_proba(frame)
        return (found[:, 1] > found[:, 0]).astype(np.int64)

    def _tied(self, found: FloatArray) -> BoolArray:
        tied: BoolArray = found[:, 1] == found[:, 0]
        return tied


@contextlib.contextmanager
def _streams(generator: np.random.Generator) -> Iterator[None]:
    """Seeds the global random streams from that of the unit, and restores them."""
    state, numpy_state = random.getstate(), np.random.get_state()
    seed = int(generator.integers(2**32))
    random.seed(seed)
    np.random.seed(seed)
    try:
        yield
    finally:
        random.setstate(state)
        np.random.set_state(numpy_state)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses output (dice-ml shows a progress bar for each row) and warnings."""
    silence = io.StringIO()
    with (
        contextlib.redirect_stdout(silence),
        contextlib.redirect_stderr(silence),
        warnings.catch_warnings(action="ignore"),
    ):
        yield
