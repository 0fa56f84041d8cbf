"""Models: fitted, taken from a file, or taken at several levels of quality."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from cfbench_core.config.component import create
from cfbench_core.lifecycle.models import State, save_state
from cfbench_core.stages import TaskContext
from cfbench_recsys.checkpoints import EvaluationHistory, load_checkpoint, save_checkpoint
from cfbench_recsys.contracts import Recommender, ScoringModel
from cfbench_recsys.given_weights import given_weights
from cfbench_recsys.quality import report
from cfbench_recsys.steps.data import SplitData, load_data


def fit(context: TaskContext, data: SplitData) -> tuple[Recommender, dict[str, Any]]:
    """Trains a recommender, or takes its weights from a file, and measures its quality on the test part."""
    component = context.parameters["model"]
    model: Recommender = create(component)
    split = data.split
    weights = component["options"].get("weights")
    if weights is not None:
        module = hasattr(model, "explained_module")  # the user's own, whatever tables it has
        model.load_state(given_weights(Path(weights), data.interactions, module), split.profiles)
        fitted: Mapping[str, Any] = {"weights": Path(weights).name}
    else:
        fitted = model.fit(split, functools.partial(context.streams.generator, "fit"), context.report) or {}
    return model, _summary(model, data, fitted)


def restore(component: Mapping[str, Any], state: State, data: SplitData) -> Recommender:
    """A fitted recommender, ready to score the profiles of the split."""
    model: Recommender = create(component)
    model.load_state(state, data.split.profiles)
    return model


def fit_checkpoints(context: TaskContext) -> dict[str, Any]:
    """Trains a recommender once, and saves it as it was at each of the ``checkpoints`` (names, see there)."""
    data = load_data(context)
    split = data.split
    model = create(context.parameters["model"])
    history = EvaluationHistory(context.output / "evaluations")
    streams = functools.partial(context.streams.generator, "fit")
    fitted = model.fit(split, streams, context.report, history.record) or {}
    for name in context.parameters["checkpoints"]:
        save_checkpoint(context.output, name, *history.at(name, fitted["best_epoch"]))
    history.discard()
    return _summary(model, data, fitted)


def take_checkpoint(context: TaskContext) -> dict[str, Any]:
    """The model as it was at ``checkpoint``, and its quality on the test part."""
    data = load_data(context)
    state, evaluation = load_checkpoint(context.input_paths["training"], context.parameters["checkpoint"])
    model = restore(context.parameters["model"], state, data)
    save_state(dict(model.state()), context.output)
    return _summary(model, data, evaluation)


def _summary(model: Recommender, data: SplitData, fitted: Mapping[str, Any]) -> dict[str, Any]:
    """The quality of a recommender on the test part, and what its training reported."""
    quality = report(cast(ScoringModel, model), data.split.test, data.split.profiles)
    return {"quality": quality, "fit": dict(fitted)}
