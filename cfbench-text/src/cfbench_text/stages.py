"""The stages of the suite's life cycle: what a worker computes, each from the files of earlier stages.

reviews -> statements -> units -> generator -> texts -> their statements -> scores. A unit is a test row.

The memory use of a stage does not grow with the number of rows, with two exceptions: :func:`read_data` splits all reviews,
and :func:`fit_model` holds the training data of its generator. All others read the rows that they need.
"""

from __future__ import annotations

import functools
import itertools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from safetensors.numpy import load_file, save_file

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.stages import UNITS, TaskContext
from cfbench_text.contracts import Extractor, Generator
from cfbench_text.corpus import Corpus, ExplanationRequests, unit_names
from cfbench_text.domains import Domain, load_domain
from cfbench_text.extractors.base import Extraction
from cfbench_text.extractors.template import Template
from cfbench_text.generators.base import Context, Explanation, Training
from cfbench_text.grid import READ, STATEMENTS, TEXTS
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import IntArray, Reviews
from cfbench_text.row_store import GROUP, RowStore, RowWriter, StatementWriter, whole
from cfbench_text.scoring import score_all, statement_rows
from cfbench_text.splits import PARTS, divide
from cfbench_text.tables import Units
from cfbench_text.tables import read_texts as read_table
from cfbench_text.triplets import Triplet

NOT_USABLE = "rejected by the extractor"
"""Why a statement of a paragraph is excluded."""


def read_data(task: TaskContext) -> dict[str, Any]:
    """Reads and splits the reviews. ``reviews.parquet``: those that are in the split; ``data.json``."""
    dataset = create(task.parameters["dataset"])
    found = [task.parameters["source"]] if "source" in task.parameters else []
    reviews: Reviews = dataset.load(*found)
    load_domain(reviews.domain)
    given = task.parameters
    split = divide(
        reviews, given["split"], given["train"], given["validation"], given["min_reviews_per_user"]
    )
    included = np.flatnonzero(split.parts >= 0)
    _write_reviews(task.output / "reviews.parquet", reviews, included, split.parts)
    if reviews.known is not None:
        with StatementWriter(task.output / "known.parquet") as known:
            known.write(included.tolist(), [reviews.known[row] for row in included.tolist()])
    (task.output / "data.json").write_text(json.dumps({"domain": reviews.domain, "name": reviews.name}))
    dropped = {f"left out, {why}": count for why, count in reviews.about.get("dropped", {}).items()}
    return {
        **dropped,
        **split.report,
        "domain": reviews.domain,
        "synthetic": bool(reviews.about.get("synthetic")),
    }


def _write_reviews(path: Path, reviews: Reviews, included: IntArray, parts: IntArray) -> None:
    names = unit_names(reviews, included.tolist())
    with RowWriter(path, ("row", "unit", "user", "item", "rating", "time", "text", "part")) as to:
        for start in range(0, len(included), GROUP):
            rows = included[start : start + GROUP]
            to.write(
                {
                    "row": rows,
                    "unit": names[start : start + GROUP],
                    "user": reviews.users[rows],
                    "item": reviews.items[rows],
                    "rating": reviews.ratings[rows],
                    "time": reviews.times[rows],
                    "text": reviews.texts[rows],
                    "part": parts[rows],
                }
            )


def extract_statements(task: TaskContext) -> dict[str, Any]:
    """The statements of every review in the split. ``statements.parquet``: row, statement, topic, sentiment."""
    folder = task.input_paths["data"]
    extractor: Extractor = create(task.parameters["extractor"])
    domain, reviews = load_domain(_domain_of(folder)), RowStore(folder / "reviews.parquet")
    known = RowStore(folder / "known.parquet") if (folder / "known.parquet").exists() else None
    tally, exact, total = _Tally(), 0, len(reviews)
    with StatementWriter(task.output / "statements.parquet") as to:
        for batch in reviews.batches(["row", "text"]):
            rows, texts = batch.column("row").to_numpy(), batch.column("text").to_pylist()
            found = _extracted(extractor, texts, domain, task)
            to.write(rows.tolist(), [one.triplets for one in found])
            tally.add(found)
            task.report(tally.texts, total)
            if known is not None:
                truth = _by_row(known, rows)
                pairs = zip(rows.tolist(), found, strict=True)
                exact += sum(truth.get(row, ()) == one.triplets for row, one in pairs)
    signatures = {task.parameters["extractor"]["component"]: dict(extractor.signature())}
    summary = {"signatures": signatures, **tally.summary()}
    return summary if known is None else {**summary, "exact": exact / max(1, total)}


