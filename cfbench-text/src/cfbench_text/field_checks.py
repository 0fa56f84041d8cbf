"""Checks of single fields of a row: identifiers and texts. Imports no NumPy."""

from __future__ import annotations

import math
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.user_files import check_identifier


def identifier(where: str, key: str, value: Any) -> str:
    """A user or an item as text.

    Raises:
        UserError: if it is neither text nor a number, or cannot be an identifier.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UserError(f"{where}: {key} must be text or a number, got {str(value)[:40]!r}")
    found = str(value)
    check_identifier(found, f"{where}: {key}")
    return found


def finite_number(where: str, name: str, value: Any) -> float:
    """A number, NaN for none (null, an empty field).

    Raises:
        UserError: if it is no finite number.
    """
    if value is None or value == "":
        return math.nan
    try:
        found = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{where}: {name} must be a number, got {str(value)[:40]!r}") from None
    if not math.isfinite(found):
        raise UserError(f"{where}: {name} must be a finite number, got {str(value)[:40]!r}")
    return found


MILLISECONDS = 10**11
"""Times above are not seconds: those of Amazon Reviews 2023 are thousandths."""


def seconds(where: str, name: str, value: Any) -> int:
    """A time in whole seconds, also if it is given in thousandths; 0 for none.

    Raises:
        UserError: if it is no finite number.
    """
    found = finite_number(where, name, value)
    whole = 0 if math.isnan(found) else int(found)
    return whole // 1000 if whole > MILLISECONDS else whole


LONGEST_TEXT = 1_000_000
"""Characters of a review or an explanation; a novel has half a million, the longest reviews have about 30,000."""


def review_text(where: str, value: Any) -> str:
    """A review or an explanation.

    Raises:
        UserError: if it is no text, or longer than any review.
    """
    if not isinstance(value, str):
        raise UserError(f"{where}: text must be text, got {str(value)[:40]!r}")
    if len(value) > LONGEST_TEXT:
        raise UserError(
            f"{where}: its text has {len(value):,} characters; at most {LONGEST_TEXT:,} are possible"
        )
    return value
