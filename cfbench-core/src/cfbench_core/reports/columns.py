"""Which columns of a table need no place of their own, so that a table shows only informative columns; and which hold
values that they cannot have.

A column that repeats another, number by number, is mentioned in a note ("Success@5: identical to PN-S@5"). So is a column
without a better direction that has one number in every row, for example one that depends on the model alone.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_core.plan import TIME

if TYPE_CHECKING:
    from cfbench_core.plan import Column
    from cfbench_core.reports.table_data import Number
    from cfbench_core.statistics import UnitValues

SLACK = 1e-9
"""By which rounding may carry a value beyond the range of its column."""


def in_doubt(column: Column, measured: Sequence[UnitValues]) -> Column:
    """The column, doubtful and with a note if values lie outside the range that its metric declares."""
    if column.range is None:
        return column
    low, high = column.range
    values = np.concatenate([np.empty(0), *(cell.column(column.name) for cell in measured)])
    outside = int(((values < low - SLACK) | (values > high + SLACK)).sum())
    if not outside:
        return column
    lie = "value lies" if outside == 1 else "values lie"
    note = (
        f"{column.name}: {outside:,} {lie} outside {low:g} to {high:g}, the range that the metric declares."
    )
    return dataclasses.replace(column, doubtful=True, note=" ".join(filter(None, [column.note, note])))


def repeated(columns: Sequence[Column], lines: Sequence[Sequence[Number]]) -> dict[int, int | None]:
    """Places of the columns to leave out, each with the place that it repeats; None for one number in every row.

    ``lines``: for each line that has numbers, one for each column.
    """
    found: dict[int, int | None] = {}
    for place, column in enumerate(columns):
        if column is TIME or not lines:
            continue
        numbers = [line[place] for line in lines]
        if not column.direction and _constant(numbers):
            found[place] = None
            continue
        for earlier in range(place):
            like = not column.direction or column.direction == columns[earlier].direction
            if like and earlier not in found and numbers_equal(numbers, [line[earlier] for line in lines]):
                found[place] = earlier
                break
    return found


def _constant(numbers: Sequence[Number]) -> bool:
    """One number everywhere. Of a single line only zero counts: any other may be news."""
    return numbers_equal(numbers, [numbers[0]] * len(numbers)) and (len(numbers) > 1 or numbers[0].mean == 0)


def numbers_equal(some: Sequence[Number], others: Sequence[Number]) -> bool:
    return all(
        a == b or (math.isnan(a) and math.isnan(b))
        for one, other in zip(some, others, strict=True)
        for a, b in zip(one, other, strict=True)
    )
