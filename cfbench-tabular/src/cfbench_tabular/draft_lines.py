"""The lines of a drafted configuration: entries of columns as YAML, with comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

RUN = 4
"""At least this many consecutive numeric columns x1, x2, ... are written as one line."""


@dataclass(frozen=True)
class Entry:
    """The entry of a column in the schema, the reason for it, and what a reader should check."""

    value: Any
    why: str
    remark: str = ""
    is_quantity: bool = False

    @property
    def comment(self) -> str:
        return "; ".join(filter(None, (self.why, self.remark)))

    def continues(self, run: Sequence[tuple[str, Entry]], name: str) -> bool:
        """Whether it may share the line of numbered columns: a number, date or time on which there is nothing to remark."""
        if not self.is_quantity or self.remark:
            return False
        return not run or (_next(run[-1][0]) == name and run[-1][1].value == self.value)


def typed_entry(kind: str, options: Mapping[str, Any]) -> Any:
    """The type of a column, with its options if it has any."""
    return {"type": kind, **options} if options else kind


def run_lines(run: Sequence[tuple[str, Entry]]) -> Iterator[str]:
    """One line for consecutive columns of one type, x1..x9, or a line for each."""
    if len(run) >= RUN:
        yield commented_line(f"{run[0][0]}..{run[-1][0]}", run[0][1].value, f"{len(run)} columns")
        return
    for name, entry in run:
        yield commented_line(name, entry.value, entry.comment)


def _next(name: str) -> str | None:
    """``x8`` after ``x7``; None for a name that does not end in a number."""
    found = re.fullmatch(r"(.*?)(0|[1-9]\d*)", name)
    return f"{found[1]}{int(found[2]) + 1}" if found else None


def commented_line(key: str, value: Any, comment: str) -> str:
    """A key and its value, with a comment behind them."""
    text = f"{inline_yaml(key)}: {inline_yaml(value)}"
    return f"{text:<27} # {comment}" if comment else text


def inline_yaml(value: Any) -> str:
    """A value as inline YAML, quoted where necessary."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")
