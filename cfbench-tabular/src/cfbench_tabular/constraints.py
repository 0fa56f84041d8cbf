"""Constraints between numeric columns, such as: the area is a product, a share is a ratio.

A constraint is data, not code: it is written in YAML and stored with the data set; nothing is evaluated.

    constraints:
      - {column: area, relation: product, of: [height, length], absolute: 0.5}
      - {column: area, relation: product, of: [radius, radius], factor: 3.14159, relative: 0.1}
      - {column: share, relation: ratio, of: [part, whole], absolute: 0.0005}
      - {column: age, relation: at_least, of: [years_worked]}

Constraints are two-sided (CF-tabular checks one side only) and hold for every row of their table, which the table
checks. The tolerance covers the rounding of the file. A constraint does not hold where its value cannot be computed,
for example because of a division by zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np

from cfbench_core.config import Help, Range

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

Relation = Literal["product", "ratio", "sum", "difference", "at_least", "at_most"]
SIGNS: Mapping[str, str] = {"product": " * ", "ratio": " / ", "sum": " + ", "difference": " - "}
SLACK = 1e-9
"""Share of the larger number by which both sides may differ because of floating-point rounding."""
CANCELLED = 8 * float(np.finfo(np.float64).eps)
"""Share of the terms of a sum or difference by which it may be off, however small it is: 0.1 + 0.2 - 0.3 is not 0."""


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """``column`` is ``factor`` times the product, ratio, sum or difference of the columns ``of``, or lies
    on one side of their sum (``at_least``, ``at_most``), within ``absolute + relative * |expected value|``."""

    column: Annotated[str, Help("the constrained column")]
    relation: Annotated[Relation, Help("its relation to the columns 'of'")]
    of: Annotated[tuple[str, ...], Help("other columns; two for a ratio or a difference")]
    factor: Annotated[float, Help("multiplier of the product, ratio, sum or difference")] = 1.0
    absolute: Annotated[float, Range(minimum=0), Help("absolute tolerance")] = 0.0
    relative: Annotated[float, Range(minimum=0), Help("tolerance as a share of the expected value")] = 0.0

    def __post_init__(self) -> None:
        if self.relation not in get_args(Relation):
            raise ValueError(
                f"relation must be one of {', '.join(get_args(Relation))}, got {self.relation!r}"
            )
        if not self.of or (self.relation in ("ratio", "difference") and len(self.of) != 2):
            wanted = "two columns" if self.relation in ("ratio", "difference") else "a column"
            raise ValueError(f"{self.relation} needs {wanted} in 'of', got {len(self.of)}")

    def __str__(self) -> str:
        """``area = 3.14159 * radius * radius ± 10%``."""
        sides = SIGNS.get(self.relation, " + ").join(self.of)
        if self.factor != 1.0:
            sides = f"{self.factor:g} * {sides if SIGNS.get(self.relation) == ' * ' else f'({sides})'}"
        sign = {"at_least": ">=", "at_most": "<="}.get(self.relation, "=")
        tolerances = [f"{self.absolute:g}"] if self.absolute else []
        if self.relative:
            tolerances.append(f"{100 * self.relative:g}%")
        return " ± ".join([f"{self.column} {sign} {sides}", *tolerances])

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column of the constraint."""
        return (self.column, *self.of)

    def holds(self, values: Mapping[str, FloatArray]) -> BoolArray:
        """(N,) whether it holds for each of N rows of raw numbers, given by column; False for NaN."""
        found, expected = values[self.column], self.expected(values)
        with np.errstate(invalid="ignore"):
            excess = found - expected
            slack = SLACK * np.maximum(np.abs(found), np.abs(expected)) + CANCELLED * self._terms(values)
            tolerance = self.absolute + self.relative * np.abs(expected) + slack
            high = True if self.relation == "at_least" else excess <= tolerance
            low = True if self.relation == "at_most" else excess >= -tolerance
        return np.asarray(np.isfinite(excess) & high & low)

    def _terms(self, values: Mapping[str, FloatArray]) -> FloatArray | float:
        """(N,) the sum of the absolute terms of a sum or difference; 0 for a product or ratio, whose error is relative."""
        if self.relation in ("product", "ratio"):
            return 0.0
        terms = sum(np.abs(np.asarray(values[name], dtype=np.float64)) for name in self.of)
        return np.asarray(abs(self.factor) * terms)

    def expected(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """(N,) the expected value or limit of the column."""
        terms = np.stack([np.asarray(values[name], dtype=np.float64) for name in self.of])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.relation == "product":
                result = terms.prod(axis=0)
            elif self.relation == "ratio":
                result = terms[0] / terms[1]
            elif self.relation == "difference":
                result = terms[0] - terms[1]
            else:
                result = terms.sum(axis=0)
        scaled: FloatArray = self.factor * result
        return scaled


def constraints_hold(constraints: Iterable[Constraint], values: Mapping[str, FloatArray]) -> BoolArray:
    """(N,) whether all constraints hold for each of N rows of raw numbers, given by column."""
    rows = len(next(iter(values.values())))
    good = np.ones(rows, dtype=np.bool_)
    for constraint in constraints:
        good &= constraint.holds(values)
    return good
