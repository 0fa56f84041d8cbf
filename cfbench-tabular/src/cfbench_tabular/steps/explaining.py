"""Querying an explainer."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.contracts import Explainer
from cfbench_tabular.explainers.base import Context, Explanation
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.table import FloatArray, complete


def explain(
    context: TaskContext, explainer: Explainer, model: Classifier, chunk: Chunk, state: None
) -> tuple[FloatArray, Mapping[str, FloatArray]]:
    """(B, n, d) the counterfactuals of a chunk, and the explainer's details."""
    given = Context(
        chunk.data.encoding,
        chunk.background,
        functools.partial(context.streams.generator, "explain"),
        counterfactuals_per_instance=context.parameters["counterfactuals_per_instance"],
        seconds=context.parameters["seconds"],
        labels=chunk.labels,
    )
    found = Explanation.of(explainer.counterfactuals(model, chunk.factuals, given))
    _check_counterfactuals(
        found.counterfactuals, chunk, given.counterfactuals_per_instance, context.task.label
    )
    return found.stacked(), found.details


def _check_counterfactuals(found: FloatArray, chunk: Chunk, per_instance: int, label: str) -> None:
    units, width = chunk.factuals.vectors.shape
    if np.shape(found) not in ((units, width), (units, per_instance, width)):
        several = f" or {(units, per_instance, width)}" if per_instance > 1 else ""
        raise UserError(
            f"{label}: counterfactuals has shape {np.shape(found)}, must be {(units, width)}{several}"
        )
    flat = np.reshape(found, (-1, width))
    missing = np.isnan(flat).all(axis=1)
    if not complete(flat[~missing]).all() or np.isinf(flat).any():
        raise UserError(
            f"{label}: a counterfactual must be finite, or NaN in every column where none was found"
        )
