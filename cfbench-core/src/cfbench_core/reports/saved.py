"""``report.json``: the tables of a report and its example in words, as data, so that they need not be computed again.

Written at the end of a run; whoever shows its tables later reads them from here. A file of another format, or that is not as
the run wrote it, is as good as none.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.model_quality import Quality
from cfbench_core.plan import TIME, Column
from cfbench_core.reports.table_data import Aside, Effect, Entry, Header, Lead, Number, Row, Table
from cfbench_core.run_directory import Run

FILE = "report.json"
FORMAT = 2


def save(run: Run, tables: Sequence[Table], words: str) -> None:
    """Writes the file. ``words``: one explanation of the run as a sentence."""
    document = {
        "format": FORMAT,
        "words": words,
        "tables": [_plain(table) for table in tables],
    }
    write_atomically(run.directory / FILE, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")


def saved_tables(run: Run) -> list[Table] | None:
    """The tables as they were saved; None where they are not."""
    document = _read(run)
    try:
        return None if document is None else [_table(entry) for entry in document["tables"]]
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def saved_words(run: Run) -> str | None:
    """The example in words as it was saved; None where it is not."""
    document = _read(run)
    return None if document is None else str(document.get("words", ""))


def _read(run: Run) -> Mapping[str, Any] | None:
    if not (run.directory / FILE).is_file():
        return None
    try:
        document = run.read_json(FILE)
    except UserError:
        return None
    return document if document.get("format") == FORMAT else None


def _plain(value: Any) -> Any:
    """Dataclasses and what they hold as JSON has them: text in place of NaN and infinity, which it does not have.

    Faster than ``dataclasses.asdict``, which copies every leaf.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(inner) for inner in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if not dataclasses.is_dataclass(value):
        raise TypeError(f"{type(value).__name__} is not stored in {FILE}")
    kind: Any = type(value)
    return {name: _plain(getattr(value, name)) for name in _fields_of(kind)}


@functools.cache
def _fields_of(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _number(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, Mapping) else value


def _table(entry: Mapping[str, Any]) -> Table:
    headers = tuple(_header(header) for header in entry["headers"])
    return Table(
        labels=dict(entry["labels"]),
        label_texts=tuple(entry["label_texts"]),
        row_label=entry["row_label"],
        title=entry["title"],
        quality={
            name: Quality(**{key: _number(value) for key, value in quality.items()})
            for name, quality in entry["quality"].items()
        },
        headers=headers,
        rows=tuple(_row(row) for row in entry["rows"]),
        leads=tuple(_lead(lead) for lead in entry["leads"]),
        shown=tuple(entry["shown"]),
        asides=tuple(
            Aside(_header(aside["header"]), aside["like"] and _header(aside["like"]), aside["text"])
            for aside in entry["asides"]
        ),
        primary=entry["primary"],
    )


def _header(entry: Mapping[str, Any]) -> Header:
    fields = dict(entry["column"])
    if fields["range"] is not None:
        fields["range"] = tuple(map(_number, fields["range"]))
    column = Column(**fields)
    return Header(TIME if column == TIME else column, entry["unit"], entry["scale"])


def _row(entry: Mapping[str, Any]) -> Row:
    entries = tuple(
        Entry(one["text"], Number(*map(_number, one["number"])), one["emphasis"], _number(one["rank"]))
        for one in entry["entries"]
    )
    return Row(entry["name"], entry["role"], entry["status"], entry["reason"], entries)


def _lead(entry: Mapping[str, Any]) -> Lead:
    return Lead(
        _header(entry["header"]),
        tuple(entry["names"]),
        entry["text"],
        tuple(entry["competitors"]),
        tuple(entry["baselines_not_beaten"]),
        _effect(entry["over_next"]),
        _effect(entry["over_baseline"]),
        _number(entry["agreement"]),
    )


def _effect(entry: Mapping[str, Any] | None) -> Effect | None:
    return None if entry is None else Effect(**{key: _number(value) for key, value in entry.items()})
