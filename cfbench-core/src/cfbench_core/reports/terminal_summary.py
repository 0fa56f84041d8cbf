"""The tables of a run on a terminal in few lines: for each model a small table of its primary metrics.

A table of the report is a column here; the rows are the best explainers, and the best of each kind of control.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cfbench_core.plain_text import visible
from cfbench_core.reports.table_data import Row, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable
    from rich.text import Text

FEWEST_ROWS = 3
"""Competitors of a model that are shown, at least."""
OWN_LINES = 3
"""Of a small table: its title, its head at least, and the empty line below."""
_STYLES = {"best": "bold", "second": "underline", "": ""}


def by_model(tables: Sequence[Table]) -> list[list[Table]]:
    """The tables with a primary metric, those of one model on one dataset together."""
    groups: dict[tuple[str, str], list[Table]] = {}
    for table in tables:
        if table.primary is not None and any(not row.outcome for row in table.lines):
            about = (str(table.labels.get("dataset", "")), str(table.labels.get("model", "")))
            groups.setdefault(about, []).append(table)
    return list(groups.values())


def rows_for(groups: int, lines: int) -> int:
    """Rows of each of so many small tables that take at most so many lines together."""
    return lines // max(groups, 1) - OWN_LINES - 1  # a second line of the head


def small_table(group: Sequence[Table], rows: int, width: int) -> RichTable:
    """The best ``rows`` explainers of one model, in the order of the first table, and how many are not shown."""
    from rich.table import Table as RichTable
    from rich.text import Text

    painted = RichTable(
        box=None, padding=(0, 0, 0, 2), pad_edge=False, header_style="dim", title_justify="left"
    )
    names = _names(group, rows)
    columns = _fitting(group, width - max(map(len, names), default=0))
    painted.add_column("", no_wrap=True, overflow="ellipsis")
    for table in columns:
        painted.add_column(_head(table, group), justify="right", no_wrap=True, vertical="bottom")
    for name in names:
        painted.add_row(Text(visible(name)), *(_entry(table, name) for table in columns))
    return painted


def title(group: Sequence[Table], several_datasets: bool) -> Text:
    """ "mf", or "iris · mlp" where there are several datasets, and the number of explainers that are not shown."""
    from rich.text import Text

    labels = group[0].labels
    model = str(labels.get("model", ""))
    parts = [str(labels.get("dataset", ""))] if several_datasets or not model else []
    return Text(visible(" · ".join([*parts, *([model] if model else [])])), style="bold")


def _names(group: Sequence[Table], rows: int) -> list[str]:
    """The labels of the rows: competitors in the order of the tables, then the best control of each role."""
    ordered: dict[str, None] = {}
    for table in group:
        ordered.update(dict.fromkeys(row.label for row in table.lines if not row.role and not row.outcome))
    controls: dict[str, str] = {}
    for row in group[0].lines:
        if row.role and not row.outcome:
            controls.setdefault(row.role, row.label)
    competitors = max(FEWEST_ROWS, rows - len(controls))
    return [*list(ordered)[:competitors], *controls.values()]


def hidden(group: Sequence[Table], rows: int) -> int:
    """How many explainers with results are not among the rows."""
    known = {row.label for table in group for row in table.lines if not row.outcome}
    return len(known - set(_names(group, rows)))


def _fitting(group: Sequence[Table], room: int) -> list[Table]:
    chosen: list[Table] = []
    for table in group:
        room -= 2 + max(map(len, _head(table, group).split("\n")), default=0)
        if chosen and room < 0:
            break
        chosen.append(table)
    return chosen


def _head(table: Table, group: Sequence[Table]) -> str:
    """ "implicit", and below it "POS-P@5 ↓": what distinguishes the tables of a model, and the metric."""
    assert table.primary is not None
    others = [set(one.label_texts) for one in group if one is not table]
    own = [text for text in table.label_texts if any(text not in other for other in others)]
    about = " · ".join(own)
    metric = table.headers[table.primary].label
    return f"{visible(about)}\n{visible(metric)}" if about else visible(metric)


def _entry(table: Table, label: str) -> Text:
    from rich.text import Text

    assert table.primary is not None
    row: Row | None = next((row for row in table.lines if row.label == label), None)
    if row is None or row.outcome:
        return Text("–", style="dim")
    entry = row.entries[table.primary]
    fewer = "*" if entry.number.n and entry.number.coverage else ""
    return Text(
        visible(entry.text.replace(" ± 0.", " ±.").replace(" ± ", " ±")) + fewer,
        style=_STYLES[entry.emphasis],
    )


def definitions(groups: Sequence[Sequence[Table]]) -> Iterator[str]:
    """A line for each primary metric."""
    known: dict[str, str] = {}
    for group in groups:
        for table in group:
            assert table.primary is not None
            header = table.headers[table.primary]
            known.setdefault(header.name, header.column.question)
    yield from (f"{visible(name)}: {visible(question)}" for name, question in known.items() if question)
