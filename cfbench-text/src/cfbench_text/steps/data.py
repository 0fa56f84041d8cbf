"""Reviews: split, written, and read back; the test rows to explain; the units of a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cfbench_core.stages import UNITS, TaskContext
from cfbench_text.contracts import Generator
from cfbench_text.corpus import Corpus
from cfbench_text.generators.base import Training
from cfbench_text.review_folder import ReviewFolder
from cfbench_text.reviews import Reviews
from cfbench_text.row_store import RowStore
from cfbench_text.splits import PARTS, divide


def read_data(context: TaskContext, reviews: Reviews) -> dict[str, Any]:
    """Splits the reviews; writes those that are in the split."""
    given = context.parameters
    split = divide(
        reviews, given["split"], given["train"], given["validation"], given["min_reviews_per_user"]
    )
    ReviewFolder.write(context.output, reviews, split.parts, given["learn"] == "written")
    return reviews.summary(split.report)


@dataclass(frozen=True)
class SplitReviews:
    """Reviews with their statements, and the random stream of the training."""

    corpus: Corpus
    stream: Callable[[], np.random.Generator]

    def training(self, report: Callable[[int, int], None] = lambda done, total: None) -> Training:
        """What generators learn from, and are restored with."""
        return Training.of(self.corpus, self.stream(), report)


def load_data(context: TaskContext) -> SplitReviews:
    """Reads nothing yet: rows are read when they are needed."""
    # the key of an incomplete artifact does not determine its content
    read = _corpus.__wrapped__ if context.provisional else _corpus
    corpus = read(context.input_paths["data"], context.input_paths["statements"])
    return SplitReviews(corpus, functools.partial(context.streams.generator, "fit"))


@functools.lru_cache(maxsize=8)
def _corpus(reviews: Path, statements: Path) -> Corpus:
    """Cached for the next chunk; the folder of an artifact identifies its content."""
    folder = ReviewFolder(reviews)
    return Corpus.load(reviews, statements, folder.domain, folder.learn_written)


def choose_units(
    context: TaskContext, data: SplitReviews, model: None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The test rows to explain: unit, group, row (in the data set), user, item, time."""
    reviews = ReviewFolder(context.input_paths["data"]).reviews
    chosen = reviews.column("row")[reviews.column("part") == PARTS.index("test")]
    most = context.parameters["rows"]
    if most is not None and most < len(chosen):
        chosen = chosen[np.sort(context.streams.generator("rows").permutation(len(chosen))[:most])]
    columns = {name: reviews.column(name, chosen) for name in ("unit", "row", "user", "item", "time")}
    return pd.DataFrame({**columns, "group": np.arange(len(chosen))}), {}


@dataclass(frozen=True)
class Chunk:
    """The units of one task, B of them.

    Attributes:
        units: B rows of ``units.parquet``.
        model: the generator; None in stages that do not query it.
        corpus: the reviews. written: whether references are reviews as written, not paragraphs of their statements.
        visible: the references of all units, for controls that see them; None for others.
    """

    units: pd.DataFrame
    model: Generator | None
    corpus: Corpus
    written: bool
    visible: Sequence[str] | None

    queries: ClassVar[tuple[str, ...]] = ()

    def references(self) -> Sequence[str]:
        """(B,) the texts that explanations are compared with."""
        return self.corpus.rows(self.units["row"].tolist()).references(self.written)


def open_chunk(
    context: TaskContext, data: SplitReviews, model: Generator | None, units: pd.DataFrame
) -> Chunk:
    """The units of a task with what they are compared with."""
    written = context.parameters["reference"] == "written"
    visible = None
    if context.parameters.get("sees_references"):
        visible = _all_references(data.corpus, context.input_paths[UNITS], written)
    return Chunk(units, model, data.corpus, written, visible)


@functools.lru_cache(maxsize=1)
def _all_references(corpus: Corpus, units: Path, written: bool) -> Sequence[str]:
    """The references of all units, in a file."""
    return corpus.spooled_references(RowStore(units / "units.parquet").column("row"), written)
