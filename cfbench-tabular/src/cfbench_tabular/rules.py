"""Rules between numeric columns: an area is a product, a share is a quotient, one date is not before another.

A rule is data, not a formula: it is written in YAML, stays with a saved problem, and nothing is evaluated.

    rules:
      - {column: area, relation: product, of: [height, length], absolute: 0.5}
      - {column: area, relation: product, of: [radius, radius], factor: 3.14159, relative: 0.1}
      - {column: share, relation: ratio, of: [part, whole], absolute: 0.0005}
      - {column: age, relation: at_least, of: [years_worked]}

They are two-sided (the study of paper 003 checked one side only) and hold for every row of the table that
they come with, which the table checks. The tolerance is for what the file rounds; where a number could not be
computed (a division by zero) the rule does not hold.
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
"""Share of the larger number that both sides may differ by the rounding of arithmetic alone."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """``column`` is ``factor`` times the product, ratio, sum or difference of the columns ``of``, or keeps to
    one side of that sum (``at_least``, ``at_most``), within ``absolute + relative * |what it should be|``."""

    column: Annotated[str, Help("the column that the rule is about")]
    relation: Annotated[Relation, Help("what it is of the columns 'of'")]
    of: Annotated[tuple[str, ...], Help("other columns; two for a ratio or a difference")]
    factor: Annotated[float, Help("times this")] = 1.0
    absolute: Annotated[float, Range(minimum=0), Help("how far off it may be")] = 0.0
    relative: Annotated[float, Range(minimum=0), Help("and this share of what it should be")] = 0.0

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
        """Every column that it speaks of."""
        return (self.column, *self.of)

    def holds(self, values: Mapping[str, FloatArray]) -> BoolArray:
        """(N,) for which of N rows, given by column as raw numbers, it holds. Not where one is NaN."""
        found, wanted = values[self.column], self.wanted(values)
        with np.errstate(invalid="ignore"):
            over = found - wanted
            slack = SLACK * np.maximum(np.abs(found), np.abs(wanted))
            tolerance = self.absolute + self.relative * np.abs(wanted) + slack
            high = True if self.relation == "at_least" else over <= tolerance
            low = True if self.relation == "at_most" else over >= -tolerance
        return np.asarray(np.isfinite(over) & high & low)

    def wanted(self, values: Mapping[str, FloatArray]) -> FloatArray:
        """(N,) what the column should be, or keep to one side of."""
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


def rules_hold(rules: Iterable[Rule], values: Mapping[str, FloatArray]) -> BoolArray:
    """(N,) for which of N rows, given by column as raw numbers, all rules hold; of columns without rules, all."""
    rows = len(next(iter(values.values())))
    good = np.ones(rows, dtype=np.bool_)
    for rule in rules:
        good &= rule.holds(values)
    return good
