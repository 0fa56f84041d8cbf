"""Querying an explainer."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.real_arrays import real_array
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
    most = given.counterfactuals_per_instance
    return _checked(found.counterfactuals, chunk, most, context.task.label), found.details


def _checked(found: object, chunk: Chunk, most: int, label: str) -> FloatArray:
    """(B, n, d) the counterfactuals, where an explainer may have returned one for each factual as (B, d)."""
    units, width = chunk.factuals.vectors.shape
    several = [(units, most, width)] if most > 1 else []
    values = real_array(found, (units, width), *several, what=f"{label}: counterfactuals")
    flat = values.reshape(-1, width)
    missing = np.isnan(flat).all(axis=1)
    if not complete(flat[~missing]).all() or np.isinf(flat).any():
        raise UserError(
            f"{label}: a counterfactual must be finite, or NaN in every column where none was found"
        )
    return values[:, None] if values.ndim == 2 else values
