"""Encoding of rows as vectors: standardised numbers, one-hot categories, and 0/1 for columns of two levels.

Ordered levels (three or more) are encoded as one standardised number, their rank. The values of numeric columns with
a step, and ranks, form a grid in the encoded space; see :mod:`cfbench_tabular.grid`.

Explainers and metrics work in the encoded space; explanations and reports show raw values.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.column_types import OFF, nearest_multiple, number_of, off_step
from cfbench_tabular.constraints import Constraint, constraints_hold
from cfbench_tabular.grid import Grid, Limits
from cfbench_tabular.table import AnyArray, BoolArray, Column, FloatArray, IntArray, Table

DIGITS = 12
"""Decimals of a standard deviation that a decoded number is rounded to, so that 5.1 is decoded as 5.1."""


@dataclass(frozen=True)
class Encoding:
    """The mapping between rows of M columns and vectors of d numbers.

    Attributes:
        columns: the M columns; each occupies one or more adjacent positions of the vector, in order.
        mean, scale: (M,) mean and standard deviation of the fitted rows; 0 and 1 for unordered categories.
        low, high: (M,) range of each numeric column, encoded: that of the column, or else the observed one in the
            whole table; first and last rank of ordered levels; 0 and 1 for unordered categories.
        constraints: between numeric columns, in raw values.
    """

    columns: tuple[Column, ...]
    mean: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    constraints: tuple[Constraint, ...] = ()

    @staticmethod
    def fit(table: Table, rows: IntArray) -> Encoding:
        """Mean and standard deviation of ``rows`` (the training split), ranges of all rows.

        A column without spread keeps the scale 1.
        """
        size = len(table.columns)
        mean, scale, low, high = np.zeros(size), np.ones(size), np.zeros(size), np.ones(size)
        for place, column in enumerate(table.columns):
            if column.scalar:
                values = _numbers(column, table.values[column.name])
                mean[place] = values[rows].mean()
                spread = values[rows].std()
                scale[place] = spread if spread > 1e-12 * max(1.0, abs(mean[place])) else 1.0
                least, most = _range(column, values)
                low[place] = (least - mean[place]) / scale[place]
                high[place] = (most - mean[place]) / scale[place]
        return Encoding(table.columns, mean, scale, low, high, table.constraints)

    # Layout

    @functools.cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The positions of each column in the vector."""
        stops = np.cumsum([_width(column) for column in self.columns])
        return tuple(
            slice(int(stop) - _width(column), int(stop))
            for column, stop in zip(self.columns, stops, strict=True)
        )

    @functools.cached_property
    def groups(self) -> tuple[slice, ...]:
        """The positions of the one-hot columns (three levels or more)."""
        return tuple(block for block in self.blocks if block.stop - block.start > 1)

    @functools.cached_property
    def _grouped(self) -> tuple[slice, ...]:
        """The positions of the one-hot columns, adjacent ones together."""
        found: list[slice] = []
        for group in self.groups:
            if found and found[-1].stop == group.start:
                group = slice(found.pop().start, group.stop)
            found.append(group)
        return tuple(found)

    @functools.cached_property
    def _flags(self) -> IntArray:
        """The positions of the unordered columns of two levels."""
        return np.array(
            [
                block.start
                for column, block in zip(self.columns, self.blocks, strict=True)
                if not column.scalar and block.stop - block.start == 1
            ],
            dtype=np.int64,
        )

    @property
    def width(self) -> int:
        """d, the length of an encoded row."""
        return int(self.blocks[-1].stop)

    @functools.cached_property
    def column_of(self) -> IntArray:
        """(d,) the index of the column of each position."""
        return np.repeat(np.arange(len(self.columns)), [_width(column) for column in self.columns])

    @functools.cached_property
    def numeric(self) -> BoolArray:
        """(d,) which positions are standardised numbers: of numeric columns and of ordered levels."""
        return np.array([column.scalar for column in self.columns])[self.column_of]

    @functools.cached_property
    def immutable(self) -> BoolArray:
        """(d,) which positions belong to immutable columns."""
        return np.array([column.immutable for column in self.columns])[self.column_of]

    @functools.cached_property
    def restricted(self) -> IntArray:
        """The positions in which a row of the table may be outside of the limits of a counterfactual (:meth:`allowed`):
        of columns that are immutable, or have a direction or a range of their own."""
        columns = [
            column.immutable or column.direction != "any" or column.low is not None or column.high is not None
            for column in self.columns
        ]
        return np.flatnonzero(np.array(columns)[self.column_of])

    @functools.cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """(d,) and (d,): the range of numeric positions, 0 to 1 elsewhere."""
        return self.low[self.column_of], self.high[self.column_of]

    def allowed(self, factuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, d) and (B, d): the lower and upper limits of the counterfactuals of factuals (B, d).

        They are the range of the column, cut at the factual's value for columns with a direction, and equal to the
        factual's value for immutable columns. The factual always lies within its limits, even if it lies outside the
        range. A direction applies to numbers, to ordered levels and to columns of two levels.
        """
        low, high = self.bounds
        low, high = np.minimum(low, factuals), np.maximum(high, factuals)
        direction = np.array([column.direction for column in self.columns])[self.column_of]
        low = np.where(self.immutable | (direction == "up"), factuals, low)
        return low, np.where(self.immutable | (direction == "down"), factuals, high)

    # Rows

    def encode(self, values: Mapping[str, AnyArray]) -> FloatArray:
        """(N, d) vectors of N rows given by column, as in :class:`~cfbench_tabular.table.Table`.

        Raises:
            UserError: for an unknown level, or for text in a numeric column.
        """
        parts = [self.encode_column(place, values[column.name]) for place, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def encode_column(self, place: int, values: AnyArray) -> FloatArray:
        """(N, width) the part of the vectors that encodes column number ``place``."""
        column = self.columns[place]
        numbers = _numbers(column, values)
        if column.scalar:
            return self.encode_number(place, numbers)[:, None]
        if _width(column) == 1:
            return numbers[:, None]
        one_hot: FloatArray = np.eye(len(column.levels))[numbers.astype(np.int64)]
        return one_hot

    def encode_number(self, place: int, numbers: FloatArray) -> FloatArray:
        """(N,) raw numbers, or ranks of ordered levels, of column number ``place``, standardised."""
        standardised: FloatArray = (numbers - self.mean[place]) / self.scale[place]
        return standardised

    def decode(self, vectors: FloatArray) -> dict[str, AnyArray]:
        """The N rows of (N, d) vectors, by column.

        Raises:
            ValueError: if a category is not exactly one level, so that the vector does not represent a row.
        """
        rows: dict[str, AnyArray] = {}
        for place, (column, block) in enumerate(zip(self.columns, self.blocks, strict=True)):
            part = vectors[:, block]
            if column.kind == "numeric":
                rows[column.name] = self.decode_number(place, part[:, 0])
                continue
            levels = self.ranks(place, part[:, 0]) if column.scalar else levels_of(part)
            if (levels < 0).any():
                raise ValueError(
                    f"row {np.argmax(levels < 0)}: column {column.name!r} is not exactly one level"
                )
            rows[column.name] = np.array(column.levels, dtype=object)[levels]
        return rows

    def decode_number(self, place: int, encoded: FloatArray) -> FloatArray:
        """Raw numbers of a numeric column, or ranks of ordered levels.

        They are rounded to ``DIGITS`` decimals of the standard deviation, and to the step of the column where they miss
        it by a rounding error only.
        """
        decimals = DIGITS - int(np.floor(np.log10(self.scale[place])))
        numbers: FloatArray = np.round(encoded * self.scale[place] + self.mean[place], min(decimals, 22))
        step = self.columns[place].spacing
        if step is None:
            return numbers
        return np.where(off_step(numbers, step), numbers, nearest_multiple(numbers, step))

    def ranks(self, place: int, encoded: FloatArray) -> IntArray:
        """(N,) the levels of the encoded (N,) part of an ordered column; -1 where it is not exactly one level."""
        numbers = self.decode_number(place, encoded)
        exact = (numbers == np.rint(numbers)) & (numbers >= 0) & (numbers < len(self.columns[place].levels))
        return np.where(exact, np.nan_to_num(numbers), -1).astype(np.int64)

    def constraints_hold(self, vectors: FloatArray) -> BoolArray:
        """(N,) which of the vectors (N, d) satisfy every constraint between columns; NaN does not.

        Only numeric columns are checked: a vector with fractions of levels may satisfy the constraints.
        """
        places = {column.name: place for place, column in enumerate(self.columns)}
        used = {name: places[name] for constraint in self.constraints for name in constraint.columns}
        values = {
            name: self.decode_number(place, vectors[:, self.blocks[place].start])
            for name, place in used.items()
        }
        satisfied = (
            constraints_hold(self.constraints, values) if values else np.ones(len(vectors), dtype=np.bool_)
        )
        return np.asarray(satisfied & ~np.isnan(vectors).any(axis=1))

    @functools.cached_property
    def grid(self) -> Grid:
        """The positions whose values come in steps."""
        places = [place for place, column in enumerate(self.columns) if column.spacing is not None]
        positions = np.array([self.blocks[place].start for place in places], dtype=np.int64)
        step = np.array([self.columns[place].spacing for place in places], dtype=np.float64)
        return Grid(positions, step, self.mean[places], self.scale[places])

    def limits(self, factuals: FloatArray | None = None, ranges: bool = True) -> Limits:
        """What the counterfactuals of factuals (B, d) may be; without factuals, what any row may be.

        ``ranges``: False for the steps alone, for explainers that ignore ranges and directions.
        """
        if not ranges or factuals is None:
            low, high = (side[None] for side in self.bounds)
        else:
            low, high = self.allowed(factuals)
        if not ranges:
            shape = low.shape if factuals is None else factuals.shape
            low, high = np.full(shape, -np.inf), np.full(shape, np.inf)
        with_levels = None if self.numeric.all() else self.with_levels
        return Limits(self.grid, low, high, factuals, with_levels)

    def snapped(self, vectors: FloatArray, factuals: FloatArray | None = None) -> FloatArray:
        """(N, d) the vectors with each number moved to the nearest value of its column, within the range.

        With ``factuals`` (N, d): within the limits of their counterfactuals (see :meth:`allowed`); the factual's own
        value is always among the values.
        """
        if not len(self.grid):
            return vectors
        return self.limits(factuals).snapped(vectors)

    def project(self, vectors: FloatArray) -> FloatArray:
        """(N, d) the nearest vectors that represent rows.

        The largest level of each category, 0/1 columns rounded, numbers at the nearest value of their column.
        """
        return self.snapped(self.with_levels(vectors))

    def with_levels(self, vectors: FloatArray) -> FloatArray:
        """(N, d) the vectors with the largest level of each unordered category; numbers are unchanged."""
        nearest = vectors.copy()
        flags = self._flags
        nearest[:, flags] = vectors[:, flags] >= 0.5
        if self.groups:
            largest = np.empty((len(vectors), len(self.groups)), dtype=np.int64)
            for place, block in enumerate(self.groups):
                largest[:, place] = vectors[:, block].argmax(axis=1)
                largest[:, place] += block.start
            for adjacent in self._grouped:
                nearest[:, adjacent] = 0.0
            nearest[np.arange(len(vectors))[:, None], largest] = 1.0
        return nearest

    def typical(self, vectors: FloatArray) -> FloatArray:
        """(d,) the mean of the numeric columns, at their steps, and the most frequent level of the categories.

        ``vectors``: (N, d). Of equally frequent levels, the first.
        """
        middle: FloatArray = vectors.mean(axis=0, keepdims=True)
        found: FloatArray = self.project(middle)[0]
        return found

    # Storage

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [asdict(column) for column in self.columns],
            **{name: getattr(self, name).tolist() for name in ("mean", "scale", "low", "high")},
            "constraints": [asdict(constraint) for constraint in self.constraints],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Encoding:
        columns = tuple(
            Column(**{**fields, "levels": tuple(fields["levels"])}) for fields in document["columns"]
        )
        mean, scale, low, high = (np.array(document[name]) for name in ("mean", "scale", "low", "high"))
        constraints = tuple(
            Constraint(**{**fields, "of": tuple(fields["of"])}) for fields in document.get("constraints", ())
        )
        return Encoding(columns, mean, scale, low, high, constraints)


def levels_of(part: FloatArray) -> IntArray:
    """(N,) the levels in a categorical column's encoded ``part`` (N, width); -1 where it is not exactly one level."""
    if part.shape[1] == 1:
        part = np.concatenate([1.0 - part, part], axis=1)
    exact = ((part == 0.0) | (part == 1.0)).all(axis=1) & (part.sum(axis=1) == 1.0)
    return np.where(exact, part.argmax(axis=1), -1)


