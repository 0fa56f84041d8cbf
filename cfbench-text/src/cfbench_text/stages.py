"""The stages of the suite's life cycle: what a worker computes, each from the files of those before it.

reviews -> statements -> units -> generator -> texts -> their statements -> scores. A unit is a test row.
"""

from __future__ import annotations

import functools
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.stages import UNITS, Task
from cfbench_text.corpus import Asked, Corpus, unit_names
from cfbench_text.domains import load_domain
from cfbench_text.extractors.base import Extraction, Extractor
from cfbench_text.extractors.template import Template
from cfbench_text.grid import READ, STATEMENTS
from cfbench_text.metrics.base import Answers
from cfbench_text.recommenders.base import Context, Explanation, Training
from cfbench_text.reviews import Reviews
from cfbench_text.scoring import score_all, statement_rows
from cfbench_text.splits import divide
from cfbench_text.tables import read_texts as read_table
from cfbench_text.triplets import Triplet

STATEMENT_COLUMNS = ("row", "statement", "topic", "sentiment")


def read_data(task: Task) -> dict[str, Any]:
    """Reads the reviews and divides them. ``reviews.parquet``: those that the split kept; ``data.json``."""
    dataset = create(task.parameters["dataset"])
    found = [task.parameters["source"]] if "source" in task.parameters else []
    reviews: Reviews = dataset.load(*found)
    load_domain(reviews.domain)
    given = task.parameters
    split = divide(reviews, given["split"], given["train"], given["validation"], given["least"])
    kept = np.flatnonzero(split.parts >= 0)
    table = pd.DataFrame(
        {
            "row": kept,
            "unit": unit_names(reviews, kept.tolist()),
            "user": reviews.users[kept],
            "item": reviews.items[kept],
            "rating": reviews.ratings[kept],
            "time": reviews.times[kept],
            "text": reviews.texts[kept],
            "part": split.parts[kept],
        }
    )
    table.to_parquet(task.output / "reviews.parquet", index=False, compression="zstd")
    if reviews.known is not None:
        _write_statements(
            task.output / "known.parquet", kept.tolist(), [reviews.known[row] for row in kept.tolist()]
        )
    (task.output / "data.json").write_text(json.dumps({"domain": reviews.domain, "name": reviews.name}))
    dropped = {f"left out, {why}": count for why, count in reviews.about.get("dropped", {}).items()}
    return {
        **dropped,
        **split.report,
        "domain": reviews.domain,
        "synthetic": bool(reviews.about.get("synthetic")),
    }


def extract_statements(task: Task) -> dict[str, Any]:
    """The statements of every review that was kept. ``statements.parquet``: row, statement, topic, sentiment."""
    folder = task.input_paths["data"]
    table = pd.read_parquet(folder / "reviews.parquet", columns=["row", "text"])
    extractor: Extractor = create(task.parameters["extractor"])
    found = _extracted(extractor, table["text"].tolist(), _domain_of(folder), task)
    rows, triplets = table["row"].tolist(), [one.triplets for one in found]
    _write_statements(task.output / "statements.parquet", rows, triplets)
    signatures = {task.parameters["extractor"]["component"]: dict(extractor.signature())}
    summary = {"signatures": signatures, **_extraction_report(found)}
    if (folder / "known.parquet").exists():
        summary["exact"] = _share_exact(folder / "known.parquet", rows, triplets)
    return summary


def _domain_of(folder: Path) -> str:
    return str(json.loads((folder / "data.json").read_text())["domain"])


BATCH = 2_000


def _extracted(extractor: Extractor, texts: Sequence[str], domain: str, task: Task) -> list[Extraction]:
    """The extraction of each text, every distinct one asked for once, in batches."""
    distinct = list(dict.fromkeys(texts))
    known: dict[str, Extraction] = {}
    for start in range(0, len(distinct), BATCH):
        batch = distinct[start : start + BATCH]
        found = extractor.extract(batch, load_domain(domain))
        if len(found) != len(batch):
            raise UserError(
                f"{task.work.label}: the extractor gave {len(found)} answers to {len(batch)} texts"
            )
        known.update(zip(batch, found, strict=True))
        task.report(min(start + BATCH, len(distinct)), len(distinct))
    return [known[text] for text in texts]


def _extraction_report(found: Sequence[Extraction]) -> dict[str, Any]:
    """How many statements there are, how many texts ended how, and what was left out, by reason."""
    left_out: Counter[str] = Counter()
    for one in found:
        left_out.update(one.left_out)
    return {
        "statements": sum(len(one.triplets) for one in found),
        "texts": dict(Counter(one.status for one in found)),
        "left out": dict(left_out),
    }


