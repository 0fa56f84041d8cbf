"""What metrics see of counterfactuals, checked with the model one by one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Factuals
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete


def with_repeated(observed: Observed, owner: IntArray, answers: FloatArray, again: FloatArray) -> Observed:
    """With the counterfactuals of a second call.

    Args:
        observed: R results of ``answers`` (B, n, d). owner: (R,) their factuals; see :func:`observed_of_several`.
        again: (B, m, d) those of the second call; m may differ from n.
    """
    padded = np.full((len(again), max(answers.shape[1], again.shape[1]), again.shape[2]), np.nan)
    padded[:, : again.shape[1]] = again
    return replace(observed, repeated=padded[owner, np.nonzero(_present(answers))[1]])


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
