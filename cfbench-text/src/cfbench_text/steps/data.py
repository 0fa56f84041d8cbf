"""Reviews: split, written, and read back; the test rows to explain; the units of a task."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cfbench_core.stages import UNITS, TaskContext
from cfbench_text.contracts import Generator
from cfbench_text.corpus import Corpus, ExplanationRequests, unit_names
from cfbench_text.domains import Domain, load_domain
from cfbench_text.generators.base import Training
from cfbench_text.reviews import IntArray, Reviews
from cfbench_text.row_store import GROUP, RowStore, RowWriter, StatementWriter
from cfbench_text.splits import PARTS, divide

COLUMNS = ("row", "unit", "user", "item", "rating", "time", "text", "part")


def read_data(context: TaskContext, reviews: Reviews) -> dict[str, Any]:
    """Splits the reviews. ``reviews.parquet``: those that are in the split; ``data.json``."""
    load_domain(reviews.domain)
    given = context.parameters
    split = divide(
        reviews, given["split"], given["train"], given["validation"], given["min_reviews_per_user"]
    )
    included = np.flatnonzero(split.parts >= 0)
    _write_reviews(context.output / "reviews.parquet", reviews, included, split.parts)
    if reviews.known is not None:
        with StatementWriter(context.output / "known.parquet") as known:
            known.write(included.tolist(), [reviews.known[row] for row in included.tolist()])
    described = {"domain": reviews.domain, "name": reviews.name}
    (context.output / "data.json").write_text(json.dumps(described), encoding="utf-8")
    dropped = {f"left out, {why}": count for why, count in reviews.about.get("dropped", {}).items()}
    synthetic = bool(reviews.about.get("synthetic"))
    return {**dropped, **split.report, "domain": reviews.domain, "synthetic": synthetic}


def _write_reviews(path: Path, reviews: Reviews, included: IntArray, parts: IntArray) -> None:
    names = np.array(unit_names(reviews, included.tolist()), dtype=object)
    with RowWriter(path, COLUMNS) as to:
        for start in range(0, len(included), GROUP):
            rows = included[start : start + GROUP]
            columns = (rows, names[start : start + GROUP], reviews.users[rows], reviews.items[rows])
            further = (reviews.ratings[rows], reviews.times[rows], reviews.texts[rows], parts[rows])
            to.write(dict(zip(COLUMNS, (*columns, *further), strict=True)))


def domain_of(folder: Path) -> Domain:
    """The domain of the reviews in a folder."""
    return load_domain(json.loads((folder / "data.json").read_text(encoding="utf-8"))["domain"])


@dataclass(frozen=True)
class SplitReviews:
    """Reviews with their statements, and the random stream of the training."""

    corpus: Corpus
    stream: Callable[[], np.random.Generator]

    def training(self, report: Callable[[int, int], None] = lambda done, total: None) -> Training:
        """What generators learn from, and are restored with."""
        corpus = self.corpus
        parts = (corpus.part("train"), corpus.part("validation"))
        return Training(*parts, corpus.domain, self.stream(), report)


def load_data(context: TaskContext) -> SplitReviews:
    """Reads nothing yet: rows are read when they are needed."""
    corpus = _corpus(context.input_paths["data"], context.input_paths["statements"])
    return SplitReviews(corpus, functools.partial(context.streams.generator, "fit"))


@functools.lru_cache(maxsize=8)
def _corpus(reviews: Path, statements: Path) -> Corpus:
    """Cached for the next chunk; the folder of an artifact identifies its content."""
    files = RowStore(reviews / "reviews.parquet"), RowStore(statements / "statements.parquet")
    return Corpus(*files, domain_of(reviews))


def choose_units(
    context: TaskContext, data: SplitReviews, model: None
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The test rows to explain: unit, group, row (in the data set), user, item, time."""
    reviews = RowStore(context.input_paths["data"] / "reviews.parquet")
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
    seconds_of_loading: ClassVar[float] = 0.0

    def references(self) -> Sequence[str]:
        """(B,) the texts that explanations are compared with."""
        return self.corpus.rows(self.units["row"].tolist()).references(self.written)

    def requests(self) -> ExplanationRequests:
        """The units as a generator receives them."""
        units = self.units
        users, items = (units[name].to_numpy(object) for name in ("user", "item"))
        times, places = (units[name].to_numpy(np.int64) for name in ("time", "group"))
        return ExplanationRequests(tuple(units["unit"]), users, items, times, places)


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
