"""Explanations: those that an explainer returns, and those derived from its importances."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import sparse

from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import State
from cfbench_core.real_arrays import real_array
from cfbench_core.stages import UNITS, TaskContext
from cfbench_recsys.answers import prune, smallest_prefix, threshold, verify
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import ADD, Edits, FloatArray
from cfbench_recsys.explainer_contracts import (
    Explainer,
    ExplicitExplainer,
    ImplicitExplainer,
    PretrainedExplainer,
)
from cfbench_recsys.splits import Split, load_split
from cfbench_recsys.steps.chunks import Chunk, load_withheld
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.targets import Answer, Context, Targets


def _explainer_context(
    context: TaskContext, split: Split, model: ScoringModel, state: State | None
) -> Context:
    """What an explainer may use."""
    training, cache = _learnable(
        context.input_paths["split"], context.input_paths[UNITS], context.task.stage_key
    )
    streams = functools.partial(context.streams.generator, "explain")
    return Context(model, split.profiles, training, streams, state, cache)


@functools.lru_cache(maxsize=2)
def _learnable(split: Path, units: Path, stage_key: str) -> tuple[sparse.csr_matrix, dict[str, Any]]:
    """Interactions of users who are not explained, and room for what an explainer computes from them once."""
    training = load_split(split).train
    rows = np.repeat(np.arange(training.shape[0]), np.diff(training.indptr))
    training.data[np.isin(rows, load_withheld(units))] = 0.0
    training.eliminate_zeros()
    return training, {}


def prepare(
    context: TaskContext, explainer: PretrainedExplainer, data: SplitData, model: ScoringModel
) -> State:
    """Pre-training of an explainer, on users who are not explained."""
    return explainer.prepare(_explainer_context(context, data.split, model, None))


def explain(
    context: TaskContext, explainer: Explainer, model: ScoringModel, chunk: Chunk, state: State | None
) -> tuple[FloatArray | Edits, Mapping[str, FloatArray]]:
    """Importances, or edits verified and pruned as the protocol says, with the explainer's details."""
    label, targets = context.task.label, chunk.targets
    given = _explainer_context(context, chunk.split, model, state)
    if chunk.format == "implicit":
        found = cast(ImplicitExplainer, explainer).importances(targets, given)
        importances = real_array(found, targets.history.shape, what=f"{label}: importances")
        _check_importances(importances, targets, label)
        return importances, {}
    answer = Answer.of(cast(ExplicitExplainer, explainer).counterfactuals(targets, given))
    _check_edits(answer.edits, targets, chunk.split.profiles, label)
    return _postprocessed(answer.edits, model, chunk, context), answer.details


def derive(context: TaskContext, importances: FloatArray, model: ScoringModel, chunk: Chunk) -> Edits:
    """Edits from the importances of an implicit method."""
    if context.parameters["postprocess"]["derive"] == "threshold":
        edits = threshold(chunk.targets, importances)
    else:
        edits = smallest_prefix(model, chunk.targets, importances, chunk.split.profiles)
    return _postprocessed(edits, model, chunk, context)


def _postprocessed(edits: Edits, model: ScoringModel, chunk: Chunk, context: TaskContext) -> Edits:
    settings = context.parameters["postprocess"]
    if settings["verify"]:
        edits = verify(model, chunk.targets, edits, chunk.split.profiles)
    if settings["prune"]:
        edits = prune(model, chunk.targets, edits, chunk.split.profiles)
    return edits


def _check_importances(importances: FloatArray, targets: Targets, label: str) -> None:
    if not np.isfinite(importances[~targets.padding]).all():
        raise UserError(f"{label}: importances has NaN or infinity for an interaction of the user")


def _check_edits(edits: Edits, targets: Targets, graph: sparse.csr_matrix, label: str) -> None:
    """What would go wrong later, or unseen. Which edges may be edited is checked where they are scored."""
    if not isinstance(edits, Edits):
        raise UserError(f"{label}: counterfactuals must return Edits, not {type(edits).__name__}")
    if not np.array_equal(edits.users, targets.users):
        raise UserError(f"{label}: counterfactuals must give one edit for each target, for its user")
    if not targets.additions and (edits.ops == ADD).any():
        raise UserError(f"{label}: it adds edges, but 'protocol.edits' has removals only")
    rows = edits.rows
    if len(rows) and (rows[0] < 0 or rows[-1] >= len(targets) or (np.diff(rows) < 0).any()):
        raise UserError(f"{label}: the rows of its edits must ascend from 0 to {len(targets) - 1}")
    for name, ids, size in (
        ("user", edits.edge_users, graph.shape[0]),
        ("item", edits.edge_items, graph.shape[1]),
    ):
        outside = ids[(ids < 0) | (ids >= size)]
        if len(outside):
            raise UserError(f"{label}: it edits {name} {outside[0]}, but {name}s go from 0 to {size - 1}")
