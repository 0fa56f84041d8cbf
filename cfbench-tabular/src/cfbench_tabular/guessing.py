"""What a file seems to hold: types of columns, for those that nobody named and for ``cfbench init --csv``.

The rules are few, so that people can tell what was guessed and why:
text is a category; a number is a number, but two different ones are a category of two levels; a column with one
value only, and text or row numbers that differ in (nearly) every row, say nothing about classes and are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import numpy as np

Kind = Literal["numeric", "categorical"]
MOST_LEVELS = 50
"""Of a text column; one with more is dropped if most of its values stand in one row only."""


def kind_of(cells: Sequence[str]) -> Kind:
    """The type of a column without missing values. One infinity among numbers is a mistake, not a level."""
    distinct = set(cells)
    numbers = [is_number(cell) for cell in distinct]
    if not all(numbers) and any(numbers):
        numbers = [
            cell.strip().lower().lstrip("+-") in ("inf", "infinity") or is_number(cell) for cell in distinct
        ]
    return "numeric" if len(distinct) > 2 and all(numbers) else "categorical"


def useless(name: str, cells: Sequence[str]) -> str:
    """Why a column says nothing about classes, as words for people; empty when it may."""
    distinct = set(cells)
    if len(distinct) == 1:
        return f"always {cells[0]!r}"
    all_differ = len(distinct) == len(cells)
    if all_differ and re.fullmatch(r"(?i)|(.*[_ -])?(id|no|nr|key|index|row)|unnamed.*", name.strip()):
        return "a different value in every row: seems to name the row"
    numbers = all(is_number(cell) for cell in distinct)
    if not numbers and len(distinct) > max(MOST_LEVELS, len(cells) // 2):
        return f"text with {len(distinct):,} different values in {len(cells):,} rows"
    return ""


def is_number(cell: str) -> bool:
    try:
        return bool(np.isfinite(float(cell)))
    except ValueError:
        return False
