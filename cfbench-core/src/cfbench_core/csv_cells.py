"""Text in CSV files that people open in a spreadsheet, where a cell that begins like a formula is executed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FORMULA = ("=", "+", "-", "@", "\t", "\r")
MARK = "'"
"""Spreadsheets show a cell that begins with it as text."""


def protected(cell: str) -> str:
    """The text behind an apostrophe if a spreadsheet would execute it; numbers stay as they are."""
    begins = cell.lstrip(MARK)
    if not begins.startswith(FORMULA) or (begins == cell and _is_number(cell)):
        return cell
    return MARK + cell


def unprotected(cell: str) -> str:
    """What was given to :func:`protected`."""
    inner = cell.removeprefix(MARK)
    return inner if inner != cell and protected(inner) == cell else cell


def protected_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns of text, and their names, protected."""
    safe = frame.rename(columns=lambda name: protected(str(name)))
    texts = [
        name for name in safe.columns if safe[name].dtype.kind == "O" or str(safe[name].dtype) == "string"
    ]
    return safe.assign(
        **{
            name: safe[name].map(lambda cell: protected(cell) if isinstance(cell, str) else cell)
            for name in texts
        }
    )


def _is_number(cell: str) -> bool:
    try:
        return not math.isnan(float(cell))
    except ValueError:
        return False
