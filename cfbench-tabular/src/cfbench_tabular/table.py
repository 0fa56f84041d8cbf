"""A table as it was read: named and typed columns, and the class of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.rules import Rule

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
IntArray = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
AnyArray = np.ndarray[tuple[int, ...], np.dtype[Any]]


def complete(vectors: FloatArray) -> BoolArray:
    """(B,) which rows of (B, d) hold no NaN: of counterfactuals, those that are answers."""
    found: BoolArray = np.asarray(~np.isnan(vectors).any(axis=1))
    return found


@dataclass(frozen=True)
class Column:
    """A feature.

    Attributes:
        levels: the values of a categorical column, as text, in order; empty when numeric.
        immutable: a counterfactual should not change it (where somebody was born).
        direction: a counterfactual should only raise it ("up": age) or only lower it ("down").
    """

    name: str
    kind: Literal["numeric", "categorical"] = "numeric"
    levels: tuple[str, ...] = ()
    immutable: bool = False
    direction: Literal["any", "up", "down"] = "any"


@dataclass(frozen=True)
class Table:
    """N rows of a data set. A row is named by its place in the file, from 0.

    Attributes:
        name: of the data set.
        columns: the features, in order.
        values: for each column by name, (N,) float64 when numeric, else (N,) text.
        target: (N,) the class of each row, as text.
        target_class: the class to tell from the rest; None for the most frequent one, of equally
            frequent ones the last by name, as in the study of paper 003.
        rules: between numeric columns; every row keeps them.
    """

    name: str
    columns: tuple[Column, ...]
    values: Mapping[str, AnyArray]
    target: AnyArray
    target_class: str | None = None
    rules: tuple[Rule, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            raise UserError(f"{self.name}: has no feature columns")
        if len({column.name for column in self.columns}) < len(self.columns):
            raise UserError(f"{self.name}: two columns have the same name")
        for column in self.columns:
            self._check(column)
        for rule in self.rules:
            self._check_rule(rule)

    def __len__(self) -> int:
        return len(self.target)

    def classes(self) -> tuple[str, str]:
        """Names of the classes 0 and 1: the rest, and the target class.

        Raises:
            UserError: when there is one class only, or none of the name that was asked for.
        """
        names, counts = np.unique(self.target, return_counts=True)
        if len(names) < 2:
            raise UserError(
                f"{self.name}: every row has the class {names[0]!r}, so there is nothing to tell apart"
            )
        majority = str(names[counts == counts.max()][-1])
        wanted = self.target_class if self.target_class is not None else majority
        if wanted not in names:
            raise UserError(f"{self.name}: no row has the class {wanted!r}; there are {', '.join(names)}")
        rest = [str(name) for name in names if name != wanted]
        return (rest[0] if len(rest) == 1 else f"not {wanted}"), wanted

    def _check(self, column: Column) -> None:
        values = self.values[column.name]
        if len(values) != len(self):
            raise UserError(
                f"{self.name}: column {column.name!r} has {len(values)} values for {len(self)} rows"
            )
        if column.kind == "numeric":
            bad = ~np.isfinite(values)
            if bad.any():
                raise UserError(
                    f"{self.name}: column {column.name!r} is missing or infinite in {bad.sum()} rows "
                    f"(the first is row {np.argmax(bad)}): fill them in or drop them"
                )
            return
        if len(column.levels) < 2:
            raise UserError(
                f"{self.name}: column {column.name!r} has the one level {', '.join(column.levels)!r}, so it tells "
                "nothing and nothing in it can change: leave it out"
            )
        unknown = sorted(set(values.tolist()) - set(column.levels), key=str)
        if unknown:
            raise UserError(
                f"{self.name}: column {column.name!r} has values that are not among its levels: {unknown}"
            )

    def _check_rule(self, rule: Rule) -> None:
        kinds = {column.name: column.kind for column in self.columns}
        for name in rule.columns:
            if name not in kinds:
                hint = did_you_mean(name, kinds)
                raise UserError(f"{self.name}: rule {str(rule)!r}: no column {name!r}.{hint}")
            if kinds[name] != "numeric":
                raise UserError(f"{self.name}: rule {str(rule)!r}: column {name!r} is not numeric")
        broken = ~rule.holds(self.values)
        if broken.any():
            row = int(np.argmax(broken))
            raise UserError(
                f"{self.name}: rule {str(rule)!r} does not hold in {broken.sum()} rows (the first is row {row}: "
                f"{rule.column} is {self.values[rule.column][row]:g}, not {rule.wanted(self.values)[row]:g}): "
                "widen its tolerance, or drop the rule or the rows"
            )
