"""Numbers and names as they stand in a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from cfbench_core.specs import plural


def count_of(number: int, noun: str) -> str:
    """ "1 cell", "2 cells", "10 analyses", "1,685 packages"."""
    return f"{number:,} {noun if number == 1 else plural(noun)}"


def join_words(names: Iterable[str], last: str = "and") -> str:
    """ "a, b and c"."""
    *others, final = list(names) or [""]
    return f"{', '.join(others)} {last} {final}" if others else final


def size(amount: float) -> str:
    """Bytes as "6.1 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" or amount >= 100 else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"
