"""Rows as vectors: numeric columns standardised, categories one-hot, two-valued columns one 0/1 column.

Everything that counts in standard deviations or in levels happens in this encoded space; people see raw
values.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.rules import Rule, rules_hold
from cfbench_tabular.table import AnyArray, BoolArray, Column, FloatArray, IntArray, Table

DIGITS = 12
"""Decimals of a standard deviation that a decoded number keeps, so that 5.1 comes back as 5.1."""


@dataclass(frozen=True)
class Encoding:
    """How a row of M columns becomes a vector of d numbers, and back.

    Attributes:
        columns: M of them; each takes one or more neighbouring places of the vector, in order.
        mean, scale: (M,) of the rows that the encoding was fitted on; 0 and 1 for categorical columns.
        low, high: (M,) observed range of each numeric column in the whole table, encoded; 0 and 1 for
            categorical.
        rules: between numeric columns, in raw values.
    """

    columns: tuple[Column, ...]
    mean: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray
    rules: tuple[Rule, ...] = ()

    @staticmethod
    def fit(table: Table, rows: IntArray) -> Encoding:
        """Mean and standard deviation of ``rows`` (the training split), ranges of all rows.

        A column without spread keeps the scale 1.
        """
        size = len(table.columns)
        mean, scale, low, high = np.zeros(size), np.ones(size), np.zeros(size), np.ones(size)
        for place, column in enumerate(table.columns):
            if column.kind == "numeric":
                values = table.values[column.name]
                mean[place] = values[rows].mean()
                spread = values[rows].std()
                scale[place] = spread if spread > 1e-12 * max(1.0, abs(mean[place])) else 1.0
                low[place] = (values.min() - mean[place]) / scale[place]
                high[place] = (values.max() - mean[place]) / scale[place]
        return Encoding(table.columns, mean, scale, low, high, table.rules)

    # Layout

    @functools.cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The places of each column in the vector."""
        stops = np.cumsum([_width(column) for column in self.columns])
        return tuple(
            slice(int(stop) - _width(column), int(stop))
            for column, stop in zip(self.columns, stops, strict=True)
        )

    @functools.cached_property
    def groups(self) -> tuple[slice, ...]:
        """The places of the one-hot columns (three levels or more)."""
        return tuple(block for block in self.blocks if block.stop - block.start > 1)

    @property
    def width(self) -> int:
        """d, the length of an encoded row."""
        return int(self.blocks[-1].stop)

    @functools.cached_property
    def column_of(self) -> IntArray:
        """(d,) the number of the column that each place belongs to."""
        return np.repeat(np.arange(len(self.columns)), [_width(column) for column in self.columns])

    @functools.cached_property
    def numeric(self) -> BoolArray:
        """(d,) which places are numeric."""
        return np.array([column.kind == "numeric" for column in self.columns])[self.column_of]

    @functools.cached_property
    def immutable(self) -> BoolArray:
        """(d,) which places a counterfactual should leave alone."""
        return np.array([column.immutable for column in self.columns])[self.column_of]

    @functools.cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """(d,) and (d,): the observed range of numeric places, 0 to 1 elsewhere."""
        return self.low[self.column_of], self.high[self.column_of]

    def allowed(self, factuals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(B, d) and (B, d): between what a counterfactual of each factual (B, d) should stay.

        The range of its column, cut where the column only goes up or down, and the factual's own value where
        it is immutable. Always holds the factual itself, also one that is out of the observed range. Levels of
        a category have no order: a direction counts for numbers and for two-valued columns.
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
            UserError: for a level that the column does not have, or text where a number belongs.
        """
        parts = [self.encode_column(place, values[column.name]) for place, column in enumerate(self.columns)]
        return np.concatenate(parts, axis=1)

    def encode_column(self, place: int, values: AnyArray) -> FloatArray:
        """(N, width) the part of the vectors that column number ``place`` takes."""
        column = self.columns[place]
        if column.kind == "numeric":
            try:
                numbers = np.asarray(values, dtype=np.float64)
            except ValueError as error:
                raise UserError(f"column {column.name!r}: must be a number ({error})") from None
            standardised: FloatArray = (numbers - self.mean[place]) / self.scale[place]
            return standardised[:, None]
        position = {level: index for index, level in enumerate(column.levels)}
        unknown = [value for value in values if value not in position]
        if unknown:
            known = ", ".join(column.levels)
            raise UserError(f"column {column.name!r}: no level {unknown[0]!r}; there are {known}")
        index = np.array([position[value] for value in values], dtype=np.int64)
        if _width(column) == 1:
            return index[:, None].astype(np.float64)
        one_hot: FloatArray = np.eye(len(column.levels))[index]
        return one_hot

    def decode(self, vectors: FloatArray) -> dict[str, AnyArray]:
        """The N rows of (N, d) vectors, by column.

        Raises:
            ValueError: when a category is not exactly one level: such a vector is no row.
        """
        rows: dict[str, AnyArray] = {}
        for place, (column, block) in enumerate(zip(self.columns, self.blocks, strict=True)):
            part = vectors[:, block]
            if column.kind == "numeric":
                rows[column.name] = self.decode_number(place, part[:, 0])
                continue
            levels = levels_of(part)
            if (levels < 0).any():
                raise ValueError(
                    f"row {np.argmax(levels < 0)}: column {column.name!r} is not exactly one level"
                )
            rows[column.name] = np.array(column.levels, dtype=object)[levels]
        return rows

    def decode_number(self, place: int, encoded: FloatArray) -> FloatArray:
        """Raw numbers of a numeric column, rounded to ``DIGITS`` decimals of its standard deviation."""
        decimals = DIGITS - int(np.floor(np.log10(self.scale[place])))
        numbers: FloatArray = np.round(encoded * self.scale[place] + self.mean[place], min(decimals, 22))
        return numbers

    def rules_hold(self, vectors: FloatArray) -> BoolArray:
        """(N,) which of the vectors (N, d) keep every rule between columns; those that are NaN do not.

        Only numbers count: a vector with half a level of some category may keep them.
        """
        places = {column.name: place for place, column in enumerate(self.columns)}
        spoken_of = {name: places[name] for rule in self.rules for name in rule.columns}
        values = {
            name: self.decode_number(place, vectors[:, self.blocks[place].start])
            for name, place in spoken_of.items()
        }
        kept = rules_hold(self.rules, values) if values else np.ones(len(vectors), dtype=np.bool_)
        return np.asarray(kept & ~np.isnan(vectors).any(axis=1))

    def project(self, vectors: FloatArray) -> FloatArray:
        """The nearest vectors that are rows: the largest level of each category, 0/1 columns rounded."""
        nearest = vectors.copy()
        for column, block in zip(self.columns, self.blocks, strict=True):
            if column.kind == "numeric":
                continue
            if block.stop - block.start == 1:
                nearest[:, block] = vectors[:, block] >= 0.5
            else:
                nearest[:, block] = np.eye(block.stop - block.start)[vectors[:, block].argmax(axis=1)]
        return nearest

    def typical(self, vectors: FloatArray) -> FloatArray:
        """(d,) the mean of the numeric columns and the most frequent level of the categorical ones.

        ``vectors``: (N, d). Of levels equally frequent, the first.
        """
        middle: FloatArray = vectors.mean(axis=0)
        return np.where(self.numeric, middle, self.project(middle[None])[0])

    # Storage

    def to_json(self) -> dict[str, Any]:
        return {
            "columns": [asdict(column) for column in self.columns],
            **{name: getattr(self, name).tolist() for name in ("mean", "scale", "low", "high")},
            "rules": [asdict(rule) for rule in self.rules],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Encoding:
        columns = tuple(Column(**{**told, "levels": tuple(told["levels"])}) for told in document["columns"])
        mean, scale, low, high = (np.array(document[name]) for name in ("mean", "scale", "low", "high"))
        rules = tuple(Rule(**{**told, "of": tuple(told["of"])}) for told in document.get("rules", ()))
        return Encoding(columns, mean, scale, low, high, rules)


def levels_of(part: FloatArray) -> IntArray:
    """(N,) the levels in a categorical column's encoded ``part`` (N, width); -1 where it is not one."""
    if part.shape[1] == 1:
        part = np.concatenate([1.0 - part, part], axis=1)
    exact = ((part == 0.0) | (part == 1.0)).all(axis=1) & (part.sum(axis=1) == 1.0)
    return np.where(exact, part.argmax(axis=1), -1)


def _width(column: Column) -> int:
    return len(column.levels) if len(column.levels) > 2 else 1
