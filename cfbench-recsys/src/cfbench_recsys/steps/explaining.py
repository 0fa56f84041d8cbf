"""Explanations: those that an explainer returns, and those derived from its importances."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.isolation.fingerprints import freeze
from cfbench_core.lifecycle.models import State
from cfbench_core.real_arrays import real_array
from cfbench_core.stages import UNITS, TaskContext
from cfbench_recsys.answer_checks import check_edits, check_importances
from cfbench_recsys.answers import derived, postprocessed
from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.devices import on_device_of
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.explainer_contracts import (
    Explainer,
    ExplicitExplainer,
    ImplicitExplainer,
    PretrainedExplainer,
)
from cfbench_recsys.splits import Split, load_split
from cfbench_recsys.steps.chunks import Chunk, load_withheld
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.targets import Answer, Context


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
def _learnable(split: Path, units: Path, stage_key: str) -> tuple[scipy.sparse.csr_matrix, dict[str, Any]]:
    """Interactions of users who are not explained, and room for what an explainer computes from them once."""
    training = load_split(split).train
    rows = np.repeat(np.arange(training.shape[0]), np.diff(training.indptr))
    training.data[np.isin(rows, load_withheld(units))] = 0.0
    training.eliminate_zeros()
    freeze(training)
    return training, {}


def prepare(
    context: TaskContext, explainer: PretrainedExplainer, data: SplitData, model: ScoringModel
) -> State:
    """Pre-training of an explainer, on users who are not explained."""
    with on_device_of(model):
        return explainer.prepare(_explainer_context(context, data.split, model, None))


def explain(
    context: TaskContext, explainer: Explainer, model: ScoringModel, chunk: Chunk, state: State | None
) -> tuple[FloatArray | Edits, Mapping[str, FloatArray]]:
    """Importances, or edits verified and pruned as the protocol says, with the explainer's details."""
    label, targets = context.task.label, chunk.targets
    given = _explainer_context(context, chunk.split, model, state)
    if chunk.format == "implicit":
        with on_device_of(model):
            found = cast(ImplicitExplainer, explainer).importances(targets, given)
        importances = real_array(found, targets.history.shape, what=f"{label}: importances")
        check_importances(importances, targets, label)
        return importances, {}
    with on_device_of(model):
        answer = Answer.of(cast(ExplicitExplainer, explainer).counterfactuals(targets, given))
    check_edits(answer.edits, targets, chunk.split.profiles, label)
    settings = context.parameters["postprocess"]
    return postprocessed(model, targets, answer.edits, chunk.split.profiles, settings), answer.details


def derive(context: TaskContext, importances: FloatArray, model: ScoringModel, chunk: Chunk) -> Edits:
    """Edits from the importances of an implicit method."""
    settings, profiles = context.parameters["postprocess"], chunk.split.profiles
    edits = derived(model, chunk.targets, importances, profiles, settings["derive"])
    return postprocessed(model, chunk.targets, edits, profiles, settings)
