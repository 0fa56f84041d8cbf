"""Querying an explainer."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from cfbench_core.lifecycle.stages import model_of
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.constrained_search import explain_with_constraints
from cfbench_tabular.contracts import Explainer
from cfbench_tabular.explainers.base import Context, Explanation
from cfbench_tabular.steps import RETRAINED
from cfbench_tabular.steps.chunks import Chunk
from cfbench_tabular.table import FloatArray


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
        retrained=model_of(context, RETRAINED)[1].models if RETRAINED in context.input_paths else (),
        respects_constraints=context.parameters["constraints"] == "explainer",
    )
    if context.parameters["constraints"] != "check":
        found = explain_with_constraints(explainer, model, chunk.factuals, given)
    else:
        found = Explanation.of(explainer.counterfactuals(model, chunk.factuals, given))
    return found.checked(chunk.factuals, given, context.task.label), found.details
