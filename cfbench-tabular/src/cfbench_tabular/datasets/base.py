"""The options of every data set, and helpers to construct tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Distinct, Help
from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.column_types import inferred_step, nearest_multiple
from cfbench_tabular.table import AnyArray, Column, Table

if TYPE_CHECKING:
    pass

DIRECTIONS = ("up", "down")


@dataclass(frozen=True, kw_only=True)
class DatasetConfig:
    """Options of every data set."""

    target: Annotated[str | None, Help("class to predict against the rest; none: the majority")] = None
    factual_class: Annotated[
        str | None,
        Help(
            "explain only rows that a model of all classes puts into this class; the wanted class is the target"
        ),
    ] = None
    immutable: Annotated[
        tuple[str, ...], Distinct(), Help("columns that a counterfactual must not change")
    ] = ()
    direction: Annotated[
        Mapping[str, str], Help("columns that may only increase or decrease: {age: up}, {debt: down}")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.factual_class is not None and self.factual_class == self.target:
            raise ValueError(
                f"factual_class and target are both {self.target!r}: a counterfactual changes the class"
            )
        for column, way in self.direction.items():
            if way not in DIRECTIONS:
                raise ValueError(f"direction of {column!r} must be up or down, got {str(way)!r}")
            if column in self.immutable:
                raise ValueError(
                    f"{column!r} is immutable and has the direction {way}: remove one of the two"
                )


def apply_options(table: Table, config: DatasetConfig) -> Table:
    """The table with the target class of the configuration, and its columns marked as immutable or with a direction.

    Raises:
        UserError: for an unknown column, or for a direction of a column whose levels have no order.
    """
    columns = {column.name: column for column in table.columns}
    for name in (*config.immutable, *config.direction):
        if name not in columns:
            hint = did_you_mean(name, columns) or f" There are {', '.join(columns)}"
            raise UserError(f"{table.name}: no column {name!r}.{hint}")
    for name, way in config.direction.items():
        column = columns[name]
        if len(column.levels) > 2 and not column.ordered:
            raise UserError(
                f"{table.name}: column {name!r} has {len(column.levels)} levels without an order, so it cannot "
                f"have the direction {way}; numbers, columns of two levels and columns of type ordinal can"
            )
        columns[name] = dataclasses.replace(column, direction="up" if way == "up" else "down")
    for name in config.immutable:
        columns[name] = dataclasses.replace(columns[name], immutable=True, direction="any")
    if all(column.immutable for column in columns.values()):
        raise UserError(
            f"{table.name}: every column is immutable, so that no counterfactual can exist: remove one from 'immutable'"
        )
    target = config.target if config.target is not None else table.target_class
    if config.factual_class is not None and config.factual_class not in table.target:
        known = ", ".join(np.unique(table.target))
        raise UserError(
            f"{table.name}: factual_class: no row has the class {config.factual_class!r}; there are {known}"
        )
    return dataclasses.replace(
        table, columns=tuple(columns.values()), target_class=target, factual_class=config.factual_class
    )


def categorical(name: str, levels: Mapping[str, tuple[str, ...]], rows: AnyArray, target: AnyArray) -> Table:
    """A table of categories from (N, M) ``rows`` of text, in the order of ``levels``."""
    columns = tuple(Column(column, "categorical", tuple(names)) for column, names in levels.items())
    values = {column.name: rows[:, place].astype(object) for place, column in enumerate(columns)}
    return Table(name, columns, values, target.astype(object))


def from_scikit_learn(name: str, bunch: Any) -> Table:
    """A table of numeric columns from what a ``sklearn.datasets.load_...`` function returns."""
    values = {
        str(column): np.ascontiguousarray(bunch.data[:, place])
        for place, column in enumerate(bunch.feature_names)
    }
    columns = tuple(Column(column, step=inferred_step(numbers)) for column, numbers in values.items())
    for column in columns:
        if column.step is not None:
            values[column.name] = nearest_multiple(values[column.name], column.step)
    target = np.array([str(label) for label in bunch.target_names], dtype=object)[bunch.target]
    return Table(name, columns, values, target)
