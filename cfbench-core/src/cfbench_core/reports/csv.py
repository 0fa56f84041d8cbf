"""The tables as one long CSV: a line for each explainer and metric of each table, outcomes included."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence

from cfbench_core.csv_cells import protected
from cfbench_core.reports.table_data import Number, Row, Table

_FIELDS = (
    "role",
    "status",
    "reason",
    "metric",
    "direction",
    "mean",
    "ci_low",
    "ci_high",
    "n",
    "expected",
    "emphasis",
)


def render(tables: Sequence[Table]) -> str:
    labels = dict.fromkeys(name for table in tables for name in [*table.labels, table.row_label])
    out = io.StringIO()
    writer = csv.DictWriter(out, [*labels, *_FIELDS], lineterminator="\n")
    writer.writeheader()
    for table in tables:
        for row in table.rows:
            about = {**table.labels, table.row_label: row.name, "role": row.role}
            about |= {"status": row.status, "reason": row.reason}
            texts = {name: protected(str(value)) for name, value in about.items()}
            writer.writerows({**texts, **measured} for measured in _measured(table, row))
    return out.getvalue()


def _measured(table: Table, row: Row) -> Iterator[dict[str, object]]:
    """One line for each metric, in the units of the stored scores; a single line without one where nothing
    ran."""
    if row.outcome:
        yield {}
        return
    for header, entry in zip(table.headers, row.entries, strict=True):
        number = entry.number
        yield {
            "metric": protected(header.column.name),
            "direction": header.column.direction,
            **_numbers(number, header.scale),
            "n": number.n,
            "expected": number.expected,
            "emphasis": entry.emphasis,
        }


def _numbers(number: Number, scale: float) -> dict[str, str]:
    values = {"mean": number.mean, "ci_low": number.ci_low, "ci_high": number.ci_high}
    return {name: "" if math.isnan(value) else f"{value / scale:.10g}" for name, value in values.items()}
