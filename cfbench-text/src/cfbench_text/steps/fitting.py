"""Generators: fitted and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfbench_core.config.component import create
from cfbench_core.lifecycle.models import State
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Generator
from cfbench_text.rating_quality import rating_quality
from cfbench_text.steps.data import SplitReviews


def fit(context: TaskContext, data: SplitReviews) -> tuple[Generator, dict[str, Any]]:
    """Trains a generator and, if it predicts ratings, evaluates them on the test rows."""
    model: Generator = create(context.parameters["model"])
    summary = model.fit(data.training(context.report))
    return model, {"training": dict(summary or {}), "quality": rating_quality(model, data.corpus)}


def restore(component: Mapping[str, Any], state: State, data: SplitReviews) -> Generator:
    """A fitted generator."""
    model: Generator = create(component)
    model.load_state(state, data.training())
    return model
