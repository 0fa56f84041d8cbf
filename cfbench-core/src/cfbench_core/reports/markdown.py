"""Tables in Markdown: the best bold, the next underlined (``<ins>``)."""

from __future__ import annotations

from collections.abc import Sequence

from cfbench_core.reports.tables import LEGEND, Entry, Row, Table


def render(tables: Sequence[Table]) -> str:
    return "\n\n".join([*(_table(table) for table in tables), LEGEND]) + "\n"


def _table(table: Table) -> str:
    from tabulate import tabulate

    heads = [table.row_label, *(_escape(header.label) for header in table.headers)]
    lines = [[_escape(row.label), *(_entry(row, entry) for entry in row.entries)] for row in table.rows]
    align = ("left", *["right"] * len(table.headers))
    body = tabulate(lines, heads, tablefmt="pipe", colalign=align, disable_numparse=True)
    parts = [
        f"### {_escape(table.title)}",
        f"Quality of the model: {_escape(table.quality)}" if table.quality else "",
    ]
    notes = "\n".join(f"- {_escape(note)}" for note in table.notes)
    return "\n\n".join(part for part in [*parts, body, notes] if part)


def _entry(row: Row, entry: Entry) -> str:
    text = _escape(entry.text)
    if entry.emphasis == "best":
        text = f"**{text}**"
    elif entry.emphasis == "second":
        text = f"<ins>{text}</ins>"
    coverage = entry.number.coverage if entry.number.n else ""
    return f"{text} ({coverage})" if coverage else text


def _escape(text: str) -> str:
    for character in ("\\", "|", "*", "_", "<", "`", "#"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