def _domain_of(folder: Path) -> str:
    return str(json.loads((folder / "data.json").read_text())["domain"])


def _extracted(
    extractor: Extractor, texts: Sequence[str], domain: Domain, task: TaskContext
) -> list[Extraction]:
    """The extraction of each text; each distinct text is extracted once."""
    distinct = list(dict.fromkeys(texts))
    found = extractor.extract(distinct, domain) if distinct else []
    if len(found) != len(distinct):
        raise UserError(
            f"{task.task.label}: the extractor returned {len(found)} extractions for {len(distinct)} texts"
        )
    known = dict(zip(distinct, found, strict=True))
    return [known[text] for text in texts]


class _Tally:
    """Counts statements, texts by status, and excluded statements by reason."""

    def __init__(self) -> None:
        self.texts = self._statements = 0
        self._ends: Counter[str] = Counter()
        self._left_out: Counter[str] = Counter()

    def add(self, found: Sequence[Extraction]) -> None:
        self.texts += len(found)
        self._statements += sum(len(one.triplets) for one in found)
        self._ends.update(one.status for one in found)
        for one in found:
            self._left_out.update(one.left_out)

    def summary(self) -> dict[str, Any]:
        return {
            "statements": self._statements,
            "texts": dict(self._ends),
            "left out": dict(self._left_out),
        }


def _by_row(statements: RowStore, rows: IntArray | None = None) -> dict[Any, tuple[Triplet, ...]]:
    """The statements of each row that has some."""
    found: dict[Any, list[Triplet]] = {}
    for row, triplet in statements.triplets(rows):
        found.setdefault(row, []).append(triplet)
    return {row: tuple(of_row) for row, of_row in found.items()}


def choose_units(task: TaskContext) -> dict[str, Any]:
    """The test rows to explain. ``units.parquet``: unit, group, row, user, item, time."""
    reviews = RowStore(task.input_paths["data"] / "reviews.parquet")
    chosen = reviews.column("row")[reviews.column("part") == PARTS.index("test")]
    most = task.parameters["rows"]
    if most is not None and most < len(chosen):
        chosen = chosen[np.sort(task.generator("rows").permutation(len(chosen))[:most])]
    columns = ("unit", "row", "user", "item", "time")
    done = 0
    with RowWriter(task.output / "units.parquet", (*columns, "group")) as to:
        for batch in reviews.batches(columns, chosen):
            groups = np.arange(done, done + batch.num_rows)
            to.write({**{name: batch.column(name) for name in columns}, "group": groups})
            done += batch.num_rows
    return {"groups": done}


@functools.lru_cache(maxsize=8)
def _corpus(reviews: Path, statements: Path) -> Corpus:
    """Cached for the next chunk; the folder of an artifact identifies its content."""
    return Corpus.load(reviews, statements, _domain_of(reviews))


def _corpus_of(task: TaskContext) -> Corpus:
    return _corpus(task.input_paths["data"], task.input_paths[STATEMENTS])


def _training(corpus: Corpus, task: TaskContext) -> Training:
    return Training(
        corpus.part("train"), corpus.part("validation"), corpus.domain, task.generator("fit"), task.report
    )


def fit_model(task: TaskContext) -> dict[str, Any]:
    """Trains the generator and, if it predicts ratings, evaluates them on the test rows."""
    corpus = _corpus_of(task)
    model: Generator = create(task.parameters["generator"])
    summary = model.fit(_training(corpus, task))
    save_file(dict(model.state()), task.output / "model.safetensors")
    (task.output / "model.json").write_text(json.dumps(dict(task.parameters["generator"])))
    return {"training": dict(summary or {}), "quality": _quality(model, corpus)}


def _quality(model: Generator, corpus: Corpus) -> dict[str, float]:
    """RMSE and MAE of the predicted ratings of the test rows; empty if the generator predicts none."""
    if not hasattr(model, "predict_ratings"):
        return {}
    test = corpus.part("test")
    requests = ExplanationRequests(test.units, test.users, test.items, test.times, np.arange(len(test)))
    known = ~np.isnan(test.ratings)
    errors = (np.asarray(model.predict_ratings(requests), dtype=np.float64) - test.ratings)[known]
    if not len(errors):
        return {}
    return {"RMSE": float(np.sqrt(np.mean(errors**2))), "MAE": float(np.mean(np.abs(errors)))}


