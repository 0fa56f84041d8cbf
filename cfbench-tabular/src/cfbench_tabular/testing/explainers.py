"""What an explainer of classifiers must do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.classifiers.base import Classifier, predicted_classes
from cfbench_tabular.explainers.base import Answer, Factuals
from cfbench_tabular.problem import Problem
from cfbench_tabular.table import FloatArray, complete
from cfbench_tabular.testing.example import (
    Constant,
    constrained_problem,
    context_of,
    example_problem,
    factuals_of,
    reference_model,
)

SEVERAL = 3
"""Answers to a factual that are asked for, of an explainer that gives several."""


def _can(subject: Subject, axis: str, value: str) -> bool:
    return value in subject.spec.provides.get(axis, frozenset())


def _setting(subject: Subject) -> tuple[Problem, Classifier]:
    categories = _can(subject, "columns", "categorical")
    return example_problem(categories), reference_model(categories)


def _asked(
    subject: Subject, rows: slice = slice(0, 24), answers: int = 1, constrained: bool = False
) -> tuple[Factuals, Problem, Answer]:
    """The factuals, what they come from, and what a fresh explainer says of them."""
    problem, model = _setting(subject)
    if constrained:
        problem = constrained_problem(_can(subject, "columns", "categorical"))
    factuals = factuals_of(model, problem, rows)
    context = replace(context_of(problem), answers=answers)
    return factuals, problem, Answer.of(subject.create().counterfactuals(model, factuals, context))


def _answers(subject: Subject, rows: slice = slice(0, 24)) -> FloatArray:
    """(B, d) the answers; of several the first."""
    return _asked(subject, rows)[2].several()[:, 0]


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


def leaves_immutable_columns_alone(subject: Subject) -> None:
    """Does it keep what cannot change, and still find a counterfactual?"""
    answers, factuals, problem = _under_constraints(subject, "immutable")
    fixed = problem.encoding.immutable
    changed = (answers[:, fixed] != factuals[:, fixed]).any(axis=1)
    require(not changed.any(), f"{changed.sum()} of {len(answers)} answers change an immutable column")


def stays_in_range(subject: Subject) -> None:
    """Does it stay in the ranges of the columns, and go only up where a column only goes up?"""
    answers, factuals, problem = _under_constraints(subject, "ranges")
    low, high = problem.encoding.allowed(factuals)
    outside = ((answers < low - SLACK) | (answers > high + SLACK)).any(axis=1)
    require(not outside.any(), f"{outside.sum()} of {len(answers)} answers leave what is allowed")


def keeps_categories_whole(subject: Subject) -> None:
    """Is every category exactly one level?"""
    if not _can(subject, "columns", "categorical"):
        raise NotApplicable("it does not handle categories")
    answers, _, problem = _under_constraints(subject, "one-hot")
    broken = (problem.encoding.project(answers) != answers).any(axis=1)
    require(not broken.any(), f"{broken.sum()} of {len(answers)} answers hold a part of a level")


SLACK = 1e-9
"""Of the ends of ranges, for arithmetic."""


def _under_constraints(subject: Subject, constraint: str) -> tuple[FloatArray, FloatArray, Problem]:
    """(A, d) the answers that are given where columns are immutable or go one way, their factuals, the problem."""
    if not _can(subject, "constraints", constraint):
        raise NotApplicable(f"it does not offer constraints {constraint}")
    factuals, problem, answer = _asked(subject, constrained=True)
    answers = answer.several()[:, 0]
    given = complete(answers)
    require(bool(given.any()), "it answers nothing once columns are immutable or go one way")
    return answers[given], factuals.vectors[given], problem


def tells_details_by_factual(subject: Subject) -> None:
    """Is every detail one number for each factual, or NaN, also when there is nothing to explain?"""
    for rows in (slice(0, 24), slice(0, 1), slice(0, 0)):
        factuals, _, answer = _asked(subject, rows)
        for name, values in answer.details.items():
            shape = np.shape(values)
            require(shape == (len(factuals),), f"{name!r} has shape {shape} for {len(factuals)} factuals")
            require(not np.isinf(np.asarray(values, dtype=np.float64)).any(), f"{name!r} holds infinity")


def gives_several_answers(subject: Subject) -> None:
    """Asked for three answers, does it give up to three different ones, the same for a factual alone?"""
    if not _can(subject, "answers", "several"):
        raise NotApplicable("it gives one answer")
    factuals, problem, answer = _asked(subject, answers=SEVERAL)
    answers, wanted = answer.several(), (len(factuals), SEVERAL, problem.encoding.width)
    require(answers.shape == wanted, f"has shape {answers.shape}, must be {wanted}")
    given = np.asarray(~np.isnan(answers).any(axis=2))
    require(bool((given.sum(axis=1) > 1).any()), "no factual has more than one answer")
    for own, there in zip(answers, given, strict=True):
        different = len(np.unique(own[there], axis=0))
        require(different == there.sum(), "two answers to a factual are the same")
    for place in (0, 23):
        alone = _asked(subject, slice(place, place + 1), answers=SEVERAL)[2].several()[0]
        same = np.allclose(alone, answers[place], rtol=0, atol=SLACK, equal_nan=True)
        require(same, f"factual {place} gets other answers alone")


EXPLAINER_CHECKS = checks_of(
    answers_are_rows_or_nothing,
    finds_counterfactuals,
    repeats_itself,
    answers_one_as_among_many,
    leaves_factuals_alone,
    survives_nothing_to_explain,
    survives_a_model_without_enemies,
    leaves_immutable_columns_alone,
    stays_in_range,
    keeps_categories_whole,
    tells_details_by_factual,
    gives_several_answers,
)
