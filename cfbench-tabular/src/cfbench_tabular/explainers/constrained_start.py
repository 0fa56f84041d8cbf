"""Where the searches of programmes with constraints between columns start, and which rows they may return."""

from __future__ import annotations

from typing import cast

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.constrained_search import ConstrainedModel
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.dependent_columns import DependentColumns
from cfbench_tabular.explainers.constraint_forms import corrected, raw_columns
from cfbench_tabular.explainers.exact import Reach, nearby
from cfbench_tabular.table import FloatArray

OUTSIDE = 1e-9
"""By how much a limit may be missed, in standard deviations, because of rounding."""


class ConstrainedRows:
    """The rows that the counterfactuals of one factual may be, where they have to satisfy constraints.

    Without constraints, every row may be returned.
    """

    def __init__(
        self, model: Classifier, reach: Reach, label: int, constraints: tuple[Constraint, ...]
    ) -> None:
        self.model, self.reach, self.label, self.constraints = model, reach, label, constraints
        self._columns = raw_columns(reach, constraints)
        self._dependent = DependentColumns(reach.encoding, reach.low, reach.high) if constraints else None

    def start(self, enemies: FloatArray) -> FloatArray | None:
        """(d,) a counterfactual that is made from the training rows ``enemies`` (n, d) of the other class, or None."""
        if self._dependent is None:
            return nearby(self.model, self.reach, self.label, enemies)
        repairing = ConstrainedModel(self.model, self._dependent, self.label)
        found = nearby(cast(Classifier, repairing), self.reach, self.label, enemies)
        return None if found is None else self.feasible(found)

    def feasible(self, row: FloatArray) -> FloatArray | None:
        """The row (d,), corrected for rounding errors or repaired, if it is a counterfactual that may be returned."""
        candidates = [row]
        if self._dependent is not None:
            rounded = corrected(self.constraints, self._columns, self.reach, row)
            candidates = [rounded, self._dependent.repaired(row[None])[0][0]]
        return next((one for one in candidates if self._is_good(one)), None)

    def _is_good(self, row: FloatArray) -> bool:
        low, high = self.reach.low - OUTSIDE, self.reach.high + OUTSIDE
        if self.constraints and not (
            ((row >= low) & (row <= high)).all() and self.reach.encoding.constraints_hold(row[None])[0]
        ):
            return False
        return bool(predicted_classes(self.model, row[None])[0] != self.label)
