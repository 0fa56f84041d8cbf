"""Models: fitted, taken from a file, or taken at several levels of quality."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from cfbench_core.config.component import create
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.models import State, save_state, state_from_file
from cfbench_core.stages import TaskContext
from cfbench_recsys.checkpoints import EvaluationHistory, load_checkpoint, save_checkpoint
from cfbench_recsys.contracts import Recommender, ScoringModel
from cfbench_recsys.interactions import Interactions
from cfbench_recsys.quality import evaluate
from cfbench_recsys.steps.data import SplitData, load_data


def fit(context: TaskContext, data: SplitData) -> tuple[Recommender, dict[str, Any]]:
    """Trains a recommender, or takes its weights from a file, and measures its quality on the test part."""
    component = context.parameters["model"]
    model: Recommender = create(component)
    split = data.split
    weights = component["options"].get("weights")
    if weights is not None:
        model.load_state(given_weights(Path(weights), data.interactions), split.profiles)
        fitted: Mapping[str, Any] = {"weights": Path(weights).name}
    else:
        fitted = model.fit(split, functools.partial(context.streams.generator, "fit"), context.report) or {}
    return model, {
        "quality": evaluate(cast(ScoringModel, model), split.test, split.profiles),
        "fit": dict(fitted),
    }


def restore(component: Mapping[str, Any], state: State, data: SplitData) -> Recommender:
    """A fitted recommender, ready to score the profiles of the split."""
    model: Recommender = create(component)
    model.load_state(state, data.split.profiles)
    return model


def given_weights(path: Path, interactions: Interactions) -> State:
    """Weights of a user's own. Axes of users or items follow the order of the dataset's indices.

    Raises:
        UserError: if the file is no safetensors file, or no array has an axis of users or items.
    """
    state = state_from_file(path)
    users, items = interactions.matrix.shape
    if not any({users, items} & set(array.shape) for array in state.values()):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in state.items())
        raise UserError(
            f"{path}: no array has {items} items or {users} users of {interactions.name} (found: {shapes})"
        )
    return state


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
    return {"quality": evaluate(cast(ScoringModel, model), split.test, split.profiles), "fit": dict(fitted)}


def take_checkpoint(context: TaskContext) -> dict[str, Any]:
    """The model as it was at ``checkpoint``, and its quality on the test part."""
    data = load_data(context)
    state, evaluation = load_checkpoint(context.input_paths["training"], context.parameters["checkpoint"])
    model = restore(context.parameters["model"], state, data)
    save_state(dict(model.state()), context.output)
    return {
        "quality": evaluate(cast(ScoringModel, model), data.split.test, data.split.profiles),
        "fit": evaluation,
    }
