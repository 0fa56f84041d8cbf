"""What the metrics of counterfactuals observe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfbench_core.lifecycle.stages import model_of
from cfbench_core.lifecycle.tables import read_explanations
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.retrained import RetrainedModels
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.observations import observed_of_several, with_repeated
from cfbench_tabular.steps import REPEATED, UNSEEN
from cfbench_tabular.steps.answers import from_rows
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.table import FloatArray, IntArray


@dataclass(frozen=True)
class Observations:
    """R counterfactuals, several for some factuals.

    Attributes:
        observed: what a metric sees, with a row for each counterfactual.
        owner: (R,) the factual of each.
    """

    observed: Observed
    owner: IntArray

    def of(self, entry: Any) -> Observed:
        return self.observed

    def summary(self) -> dict[str, int]:
        return {"valid": len(set(self.owner[self.observed.valid].tolist()))}


def observe(context: TaskContext, chunk: Chunk, answers: FloatArray) -> Observations:
    """The classifier's predictions for the counterfactuals (B, n, d) of a chunk, and what ``protocol.repeats`` adds."""
    owner, observed = observed_of_several(chunk.model, chunk.factuals, answers, chunk.data)
    if UNSEEN in context.input_paths:
        observed = replace(observed, retrained=_retrained(context, chunk))
    if REPEATED in context.input_paths:
        again, _ = from_rows(chunk, read_explanations(context, REPEATED))
        observed = with_repeated(observed, owner, answers, again)
    return Observations(observed, owner)


def _retrained(context: TaskContext, chunk: Chunk) -> tuple[Classifier, ...]:
    """The models that were trained again; without those that equal the first, because training draws nothing."""
    found: RetrainedModels = model_of(context, UNSEEN)[1]
    return tuple(one for one in found.models if found.resampled or not _same_state(chunk.model, one))


def _same_state(one: Classifier, other: Classifier) -> bool:
    pairs = zip(one.state().values(), other.state().values(), strict=True)
    return all(np.array_equal(old, new) for old, new in pairs)
