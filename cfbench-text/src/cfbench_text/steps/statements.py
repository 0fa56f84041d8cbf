"""The statements of reviews and of texts. ``statements.parquet``: row (or unit), statement, topic, sentiment."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from cfbench_core.config.component import create
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.tables import read_explanations
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Extractor
from cfbench_text.extractors.base import Extraction
from cfbench_text.review_folder import ReviewFolder
from cfbench_text.row_store import FAILURES_FILE, GROUP, RowWriter, StatementWriter
from cfbench_text.statement_extraction import NOT_USABLE, Tally, extract_distinct, extract_generated

FAILURE = ("row", "reason")
CANNOT_READ = "another extractor, such as atomic or llm, may read them"


def _failed(rows: Sequence[Any], found: Sequence[Extraction]) -> dict[str, list[Any]]:
    """The rows of failed extractions, with reasons."""
    failed = [(row, one.reason) for row, one in zip(rows, found, strict=True) if one.status == "failed"]
    return {"row": [row for row, _ in failed], "reason": [reason for _, reason in failed]}


def _between(texts: int, total: int, done: float) -> int:
    """How many texts are done in the middle of a batch."""
    return texts + int(min(GROUP, total - texts) * done)


def _digest(statement: str) -> bytes:
    """Short enough that a million distinct statements can be counted in memory."""
    return hashlib.blake2b(statement.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _usage(extractor: Extractor) -> dict[str, Any]:
    found = extractor.usage() if hasattr(extractor, "usage") else {}
    return {"usage": dict(found)} if found else {}


def extract_statements(context: TaskContext) -> dict[str, Any]:
    """The statements of every review in the split, compared with those that are known, if they are."""
    folder = ReviewFolder(context.input_paths["data"])
    extractor: Extractor = create(context.parameters["extractor"])
    domain, reviews, known = folder.domain, folder.reviews, folder.known
    tally, exact, total = Tally(), 0, len(reviews)
    distinct: set[bytes] = set()
    if hasattr(extractor, "begin"):  # it queries a model, which takes longer than reading a batch
        extractor.begin(
            lambda done, prompts: context.report(_between(tally.texts, total, done / prompts), total)
        )
    with (
        StatementWriter(context.output / "statements.parquet") as to,
        RowWriter(context.output / FAILURES_FILE, FAILURE) as failures,
    ):
        for batch in reviews.batches(["row", "text"]):
            rows, texts = batch.column("row").to_numpy(), batch.column("text").to_pylist()
            found = extract_distinct(extractor, texts, domain, context.task.label)
            to.write(rows.tolist(), [one.triplets for one in found])
            failures.write(_failed(rows.tolist(), found))
            tally.add(found)
            distinct.update(_digest(triplet.statement) for one in found for triplet in one.triplets)
            context.report(tally.texts, total)
            if known is not None:
                truth = known.triplets_by_row(rows)
                pairs = zip(rows.tolist(), found, strict=True)
                exact += sum(truth.get(row, ()) == one.triplets for row, one in pairs)
    most = context.parameters["max_failed"]
    if tally.failed > most * total:
        queries = hasattr(extractor, "begin")  # only such an extractor has responses
        raise UserError(
            f"{context.task.label}: the extraction of {tally.failed} of {total} reviews failed ({tally.reasons}), more"
            f" than the {most:.0%} that protocol.max_failed permits; "
            + ("responses are cached, the same command resumes" if queries else CANNOT_READ)
        )
    signatures = {context.parameters["extractor"]["component"]: dict(extractor.signature())}
    summary = {"signatures": signatures, **tally.summary(), "distinct": len(distinct), **_usage(extractor)}
    if tally.failed:
        summary["note"] = f"the extraction of {tally.failed} of {total} reviews failed ({tally.reasons})"
    return summary if known is None else {**summary, "exact": exact / max(1, total)}


def read_texts(context: TaskContext) -> dict[str, Any]:
    """The statements of the texts of a chunk; ``row`` is the unit."""
    table = read_explanations(context)
    texts, domain = table["text"].tolist(), ReviewFolder(context.input_paths["data"]).domain
    extractor: Extractor = create(context.parameters["extractor"])
    template, label = context.parameters["read"] == "template", context.task.label
    if hasattr(extractor, "begin"):
        extractor.begin(context.report)
    found, exact = extract_generated(extractor, texts, domain, label, template)
    with (
        StatementWriter(context.output / "statements.parquet", named=True) as to,
        RowWriter(context.output / FAILURES_FILE, FAILURE, text=("row",)) as failures,
    ):
        to.write(table["unit"].tolist(), [one.triplets for one in found])
        failures.write(_failed(table["unit"].tolist(), found))
    tally = Tally()
    tally.add(found)
    summary = {"by template": exact, **tally.summary(), **_usage(extractor)}
    notes = []
    if tally.failed:
        notes.append(f"the extraction of {tally.failed} of {len(table)} texts failed ({tally.reasons})")
    if NOT_USABLE in summary["left out"]:
        notes.append(
            "statements that the extractor rejects in reviews (opinions) are excluded from texts, too"
        )
    return {**summary, "note": "; ".join(notes)} if notes else summary
