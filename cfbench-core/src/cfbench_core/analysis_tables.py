"""Helpers for the tables of analyses, which may have been read back from a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def with_empty_text(table: pd.DataFrame, columns: Iterable[str]) -> pd.DataFrame:
    """The table with "" in place of the missing values of some text columns; columns that it lacks are ignored."""
    present = [name for name in columns if name in table.columns]
    return table.assign(
        **{name: table[name].astype(object).where(table[name].notna(), "") for name in present}
    )


def group_rows(table: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows of each combination of labels, with these labels, in the order of the table; none of an empty table."""
    if table.empty:
        return
    for values, rows in table.groupby(list(names), sort=False, dropna=False):
        yield {n: v.item() if hasattr(v, "item") else v for n, v in zip(names, values, strict=True)}, rows
