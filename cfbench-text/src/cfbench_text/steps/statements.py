"""The statements of reviews and of texts. ``statements.parquet``: row (or unit), statement, topic, sentiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from cfbench_core.config.component import create
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.tables import read_explanations
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Extractor
from cfbench_text.domains import Domain
from cfbench_text.extractors.base import Extraction
from cfbench_text.extractors.template import Template
from cfbench_text.row_store import RowStore, StatementWriter
from cfbench_text.steps.data import domain_of

NOT_USABLE = "rejected by the extractor"
"""Why a statement of a paragraph is excluded."""


def extract_statements(context: TaskContext) -> dict[str, Any]:
    """The statements of every review in the split, compared with those that are known, if they are."""
    folder = context.input_paths["data"]
    extractor: Extractor = create(context.parameters["extractor"])
    domain, reviews = domain_of(folder), RowStore(folder / "reviews.parquet")
    known = RowStore(folder / "known.parquet") if (folder / "known.parquet").exists() else None
    tally, exact, total = _Tally(), 0, len(reviews)
    with StatementWriter(context.output / "statements.parquet") as to:
        for batch in reviews.batches(["row", "text"]):
            rows, texts = batch.column("row").to_numpy(), batch.column("text").to_pylist()
            found = _extracted(extractor, texts, domain, context)
            to.write(rows.tolist(), [one.triplets for one in found])
            tally.add(found)
            context.report(tally.texts, total)
            if known is not None:
                truth = known.triplets_by_row(rows)
                pairs = zip(rows.tolist(), found, strict=True)
                exact += sum(truth.get(row, ()) == one.triplets for row, one in pairs)
    signatures = {context.parameters["extractor"]["component"]: dict(extractor.signature())}
    summary = {"signatures": signatures, **tally.summary()}
    return summary if known is None else {**summary, "exact": exact / max(1, total)}


def read_texts(context: TaskContext) -> dict[str, Any]:
    """The statements of the texts of a chunk; ``row`` is the unit."""
    table = read_explanations(context)
    texts, domain = table["text"].tolist(), domain_of(context.input_paths["data"])
    extractor: Extractor = create(context.parameters["extractor"])
    known: dict[str, Extraction] = {}
    if context.parameters["read"] == "template":
        exact = [_checked(one, extractor) for one in Template().extract(texts, domain)]
        known = {text: one for text, one in zip(texts, exact, strict=True) if one.status != "failed"}
    others = [text for text in texts if text not in known]
    known |= dict(zip(others, _extracted(extractor, others, domain, context), strict=True))
    found = [known[text] for text in texts]
    with StatementWriter(context.output / "statements.parquet", named=True) as to:
        to.write(table["unit"].tolist(), [one.triplets for one in found])
    tally = _Tally()
    tally.add(found)
    summary = {"by template": len(texts) - len(others), **tally.summary()}
    if NOT_USABLE in summary["left out"]:
        summary["note"] = (
            "statements that the extractor rejects in reviews (opinions) are excluded from texts, too"
        )
    return summary


def _extracted(
    extractor: Extractor, texts: Sequence[str], domain: Domain, context: TaskContext
) -> list[Extraction]:
    """The extraction of each text; each distinct text is extracted once."""
    distinct = list(dict.fromkeys(texts))
    found = extractor.extract(distinct, domain) if distinct else []
    if len(found) != len(distinct):
        label, count = context.task.label, len(distinct)
        raise UserError(f"{label}: the extractor returned {len(found)} extractions for {count} texts")
    known = dict(zip(distinct, found, strict=True))
    return [known[text] for text in texts]


def _checked(found: Extraction, extractor: Extractor) -> Extraction:
    """Without the statements that the extractor would not have extracted from a review."""
    usable = getattr(extractor, "usable", None)
    included = found.triplets if usable is None else tuple(filter(usable, found.triplets))
    if len(included) == len(found.triplets):
        return found
    left_out = {**found.left_out, NOT_USABLE: len(found.triplets) - len(included)}
    return replace(found, triplets=included, status="ok" if included else "empty", left_out=left_out)


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
        counts = {"texts": dict(self._ends), "left out": dict(self._left_out)}
        return {"statements": self._statements, **counts}