def _share_exact(known: Path, rows: Sequence[int], triplets: Sequence[tuple[Triplet, ...]]) -> float:
    """The share of reviews whose statements are exactly those that they were made of."""
    truth = _read_statements(known)
    return float(np.mean([truth.get(row, ()) == of_row for row, of_row in zip(rows, triplets, strict=True)]))


def _write_statements(path: Path, rows: Sequence[Any], triplets: Sequence[Sequence[Triplet]]) -> None:
    lines = [
        (row, t.statement, t.topic, t.sentiment) for row, of in zip(rows, triplets, strict=True) for t in of
    ]
    names = ["row", *STATEMENT_COLUMNS[1:]]
    kind = {"row": "int64" if all(isinstance(row, int) for row in rows) else "str"}
    frame = pd.DataFrame(lines, columns=names).astype({**kind, **dict.fromkeys(STATEMENT_COLUMNS[1:], "str")})
    frame.to_parquet(path, index=False, compression="zstd")


def _read_statements(path: Path) -> dict[Any, tuple[Triplet, ...]]:
    table = pd.read_parquet(path)
    found: dict[Any, tuple[Triplet, ...]] = {}
    for row, *of_row in zip(*(table[name].tolist() for name in STATEMENT_COLUMNS), strict=True):
        found[row] = (*found.get(row, ()), Triplet(*of_row))
    return found


def choose_units(task: Task) -> dict[str, Any]:
    """The test rows to explain. ``units.parquet``: unit, group, row, user, item, time."""
    table = pd.read_parquet(task.input_paths["data"] / "reviews.parquet")
    table = table[table["part"] == 2].reset_index(drop=True)
    most = task.parameters["rows"]
    if most is not None and most < len(table):
        chosen = np.sort(task.generator("rows").permutation(len(table))[:most])
        table = table.iloc[chosen].reset_index(drop=True)
    units = table[["unit", "row", "user", "item", "time"]].assign(group=np.arange(len(table)))
    units.to_parquet(task.output / "units.parquet", index=False)
    return {"groups": len(units)}


@functools.lru_cache(maxsize=2)
def _corpus(reviews: Path, statements: Path) -> Corpus:
    """Kept for the next chunk; the folders of artifacts are named by what is in them."""
    return Corpus.load(reviews, statements, _domain_of(reviews))


def _corpus_of(task: Task) -> Corpus:
    return _corpus(task.input_paths["data"], task.input_paths[STATEMENTS])


def _training(corpus: Corpus, task: Task) -> Training:
    return Training(
        corpus.part("train"), corpus.part("validation"), corpus.domain, task.generator("fit"), task.report
    )


def fit_model(task: Task) -> dict[str, Any]:
    """Trains the generator and, if it predicts ratings, judges these on the test rows."""
    corpus = _corpus_of(task)
    model = create(task.parameters["recommender"])
    model.fit(_training(corpus, task))
    model.save(task.output)
    (task.output / "model.json").write_text(json.dumps(dict(task.parameters["recommender"])))
    if not hasattr(model, "predict_ratings"):
        return {"quality": {}}
    test = corpus.part("test")
    asked = Asked(test.units, test.users, test.items, test.times, np.arange(len(test)))
    known = ~np.isnan(test.ratings)
    errors = (np.asarray(model.predict_ratings(asked), dtype=np.float64) - test.ratings)[known]
    if not len(errors):
        return {"quality": {}}
    return {"quality": {"RMSE": float(np.sqrt(np.mean(errors**2))), "MAE": float(np.mean(np.abs(errors)))}}


