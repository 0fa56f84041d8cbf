"""Models: fitted, and taken at several levels of quality."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cfbench_core.config import create
from cfbench_core.seeds import generator
from cfbench_core.stages import TaskContext
from cfbench_recsys.checkpoints import EvaluationHistory, load_checkpoint, save_checkpoint
from cfbench_recsys.models import save_model, state_from_file
from cfbench_recsys.quality import evaluate
from cfbench_recsys.stages.common import load_data_and_split


def streams_of(seed: int, dataset: str) -> Callable[..., np.random.Generator]:
    """Random streams of a training. By name: a model is the same with checkpoints and without, and options
    that ``cfbench tune`` compares start from the same draw."""
    return functools.partial(generator, seed, "fit", dataset)


def fit_model(task: TaskContext) -> dict[str, Any]:
    """Trains a recommender (or takes its weights from a file) and measures its quality on the test part."""
    interactions, split = task.load("split", load_data_and_split)
    parameters = task.parameters["recommender"]
    model = create(parameters)
    weights = parameters["options"].get("weights")
    if weights is not None:
        model.load_state(state_from_file(Path(weights), interactions), split.profiles)
        fitted: Mapping[str, Any] = {"weights": Path(weights).name}
    else:
        fitted = model.fit(split, streams_of(task.task.seed, interactions.name), task.report) or {}
    save_model(model, parameters, task.output)
    return {"quality": evaluate(model, split.test, split.profiles), "fit": dict(fitted)}


def fit_checkpoints(task: TaskContext) -> dict[str, Any]:
    """Trains a recommender once and stores it as it was at each of the ``checkpoints`` (their names)."""
    interactions, split = task.load("split", load_data_and_split)
    model = create(task.parameters["recommender"])
    streams = streams_of(task.task.seed, interactions.name)
    history = EvaluationHistory(task.output / "evaluations")
    fitted = model.fit(split, streams, task.report, history.record) or {}
    for name in task.parameters["checkpoints"]:
        save_checkpoint(task.output, name, *history.at(name, fitted["best_epoch"]))
    history.discard()
    return {"quality": evaluate(model, split.test, split.profiles), "fit": dict(fitted)}


def take_checkpoint(task: TaskContext) -> dict[str, Any]:
    """The model as it was at ``checkpoint``, and its quality on the test part."""
    _, split = task.load("split", load_data_and_split)
    state, evaluation = load_checkpoint(task.input_paths["training"], task.parameters["checkpoint"])
    model = create(task.parameters["recommender"])
    model.load_state(state, split.profiles)
    save_model(model, task.parameters["recommender"], task.output)
    return {"quality": evaluate(model, split.test, split.profiles), "fit": evaluation}
