"""How much of a large run stands on the page, which must open in a browser: the rest is in ``summary.csv`` next to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cfbench_core.reports.table_data import Table

OF_TABLE = 100
"""Rows of one table that are shown: the best ones, then the first controls."""

OF_PAGE = 1000
"""Rows of all tables; further tables are only counted. The first table is always shown."""


def limited(tables: Sequence[Table]) -> list[Table]:
    """The first tables, each with its first rows."""
    shown: list[Table] = []
    rows = 0
    for table in map(_limited, tables):
        rows += len(table.lines)
        if shown and rows > OF_PAGE:
            break
        shown.append(table)
    return shown


def _limited(table: Table) -> Table:
    competitors = [row for row in table.lines if not row.role]
    controls = [row for row in table.lines if row.role]
    best = competitors[: max(OF_TABLE - len(controls), OF_TABLE // 2)]
    chosen = {id(row) for row in [*best, *controls[: OF_TABLE - len(best)]]}
    rows = tuple(row for row in table.rows if row.status == "skipped" or id(row) in chosen)
    return replace(table, rows=rows, left_out=len(table.lines) - len(chosen))
