"""What metrics of texts observe; each judge is queried once for all metrics that need it."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfbench_core.config.component import create
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Judge
from cfbench_text.corpus import Corpus
from cfbench_text.entailment_batches import judged_texts
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.reviews import IntArray
from cfbench_text.row_store import RowStore
from cfbench_text.statement_table import Judged, statement_rows
from cfbench_text.steps.data import Chunk
from cfbench_text.steps.texts import Texts


@dataclass(frozen=True)
class Observed:
    """The texts of a chunk, R of them; ``owner`` (R,) their units. Verdicts and signatures are those of all judges."""

    texts: ObservedTexts
    owner: IntArray
    judged: Judged
    signatures: Mapping[str, Mapping[str, str]]

    def of(self, entry: Mapping[str, Any]) -> ObservedTexts:
        """What one metric gets to see, with the verdicts of its judge."""
        seen = replace(self.texts, empty=entry["empty"])
        return seen if entry["label"] is None else replace(seen, verdicts=self.judged[entry["label"]])

    def summary(self) -> dict[str, Any]:
        return {"texts": len(self.owner), "signatures": self.signatures}


def observe(context: TaskContext, chunk: Chunk, texts: Texts) -> Observed:
    """The texts with their statements and verdicts; rows without a text are not observed.

    ``statements.parquet``: every statement of both sides with the verdict of each judge.
    """
    owner = np.flatnonzero([one is not None for one in texts])
    units = chunk.units.iloc[owner]
    rows = chunk.corpus.rows(units["row"].tolist())
    found = RowStore(context.input_paths["statements of texts"] / "statements.parquet").triplets_by_row()
    seen = ObservedTexts(
        texts=[one.text for one in texts if one is not None],
        references=rows.references(chunk.written),
        predicted=[found.get(unit, ()) for unit in units["unit"]],
        evidence=rows.triplets,
        domain=chunk.corpus.domain,
    )
    entries = [entry for entry in context.parameters["metrics"] if entry["label"] is not None]
    judges = {e["label"]: _prepared(json.dumps(e["judge"], sort_keys=True), chunk.corpus) for e in entries}
    needed = [(entry["label"], verdict) for entry in entries for verdict in entry["verdicts"]]
    judged = judged_texts(seen, judges, needed)
    statements = statement_rows(units["unit"].tolist(), seen, judged)
    statements.to_parquet(context.output / "statements.parquet", index=False, compression="zstd")
    return Observed(seen, owner, judged, {label: dict(one.signature()) for label, one in judges.items()})


@functools.lru_cache(maxsize=8)
def _prepared(judge: str, corpus: Corpus) -> Judge:
    """A judge, from its parameters as JSON, prepared with the training statements; cached for the next chunk."""
    made: Judge = create(json.loads(judge))
    made.prepare(corpus.training_statements)
    return made
