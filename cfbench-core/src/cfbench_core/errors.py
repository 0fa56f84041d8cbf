"""Errors that a user can act on: one line that says what is wrong, where, and what would be right."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence

from cfbench_core.plain_text import LIMIT, visible

_LONGEST_NAME = 100


class UserError(Exception):
    """Something that the user can put right. The command line prints its lines and exits with code 2.

    Raise it with one line, or with several where several things are wrong at once. Control characters, which others
    may have put into a name or a message, are shown as escapes, and lines of more than 2,000 characters are cut.
    """

    def __init__(self, *lines: str) -> None:
        self.lines = tuple("\n".join(_readable(part) for part in line.split("\n")) for line in lines)
        super().__init__("\n".join(self.lines))


class AnalysisWarning(UserWarning):
    """An analysis of a report failed; the other analyses and the report continue."""


class DamageWarning(UserWarning):
    """A cached result was damaged, and is computed again."""


class ResultWarning(UserWarning):
    """A caveat about a result: ``warnings.warn("3 of 9 texts were cut", ResultWarning)``.

    It is stored with the result and shown below its table. Warnings of other classes are not.
    """


class IncompleteWarning(ResultWarning):
    """A result lacks something that a later run may get, for example the response of a server that was down.

    The result is used in this run and marked as incomplete (``"incomplete"`` in its summary). The next run computes
    it, and all that was made from it, again.
    """


def _readable(line: str) -> str:
    return visible(line) if len(line) <= LIMIT else f"{visible(line[:LIMIT])}..."


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """ " Did you mean 'lime-rs'?" for the nearest known spelling, or nothing when none is near."""
    known = list(known)
    if len(wrong) > _LONGEST_NAME:  # no typing mistake, and comparing takes long
        return ""
    folded = {name.lower().replace("_", "-"): name for name in known}
    near = difflib.get_close_matches(wrong.lower().replace("_", "-"), folded, n=1, cutoff=0.6)
    return f" Did you mean {folded[near[0]]!r}?" if near else ""


def unknown_key(key: str, known: Sequence[str], outer: type | None = None) -> str:
    """What is wrong with a key that is none of ``known``; ``outer``: the dataclass of the configuration around it."""
    if hint := did_you_mean(key, known):
        return f"unknown key.{hint}"
    if outer is not None and key in {field.name for field in dataclasses.fields(outer)}:
        return f"unknown key. '{key}' stands in the configuration itself, not inside another key"
    return f"unknown key. Known keys: {', '.join(known)}" if known else "unknown key. There is nothing to set"
