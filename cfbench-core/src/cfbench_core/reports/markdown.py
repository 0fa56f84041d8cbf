"""Tables in Markdown: the best bold, the next underlined (``<ins>``)."""

from __future__ import annotations

from collections.abc import Sequence

from cfbench_core.model_quality import quality_words
from cfbench_core.reports.table_data import LEGEND, Entry, Table


def render(tables: Sequence[Table]) -> str:
    return "\n\n".join([*(_table(table) for table in tables), LEGEND]) + "\n"


def _table(table: Table) -> str:
    from tabulate import tabulate

    heads = [table.row_label, *(escape(table.headers[place].label) for place in table.shown)]
    lines = [
        [escape(row.label), *(_entry(row.entries[place]) for place in table.shown)] for row in table.lines
    ]
    align = ("left", *["right"] * len(table.shown))
    body = tabulate(lines, heads, tablefmt="pipe", colalign=align, disable_numparse=True) if lines else ""
    quality = escape(quality_words(table.quality))
    parts = [f"### {escape(table.title)}", f"Quality of the model: {quality}" if quality else ""]
    notes = "\n".join(f"- {escape(note)}" for note in table.notes)
    return "\n\n".join(part for part in [*parts, body, notes] if part)


def _entry(entry: Entry) -> str:
    text = escape(entry.text)
    if entry.emphasis == "best":
        text = f"**{text}**"
    elif entry.emphasis == "second":
        text = f"<ins>{text}</ins>"
    return f"{text} ({entry.detail})" if entry.detail else text


def escape(text: str) -> str:
    for character in ("\\", "|", "*", "_", "<", "`", "#"):
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
