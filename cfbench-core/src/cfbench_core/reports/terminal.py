"""Tables on a terminal. Columns that do not fit beside each other go below, never away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cfbench_core.reports.tables import Entry, Row, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

_STYLES = {"best": "bold", "second": "underline", "": ""}
_GAP = 2


def show(tables: Sequence[Table], console: Console) -> None:
    """Prints the tables, one below the other, no wider than the console."""
    from rich.text import Text

    for table in tables:
        title = Text(table.title, style="bold")
        if table.quality:
            title.append(f"  {table.quality}", style="dim not bold")
        console.print(title)
        for part in _parts(table, console.width):
            console.print(_painted(table, part))
        for note in table.notes:
            console.print(Text(f"  {note}", style="dim"))
        console.print()
    if tables:
        legend = "± is a 95% interval; bold: the best, and all level with it; underlined: the next."
        console.print(Text(legend, style="dim"))


def _parts(table: Table, width: int) -> Iterator[range]:
    """Ranges of columns that fit beside the names, one column at least: beside it long names are folded."""
    start = 0
    for stop in range(1, len(table.headers) + 1):
        if _width(table, range(start, stop)) > width and stop - 1 > start:
            yield range(start, stop - 1)
            start = stop - 1
    yield range(start, len(table.headers))


def _width(table: Table, part: range) -> int:
    """What the names and these columns need."""
    names = max((len(row.label) for row in table.rows), default=0)
    columns = (
        max([len(table.headers[place].label), *(len(_entry(row.entries[place]).plain) for row in table.rows)])
        for place in part
    )
    return names + sum(_GAP + width for width in columns) + _GAP


def _painted(table: Table, part: range) -> RichTable:
    from rich.table import Table as RichTable

    painted = RichTable(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="")
    painted.add_column("", overflow="fold")
    for place in part:
        painted.add_column(table.headers[place].label, justify="right", no_wrap=True)
    for row in table.rows:
        painted.add_row(_name(row), *(_entry(row.entries[place]) for place in part))
    return painted


def _name(row: Row) -> Text:
    from rich.text import Text

    name = Text(row.name)
    return name.append(f" ({row.role})", style="dim") if row.role else name


def _entry(entry: Entry) -> Text:
    from rich.text import Text

    if not entry.number.n:
        return Text(entry.text, style="dim italic")
    text = Text(entry.text, style=_STYLES[entry.emphasis])
    return (
        text.append(f" ({entry.number.coverage})", style="dim not bold not underline")
        if entry.number.coverage
        else text
    )
