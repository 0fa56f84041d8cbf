"""Text on a terminal: tables of plain columns, headings, sizes and times as people write them."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from cfbench_core.cli.streams import shows_unicode
from cfbench_core.plain_text import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

GAP = "  "


def stdout_console() -> Console:
    """A rich console on stdout; 120 columns wide where it is no terminal and nobody says otherwise."""
    from rich.console import Console

    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else 120)


def heading(text: str) -> None:
    click.secho(visible_lines(text), bold=True)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, indent: str = "", spare: Sequence[str] = ()
) -> None:
    """Aligned columns under their names.

    On a terminal that is too narrow the columns in ``spare`` are left out, the last first; a line says so.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    shown = _fitting(columns, rows, indent, spare)
    widths = _widths(shown, columns, rows)
    click.secho(
        indent + GAP.join(columns[i].ljust(w) for i, w in zip(shown, widths, strict=True)).rstrip(), bold=True
    )
    for row in rows:
        click.echo(indent + GAP.join(row[i].ljust(w) for i, w in zip(shown, widths, strict=True)).rstrip())
    left_out = [name for i, name in enumerate(columns) if i not in shown]
    if left_out:
        click.secho(
            f"{indent}(too narrow here for: {', '.join(left_out)}; --format json has everything)", dim=True
        )


def hanging(word: str, text: str) -> str:
    """Text folded behind a word, its lines below each other."""
    width = min(shutil.get_terminal_size((120, 24)).columns, 110)
    folded = textwrap.wrap(
        visible(text),
        width,
        initial_indent=word,
        subsequent_indent=" " * len(word),
        break_on_hyphens=False,  # "lime-rs", "python3-numpy"
    )
    return "\n".join(folded)


def pairs(items: Mapping[str, str]) -> None:
    """Names and values, aligned; lines after a value's first stand below it."""
    width = max(len(name) for name in items)
    for name, value in items.items():
        first, *others = visible_lines(value).splitlines() or [""]
        click.echo(f"{name.ljust(width)}{GAP}{first}".rstrip())
        for line in others:
            click.echo(f"{'':{width}}{GAP}{line}")


def as_json(value: Any) -> None:
    """JSON on stdout; NaN, which JSON has no word for, becomes null."""
    ascii_only = not shows_unicode(sys.stdout)
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False))


def duration(seconds: float) -> str:
    """ "0:21", "1:02:03"."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    minutes, last = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{last:02}" if hours else f"{minutes}:{last:02}"


def _plain(value: Any) -> Any:
    """As JSON has it: sets of capabilities as sorted lists, NaN as null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], indent: str, spare: Sequence[str]
) -> list[int]:
    shown = [*range(len(columns))]
    if not sys.stdout.isatty():
        return shown
    room = shutil.get_terminal_size().columns
    for name in reversed(spare):
        if len(indent) + sum(_widths(shown, columns, rows)) + len(GAP) * (len(shown) - 1) <= room:
            break
        shown = [i for i in shown if columns[i] != name]
    return shown


def _widths(shown: Sequence[int], columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(len(columns[i]), *(len(row[i]) for row in rows), 0) for i in shown]
