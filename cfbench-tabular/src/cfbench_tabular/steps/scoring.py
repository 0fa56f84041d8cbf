"""What the metrics of counterfactuals observe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfbench_core.lifecycle.stages import model_of
from cfbench_core.lifecycle.tables import read_explanations
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.steps import REPEATED, SECOND_MODEL
from cfbench_tabular.steps.answers import from_rows
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete


@dataclass(frozen=True)
class Observations:
    """R counterfactuals of B factuals, several for some of them.

    Attributes:
        observed: what a metric sees, with a row for each counterfactual.
        owner: (R,) the factual of each. units: B.
    """

    observed: Observed
    owner: IntArray
    units: int

    def of(self, entry: Any) -> Observed:
        return self.observed

    def __len__(self) -> int:
        return len(self.owner)

    def per_unit(self, values: FloatArray) -> FloatArray:
        """(B,) the mean of the ``values`` (R,) of each factual, ignoring NaN; NaN where there is no value."""
        known = ~np.isnan(values)
        counts = np.bincount(self.owner[known], minlength=self.units)
        sums = np.bincount(self.owner[known], values[known], minlength=self.units)
        means: FloatArray = np.divide(sums, counts, out=np.full(self.units, np.nan), where=counts > 0)
        return means

    def summary(self) -> dict[str, int]:
        return {"valid": len(set(self.owner[self.observed.valid].tolist()))}


def observe(context: TaskContext, chunk: Chunk, answers: FloatArray) -> Observations:
    """The classifier's predictions for the counterfactuals (B, n, d) of a chunk, and what ``protocol.repeats`` adds."""
    owner, observed = observed_of_several(chunk.model, chunk.factuals, answers, chunk.data)
    if SECOND_MODEL in context.input_paths:
        observed = replace(observed, second_model=_second_model(context, chunk))
    if REPEATED in context.input_paths:
        again, _ = from_rows(chunk, read_explanations(context, REPEATED))
        padded = np.full((len(again), max(answers.shape[1], again.shape[1]), again.shape[2]), np.nan)
        padded[:, : again.shape[1]] = again
        observed = replace(observed, repeated=padded[owner, np.nonzero(_present(answers))[1]])
    return Observations(observed, owner, len(chunk.units))


def _second_model(context: TaskContext, chunk: Chunk) -> Classifier | None:
    """None for one that equals the first: its training uses no random numbers."""
    second: Classifier = model_of(context, SECOND_MODEL)[1]
    pairs = zip(chunk.model.state().values(), second.state().values(), strict=True)
    return None if all(np.array_equal(old, new) for old, new in pairs) else second


def _present(counterfactuals: FloatArray) -> BoolArray:
    """(B, n) which of the counterfactuals (B, n, d) to score: those found, or the first where there is none."""
    present = np.asarray(~np.isnan(counterfactuals).any(axis=2))
    present[:, 0] |= ~present.any(axis=1)
    return present


def observed_of_several(
    model: Classifier, factuals: Factuals, counterfactuals: FloatArray, data: PreparedDataset
) -> tuple[IntArray, Observed]:
    """Checks several counterfactuals (B, n, d) per factual one by one; returns (R,) their factuals and R results.

    A factual has one row for each of its counterfactuals, or one row of NaN where none was found.
    """
    present = _present(counterfactuals)
    owner, place = np.nonzero(present)
    units = tuple(factuals.units[unit] for unit in owner)
    repeated = Factuals(factuals.vectors[owner], factuals.classes[owner], units)
    observed = observed_of(model, repeated, counterfactuals[owner, place], data)
    valid = np.zeros(present.shape, dtype=bool)
    valid[owner, place] = observed.valid
    return owner, replace(observed, alternatives=counterfactuals[owner], alternatives_valid=valid[owner])


def observed_of(
    model: Classifier, factuals: Factuals, counterfactuals: FloatArray, data: PreparedDataset
) -> Observed:
    """Counterfactuals with their validity: found, and predicted in the other class by the model."""
    valid = complete(counterfactuals)
    found = valid.copy()
    valid[found] = predicted_classes(model, counterfactuals[found]) != factuals.classes[found]
    background, labels = data.sample("train")
    return Observed(
        factuals=factuals.vectors,
        counterfactuals=counterfactuals,
        factual_classes=factuals.classes,
        valid=valid,
        encoding=data.encoding,
        background=background,
        model=model,
        background_labels=labels,
        table=data.vectors,
    )
