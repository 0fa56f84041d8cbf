"""What data sets and metrics must do."""

from __future__ import annotations

from typing import Any

import numpy as np

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.streams import generator
from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import BoolArray, FloatArray, Table
from cfbench_tabular.testing.example import example_problem, factuals_of, reference_model


def can_be_learnt_from(subject: Subject) -> None:
    """Is there a table with columns and with two classes or more?"""
    table = _read(subject)
    require(isinstance(table, Table), f"load() gave {type(table).__name__}, not a Table")
    table.classes()
    Problem.make(table, 0.2, 0.2, generator("tabular", "split"))


def reads_the_same_again(subject: Subject) -> None:
    """Does reading it twice give the same rows?"""
    first, second = _read(subject), _read(subject)
    same = all(np.array_equal(first.values[c.name], second.values[c.name]) for c in first.columns)
    require(same and np.array_equal(first.target, second.target), "the second table is another")


def _read(subject: Subject) -> Table:
    """Its rows. Nothing is downloaded for a check."""
    dataset: Any = subject.create()
    table: Table
    if not hasattr(dataset, "find"):
        table = dataset.load()
        return table
    try:
        source = dataset.find(DataAccess(offline=True))
    except UserError as error:
        raise NotApplicable(f"its files are not here ({error.lines[0]})") from error
    table = dataset.load(source.parameters())
    return table


def names_its_columns(subject: Subject) -> None:
    """Does it give a number for each answer, under exactly the names that it announces?"""
    metric, answers = subject.create(), _judged(valid=True)
    scores = metric.score(answers)
    names = [column.name for column in metric.columns]
    require(list(scores) == names, f"announces {names} and gives {list(scores)}")
    for name, values in scores.items():
        require(np.shape(values) == (len(answers.valid),), f"{name} has shape {np.shape(values)}")


def stays_in_its_range(subject: Subject) -> None:
    """Are all values within the range that is announced?"""
    metric = subject.create()
    scores = metric.score(_judged(valid=True))
    for column in metric.columns:
        if column.range is not None:
            values = scores[column.name][~np.isnan(scores[column.name])]
            low, high = column.range
            require(bool(((values >= low) & (values <= high)).all()), f"{column.name} leaves {low} to {high}")


def survives_no_answers(subject: Subject) -> None:
    """When no factual has an answer, is there a number or NaN for each, and no error?"""
    for name, values in subject.create().score(_judged(valid=False)).items():
        require(not np.isinf(np.asarray(values, dtype=np.float64)).any(), f"{name} is infinite")


def scores_one_as_among_many(subject: Subject) -> None:
    """Does an answer get the same score alone as in a batch, of which some have no answer?"""
    metric, together = subject.create(), _judged(valid=True)
    missing = np.arange(10) % 3 == 1
    counterfactuals = np.where(missing[:, None], np.nan, together.counterfactuals)
    scores = metric.score(_some(together, slice(None), counterfactuals, ~missing))
    for place in (0, 5):
        one = slice(place, place + 1)
        alone = metric.score(_some(together, one, counterfactuals[one], ~missing[one]))
        for name, values in scores.items():
            same = np.allclose(alone[name][0], values[place], rtol=1e-9, atol=1e-12, equal_nan=True)
            require(same, f"{name} of answer {place} is another alone")


def _some(answers: Answers, places: slice, counterfactuals: FloatArray, valid: BoolArray) -> Answers:
    """Some of the factuals, with other answers."""
    return Answers(
        factuals=answers.factuals[places],
        counterfactuals=counterfactuals,
        factual_classes=answers.factual_classes[places],
        valid=valid,
        encoding=answers.encoding,
        background=answers.background,
        model=answers.model,
        background_labels=answers.background_labels,
    )


def _judged(valid: bool) -> Answers:
    """The first training rows of one class as counterfactuals of the other, or no answers at all."""
    problem = example_problem()
    model = reference_model(True)
    everyone = factuals_of(model, problem)
    factuals = everyone.vectors[everyone.classes == 0][:10]
    enemies = everyone.vectors[everyone.classes == 1][:10]
    return Answers(
        factuals=factuals,
        counterfactuals=enemies if valid else np.full_like(factuals, np.nan),
        factual_classes=np.zeros(10, dtype=np.int64),
        valid=np.full(10, valid),
        encoding=problem.encoding,
        background=problem.sample("train")[0],
        model=model,
        background_labels=problem.sample("train")[1],
    )


DATASET_CHECKS = checks_of(can_be_learnt_from, reads_the_same_again)
METRIC_CHECKS = checks_of(
    names_its_columns, stays_in_its_range, survives_no_answers, scores_one_as_among_many
)
