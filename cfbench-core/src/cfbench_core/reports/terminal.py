"""Tables on a terminal: the first columns, as many as fit next to the names, and the time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cfbench_core.model_quality import quality_words
from cfbench_core.plain_text import visible
from cfbench_core.plan import TIME
from cfbench_core.reports.table_data import Header, Row, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

_STYLES = {"best": "bold", "second": "underline", "": ""}
_GAP = 2
_NARROW = 12
_FEWER = "*"
"""Behind a mean over the units that have a value, where some have none."""


def show(tables: Sequence[Table], console: Console) -> None:
    """Prints the tables, one below the other, no wider than the console."""
    from rich.text import Text

    for table in tables:
        show_one(table, console)
    if tables:
        legend = "± 95% interval; bold: best or statistically tied; underlined: next; time: per explanation"
        fewer = any(_fewer(row, place) for t in tables for row in t.lines for place in t.shown)
        console.print(Text(legend + (f"; {_FEWER}: fewer units" if fewer else ""), style="dim"))
        for line in definitions(tables, console.width):
            console.print(Text(line, style="dim"), overflow="ellipsis", no_wrap=True)


def definitions(tables: Sequence[Table], width: int) -> list[str]:
    """What each column that is shown measures, a line for each: "POS-P@5: Is the item still in the top 5 ..."."""
    shown = {
        table.headers[place].name: table.headers[place].column.question
        for table in tables
        for place in _fitting(table, width)
        if table.headers[place].column is not TIME
    }
    return [f"{visible(name)}: {visible(question)}" for name, question in shown.items() if question]


def show_one(table: Table, console: Console) -> None:
    """One table, its notes and an empty line."""
    from rich.text import Text

    title = Text(visible(table.title), style="bold")
    quality = quality_words(table.quality)
    console.print(title.append(f"  {quality}", style="dim not bold") if quality else title)
    places = _fitting(table, console.width)
    if table.lines:
        console.print(_painted(table, places))
    for note in _notes(table, len(table.headers) - len(places)):
        console.print(Text(f"  {visible(note)}", style="dim"))
    console.print()


def _notes(table: Table, left_out: int) -> Iterator[str]:
    yield from table.problems
    yield from table.warnings
    yield from table.column_notes
    notes = [f"not applicable: {table.absent}"] if table.absent else []
    if left_out:
        notes.append(f"+{left_out} column{'s' if left_out > 1 else ''} in the report")
    if notes:
        yield " · ".join(notes)


def _fitting(table: Table, width: int) -> list[int]:
    """The places that fit, in order: the time and the first column always, then those with a better direction,
    then the others."""
    telling = [place for place in table.shown if table.headers[place].column is not TIME]
    telling.sort(key=lambda place: not table.headers[place].arrow)
    chosen = [place for place in table.shown if table.headers[place].column is TIME]
    room = (
        width
        - max((len(row.label) for row in table.lines), default=0)
        - sum(_width(table, p) for p in chosen)
    )
    for number, place in enumerate(telling):
        room -= _width(table, place)
        if room < 0 and number:
            break
        chosen.append(place)
    return sorted(chosen)


def _width(table: Table, place: int) -> int:
    """What a column needs, with the gap before it."""
    heads = (len(line) for line in _head(table, place).split("\n"))
    return _GAP + max([*heads, *(len(_entry(row, table.headers[place], place).plain) for row in table.lines)])


def _painted(table: Table, places: Sequence[int]) -> RichTable:
    from rich.table import Table as RichTable

    painted = RichTable(box=None, padding=(0, 0, 0, _GAP), pad_edge=False, header_style="")
    painted.add_column("", overflow="fold")
    for place in places:
        painted.add_column(_head(table, place), justify="right", no_wrap=True, vertical="bottom")
    for row in table.lines:
        entries = (_entry(row, table.headers[place], place) for place in places)
        painted.add_row(_name(row), *entries)
    return painted


def _head(table: Table, place: int) -> str:
    """The column's name, folded where it is wide and wider than its numbers; its arrow stays with the last word."""
    header = table.headers[place]
    if header.column is TIME:
        return f"time ({header.unit})"
    words = header.name.split()
    words[-1] = f"{words[-1]} {header.arrow}".rstrip()
    numbers = (len(_entry(row, header, place).plain) for row in table.lines)
    wide = max([_NARROW, *numbers, *map(len, words)])
    lines = [""]
    for word in words:
        longer = f"{lines[-1]} {word}".lstrip()
        if len(longer) <= wide:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def _name(row: Row) -> Text:
    from rich.text import Text

    name = Text(visible(row.name))
    return name.append(f" ({row.role})", style="dim") if row.role else name


def _entry(row: Row, header: Header, place: int) -> Text:
    """The mean with a short interval; of times the mean alone."""
    from rich.text import Text

    entry = row.entries[place]
    if not entry.number.n:
        return Text(visible(entry.text), style="dim italic")
    text = _milliseconds(entry.number.mean) if header.column is TIME else _short(entry.text)
    shown = Text(text, style=_STYLES[entry.emphasis])
    return shown.append(_FEWER, style="dim not bold not underline") if _fewer(row, place) else shown


def _fewer(row: Row, place: int) -> bool:
    return bool(row.entries[place].number.n and row.entries[place].number.coverage)


def _short(text: str) -> str:
    """ "0.298 ± 0.045" as "0.298 ±.045"."""
    return text.replace(" ± 0.", " ±.").replace(" ± ", " ±")


def _milliseconds(value: float) -> str:
    """Two digits, all digits before the point: "0.058", "27", "1,240"."""
    return f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"
