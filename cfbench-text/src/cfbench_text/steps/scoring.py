"""What metrics of texts observe; each judge is queried once for all metrics that need it."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cfbench_core.config.component import create
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Judge
from cfbench_text.corpus import Corpus
from cfbench_text.entailment_batches import judged_texts
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import BoolArray, IntArray
from cfbench_text.row_store import RowStore, read_failures
from cfbench_text.statement_table import Judged, statement_rows
from cfbench_text.steps.data import Chunk
from cfbench_text.steps.texts import Texts


@dataclass(frozen=True)
class Observed:
    """The texts of a chunk, R of them; ``owner`` (R,) their units. Verdicts and signatures are those of all judges.

    Attributes:
        lost: (R,) where the statements of the text or of the reference are unknown.
        unreferenced: (R,) where the reference text is unknown, because it is made of such statements.
        usage: responses, tokens and cost of the judges that query a model.
        max_failed: share of texts whose scores may be missing for these reasons.
    """

    texts: ObservedTexts
    owner: IntArray
    judged: Judged
    signatures: Mapping[str, Mapping[str, str]]
    lost: BoolArray
    unreferenced: BoolArray
    max_failed: float
    usage: Mapping[str, float]

    def failed(self, entry: Mapping[str, Any]) -> BoolArray:
        """(R,) which values of a metric are missing because an extraction failed, or the judge gave no verdict."""
        if entry["label"] is None:
            return self.unreferenced
        return self.lost | self.unjudged(entry["label"])

    def unjudged(self, label: str) -> BoolArray:
        """(R,) the texts with statements on a side, none of which the judge decided."""
        found = self.judged[label]
        sides = [side for side in (found.supported, found.covered) if len(side)]
        undecided = [[len(row) > 0 and bool(np.isnan(row).all()) for row in side] for side in sides]
        return np.any(undecided, axis=0) if sides else np.zeros(len(self.owner), dtype=bool)

    def of(self, entry: Mapping[str, Any]) -> ObservedTexts:
        """What one metric gets to see, with the verdicts of its judge."""
        seen = replace(self.texts, empty=entry["empty"])
        return seen if entry["label"] is None else replace(seen, verdicts=self.judged[entry["label"]])

    def summary(self) -> dict[str, Any]:
        failed = self.lost | np.any([self.lost, *map(self.unjudged, self.judged)], axis=0)
        counts = {"failed": int(failed.sum()), "max_failed": self.max_failed}
        usage = {"usage": dict(self.usage)} if self.usage else {}
        return {"texts": len(self.owner), "signatures": self.signatures, **counts, **usage}


def observe(context: TaskContext, chunk: Chunk, texts: Texts) -> Observed:
    """The texts with their statements and verdicts; rows without a text are not observed.

    ``statements.parquet``: every statement of both sides with the verdict of each judge. ``failures.parquet``, if there
    are any: the texts whose scores are missing, with what failed ("text" or "reference", for its extraction, or the
    label of a judge) and the reason. ``spans.parquet``, if a metric finds any: the parts of texts that it rejects.
    """
    owner = np.flatnonzero([one is not None for one in texts])
    units = chunk.units.iloc[owner]
    rows = chunk.corpus.rows(units["row"].tolist())
    folder = context.input_paths["statements of texts"]
    found = RowStore(folder / "statements.parquet").triplets_by_row()
    of_text, of_reference = read_failures(folder), read_failures(context.input_paths["statements"])
    reasons = [
        {"text": of_text.get(unit), "reference": of_reference.get(row)}
        for unit, row in zip(units["unit"], units["row"], strict=True)
    ]
    lost = np.array([any(why.values()) for why in reasons], dtype=bool)
    no_reference = np.array([bool(why["reference"]) for why in reasons], dtype=bool)
    seen = ObservedTexts(
        texts=[one.text for one in texts if one is not None],
        references=rows.references(chunk.written),
        predicted=[
            () if gone else found.get(unit, ()) for unit, gone in zip(units["unit"], lost, strict=True)
        ],
        evidence=[() if gone else known for known, gone in zip(rows.triplets, lost, strict=True)],
        domain=chunk.corpus.domain,
    )
    entries = [entry for entry in context.parameters["metrics"] if entry["label"] is not None]
    judges = {e["label"]: _prepared(json.dumps(e["judge"], sort_keys=True), chunk.corpus) for e in entries}
    needed = [(entry["label"], verdict) for entry in entries for verdict in entry["verdicts"]]
    querying: list[Any] = [one for one in judges.values() if hasattr(one, "usage")]
    for one in querying:
        one.begin(context.report)
    judged = judged_texts(seen, judges, needed)
    usage: Counter[str] = Counter()
    for one in querying:
        usage.update(one.usage())
    statements = statement_rows(units["unit"].tolist(), seen, judged)
    statements.to_parquet(context.output / "statements.parquet", index=False, compression="zstd")
    signatures = {label: dict(one.signature()) for label, one in judges.items()}
    most = float(context.parameters["metrics"][0]["max_failed"])
    unreferenced = no_reference & (not chunk.written)
    observed = Observed(seen, owner, judged, signatures, lost, unreferenced, most, usage)
    lines = [
        (unit, side, reason)
        for unit, why in zip(units["unit"], reasons, strict=True)
        for side, reason in why.items()
        if reason
    ]
    for label in judged:
        lines += [(unit, label, "no verdict") for unit in units["unit"][observed.unjudged(label)]]
    if lines:
        frame = pd.DataFrame(lines, columns=["unit", "what", "reason"]).astype("string")
        frame.to_parquet(context.output / "failures.parquet", index=False, compression="zstd")
    _write_spans(context, units["unit"].tolist(), seen)
    return observed


def _write_spans(context: TaskContext, units: Sequence[str], seen: ObservedTexts) -> None:
    """``spans.parquet``: unit, metric, start, end (characters of the text), p."""
    lines = []
    for entry in context.parameters["metrics"]:
        metric = create(entry["metric"])
        if hasattr(metric, "spans"):
            (shown,) = entry["columns"].values()
            lines += [
                (unit, shown, *span)
                for unit, spans in zip(units, metric.spans(seen), strict=True)
                for span in spans or ()
            ]
    if lines:
        frame = pd.DataFrame(lines, columns=["unit", "metric", "start", "end", "p"])
        frame = frame.astype({"unit": "string", "metric": "string"})
        frame.to_parquet(context.output / "spans.parquet", index=False, compression="zstd")


@functools.lru_cache(maxsize=8)
def _prepared(judge: str, corpus: Corpus) -> Judge:
    """A judge, from its parameters as JSON, prepared with the training statements; cached for the next chunk."""
    made: Judge = create(json.loads(judge))
    made.prepare(corpus.training_statements)
    return made
