"""Checks of single fields of a row: identifiers and texts. Imports no NumPy."""

from __future__ import annotations

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
