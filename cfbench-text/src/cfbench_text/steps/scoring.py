"""What metrics of texts observe; each judge is queried once for all metrics that need it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfbench_core.config.component import create
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Judge
from cfbench_text.corpus import Corpus
from cfbench_text.entailment_batches import verdicts
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.reviews import BoolArray, FloatArray
from cfbench_text.row_store import RowStore
from cfbench_text.statement_table import Judged, statement_rows
from cfbench_text.steps.data import Chunk
from cfbench_text.steps.texts import Texts

Signatures = dict[str, Mapping[str, str]]


@dataclass(frozen=True)
class Observed:
    """The texts of a chunk, the verdicts of all judges, and the units that have a text, ``given`` (B,)."""

    texts: ObservedTexts
    judged: Judged
    signatures: Signatures
    given: BoolArray

    def of(self, entry: Mapping[str, Any]) -> ObservedTexts:
        """What one metric gets to see, with the verdicts of its judge."""
        seen = replace(self.texts, empty=entry["empty"])
        return seen if entry["label"] is None else replace(seen, verdicts=self.judged[entry["label"]])

    def __len__(self) -> int:
        return len(self.texts)

    def per_unit(self, values: FloatArray) -> FloatArray:
        """(B,) the values at the units that have a text, NaN elsewhere."""
        every = np.full(len(self.given), np.nan)
        every[self.given] = values
        return every

    def summary(self) -> dict[str, Any]:
        return {"texts": len(self.texts), "signatures": self.signatures}


def observe(context: TaskContext, chunk: Chunk, texts: Texts) -> Observed:
    """The texts with their statements and verdicts; rows without a text are not observed.

    ``statements.parquet``: every statement of both sides with the verdict of each judge.
    """
    given = np.array([one is not None for one in texts], dtype=bool)
    units = chunk.units[given]
    rows = chunk.corpus.rows(units["row"].tolist())
    found = RowStore(context.input_paths["statements of texts"] / "statements.parquet").triplets_by_row()
    seen = ObservedTexts(
        texts=[one.text for one in texts if one is not None],
        references=rows.references(chunk.written),
        predicted=[found.get(unit, ()) for unit in units["unit"]],
        evidence=rows.triplets,
        domain=chunk.corpus.domain,
    )
    judged, signatures = _query_judges(seen, context.parameters["metrics"], chunk.corpus)
    statements = statement_rows(units["unit"].tolist(), seen, judged)
    statements.to_parquet(context.output / "statements.parquet", index=False, compression="zstd")
    return Observed(seen, judged, signatures, given)


def _query_judges(
    seen: ObservedTexts, entries: Sequence[Mapping[str, Any]], corpus: Corpus
) -> tuple[Judged, Signatures]:
    """The verdicts and the signature of each judge, by its label."""
    judged: dict[str, Verdicts] = {}
    signatures: Signatures = {}
    judges = {entry["label"]: entry["judge"] for entry in entries if entry["label"] is not None}
    sides = (seen.predicted, seen.evidence, seen.texts, seen.references)
    for label, parameters in judges.items():
        needed = {verdict for entry in entries if entry["label"] == label for verdict in entry["verdicts"]}
        judge = _prepared(json.dumps(parameters, sort_keys=True), corpus)
        judged[label] = verdicts(judge, needed, *sides)
        signatures[label] = dict(judge.signature())
    return judged, signatures


@functools.lru_cache(maxsize=8)
def _prepared(judge: str, corpus: Corpus) -> Judge:
    """A judge, from its parameters as JSON, prepared with the training statements; cached for the next chunk."""
    made: Judge = create(json.loads(judge))
    made.prepare(corpus.training_statements)
    return made
