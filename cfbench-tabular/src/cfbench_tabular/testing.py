"""The conformance kit of the suite: what a component of one's own must do to be run by it.

Used by ``cfbench check`` and by :mod:`cfbench_core.testing`. The checks work on a small made-up table with
numbers, a category, a two-valued column and a column without spread, and on the same without its categories
for explainers that do not handle any.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.seeds import generator
from cfbench_core.testing import Check, NotApplicable, Subject, checks_of, require
from cfbench_tabular.classifiers.base import Classifier, predicted_classes, probabilities
from cfbench_tabular.classifiers.logistic_regression import Config as LogisticConfig
from cfbench_tabular.classifiers.logistic_regression import LogisticRegression
from cfbench_tabular.explainers.base import Answer, Context, Factuals
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import AnyArray, Column, FloatArray, Table, complete

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


# Explainers


def _setting(subject: Subject) -> tuple[Problem, Classifier]:
    categories = "categorical" in subject.spec.provides.get("columns", frozenset())
    problem = example_problem(categories)
    return problem, _reference_model(categories)


@functools.cache
def _reference_model(categories: bool) -> Classifier:
    return fitted(LogisticRegression(LogisticConfig()), example_problem(categories))


def _answers(subject: Subject, rows: slice = slice(0, 24)) -> FloatArray:
    """(24, d) of several answers, the first."""
    problem, model = _setting(subject)
    given = subject.create().counterfactuals(model, factuals_of(model, problem, rows), context_of(problem))
    return Answer.of(given).several()[:, 0]


def answers_are_rows_or_nothing(subject: Subject) -> None:
    """Is each answer a vector of the right length, finite, or NaN throughout for no answer?"""
    problem, _ = _setting(subject)
    answers = _answers(subject)
    require(answers.shape == (24, problem.encoding.width), f"has shape {answers.shape} for 24 factuals")
    given = ~np.isnan(answers).all(axis=1)
    require(bool(np.isfinite(answers[given]).all()), "an answer holds NaN or infinity")


def finds_counterfactuals(subject: Subject) -> None:
    """Does it find a row of the other class for at least one of 24 easy factuals?"""
    problem, model = _setting(subject)
    answers = _answers(subject)
    given = complete(answers)
    classes = factuals_of(model, problem, slice(0, 24)).classes
    flipped = predicted_classes(model, answers[given]) != classes[given]
    require(bool(flipped.any()), "none of the answers is in the other class")


def repeats_itself(subject: Subject) -> None:
    """Does a second instance give the same answers, given the same random streams?"""
    require(np.array_equal(_answers(subject), _answers(subject), equal_nan=True), "the answers differ")


def answers_one_as_among_many(subject: Subject) -> None:
    """Does a factual get the same answer alone as in a batch?"""
    together = _answers(subject)
    for place in (0, 7, 23):
        alone = _answers(subject, slice(place, place + 1))
        same = np.allclose(alone[0], together[place], rtol=0, atol=1e-9, equal_nan=True)
        require(same, f"factual {place} gets another answer alone")


def leaves_factuals_alone(subject: Subject) -> None:
    """Are the factuals and the training rows as they were, afterwards?"""
    problem, model = _setting(subject)
    factuals, context = factuals_of(model, problem, slice(0, 8)), context_of(problem)
    subject.create().counterfactuals(model, factuals, context)
    require(np.array_equal(factuals.vectors, problem.vectors[:8]), "the factuals were changed")
    require(np.array_equal(context.background, problem.sample("train")[0]), "the training rows were changed")


def survives_nothing_to_explain(subject: Subject) -> None:
    """Is the answer to no factuals an empty array?"""
    problem, _ = _setting(subject)
    answers = _answers(subject, slice(0, 0))
    require(answers.shape == (0, problem.encoding.width), f"has shape {answers.shape} for no factuals")


def survives_a_model_without_enemies(subject: Subject) -> None:
    """When the model puts every row into one class, is there an end, and no error?"""
    problem, model = _setting(subject)
    needed = subject.spec.needs.get("classifier", {}).get("access", frozenset())
    if needed - {"scores"}:
        raise NotApplicable(f"it needs {', '.join(sorted(needed))} of the model")
    factuals = factuals_of(model, problem, slice(0, 4))
    factuals = Factuals(factuals.vectors, np.ones(4, dtype=np.int64), factuals.units)
    given = subject.create().counterfactuals(Constant(), factuals, context_of(problem))
    shape = Answer.of(given).several()[:, 0].shape
    require(shape == factuals.vectors.shape, f"has shape {shape} for 4 factuals")


# Classifiers


def gives_probabilities(subject: Subject) -> None:
    """Are there two probabilities for each row, between 0 and 1, with the sum 1?"""
    problem = example_problem()
    found = probabilities(_trained(subject), problem.vectors)
    require(bool(((found >= 0) & (found <= 1)).all()), "a probability is not between 0 and 1")
    require(bool(np.allclose(found.sum(axis=1), 1.0)), "the probabilities of a row do not sum to 1")


def learns_what_is_easy(subject: Subject) -> None:
    """Is it right on at least 80 of 100 training rows of a problem that a line solves?"""
    vectors, labels = example_problem().sample("train")
    share = float((predicted_classes(_trained(subject), vectors) == labels).mean())
    require(share >= 0.8, f"is right on {share:.0%} of the training rows")


def is_what_its_state_says(subject: Subject) -> None:
    """Does an instance that takes up the state of another predict exactly the same?"""
    problem = example_problem()
    model, copy = _trained(subject), subject.create()
    copy.load_state({name: np.array(array) for name, array in model.state().items()})
    same = np.array_equal(probabilities(model, problem.vectors), probabilities(copy, problem.vectors))
    require(same, "the copy predicts something else")


def learns_the_same_again(subject: Subject) -> None:
    """Does training with the same random stream give the same model?"""
    problem = example_problem()
    first, again = (
        probabilities(model, problem.vectors)
        for model in (_trained(subject), fitted(subject.create(), problem))
    )
    require(np.array_equal(first, again), "the second model predicts something else")


def gradient_is_that_of_the_log_odds(subject: Subject) -> None:
    """Does ``log_odds_gradient`` agree with finite differences?"""
    if "gradients" not in subject.spec.provides.get("access", frozenset()):
        raise NotApplicable("it does not offer gradients")
    model = _trained(subject)
    vectors, step = example_problem().vectors[:16], 1e-5
    found = model.log_odds_gradient(vectors)  # type: ignore[attr-defined]
    require(found.shape == vectors.shape, f"has shape {found.shape} for rows of shape {vectors.shape}")
    numeric = np.empty_like(vectors)
    for place in range(vectors.shape[1]):
        moved = np.zeros(vectors.shape[1])
        moved[place] = step
        numeric[:, place] = (_log_odds(model, vectors + moved) - _log_odds(model, vectors - moved)) / (
            2 * step
        )
    wrong = np.abs(found - numeric) > 1e-4 * (1 + np.abs(numeric))
    require(wrong.mean() <= 0.02, f"{wrong.sum()} of {wrong.size} derivatives are wrong")


def _trained(subject: Subject) -> Classifier:
    if "weights" in subject.spec.details:
        raise NotApplicable("its weights come with the study")
    if "model" not in subject.memory:
        subject.memory["model"] = fitted(subject.create(), example_problem())
    model: Classifier = subject.memory["model"]
    return model


def _log_odds(model: Classifier, vectors: FloatArray) -> FloatArray:
    found = probabilities(model, vectors)
    return np.asarray(np.log(found[:, 1]) - np.log(found[:, 0]))


# Data sets


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


# Metrics


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


def _judged(valid: bool) -> Answers:
    """The first training rows of one class as counterfactuals of the other, or no answers at all."""
    problem = example_problem()
    model = _reference_model(True)
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


checks: Mapping[str, tuple[Check, ...]] = {
    "explainer": checks_of(
        answers_are_rows_or_nothing,
        finds_counterfactuals,
        repeats_itself,
        answers_one_as_among_many,
        leaves_factuals_alone,
        survives_nothing_to_explain,
        survives_a_model_without_enemies,
    ),
    "classifier": checks_of(
        gives_probabilities,
        learns_what_is_easy,
        is_what_its_state_says,
        learns_the_same_again,
        gradient_is_that_of_the_log_odds,
    ),
    "dataset": checks_of(can_be_learnt_from, reads_the_same_again),
    "metric": checks_of(names_its_columns, stays_in_its_range, survives_no_answers),
}
"""By kind of component."""
