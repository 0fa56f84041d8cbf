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
    """A table in Markdown, numbers with three decimals; what is missing is left empty."""
    rows = table.astype(object).where(table.notna(), "")
    return tabulate(rows.values.tolist(), [*table.columns], tablefmt="github", floatfmt=".3f")
