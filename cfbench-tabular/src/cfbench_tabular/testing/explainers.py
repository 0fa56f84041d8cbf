"""The conformance checks of explainers."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from cfbench_core.testing import NotApplicable, Subject, checks_of, require
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.base import Explanation, Factuals
from cfbench_tabular.prepared_dataset import PreparedDataset
from cfbench_tabular.table import FloatArray, complete
from cfbench_tabular.testing.example import (
    Constant,
    constrained_data,
    context_of,
    example_data,
    factuals_of,
    reference_model,
)

SEVERAL = 3
"""Counterfactuals per factual that the checks request from explainers of several counterfactuals."""


def _can(subject: Subject, axis: str, value: str) -> bool:
    return value in subject.spec.provides.get(axis, frozenset())


def _setting(subject: Subject) -> tuple[PreparedDataset, Classifier]:
    categories = _can(subject, "columns", "categorical")
    needed = subject.spec.needs.get("classifier", {}).get("access", frozenset())
    return example_data(categories), reference_model(categories, trees="trees" in needed)


def _explained(
    subject: Subject, rows: slice = slice(0, 24), per_instance: int = 1, constrained: bool = False
) -> tuple[Factuals, PreparedDataset, Explanation]:
    """The factuals, their data set and the explanation of a new explainer."""
    data, model = _setting(subject)
    if constrained:
        data = constrained_data(_can(subject, "columns", "categorical"))
    factuals = factuals_of(model, data, rows)
    context = replace(context_of(data, model), counterfactuals_per_instance=per_instance)
    return factuals, data, Explanation.of(subject.create().counterfactuals(model, factuals, context))


def _counterfactuals(subject: Subject, rows: slice = slice(0, 24)) -> FloatArray:
    """(B, d) the counterfactuals; of several the first."""
    return _explained(subject, rows)[2].stacked()[:, 0]


def returns_rows_or_nan(subject: Subject) -> None:
    """Is each counterfactual a finite vector of the right length, or NaN in every column?"""
    data, _ = _setting(subject)
    counterfactuals = _counterfactuals(subject)
    require(
        counterfactuals.shape == (24, data.encoding.width),
        f"has shape {counterfactuals.shape} for 24 factuals",
    )
    found = ~np.isnan(counterfactuals).all(axis=1)
    require(bool(np.isfinite(counterfactuals[found]).all()), "a counterfactual contains NaN or infinity")


def finds_counterfactuals(subject: Subject) -> None:
    """Does it find a row of the other class for at least one of 24 easy factuals?"""
    data, model = _setting(subject)
    counterfactuals = _counterfactuals(subject)
    found = complete(counterfactuals)
    classes = factuals_of(model, data, slice(0, 24)).classes
    flipped = predicted_classes(model, counterfactuals[found]) != classes[found]
    require(bool(flipped.any()), "none of the counterfactuals is in the other class")


def is_reproducible(subject: Subject) -> None:
    """Does a second instance return the same counterfactuals with the same random streams?"""
    require(
        np.array_equal(_counterfactuals(subject), _counterfactuals(subject), equal_nan=True),
        "the counterfactuals differ",
    )


def does_not_depend_on_the_batch(subject: Subject) -> None:
    """Does a factual get the same counterfactual alone as in a batch?"""
    together = _counterfactuals(subject)
    for place in (0, 7, 23):
        alone = _counterfactuals(subject, slice(place, place + 1))
        same = np.allclose(alone[0], together[place], rtol=0, atol=1e-9, equal_nan=True)
        require(same, f"factual {place} gets a different counterfactual alone")


def does_not_modify_its_inputs(subject: Subject) -> None:
    """Are the factuals and the training rows unchanged after the call?"""
    data, model = _setting(subject)
    factuals, context = factuals_of(model, data, slice(0, 8)), context_of(data, model)
    subject.create().counterfactuals(model, factuals, context)
    require(np.array_equal(factuals.vectors, data.vectors[:8]), "the factuals were changed")
    require(np.array_equal(context.background, data.sample("train")[0]), "the training rows were changed")


def handles_an_empty_batch(subject: Subject) -> None:
    """Is the result of an empty batch an empty array?"""
    data, _ = _setting(subject)
    counterfactuals = _counterfactuals(subject, slice(0, 0))
    require(
        counterfactuals.shape == (0, data.encoding.width),
        f"has shape {counterfactuals.shape} for no factuals",
    )


def handles_a_constant_model(subject: Subject) -> None:
    """Does it end without an error if the model predicts the same class for every row?"""
    data, model = _setting(subject)
    needed = subject.spec.needs.get("classifier", {}).get("access", frozenset())
    if needed - {"scores"}:
        raise NotApplicable(f"it needs {', '.join(sorted(needed))} from the model")
    factuals = factuals_of(model, data, slice(0, 4))
    factuals = Factuals(factuals.vectors, np.ones(4, dtype=np.int64), factuals.units)
    constant = cast(Classifier, Constant())
    found = subject.create().counterfactuals(constant, factuals, context_of(data, constant))
    shape = Explanation.of(found).stacked()[:, 0].shape
    require(shape == factuals.vectors.shape, f"has shape {shape} for 4 factuals")


def respects_immutable_columns(subject: Subject) -> None:
    """Does it leave immutable columns unchanged, and still find a counterfactual?"""
    counterfactuals, factuals, data = _under_constraints(subject, "immutable")
    fixed = data.encoding.immutable
    changed = (counterfactuals[:, fixed] != factuals[:, fixed]).any(axis=1)
    require(
        not changed.any(),
        f"{changed.sum()} of {len(counterfactuals)} counterfactuals change an immutable column",
    )


def stays_in_range(subject: Subject) -> None:
    """Does it respect the ranges and directions of the columns?"""
    counterfactuals, factuals, data = _under_constraints(subject, "ranges")
    low, high = data.encoding.allowed(factuals)
    outside = ((counterfactuals < low - SLACK) | (counterfactuals > high + SLACK)).any(axis=1)
    require(
        not outside.any(),
        f"{outside.sum()} of {len(counterfactuals)} counterfactuals leave the allowed range",
    )


def satisfies_constraints_between_columns(subject: Subject) -> None:
    """Does it search among the rows that satisfy the constraints between columns, as it declares?"""
    if not _can(subject, "constraints", "between-columns"):
        raise NotApplicable("it does not declare constraints between-columns")
    data, model = _setting(subject)
    shorter = Constraint(column="length", relation="at_most", of=("same",), factor=1.8)  # at most 5.4
    data = replace(data, encoding=replace(data.encoding, constraints=(shorter,)))
    factuals = factuals_of(model, data, slice(0, 24))
    context = replace(context_of(data, model), respects_constraints=True)
    explanation = Explanation.of(subject.create().counterfactuals(model, factuals, context))
    counterfactuals = explanation.stacked()[:, 0]
    counterfactuals = counterfactuals[complete(counterfactuals)]
    require(len(counterfactuals) > 0, "it finds nothing where numbers are constrained")
    broken = ~data.encoding.constraints_hold(counterfactuals)
    require(
        not broken.any(), f"{broken.sum()} of {len(counterfactuals)} counterfactuals violate a constraint"
    )


def returns_valid_one_hot_groups(subject: Subject) -> None:
    """Is every category exactly one level, and every number a multiple of the step of its column?"""
    if not _can(subject, "columns", "categorical"):
        raise NotApplicable("it does not handle categories")
    counterfactuals, _, data = _under_constraints(subject, "one-hot")
    broken = (data.encoding.project(counterfactuals) != counterfactuals).any(axis=1)
    require(
        not broken.any(),
        f"{broken.sum()} of {len(counterfactuals)} counterfactuals contain fractions of levels or steps",
    )


SLACK = 1e-9
"""Tolerance for rounding errors."""


def _under_constraints(subject: Subject, constraint: str) -> tuple[FloatArray, FloatArray, PreparedDataset]:
    """(A, d) the counterfactuals found under constraints, their factuals (A, d), and the data set."""
    if not _can(subject, "constraints", constraint):
        raise NotApplicable(f"it does not declare constraints {constraint}")
    factuals, data, explanation = _explained(subject, constrained=True)
    counterfactuals = explanation.stacked()[:, 0]
    found = complete(counterfactuals)
    # No two rows of the example agree in an immutable number, so whoever returns existing rows may find none.
    if subject.spec.details.get("rows") != "existing":
        require(bool(found.any()), "it finds nothing with immutable and one-way columns")
    return counterfactuals[found], factuals.vectors[found], data


def returns_one_detail_per_factual(subject: Subject) -> None:
    """Does every detail have one number for each factual, or NaN, also for an empty batch?"""
    for rows in (slice(0, 24), slice(0, 1), slice(0, 0)):
        factuals, _, explanation = _explained(subject, rows)
        for name, values in explanation.details.items():
            shape = np.shape(values)
            require(shape == (len(factuals),), f"{name!r} has shape {shape} for {len(factuals)} factuals")
            require(not np.isinf(np.asarray(values, dtype=np.float64)).any(), f"{name!r} contains infinity")


def returns_several_counterfactuals(subject: Subject) -> None:
    """Does it return up to three distinct counterfactuals on request, also for a factual alone?"""
    if not _can(subject, "counterfactuals", "several"):
        raise NotApplicable("it generates one counterfactual")
    factuals, data, explanation = _explained(subject, per_instance=SEVERAL)
    counterfactuals, wanted = explanation.stacked(), (len(factuals), SEVERAL, data.encoding.width)
    require(counterfactuals.shape == wanted, f"has shape {counterfactuals.shape}, must be {wanted}")
    found = np.asarray(~np.isnan(counterfactuals).any(axis=2))
    require(bool((found.sum(axis=1) > 1).any()), "no factual has more than one counterfactual")
    for own, there in zip(counterfactuals, found, strict=True):
        different = len(np.unique(own[there], axis=0))
        require(different == there.sum(), "two counterfactuals of a factual are equal")
    for place in (0, 23):
        alone = _explained(subject, slice(place, place + 1), per_instance=SEVERAL)[2].stacked()[0]
        same = np.allclose(alone, counterfactuals[place], rtol=0, atol=SLACK, equal_nan=True)
        require(same, f"factual {place} gets different counterfactuals alone")


EXPLAINER_CHECKS = checks_of(
    returns_rows_or_nan,
    finds_counterfactuals,
    is_reproducible,
    does_not_depend_on_the_batch,
    does_not_modify_its_inputs,
    handles_an_empty_batch,
    handles_a_constant_model,
    respects_immutable_columns,
    stays_in_range,
    satisfies_constraints_between_columns,
    returns_valid_one_hot_groups,
    returns_one_detail_per_factual,
    returns_several_counterfactuals,
)
