"""The conformance checks of data sets and metrics."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import BoolArray, FloatArray, Table
from cfbench_tabular.testing.example import example_data, factuals_of, reference_model


def provides_a_table_with_two_classes(subject: Subject) -> None:
    """Does it provide a table with feature columns and at least two classes?"""
    table = _read(subject)
    require(isinstance(table, Table), f"load() gave {type(table).__name__}, not a Table")
    table.classes()
    PreparedDataset.make(table, 0.2, 0.2, generator("tabular", "split"))


def is_reproducible(subject: Subject) -> None:
    """Does reading it twice give the same rows?"""
    first, second = _read(subject), _read(subject)
    same = all(np.array_equal(first.values[c.name], second.values[c.name]) for c in first.columns)
    require(same and np.array_equal(first.target, second.target), "the second table is different")


def _read(subject: Subject) -> Table:
    """The rows; skips the check where the files would have to be downloaded."""
    dataset: Any = subject.create()
    table: Table
    if not hasattr(dataset, "find"):
        table = dataset.load()
        return table
    try:
        source = dataset.find(DataAccess(offline=True))
    except UserError as error:
        raise NotApplicable(f"its files are not available ({error.lines[0]})") from error
    table = dataset.load(source.parameters())
    return table


def returns_its_declared_columns(subject: Subject) -> None:
    """Does it return a number for each counterfactual, under exactly the declared column names?"""
    metric, observed = subject.create(), _observed(valid=True)
    scores = metric.compute(observed)
    names = [column.name for column in metric.columns({})]
    require(list(scores) == names, f"declares {names} and returns {list(scores)}")
    for name, values in scores.items():
        require(np.shape(values) == (len(observed.valid),), f"{name} has shape {np.shape(values)}")


def stays_in_its_range(subject: Subject) -> None:
    """Are all values within the declared range?"""
    metric = subject.create()
    scores = metric.compute(_observed(valid=True))
    for column in metric.columns({}):
        if column.range is not None:
            values = scores[column.name][~np.isnan(scores[column.name])]
            low, high = column.range
            require(bool(((values >= low) & (values <= high)).all()), f"{column.name} leaves {low} to {high}")


def handles_missing_counterfactuals(subject: Subject) -> None:
    """Does it return a number or NaN for each factual if no factual has a counterfactual?"""
    for name, values in subject.create().compute(_observed(valid=False)).items():
        require(not np.isinf(np.asarray(values, dtype=np.float64)).any(), f"{name} is infinite")


def does_not_depend_on_the_batch(subject: Subject) -> None:
    """Does a counterfactual get the same score alone as in a batch with missing counterfactuals?"""
    metric, together = subject.create(), _observed(valid=True)
    missing = np.arange(10) % 3 == 1
    counterfactuals = np.where(missing[:, None], np.nan, together.counterfactuals)
    scores = metric.compute(_some(together, slice(None), counterfactuals, ~missing))
    for place in (0, 5):
        one = slice(place, place + 1)
        alone = metric.compute(_some(together, one, counterfactuals[one], ~missing[one]))
        for name, values in scores.items():
            same = np.allclose(alone[name][0], values[place], rtol=1e-9, atol=1e-12, equal_nan=True)
            require(same, f"{name} of counterfactual {place} is different alone")


def _some(observed: Observed, places: slice, counterfactuals: FloatArray, valid: BoolArray) -> Observed:
    """Some of the factuals, with other counterfactuals."""
    return Observed(
        factuals=observed.factuals[places],
        counterfactuals=counterfactuals,
        factual_classes=observed.factual_classes[places],
        valid=valid,
        encoding=observed.encoding,
        background=observed.background,
        model=observed.model,
        background_labels=observed.background_labels,
    )


def _observed(valid: bool) -> Observed:
    """The first training rows of one class as counterfactuals of the other, or no counterfactuals at all."""
    data = example_data()
    model = reference_model(True)
    everyone = factuals_of(model, data)
    factuals = everyone.vectors[everyone.classes == 0][:10]
    enemies = everyone.vectors[everyone.classes == 1][:10]
    return Observed(
        factuals=factuals,
        counterfactuals=enemies if valid else np.full_like(factuals, np.nan),
        factual_classes=np.zeros(10, dtype=np.int64),
        valid=np.full(10, valid),
        encoding=data.encoding,
        background=data.sample("train")[0],
        model=model,
        background_labels=data.sample("train")[1],
    )


DATASET_CHECKS = checks_of(provides_a_table_with_two_classes, is_reproducible)
METRIC_CHECKS = checks_of(
    returns_its_declared_columns,
    stays_in_its_range,
    handles_missing_counterfactuals,
    does_not_depend_on_the_batch,
)