@dataclass(frozen=True)
class _Chunk:
    """The rows of one piece of work, B of them: units.parquet from ``start``."""

    units: pd.DataFrame
    start: int

    @staticmethod
    def of(task: Task) -> _Chunk:
        units = task.load(UNITS, _load_units)
        start, stop = task.chunk or (0, len(units))
        return _Chunk(units.iloc[start:stop].reset_index(drop=True), start)

    def asked(self) -> Asked:
        units = self.units
        return Asked(
            tuple(units["unit"]),
            units["user"].to_numpy(object),
            units["item"].to_numpy(object),
            units["time"].to_numpy(np.int64),
            self.start + np.arange(len(units)),
        )

    def write(
        self, task: Task, texts: Sequence[str | None], ratings: Sequence[float], seconds: float
    ) -> dict[str, Any]:
        """``explanations.parquet``: unit, user, item, time, reference, text, rating (null where none is predicted);
        a row without a text has no line in it. ``costs.parquet``."""
        references = _corpus_of(task).rows(self.units["row"].tolist()).paragraphs
        named = self.units[["unit", "user", "item", "time"]].assign(
            reference=np.array(references, dtype=object)
        )
        table = named.assign(text=np.array(texts, dtype=object), rating=np.asarray(ratings, dtype=np.float64))
        given = table[[text is not None for text in texts]].astype({"text": "str", "reference": "str"})
        given.to_parquet(task.output / "explanations.parquet", index=False, compression="zstd")
        costs = self.units[["unit"]].assign(elapsed_seconds=seconds)
        costs.to_parquet(task.output / "costs.parquet", index=False)
        return {"units": len(table), "answered": int((given["text"] != "").sum())}


def _load_units(folder: Path) -> pd.DataFrame:
    return pd.read_parquet(folder / "units.parquet")


def explain(task: Task) -> dict[str, Any]:
    """Asks for the texts of all rows of the chunk at once. The time is that of this call, shared out equally."""
    chunk, corpus = _Chunk.of(task), _corpus_of(task)
    folder = task.input_paths["model"]
    model = create(json.loads((folder / "model.json").read_text()))
    model.load(folder, _training(corpus, task))
    references = None
    if task.parameters["sees references"]:
        references = corpus.rows(task.load(UNITS, _load_units)["row"].tolist()).paragraphs
    asked, context = chunk.asked(), Context(task.generator, references)
    started = time.perf_counter()
    written: Sequence[Explanation] = model.explain(asked, context)
    elapsed = time.perf_counter() - started
    if len(written) != len(asked) or not all(isinstance(one.text, str) for one in written):
        raise UserError(f"{task.work.label}: explain must give a text for each of {len(asked)} rows")
    texts, ratings = [one.text for one in written], [one.rating for one in written]
    return chunk.write(task, texts, ratings, elapsed / max(1, len(asked)))


def import_explanations(task: Task) -> dict[str, Any]:
    """Texts made elsewhere, joined to the rows by their names, never by position. Their time is not known."""
    chunk, file = _Chunk.of(task), Path(task.parameters["file"])
    units = task.load(UNITS, _load_units)
    named = list(zip(*(units[name].tolist() for name in ("unit", "user", "item", "time")), strict=True))
    texts = read_table(file, task.parameters["labels"], named)
    found = [texts.get(unit, (None, np.nan)) for unit in chunk.units["unit"]]
    return chunk.write(task, [text for text, _ in found], [rating for _, rating in found], np.nan)


def read_texts(task: Task) -> dict[str, Any]:
    """The statements of what was written. ``statements.parquet`` as of reviews; ``row`` is the unit."""
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet")
    texts, domain = table["text"].tolist(), _domain_of(task.input_paths["data"])
    extractor: Extractor = create(task.parameters["extractor"])
    known: dict[str, Extraction] = {}
    if task.parameters["read"] == "template":
        exact = Template().extract(texts, load_domain(domain))
        known = {text: one for text, one in zip(texts, exact, strict=True) if one.status != "failed"}
    others = [text for text in texts if text not in known]
    known |= dict(zip(others, _extracted(extractor, others, domain, task), strict=True))
    found = [known[text] for text in texts]
    _write_statements(
        task.output / "statements.parquet", table["unit"].tolist(), [one.triplets for one in found]
    )
    by_template = len(texts) - len(others)
    return {"by template": by_template, **_extraction_report(found)}


def score(task: Task) -> dict[str, Any]:
    """Scores texts as they stand in their table, whoever wrote them; a row without a text has none.

    ``scores.parquet``; ``statements.parquet``: every statement of both sides with what the judges said of it.
    """
    chunk, corpus = _Chunk.of(task), _corpus_of(task)
    table = pd.read_parquet(task.input_paths["explanations"] / "explanations.parquet").set_index("unit")
    given = chunk.units["unit"].isin(table.index).to_numpy()
    units = chunk.units[given]
    rows = corpus.rows(units["row"].tolist())
    written = _read_statements(task.input_paths[READ] / "statements.parquet")
    answers = Answers(
        texts=table["text"].reindex(units["unit"]).tolist(),
        references=rows.paragraphs,
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
