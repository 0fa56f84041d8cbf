"""Explanations: those that an explainer returns, and those derived from its importances."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TypeVar, cast

import numpy as np

from cfbench_core.devices.batches import Batches, memory_of
from cfbench_core.lifecycle.counting import counted_if_done
from cfbench_core.lifecycle.models import State
from cfbench_core.real_arrays import real_array
from cfbench_core.stages import TaskContext
from cfbench_recsys.answer_checks import check_edits, check_importances
from cfbench_recsys.answer_limits import check_limits
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
from cfbench_recsys.splits import Split
from cfbench_recsys.steps.chunks import Chunk, learnable
from cfbench_recsys.steps.data import SplitData
from cfbench_recsys.targets import Answer, Context, Targets

T = TypeVar("T")


def _explainer_context(
    context: TaskContext, split: Split, model: ScoringModel, state: State | None
) -> Context:
    """What an explainer may use."""
    training, cache = learnable(context)
    streams = functools.partial(context.streams.generator, "explain")
    access = frozenset(context.parameters["access"]) if "access" in context.parameters else None
    return Context(model, split.profiles, training, streams, state, cache, access)


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

        def attribute(some: Targets) -> FloatArray:
            found = cast(ImplicitExplainer, explainer).importances(some, given)
            return real_array(found, some.history.shape, what=f"{label}: importances")

        importances = _joined_importances(in_batches(model, targets, attribute), targets)
        check_importances(importances, targets, label)
        return importances, {}

    def search(some: Targets) -> Answer:
        return Answer.of(cast(ExplicitExplainer, explainer).counterfactuals(some, given))

    answer = _joined_answers(in_batches(model, targets, search))
    check_edits(answer.edits, targets, chunk.split.profiles, label)
    found = _checked_and_postprocessed(context, model, answer.edits, chunk)
    return found, answer.details


def in_batches(
    model: ScoringModel, targets: Targets, answer: Callable[[Targets], T]
) -> list[tuple[range, T]]:
    """What ``answer`` returns for the targets, in batches that fit into the memory of the model's device.

    On the CPU that is one batch.
    """
    fitting = Batches(memory_of(getattr(model, "device", "cpu")))

    def answer_part(part: range) -> T:
        some = targets if len(part) == len(targets) else targets.take(slice(part.start, part.stop))
        with counted_if_done(model), on_device_of(model):
            return answer(some)

    return list(fitting.computed(len(targets), answer_part)) or [(range(0), answer_part(range(0)))]


def _joined_importances(parts: list[tuple[range, FloatArray]], targets: Targets) -> FloatArray:
    """(B, H) importances; the places that all targets of a part lack have minus infinity."""
    if len(parts) == 1:
        return parts[0][1]
    joined = np.full(targets.history.shape, -np.inf)
    for part, found in parts:
        joined[part.start : part.stop, : found.shape[1]] = found
    return joined


def _joined_answers(parts: list[tuple[range, Answer]]) -> Answer:
    """One answer; a detail that a part lacks is NaN there."""
    if len(parts) == 1:
        return parts[0][1]
    names = dict.fromkeys(name for _, answer in parts for name in answer.details)
    details = {
        name: np.concatenate(
            [np.asarray(answer.details.get(name, np.full(len(part), np.nan))) for part, answer in parts]
        )
        for name in names
    }
    return Answer(Edits.concatenate([answer.edits for _, answer in parts]), details)


def derive(context: TaskContext, importances: FloatArray, model: ScoringModel, chunk: Chunk) -> Edits:
    """Edits from the importances of an implicit method."""
    how = context.parameters["postprocess"]["derive"]
    edits = derived(model, chunk.targets, importances, chunk.split.profiles, how)
    return _checked_and_postprocessed(context, model, edits, chunk)


def _checked_and_postprocessed(
    context: TaskContext, model: ScoringModel, edits: Edits, chunk: Chunk
) -> Edits:
    """Edits verified and pruned, after they were checked: an answer beyond its limits fails even if it would become none."""
    profiles = chunk.split.profiles
    check_limits(edits, chunk.targets, profiles, chunk.units["unit"], chunk.interactions)
    return postprocessed(model, chunk.targets, edits, profiles, context.parameters["postprocess"])
