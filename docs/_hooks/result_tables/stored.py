"""Reads the tables of docs/results/, and writes a table in Markdown."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from tabulate import tabulate

RESULTS = Path(__file__).parents[2] / "results"


def stored(name: str) -> pd.DataFrame:
    """The table of this name in docs/results/."""
    return pd.read_csv(RESULTS / f"{name}.csv")


def with_intervals(table: pd.DataFrame) -> pd.Series:
    """Each mean with half its interval, as ``0.512 ±0.031``."""
    pairs = zip(table["mean"], table["interval"], strict=True)
    return pd.Series([f"{mean:.3f} ±{half:.3f}" for mean, half in pairs], index=table.index)


def shown(table: pd.DataFrame) -> str:
    """A table in Markdown: numbers with three decimals, or three digits if small; what is missing is left empty."""
    texts = {name: _texts(column) for name, column in table.items()}
    rows = list(zip(*texts.values(), strict=True))
    aligned = ["right" if all(map(_is_number, column)) else "left" for column in texts.values()]
    return tabulate(
        rows, [*table.columns], tablefmt="github", disable_numparse=True, colalign=aligned if rows else None
    )


def _texts(column: pd.Series) -> list[str]:
    """Numbers of a column that are all whole have no decimals."""
    known = column.dropna()
    whole = pd.api.types.is_float_dtype(known) and bool((known == known.round()).all())
    return ["" if pd.isna(value) else f"{value:.0f}" if whole else _text(value) for value in column]


def _text(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return f"{value:.3g}" if 0 < abs(value) < 0.001 else f"{value:.3f}"


def _is_number(text: str) -> bool:
    try:
        float(text or 0)
    except ValueError:
        return False
    return True
