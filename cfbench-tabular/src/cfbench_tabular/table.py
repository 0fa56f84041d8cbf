"""A table as it was read: typed columns and the class of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.column_types import Format, off_step, text_of_number
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.file_rows import EVERY_ROW, FileRows
from cfbench_tabular.file_rows import IntArray as IntArray
from cfbench_tabular.number_range import NumberRange

FloatArray = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
BoolArray = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
AnyArray = np.ndarray[tuple[int, ...], np.dtype[Any]]


def complete(vectors: FloatArray) -> BoolArray:
    """(B,) which rows of (B, d) contain no NaN, that is, for which factuals a counterfactual was found."""
    found: BoolArray = np.asarray(~np.isnan(vectors).any(axis=1))
    return found


@dataclass(frozen=True)
class Column:
    """A feature.

    Attributes:
        levels: the values of a categorical column, as text, in order; empty for a numeric column.
        immutable: a counterfactual must not change the column (for example the birthplace).
        direction: a counterfactual may only increase ("up", for example the age) or only decrease it ("down").
        step: the values of a numeric column are multiples of it: 1 for whole numbers; None: any number.
        ordered: the levels are in ascending order, so that a direction applies to them.
        unit: of measurement, for sentences and reports.
        low, high: the range of the counterfactuals of a numeric column; None: the observed minimum and maximum.
        format: what the numbers mean: a date is the number of days since 1970-01-01, a time that of seconds.
        epoch: how the file counts dates or times as numbers: spreadsheet or unix; "" if it holds them as text.
    """

    name: str
    kind: Literal["numeric", "categorical"] = "numeric"
    levels: tuple[str, ...] = ()
    immutable: bool = False
    direction: Literal["any", "up", "down"] = "any"
    step: float | None = None
    ordered: bool = False
    unit: str = ""
    low: float | None = None
    high: float | None = None
    format: Format = "number"
    epoch: str = ""

    def __post_init__(self) -> None:
        if self.step is not None and not (0 < self.step < np.inf):
            raise UserError(f"column {self.name!r}: step must be positive, got {self.step}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise UserError(f"column {self.name!r}: range must ascend, got {self.low:g} to {self.high:g}")

    @property
    def scalar(self) -> bool:
        """Whether it is encoded as one standardised number: numeric, or of three ordered levels or more."""
        return self.kind == "numeric" or (self.ordered and len(self.levels) > 2)

    @property
    def spacing(self) -> float | None:
        """The step of its values as numbers: that of the column, 1 between ordered levels; None: any number."""
        return self.step if self.kind == "numeric" else 1.0 if self.scalar else None


FILLED_IN = {
    "median": "the median",
    "mode": "the most frequent value",
    "model": "what a model predicts from the other columns",
}
"""What a missing value was replaced by, in words."""


@dataclass(frozen=True)
class Imputation:
    """The values of a column that were missing in the file and were filled in.

    Attributes:
        method: a key of ``FILLED_IN``.
        rows: the rows, by their positions in the file, ascending.
    """

    method: str
    rows: IntArray


@dataclass(frozen=True)
class Table:
    """N rows of a data set. A row is identified by its position in the file, from 0; ``file_rows`` converts it.

    Attributes:
        name: the name of the data set.
        columns: the features, in order.
        values: the values of each column by its name: (N,) float64 if numeric, else (N,) text.
        target: (N,) the class of each row, as text.
        target_class: the class to predict against the rest; None for the most frequent one, and of equally frequent
            ones the last by name, as in CF-tabular.
        constraints: constraints between numeric columns, which every row satisfies.
        imputed: the missing values that were filled in, by column; columns without one are left out.
        factual_class: the class of the rows to explain, of several that are not the target; None: all of them.
        numbers: (N,) the numbers behind the classes of a class column of numbers, which regression predicts.
        number_range: those of the target class.
        file_rows: the positions of the rows in the file, and why others were dropped.
    """

    name: str
    columns: tuple[Column, ...]
    values: Mapping[str, AnyArray]
    target: AnyArray
    target_class: str | None = None
    constraints: tuple[Constraint, ...] = ()
    imputed: Mapping[str, Imputation] = field(default_factory=dict)
    factual_class: str | None = None
    numbers: FloatArray | None = None
    number_range: NumberRange | None = None
    file_rows: FileRows = EVERY_ROW

    def __post_init__(self) -> None:
        if not self.columns:
            raise UserError(f"{self.name}: has no feature columns")
        if len({column.name for column in self.columns}) < len(self.columns):
            raise UserError(f"{self.name}: two columns have the same name")
        if self.file_rows.positions is not None and len(self.file_rows.positions) != len(self):
            raise UserError(
                f"{self.name}: has {len(self.file_rows.positions)} positions in the file for {len(self)} rows"
            )
        for column in self.columns:
            self._check(column)
        for constraint in self.constraints:
            self._check_constraint(constraint)

    def __len__(self) -> int:
        return len(self.target)

    def imputed_columns(self, rows: IntArray) -> list[dict[str, str]]:
        """For each of (n,) rows of the file its filled-in columns, with their values as text."""
        found: list[dict[str, str]] = [{} for _ in rows]
        for column in self.columns:
            if column.name in self.imputed:
                for place in np.flatnonzero(np.isin(rows, self.imputed[column.name].rows)):
                    found[place][column.name] = self.text(column, int(self.file_rows.indices(rows[place])))
        return found

    def texts(self, row: int) -> dict[str, str]:
        """The values of a row of the file as text, by column."""
        index = int(self.file_rows.indices(row))
        return {column.name: self.text(column, index) for column in self.columns}

    def text(self, column: Column, index: int) -> str:
        """A value as text, as explanations show it: a number with the decimals of its column, a date in ISO 8601."""
        value = self.values[column.name][index]
        numeric = column.kind == "numeric"
        return text_of_number(float(value), column.format, column.step) if numeric else str(value)

    def classes(self) -> tuple[str, str]:
        """Names of the classes 0 and 1: the rest, and the target class.

        Raises:
            UserError: if there is only one class, or no row of the target class.
        """
        names, counts = np.unique(self.target, return_counts=True)
        if len(names) < 2:
            raise UserError(
                f"{self.name}: every row has the class {names[0]!r}, so there is nothing to predict"
            )
        majority = str(names[counts == counts.max()][-1])
        chosen = self.target_class if self.target_class is not None else majority
        if chosen not in names:
            raise UserError(f"{self.name}: no row has the class {chosen!r}; there are {', '.join(names)}")
        rest = [str(name) for name in names if name != chosen]
        return (rest[0] if len(rest) == 1 else f"not {chosen}"), chosen

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
                    f"(the first is row {self.file_rows.in_file(np.argmax(bad))}): fill them in or drop them"
                )
            off = off_step(values, column.step) if column.step is not None else bad
            if off.any():
                index = int(np.argmax(off))
                raise UserError(
                    f"{self.name}: row {self.file_rows.in_file(index)}: column {column.name!r}: {values[index]:.12g} is "
                    f"not a multiple of its step {column.step:g}: correct the value or the type of the column"
                )
            return
        if len(column.levels) < 2:
            raise UserError(
                f"{self.name}: column {column.name!r} has only the level {', '.join(column.levels)!r}, so it carries "
                "no information and cannot change: remove it"
            )
        unknown = sorted(set(values.tolist()) - set(column.levels), key=str)
        if unknown:
            raise UserError(
                f"{self.name}: column {column.name!r} has values that are not among its levels: {unknown}"
            )

    def _check_constraint(self, constraint: Constraint) -> None:
        kinds = {column.name: column.kind for column in self.columns}
        for name in constraint.columns:
            if name not in kinds:
                hint = did_you_mean(name, kinds)
                raise UserError(f"{self.name}: constraint {str(constraint)!r}: no column {name!r}.{hint}")
            if kinds[name] != "numeric":
                raise UserError(
                    f"{self.name}: constraint {str(constraint)!r}: column {name!r} is not numeric"
                )
        violated = ~constraint.holds(self.values)
        if violated.any():
            index = int(np.argmax(violated))
            found, expected = self.values[constraint.column][index], constraint.expected(self.values)[index]
            row = self.file_rows.in_file(index)
            raise UserError(
                f"{self.name}: constraint {str(constraint)!r} is violated in {violated.sum()} rows (first: row {row}: "
                f"{constraint.column} is {found:g}, not {expected:g}): "
                "increase its tolerance, or remove the constraint or the rows"
            )
