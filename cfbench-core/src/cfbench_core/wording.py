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