@dataclass(frozen=True)
class _Chunk:
    """The B rows of one task: units.parquet from ``start``."""

    units: pd.DataFrame
    start: int

    @staticmethod
    def of(task: TaskContext) -> _Chunk:
        start, stop = task.chunk or (0, None)
        return _Chunk(
            RowStore(task.input_paths[UNITS] / "units.parquet").span(start, stop).to_pandas(), start
        )

    def requests(self) -> ExplanationRequests:
        units = self.units
        return ExplanationRequests(
            tuple(units["unit"]),
            units["user"].to_numpy(object),
            units["item"].to_numpy(object),
            units["time"].to_numpy(np.int64),
            self.start + np.arange(len(units)),
        )

    def write(
        self, task: TaskContext, texts: Sequence[str | None], ratings: Sequence[float], seconds: float
    ) -> dict[str, Any]:
        """``explanations.parquet``: unit, user, item, time, reference, text, rating (null where none is predicted);
        a row without a text has no line in it. ``costs.parquet``."""
        references = _corpus_of(task).rows(self.units["row"].tolist()).references(_as_written(task))
        named = self.units[["unit", "user", "item", "time"]].assign(
            reference=np.array(references, dtype=object)
        )
        table = named.assign(text=np.array(texts, dtype=object), rating=np.asarray(ratings, dtype=np.float64))
        given = table[[text is not None for text in texts]].astype({"text": "str", "reference": "str"})
        given.to_parquet(task.output / "explanations.parquet", index=False, compression="zstd")
        costs = self.units[["unit"]].assign(elapsed_seconds=seconds)
        costs.to_parquet(task.output / "costs.parquet", index=False)
        return {"units": len(table), "answered": int((given["text"] != "").sum())}


@dataclass(frozen=True)
class _FittedModel:
    """Where a fitted generator is stored. Tasks of one stage that differ only in their chunk are equal."""

    folder: Path
    stage: str
    task: TaskContext = field(compare=False)


@functools.lru_cache(maxsize=1)
def _fitted_model(stored: _FittedModel) -> Generator:
    """A generator with its stored state, cached for the next chunk."""
    model: Generator = create(json.loads((stored.folder / "model.json").read_text()))
    model.load_state(
        load_file(stored.folder / "model.safetensors"), _training(_corpus_of(stored.task), stored.task)
    )
    return model


def _as_written(task: TaskContext) -> bool:
    return bool(task.parameters.get("reference") == "written")


@functools.lru_cache(maxsize=1)
def _all_references(corpus: Corpus, units: Path, written: bool) -> Sequence[str]:
    """What the texts of all rows to explain are compared with, in a file."""
    return corpus.spooled_references(RowStore(units / "units.parquet").column("row"), written)


def explain(task: TaskContext) -> dict[str, Any]:
    """Generates the texts of all rows of the chunk in one call, whose time is divided equally among the rows."""
    chunk = _Chunk.of(task)
    model = _fitted_model(_FittedModel(task.input_paths["model"], task.task.stage_key, task))
    references = None
    if task.parameters["sees references"]:
        references = _all_references(_corpus_of(task), task.input_paths[UNITS], _as_written(task))
    requests, context = chunk.requests(), Context(task.generator, references)
    started = time.perf_counter()
    written: Sequence[Explanation] = model.explain(requests, context)
    elapsed = time.perf_counter() - started
    if len(written) != len(requests) or not all(isinstance(one.text, str) for one in written):
        raise UserError(f"{task.task.label}: explain must give a text for each of {len(requests)} rows")
    texts, ratings = [whole(one.text) for one in written], [one.rating for one in written]
    return chunk.write(task, texts, ratings, elapsed / max(1, len(requests)))


def read_file(task: TaskContext) -> dict[str, Any]:
    """External texts, joined to the rows by their identifiers, never by position. ``texts.parquet``: row (its place
    among those to explain), text, rating, in the order of the file."""
    columns = (
        RowStore(task.input_paths[UNITS] / "units.parquet").column(name)
        for name in ("unit", "user", "item", "time")
    )
    texts = read_table(Path(task.parameters["file"]), task.parameters["labels"], Units(*columns))
    count = 0
    with RowWriter(task.output / "texts.parquet", ("row", "text", "rating")) as to:
        while some := list(itertools.islice(texts, GROUP)):
            to.write(dict(zip(("row", "text", "rating"), zip(*some, strict=True), strict=True)))
            count += len(some)
    return {"texts": count}