def _width(column: Column) -> int:
    return len(column.levels) if len(column.levels) > 2 and not column.ordered else 1


def _numbers(column: Column, values: AnyArray) -> FloatArray:
    """(N,) the raw numbers of a numeric column; the positions of the levels of any other column."""
    if column.kind == "numeric":
        try:
            return np.asarray(values, dtype=np.float64)
        except ValueError:
            pass
        try:  # dates as text
            return np.array([number_of(value, column.format) for value in values])
        except ValueError as error:
            raise UserError(f"column {column.name!r}: must be a {column.format} ({error})") from None
    position = {level: index for index, level in enumerate(column.levels)}
    unknown = [value for value in values if value not in position]
    if unknown:
        known = ", ".join(column.levels)
        raise UserError(f"column {column.name!r}: no level {unknown[0]!r}; there are {known}")
    return np.array([position[value] for value in values], dtype=np.float64)


def _range(column: Column, values: FloatArray) -> tuple[float, float]:
    """The smallest and largest value of a counterfactual, at the steps of the column.

    Raises:
        UserError: if the range of the column contains no multiple of its step.
    """
    if column.kind == "categorical":
        return 0.0, len(column.levels) - 1.0
    low = values.min() if column.low is None else column.low
    high = values.max() if column.high is None else column.high
    if column.step is not None:
        step = column.step
        ends = np.array([np.ceil(low / step - OFF), np.floor(high / step + OFF)])
        low, high = nearest_multiple(ends * step, step)
        if low > high:
            raise UserError(f"column {column.name!r}: its range contains no multiple of {column.step:g}")
    return float(low), float(high)
