"""A small made-up problem that the checks of the kit work on."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.classifiers.base import Classifier, predicted_classes
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import AnyArray, Column, FloatArray, Table

ROWS = 120
COLOURS = ("red", "green", "blue")


@functools.cache
def example_problem(categories: bool = True) -> Problem:
    """A made-up table of 120 rows whose classes a line separates, but for a few rows; always the same."""
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
    return Problem.make(Table("example", columns, numbers, target), 0.2, 0.2, generator("tabular", "split"))


def fitted(model: Classifier, problem: Problem) -> Classifier:
    """``model``, trained on the problem with a fixed random stream."""
    model.fit(problem, generator("tabular", "fit"), lambda done, total: None)
    return model


def factuals_of(model: Classifier, problem: Problem, rows: slice = slice(None)) -> Factuals:
    """Rows of a problem as the model sees them, named by their number."""
    vectors = problem.vectors[rows]
    units = tuple(str(row) for row in np.arange(len(problem.table))[rows])
    return Factuals(vectors.copy(), predicted_classes(model, vectors), units)


def context_of(problem: Problem) -> Context:
    """The context of a problem, with random streams that depend on the unit alone."""
    background, labels = problem.sample("train")
    return Context(
        problem.encoding, background, lambda unit: generator("tabular", "units", unit), labels=labels
    )


class Constant:
    """A classifier that puts every row into class 1."""

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        return np.tile([0.25, 0.75], (len(vectors), 1))


@functools.cache
def reference_model(categories: bool = True) -> Classifier:
    """A logistic regression of the problem, with gradients and layers."""
    return fitted(LogisticRegression(LogisticConfig()), example_problem(categories))


def constrained_problem(categories: bool = True) -> Problem:
    """The same rows, but lengths only grow, and neither widths nor stripes change."""
    problem = example_problem(categories)
    ways: dict[str, dict[str, Any]] = {
        "length": {"direction": "up"},
        "width": {"immutable": True},
        "striped": {"immutable": True},
    }
    columns = tuple(replace(column, **ways.get(column.name, {})) for column in problem.encoding.columns)
    return replace(
        problem,
        table=replace(problem.table, columns=columns),
        encoding=replace(problem.encoding, columns=columns),
    )
