"""Inference of column types, for columns that the schema does not name and for ``cfbench init --csv``.

The rules are simple, so that users can follow them: text is categorical; numbers are numeric, but a column with two
distinct numbers is categorical; constant columns, row identifiers and text that differs in nearly every row are
dropped, because they carry no information about classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

Kind = Literal["numeric", "categorical"]
MOST_LEVELS = 50
"""A text column with more levels is dropped if most of its values occur in one row only."""


def kind_of(cells: Sequence[str]) -> Kind:
    """The type of a column without missing values. An infinity among numbers is an error, not a level."""
    distinct = set(cells)
    numbers = [is_number(cell) for cell in distinct]
    if not all(numbers) and any(numbers):
        numbers = [
            cell.strip().lower().lstrip("+-") in ("inf", "infinity") or is_number(cell) for cell in distinct
        ]
    return "numeric" if len(distinct) > 2 and all(numbers) else "categorical"


def reason_to_drop(name: str, cells: Sequence[str]) -> str:
    """Why a column carries no information about classes; empty if it may."""
    distinct = set(cells)
    if len(distinct) == 1:
        return f"always {cells[0]!r}"
    all_differ = len(distinct) == len(cells)
    if all_differ and re.fullmatch(r"(?i)|(.*[_ -])?(id|no|nr|key|index|row)|unnamed.*", name.strip()):
        return "distinct in every row: probably a row identifier"
    numbers = all(is_number(cell) for cell in distinct)
    if not numbers and len(distinct) > max(MOST_LEVELS, len(cells) // 2):
        return f"text with {len(distinct):,} distinct values in {len(cells):,} rows"
    return ""


def is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False
