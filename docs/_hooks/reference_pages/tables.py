"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tabulate import tabulate

from cfbench_core.config import FieldInfo


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return tabulate(escaped, headers=headers, tablefmt="github")


def keys(fields: Iterable[FieldInfo]) -> str:
    """The keys of a configuration."""
    rows = [(f"`{f.name}`", f"{f.type} {f.range}".strip(), f"`{f.default}`", f.help) for f in fields]
    return markdown_table(("key", "type", "default", "meaning"), rows)
