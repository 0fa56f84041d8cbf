"""How a CSV file is written, as ``cfbench init --csv`` finds it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfbench_tabular.account_forms import with_zeros, zero_of
from cfbench_tabular.date_forms import TIME_FORMATS, date_format_of, last_year_of
from cfbench_tabular.draft_remarks import without_header
from cfbench_tabular.file_format import (
    decimal_marks_of,
    decoded,
    encoding_of,
    has_points_between_thousands,
    marks_of,
    separator_of,
    title_lines,
    unit_of,
    without_lines,
)
from cfbench_tabular.number_forms import negatives_of, with_signs, without_limits
from cfbench_tabular.reading import read_bytes, replaced, sheet_as_written, without_units
from cfbench_tabular.schema import Schema
from cfbench_tabular.sheet import Sheet
from cfbench_tabular.text_rows import on_mixed_encodings, on_swallowed_lines

MORE = "inferred: more columns are numbers with it"


@dataclass(frozen=True)
class Detected:
    """The cells of a file and how they are written.

    Attributes:
        sheet: without units, with a hyphen in front of negative numbers, and with 0 for the dash of accounts.
        written: the cells as in the file.
        schema: the options with which to read it.
        reasons: why, for the options that are not default.
        units, zeros: what stands next to the numbers and in place of 0, by column.
        remark: on rows that may be read otherwise than they are meant; "" for none.
    """

    sheet: Sheet
    written: Sheet
    schema: Schema
    reasons: Mapping[str, str]
    units: Mapping[str, str]
    zeros: Mapping[str, str]
    remark: str


def detect(path: Path, encoding: str | None) -> Detected:
    """How the numbers and dates of a file are written; ``encoding``: of the text, None: detected.

    Raises:
        UserError: if the file cannot be read.
    """
    data = read_bytes(path)
    default = Schema()
    found = Schema(encoding=encoding or encoding_of(data))
    text = decoded(data, found.encoding, path)
    separator = separator_of(text)
    found = replace(found, separator=separator, skip_lines=title_lines(text, separator))
    sheet = sheet_as_written(path, found)
    if without_header(sheet, default.missing_marks):
        columns: dict[str, Any] = {f"column{place}": {} for place in range(1, len(sheet.names) + 1)}
        found = replace(found, header=False, columns=columns)
        sheet = sheet_as_written(path, found)
    written = sheet
    zeros = {
        name: zero for name, cells in sheet.columns.items() if (zero := zero_of(cells, default.missing_marks))
    }
    sheet = replaced(sheet, with_zeros(sheet.columns, zeros, {}))
    marks = marks_of(sheet.columns, default.missing_marks)
    negatives = negatives_of(sheet.columns, marks)
    sheet = replaced(sheet, with_signs(sheet.columns, marks, negatives))
    units = {name: unit_of(set(cells) - set(marks)) for name, cells in sheet.columns.items()}
    sheet = without_units(sheet, units)
    limits = without_limits(sheet.columns, marks, "limit")
    bare = replaced(sheet, limits)
    decimal, thousands = decimal_marks_of(bare.columns, marks)
    schema = replace(
        found,
        missing_marks=marks,
        decimal=decimal,  # type: ignore[arg-type]
        thousands=thousands,  # type: ignore[arg-type]
        negatives=negatives,
        censored="limit" if limits else "error",
        date_format=date_format_of(sheet.columns, marks),
        time_format=date_format_of(sheet.columns, marks, TIME_FORMATS),
    )
    this_year = datetime.now(UTC).year
    formats = (schema.date_format, schema.time_format)
    schema = replace(schema, last_year=last_year_of(sheet.columns, marks, formats, this_year))
    grouped = _grouped(bare, marks) if thousands == "." else ""
    reasons = {
        "encoding": "; ".join(
            filter(
                None,
                ["given" if encoding else "inferred from the bytes: not UTF-8", _mixed(data, found.encoding)],
            )
        ),
        "skip_lines": "inferred: a title stands before the names of the columns",
        "header": "inferred: the first line looks like all others; name the columns as you like",
        "missing_marks": "the usual ones, and text that stands between numbers or dates",
        "decimal": f"inferred: '.' is no decimal mark in {grouped}" if grouped else MORE,
        "thousands": f"inferred: the numbers of {grouped} have it from 1.000 on, smaller ones have no mark"
        if grouped
        else MORE,
        "negatives": "inferred: a column is numbers only if these are negative ones",
        "censored": f"inferred for {', '.join(limits)}: limits among numbers; 'missing': as missing values",
        "date_format": "inferred: the only format that fits all dates of a column",
        "last_year": "inferred: no date with a year of two digits is later",
        "time_format": "inferred: the only format that fits all times of a column",
    }
    own = {key: why for key, why in reasons.items() if getattr(schema, key) != getattr(default, key)}
    rows = without_lines(text, found.skip_lines)
    remark = on_swallowed_lines(rows, separator, str(path), found.skip_lines)
    return Detected(sheet, written, schema, own, units, zeros, remark)


def _mixed(data: bytes, encoding: str) -> str:
    """What to remark on the lines of text in an encoding of one byte for each letter."""
    one_byte = not encoding.lower().replace("_", "-").startswith("utf")
    return on_mixed_encodings(data, encoding) if one_byte else ""


def _grouped(sheet: Sheet, marks: Iterable[str]) -> str:
    """The columns whose numbers have points between thousands."""
    missing = set(marks)
    return ", ".join(
        name for name, cells in sheet.columns.items() if has_points_between_thousands(set(cells) - missing)
    )
