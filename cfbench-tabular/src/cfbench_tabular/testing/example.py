"""A small synthetic data set for the conformance checks."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.classifiers.gradient_boosting import Config as BoostingConfig
from cfbench_tabular.classifiers.gradient_boosting import GradientBoosting
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import AnyArray, Column, FloatArray, Table

ROWS = 120
COLOURS = ("red", "green", "blue")


@functools.cache
def example_data(categories: bool = True) -> PreparedDataset:
    """A synthetic table of 120 rows with nearly linearly separable classes; always the same."""
    draw = generator("tabular", "conformance")
    length, width = draw.normal(5.0, 2.0, ROWS), draw.normal(0.0, 0.1, ROWS)
    colour, striped = draw.integers(3, size=ROWS), draw.integers(2, size=ROWS)
    merit = (length - 5.0) / 2.0 + width / 0.1 + (1.0 * (colour == 2) if categories else 0.0)
    target = np.where(merit + draw.normal(0.0, 0.2, ROWS) > 0, "large", "small").astype(object)
    numbers: dict[str, AnyArray] = {"length": length, "width": width, "same": np.full(ROWS, 3.0)}
    columns = tuple(Column(name) for name in numbers)
    if categories:
        numbers["colour"] = np.array(COLOURS, dtype=object)[colour]
        numbers["striped"] = np.array(("no", "yes"), dtype=object)[striped]
        columns += (Column("colour", "categorical", COLOURS), Column("striped", "categorical", ("no", "yes")))
    return PreparedDataset.make(
        Table("example", columns, numbers, target), 0.2, 0.2, generator("tabular", "split")
    )


RETRAINED = 32
"""Models that are trained again for an explainer, by default."""


def fitted(model: Classifier, data: PreparedDataset) -> Classifier:
    """``model``, fitted to the data with a fixed random stream."""
    model.fit(data, generator("tabular", "fit"), lambda done, total: None)
    return model


def factuals_of(model: Classifier, data: PreparedDataset, rows: slice = slice(None)) -> Factuals:
    """Rows of the data with their predicted classes; units are row numbers."""
    vectors = data.vectors[rows]
    units = tuple(str(row) for row in np.arange(len(data.table))[rows])
    return Factuals(vectors.copy(), predicted_classes(model, vectors), units)


def context_of(data: PreparedDataset, model: Classifier | None = None) -> Context:
    """The context of the data, with random streams that depend on the unit alone.

    ``model`` stands for the models that are trained again, as if training had no effect; none: there are no such models.
    """
    background, labels = data.sample("train")
    return Context(
        data.encoding,
        background,
        lambda unit: generator("tabular", "units", unit),
        labels=labels,
        retrained=() if model is None else (model,) * RETRAINED,
    )


class Constant:
    """A classifier that predicts class 1 for every row."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        return np.tile([0.25, 0.75], (len(vectors), 1))


@functools.cache
def reference_model(categories: bool = True, trees: bool = False) -> Classifier:
    """A logistic regression of the example data, with gradients and layers, or a few boosted ``trees``."""
    model = GradientBoosting(BoostingConfig(trees=20)) if trees else LogisticRegression(LogisticConfig())
    return fitted(model, example_data(categories))


def constrained_data(categories: bool = True) -> PreparedDataset:
    """The example data with "length" increasing only, and "width" and "striped" immutable."""
    data = example_data(categories)
    ways: dict[str, dict[str, Any]] = {
        "length": {"direction": "up"},
        "width": {"immutable": True},
        "striped": {"immutable": True},
    }
    columns = tuple(replace(column, **ways.get(column.name, {})) for column in data.encoding.columns)
    return replace(
        data,
        table=replace(data.table, columns=columns),
        encoding=replace(data.encoding, columns=columns),
    )