def import_explanations(task: TaskContext) -> dict[str, Any]:
    """The chunk's part of the external texts, whose generation time is unknown."""
    chunk = _Chunk.of(task)
    texts: list[str | None] = [None] * len(chunk.units)
    ratings = np.full(len(chunk.units), np.nan)
    places = chunk.start + np.arange(len(chunk.units))
    for batch in RowStore(task.input_paths[TEXTS] / "texts.parquet").batches(
        ("row", "text", "rating"), places
    ):
        for place, text, rating in zip(*(batch.column(n).to_pylist() for n in range(3)), strict=True):
            texts[place - chunk.start] = text
            ratings[place - chunk.start] = np.nan if rating is None else rating
    return chunk.write(task, texts, ratings.tolist(), np.nan)


def read_texts(task: TaskContext) -> dict[str, Any]:
    """The statements of what was written. ``statements.parquet`` as of reviews; ``row`` is the unit."""
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    texts, domain = table["text"].tolist(), load_domain(_domain_of(task.input_paths["data"]))
    extractor: Extractor = create(task.parameters["extractor"])
    known: dict[str, Extraction] = {}
    if task.parameters["read"] == "template":
        exact = [_checked(one, extractor) for one in Template().extract(texts, domain)]
        known = {text: one for text, one in zip(texts, exact, strict=True) if one.status != "failed"}
    others = [text for text in texts if text not in known]
    known |= dict(zip(others, _extracted(extractor, others, domain, task), strict=True))
    found = [known[text] for text in texts]
    with StatementWriter(task.output / "statements.parquet", named=True) as to:
        to.write(table["unit"].tolist(), [one.triplets for one in found])
    tally = _Tally()
    tally.add(found)
    summary = {"by template": len(texts) - len(others), **tally.summary()}
    if NOT_USABLE in summary["left out"]:
        summary["note"] = (
            "statements that the extractor rejects in reviews (opinions) are excluded from texts, too"
        )
    return summary


def _checked(found: Extraction, extractor: Extractor) -> Extraction:
    """Without the statements that the extractor would not have extracted from a review."""
    usable = getattr(extractor, "usable", None)
    included = found.triplets if usable is None else tuple(filter(usable, found.triplets))
    if len(included) == len(found.triplets):
        return found
    left_out = {**found.left_out, NOT_USABLE: len(found.triplets) - len(included)}
    return replace(found, triplets=included, status="ok" if included else "empty", left_out=left_out)


def score(task: TaskContext) -> dict[str, Any]:
    """Scores the texts of a table, generated or external; a row without a text has no scores.

    ``scores.parquet``; ``statements.parquet``: every statement of both sides with the verdict of each judge.
    """
    chunk, corpus = _Chunk.of(task), _corpus_of(task)
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet").set_index("unit")
    given = chunk.units["unit"].isin(table.index).to_numpy()
    units = chunk.units[given]
    rows = corpus.rows(units["row"].tolist())
    written = _by_row(RowStore(task.input_paths[READ] / "statements.parquet"))
    answers = ObservedTexts(
        texts=table["text"].reindex(units["unit"]).tolist(),
        references=rows.references(_as_written(task)),
        predicted=[written.get(unit, ()) for unit in units["unit"]],
        evidence=rows.triplets,
        domain=corpus.domain,
        empty=task.parameters["empty"],
    )
    scores, judged, signatures = score_all(answers, task.parameters["measures"], corpus)
    frames = []
    for name, values in scores.items():
        every = np.full(len(given), np.nan)
        every[given] = values
        status = np.where(np.isnan(every), "skipped", "ok")
        frames.append(
            chunk.units[["unit", "user", "item", "time"]].assign(metric=name, value=every, status=status)
        )
    columns = ["metric", "unit", "value", "status", "user", "item", "time"]
    pd.concat(frames, ignore_index=True)[columns].to_parquet(
        task.output / "scores.parquet", index=False, compression="zstd"
    )
    statements = statement_rows(list(units["unit"]), answers, judged)
    statements.to_parquet(task.output / "statements.parquet", index=False, compression="zstd")
    return {"units": len(chunk.units), "texts": int(given.sum()), "signatures": signatures}
