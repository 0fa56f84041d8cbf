"""Classifiers: trained or with given weights, and restored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

import numpy as np

from cfbench_core.config import create
from cfbench_core.stages import TaskContext
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.adapting import adapted
from cfbench_tabular.classifiers.retrained import COUNT, RetrainedModels, resampled, separated_states
from cfbench_tabular.classifiers.targets import DecisionThreshold
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.quality import quality

State: TypeAlias = Mapping[str, np.ndarray[Any, Any]]


def fit(context: TaskContext, data: PreparedDataset) -> tuple[Classifier, dict[str, Any]]:
    """Trains the classifier, or loads its weights, and evaluates it on the test rows."""
    model = adapted(create(context.parameters["model"]), data.encoding)
    model.fit(data, context.streams.generator("fit"), context.report)
    summary: dict[str, Any] = {"quality": quality(model, data)}
    if hasattr(model, "layers"):
        summary["neurons"] = sum(len(biases) for _, biases in model.layers()[:-1])
    return _decided(model, data), summary


def restore(
    component: Mapping[str, Any], state: State, data: PreparedDataset
) -> Classifier | RetrainedModels:
    """A fitted classifier, or several; a pretrained one of a user's own is created again."""
    if COUNT not in state:
        return _restored(component, state, data)
    each = separated_states(state)
    models = tuple(_restored(component, own, resampled(data, rows)) for own, rows in each)
    return RetrainedModels(models, any(not np.array_equal(rows, data.rows("train")) for _, rows in each))


def _restored(component: Mapping[str, Any], state: State, data: PreparedDataset) -> Classifier:
    model = adapted(create(component), data.encoding)
    model.load_state(state, data)
    return _decided(model, data)


def _decided(model: Classifier, data: PreparedDataset) -> Classifier:
    """The model with the decision threshold of the protocol."""
    if data.decision_threshold == 0.5:
        return model
    decided: Any = DecisionThreshold(model, data.decision_threshold)
    return cast(Classifier, decided)
