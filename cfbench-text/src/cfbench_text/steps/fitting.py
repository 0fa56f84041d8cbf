"""Generators: fitted and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.config.component import create
from cfbench_core.lifecycle.models import State
from cfbench_core.stages import TaskContext
from cfbench_text.contracts import Generator
from cfbench_text.corpus import Corpus, ExplanationRequests
from cfbench_text.steps.data import SplitReviews


def fit(context: TaskContext, data: SplitReviews) -> tuple[Generator, dict[str, Any]]:
    """Trains a generator and, if it predicts ratings, evaluates them on the test rows."""
    model: Generator = create(context.parameters["model"])
    summary = model.fit(data.training(context.report))
    return model, {"training": dict(summary or {}), "quality": _quality(model, data.corpus)}


def restore(component: Mapping[str, Any], state: State, data: SplitReviews) -> Generator:
    """A fitted generator."""
    model: Generator = create(component)
    model.load_state(state, data.training())
    return model


def _quality(model: Generator, corpus: Corpus) -> dict[str, float]:
    """RMSE and MAE of the predicted ratings of the test rows; empty if the generator predicts none."""
    if not hasattr(model, "predict_ratings"):
        return {}
    test = corpus.part("test")
    requests = ExplanationRequests(test.units, test.users, test.items, test.times, np.arange(len(test)))
    known = ~np.isnan(test.ratings)
    errors = (np.asarray(model.predict_ratings(requests), dtype=np.float64) - test.ratings)[known]
    if not len(errors):
        return {}
    return {"RMSE": float(np.sqrt(np.mean(errors**2))), "MAE": float(np.mean(np.abs(errors)))}
