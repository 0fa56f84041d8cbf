"""Explanations that satisfy the constraints between columns, from explainers that do not know of them.

An explainer queries the model through :class:`ConstrainedModel`, which repairs each row before the model sees it
(``dependent_columns.py``): to change the height is to change the area. A row that cannot be repaired within the limits of
the factual is in the factual's class, so that no search ends there. The rows that the explainer returns are repaired
in the same way, and are therefore in the class that it found. Of a set, those are left out that the repair brings closer
to an earlier one than the explainer promises (its option ``minimum_distance``), and those that contain
the changes of another one.

The limits of the constrained columns are those of one factual where such a column is immutable or one-way, or where the
factual is outside of its range; all other factuals of a class share them. Explainers that solve a programme with the
parameters of the model instead of querying it (``optimum``, ``mace``, ``tree-optimum``) have the constraints in their
programmes; they declare that and are called as they are, with ``context.respects_constraints``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier, DifferentiableClassifier
from cfbench_tabular.classifiers.base import Wrapped
from cfbench_tabular.contracts import Explainer
from cfbench_tabular.dependent_columns import DependentColumns
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.counterfactual_sets import distinct
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete


def explain_with_constraints(
    explainer: Explainer, model: Classifier, factuals: Factuals, context: Context
) -> Explanation:
    """The explanation of ``explainer``, whose counterfactuals satisfy the constraints of ``context.encoding``."""
    if not context.encoding.constraints or context.respects_constraints:
        return Explanation.of(explainer.counterfactuals(model, factuals, context))
    counterfactuals, details = None, {}
    for members in _groups(context.encoding, factuals):
        own = Factuals(
            factuals.vectors[members], factuals.classes[members], tuple(factuals.units[at] for at in members)
        )
        constrained = _constrained(model, context.encoding, own)
        retrained = tuple(
            cast(Classifier, _constrained(one, context.encoding, own)) for one in context.retrained
        )
        given_context = replace(context, retrained=retrained)
        found = Explanation.of(explainer.counterfactuals(cast(Classifier, constrained), own, given_context))
        rows = found.checked(own, context, type(explainer).__name__).copy()
        given = complete(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:-1])
        rows[given] = constrained.repaired(rows[given])[0]
        rows = _alternatives(rows, given, explainer, Dominance(context.encoding, own.vectors))
        if counterfactuals is None:
            counterfactuals = np.full((len(factuals), *rows.shape[1:]), np.nan)
            details = {name: np.full(len(factuals), np.nan) for name in found.details}
        counterfactuals[members] = rows
        for name, values in found.details.items():
            details[name][members] = values
    if counterfactuals is None:
        return Explanation.of(explainer.counterfactuals(model, factuals, context))
    return Explanation(counterfactuals, details)


def _alternatives(
    sets: FloatArray, given: BoolArray, explainer: Explainer, dominance: Dominance
) -> FloatArray:
    """Sets (B, n, d) without the rows that, repaired, are too close to an earlier one of their set, or contain the changes
    of another one; NaN last."""
    remaining = distinct(sets, given, _minimum_distance(explainer))
    if _promises_alternatives(explainer):
        remaining = dominance.undominated(sets, remaining)
    order = np.argsort(~remaining, axis=1, kind="stable")
    spaced = np.where(remaining[..., None], sets, np.nan)
    return np.take_along_axis(spaced, order[..., None], axis=1)


def _promises_alternatives(explainer: Explainer) -> bool:
    """Whether none of its counterfactuals contains the changes of another one: if they have a minimum distance, and the
    method is not as published."""
    config = getattr(explainer, "config", None)
    return hasattr(config, "minimum_distance") and getattr(config, "loop", "") != "published"


def _minimum_distance(explainer: Explainer) -> float:
    """What its option of that name promises for two of its counterfactuals; without one, that they differ."""
    return float(getattr(getattr(explainer, "config", None), "minimum_distance", 0.0))


class ConstrainedModel(Wrapped):
    """A model of rows that are repaired first; where that is impossible, it predicts ``label``, the factuals' class."""

    def __init__(self, model: Classifier, dependent: DependentColumns, label: int) -> None:
        self._model, self._dependent, self._label = model, dependent, label

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def repaired(self, vectors: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The rows (n, d) that the model receives for rows (n, d), and (n,) which of them are possible."""
        return self._dependent.repaired(vectors)

    def predict_proba(self, vectors: FloatArray) -> FloatArray:
        """(n, 2) probabilities of class 0 and class 1 of the repaired rows."""
        rows, possible = self.repaired(vectors)
        found: FloatArray = np.array(self._model.predict_proba(rows), dtype=np.float64)
        found[~possible] = np.eye(2)[self._label]
        return found


class DifferentiableConstrainedModel(ConstrainedModel):
    """The same for a model with gradients, which follow the constraints by the chain rule."""

    _model: DifferentiableClassifier

    def log_odds_gradient(self, vectors: FloatArray) -> FloatArray:
        """(n, d) derivative of log(p1 / p0) of the repaired rows with respect to the rows (n, d)."""
        rows, _ = self.repaired(vectors)
        return self._dependent.pulled_back(self._model.log_odds_gradient(rows), vectors, rows)


def _constrained(model: Classifier, encoding: Encoding, factuals: Factuals) -> ConstrainedModel:
    """The model for factuals of one class, whose limits in constrained columns agree."""
    low, high = encoding.bounds
    if _own_limits(encoding, factuals.vectors)[0]:
        low, high = (side[0] for side in encoding.allowed(factuals.vectors))
    kind = DifferentiableConstrainedModel if hasattr(model, "log_odds_gradient") else ConstrainedModel
    dependent = DependentColumns(encoding, low, high)
    return kind(cast(DifferentiableClassifier, model), dependent, int(factuals.classes[0]))


def _own_limits(encoding: Encoding, vectors: FloatArray) -> BoolArray:
    """(B,) which of the factuals (B, d) have limits of their own in a column that repairs change.

    All, where such a column is immutable or one-way; else those outside of the range of one.
    """
    names = {name for one in encoding.constraints for name in (one.column, one.of[0])}
    own = np.zeros(len(vectors), dtype=np.bool_)
    low, high = encoding.bounds
    for column, block in zip(encoding.columns, encoding.blocks, strict=True):
        if column.name in names:
            numbers = vectors[:, block.start]
            own |= column.immutable or column.direction != "any"
            own |= (numbers < low[block.start]) | (numbers > high[block.start])
    return own


def _groups(encoding: Encoding, factuals: Factuals) -> Iterator[IntArray]:
    """The indices of factuals that share a model: those of one class, or each alone."""
    alone = _own_limits(encoding, factuals.vectors)
    yield from np.flatnonzero(alone)[:, None]
    for label in (0, 1):
        members = np.flatnonzero((factuals.classes == label) & ~alone)
        if len(members):
            yield members
