"""What recommenders and explainers must do on a GPU: the same as on the CPU, to a tolerance.

The checks apply where torch finds a GPU. The tests of the distributions run them
everywhere on a simulated one (``simulated_gpu.py``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.component_specs import component_specs
from cfbench_core.devices.choice import CPU, CUDA
from cfbench_core.lifecycle.models import State
from cfbench_core.specs import ComponentSpec, lacking, resolve
from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_recsys.devices import on_device_of
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Context
from cfbench_recsys.testing.explainers import TOLERANCE, Case, UnitAnswer, answers, listed_targets, needs_of
from cfbench_recsys.testing.world import ORDINARY, split, streams, training_part

SCORES = 1e-10
"""By how much scores (float64) may differ, relative to the larger of 1 and the score: a tenth of the grid of ranks."""

SAME_EDITS = 0.8
"""The share of units whose edits must be the same. A search may turn a difference in the last digit into another answer."""

MODELS = {"vae": {"hidden": 8, "epochs": 1}, "lightgcn": {"dimensions": 4, "epochs": 1}}
"""The recommenders that are explained, with their options: one of profiles and one of graphs, both with gradients."""


def gpu_is_there() -> bool:
    """Whether there is a GPU to compute on."""
    import torch

    return torch.cuda.is_available()


def scores_on_a_gpu_as_on_the_cpu(subject: Subject) -> None:
    """Are the scores of one state the same on a GPU as on the CPU, and does it learn finite numbers there?"""
    options = subject.configuration()
    if not hasattr(options, "device"):
        raise NotApplicable("it has no option device: it computes on the CPU")
    _require_gpu()
    graph = split().profiles
    learned = {device: _fitted(subject, device) for device in (CPU, CUDA)}
    shapes = {
        device: {name: array.shape for name, array in state.items()} for device, state in learned.items()
    }
    require(shapes[CPU] == shapes[CUDA], "on a GPU it learns other arrays than on the CPU")
    finite = all(np.isfinite(array).all() for array in learned[CUDA].values() if array.dtype.kind == "f")
    require(finite, "on a GPU it learns NaN or infinity")
    on_cpu, on_gpu = (
        _scores(_restored(subject, device, learned[CPU], graph), graph) for device in (CPU, CUDA)
    )
    gap = float((np.abs(on_cpu - on_gpu) / np.maximum(1.0, np.abs(on_cpu))).max())
    require(gap <= SCORES, f"scores on a GPU differ from those on the CPU by {gap:.2g}")


def explains_on_a_gpu_as_on_the_cpu(subject: Subject) -> None:
    """Are importances of a model on a GPU those of the model on the CPU, and nearly all edits?"""
    _require_gpu()
    compared = 0
    for on_cpu, on_gpu in zip(_cases(subject, CPU), _cases(subject, CUDA), strict=True):
        found = []
        for case in (on_cpu, on_gpu):
            with on_device_of(case.context.model):
                found.append(answers(subject, case))
        _require_agreement(on_cpu.name, *found)
        compared += 1
    if not compared:
        raise NotApplicable("no recommender that computes on a device offers what it needs")


RECOMMENDER_CHECKS_ON_GPU = checks_of(scores_on_a_gpu_as_on_the_cpu)
EXPLAINER_CHECKS_ON_GPU = checks_of(explains_on_a_gpu_as_on_the_cpu)


def _require_gpu() -> None:
    if not gpu_is_there():
        raise NotApplicable("there is no GPU here")


# Recommenders


def _on(subject: Subject, device: str) -> Any:
    """A fresh recommender that computes on a device."""
    options = dataclasses.replace(subject.configuration(), device=device)
    return dataclasses.replace(subject, options=options).create()


def _fitted(subject: Subject, device: str) -> State:
    model = _on(subject, device)
    model.fit(split(), streams, lambda done, total: None)
    state: State = model.state()
    return state


def _restored(subject: Subject, device: str, state: State, graph: scipy.sparse.csr_matrix) -> Any:
    model = _on(subject, device)
    model.load_state(state, graph)
    return model


def _scores(model: Any, graph: scipy.sparse.csr_matrix) -> FloatArray:
    everyone = Edits.nothing(np.arange(graph.shape[0]))
    return np.concatenate([scores for _, scores in score_blocks(model, everyone, graph)])


# Explainers


@functools.cache
def _subject(name: str) -> Subject:
    spec = _specs()[name]
    assert spec.config is not None
    return Subject(spec, resolve(spec.config)(**MODELS[name]))


@functools.cache
def _specs() -> dict[str, ComponentSpec]:
    return {spec.name: spec for spec in component_specs("cfbench_recsys", "recommender")}


@functools.cache
def _state(name: str) -> State:
    """What a recommender learned on the CPU."""
    return _fitted(_subject(name), CPU)


def _cases(subject: Subject, device: str) -> Iterator[Case]:
    """Lists of the recommenders on a device, at every level that the explainer declares, each in one scope."""
    graph = split().profiles
    training, provided = training_part(graph), subject.spec.provides
    for name in MODELS:
        model = _subject(name).spec
        scopes = sorted(model.provides["scope"] & provided.get("scope", frozenset()))
        if lacking(needs_of(subject), model.provides) or not scopes:
            continue
        recommender = _restored(_subject(name), device, _state(name), graph)
        for level in sorted(provided.get("level", frozenset())):
            targets = listed_targets(recommender, graph, ORDINARY[:2], level, scopes[-1], None)
            context = Context(recommender, graph, training, streams, _prepared(subject, name, graph))
            yield Case(f"{name}, scope {scopes[-1]}, {level} level", targets, context)


def _prepared(subject: Subject, name: str, graph: scipy.sparse.csr_matrix) -> State | None:
    """What a pre-trained explainer learned of a recommender on the CPU; on a GPU it learns arrays of the same shapes."""
    if "pretraining" not in subject.spec.provides:
        return None
    if f"state on {name}" not in subject.memory:
        learned = []
        for device in (CPU, CUDA):
            recommender = _restored(_subject(name), device, _state(name), graph)
            with on_device_of(recommender):
                context = Context(recommender, graph, training_part(graph), streams)
                learned.append(subject.create().prepare(context))
        shapes = [{key: array.shape for key, array in state.items()} for state in learned]
        require(shapes[0] == shapes[1], "on a GPU it learns other arrays than on the CPU")
        subject.memory[f"state on {name}"] = learned[0]
    state: State = subject.memory[f"state on {name}"]
    return state


def _require_agreement(case: str, on_cpu: list[UnitAnswer], on_gpu: list[UnitAnswer]) -> None:
    for one, other in zip(on_cpu, on_gpu, strict=True):
        if one.importances is not None and other.importances is not None:
            scale = max(1.0, float(np.abs(one.importances).max(initial=0.0)))
            gap = float(np.abs(one.importances - other.importances).max(initial=0.0))
            message = f"{case}: importances on a GPU differ from those on the CPU by {gap:.2g}"
            require(gap <= TOLERANCE * scale, message)
    same = float(np.mean([one.edges == other.edges for one, other in zip(on_cpu, on_gpu, strict=True)]))
    require(same >= SAME_EDITS, f"{case}: only {same:.0%} of the edits on a GPU are those on the CPU")
