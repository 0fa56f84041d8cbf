"""The primary metric of a table: the one column that orders its rows and decides the headline.

Metrics of one table are correlated, so counting in how many of them an explainer is best would count one observation several
times. Each suite declares its primary metrics in its layout, and ``primary_metric`` in a configuration replaces
them. A metric is named by its column, in any case, with or without what is behind an "@" or in parentheses: ``pos-p``
names "POS-P@5", ``st2exp-f1`` names "St2Exp-F1 (overlap)".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plan import Cell, Column, TableLayout


def primary_place(columns: Sequence[Column], primary: Sequence[str]) -> int | None:
    """The place of a table's primary metric; the first with a better direction where none of ``primary`` is there."""
    compared = [place for place, column in enumerate(columns) if column.direction]
    for name in primary:
        for place in compared:
            if name.casefold() in names_of(columns[place]):
                return place
    return compared[0] if compared else None


def names_of(column: Column) -> frozenset[str]:
    """What names a column: "POS-P@5" is also "pos-p@5" and "pos-p"."""
    name = column.name.casefold()
    without_judge = name.partition(" (")[0]
    return frozenset((name, without_judge, without_judge.partition("@")[0]))


def with_primary(layout: TableLayout, chosen: Sequence[str], cells: Iterable[Cell]) -> TableLayout:
    """A layout with the primary metrics of a configuration, where it names any.

    Raises:
        UserError: for a name that no column with a better direction has.
    """
    if not chosen:
        return layout
    columns = {column.name: column for cell in cells for column in cell.columns}
    known = {name for column in columns.values() if column.direction for name in names_of(column)}
    for name in chosen if columns else ():
        if name.casefold() not in known:
            shortest = sorted({min(names_of(c), key=len) for c in columns.values() if c.direction})
            raise UserError(
                f"primary_metric: no metric {name!r} with a better direction in this configuration."
                f"{did_you_mean(name, shortest)} Available: {', '.join(shortest)}"
            )
    return dataclasses.replace(layout, primary=tuple(chosen))
