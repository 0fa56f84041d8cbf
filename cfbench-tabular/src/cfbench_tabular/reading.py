"""Reading of text files into tables by a schema. Errors name the file, the line and the column."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.user_files import LONGEST_IDENTIFIER, check_identifier, unpacked
from cfbench_tabular.account_forms import with_zeros
from cfbench_tabular.column_types import inferred_step, nearest_multiple, off_step
from cfbench_tabular.file_format import decoded, plain_columns, separator_of, without_lines, without_unit
from cfbench_tabular.file_rows import EMPTY, FileRows
from cfbench_tabular.missing_values import without_missing
from cfbench_tabular.number_forms import with_signs, without_limits
from cfbench_tabular.schema import WHITESPACE, ColumnPlan, Schema, text_of
from cfbench_tabular.serial_moments import with_moments
from cfbench_tabular.sheet import Sheet, in_order, number_or_nan, numbers
from cfbench_tabular.table import AnyArray, Column, FloatArray, Table
from cfbench_tabular.text_rows import check_bytes, separated_rows

MOST_INFERRED_LEVELS = 1000
"""A column of text with more levels needs a type in the schema."""

BLANKS = ("\n", "\r", "\xa0", "\u2007", "\u2009", "\u202f")
APOSTROPHE = re.compile(r"(?<=\d)\u2019(?=\d{3}(?!\d))")
"""Between thousands, as Swiss programs write it: 1’234.50."""

MOST_BYTES = 4e9
"""Size of one encoded column."""


def read_sheet(path: Path, schema: Schema) -> Sheet:
    """A delimited text file, with numbers, dates and times as 1234.5, 2026-11-23 and 2026-11-23T12:30:00.

    Raises:
        UserError: if it cannot be read, is empty, or has rows of unequal length.
    """
    return plain(sheet_as_written(path, schema), schema)


def sheet_as_written(path: Path, schema: Schema) -> Sheet:
    """A delimited text file (also .gz and .Z); the first row names the columns, or the schema does.

    A row of nothing but separators is left out, and a blank line is no row, as in pandas.

    Raises:
        UserError: if it cannot be read, is empty, or has rows of unequal length.
    """
    text = without_lines(decoded(read_bytes(path), schema.encoding, path), schema.skip_lines)
    separator = schema.separator or separator_of(text)
    rows: list[list[str]] = []
    lines: list[int] = []
    empty: list[int] = []  # the positions of rows without any cell
    if separator == WHITESPACE:
        for number, content in enumerate(text.splitlines(), 1 + schema.skip_lines):
            if content.strip():
                rows.append(content.split())
                lines.append(number)
    else:
        for row, line in separated_rows(text, separator, str(path), schema.skip_lines):
            if any(cell.strip() for cell in row):
                rows.append([_one_line(cell.strip()) for cell in row])
                lines.append(line)
            elif rows or not schema.header:
                empty.append(len(rows) + len(empty))
    if schema.header and rows:
        names, rows, lines = tuple(rows[0]), rows[1:], lines[1:]
        empty = [row - 1 for row in empty]
    else:
        names = tuple(plan.name for plan in schema.plans())
    if "\0" in text:
        check_bytes(rows, lines, names, str(path))
    if not rows:
        raise UserError(f"{path}: has no rows")
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(names):
            raise UserError(f"{path}:{line}: {_wrong_length(row, names)} (separator {separator!r})")
    if schema.header:
        names, rows = _without_unnamed(names, rows)
    _check_names(path, names)
    for name in names:
        check_identifier(name, f"{path}: the name of a column")
    file_rows = FileRows.without(dict.fromkeys(empty, EMPTY), len(rows) + len(empty))
    return Sheet(names, rows, [f"{path}:{line}" for line in lines], file_rows)


def _wrong_length(row: Sequence[str], names: Sequence[str]) -> str:
    """What a row of too few or too many values lacks or has too much."""
    counts = f"has {len(row)} values for {len(names)} columns"
    if len(row) < len(names):
        more = len(names) - len(row) - 1
        return f"{counts}: none for {names[len(row)]!r}" + (f" and {more} more" if more else "")
    counts += f": {row[len(names)]!r} is beyond the last column, {names[-1]!r}"
    if 2 * len(names) <= len(row):
        counts += ". If the columns are named farther below, set skip_lines"
    return counts


def _without_unnamed(
    names: tuple[str, ...], rows: list[list[str]]
) -> tuple[tuple[str, ...], list[list[str]]]:
    """The columns but for empty ones without a name, which separators at the end of each line make; one may remain."""
    unnamed = {place for place, name in enumerate(names) if not name}
    if len(unnamed) < 2:
        return names, rows
    filled = {place for place in unnamed if any(row[place] for row in rows)}
    places = [place for place, name in enumerate(names) if name or place in filled]
    return tuple(names[place] for place in places), [[row[place] for place in places] for row in rows]


def _check_names(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    name = min(name for name in names if names.count(name) > 1)
    places = [f"{place}" for place, one in enumerate(names, 1) if one == name]
    which = f"columns {', '.join(places[:-1])} and {places[-1]}"
    if not name:
        raise UserError(f"{path}: {which} have values but no name: name them, or remove them")
    raise UserError(f"{path}: two columns are called {name!r} ({which}): rename one of them")


def _one_line(cell: str) -> str:
    """A cell with blanks in place of line breaks and of blanks of other widths, and with ' for ’ between thousands."""
    if "\u2019" in cell:
        cell = APOSTROPHE.sub("'", cell)
    if any(blank in cell for blank in BLANKS):
        return " ".join(cell.split())
    return cell


def plain(sheet: Sheet, schema: Schema) -> Sheet:
    """The sheet with numbers and dates as the schema says they are written, as 1234.5 and 2026-11-23."""
    plans, marks = schema.plans(), schema.missing_marks
    numeric = {plan.name for plan in plans if plan.kind == "numeric" and plan.format == "number"}
    levels = {plan.name for plan in plans if plan.levels is not None}
    zeros = {plan.name: plan.zero for plan in plans if plan.zero}
    sheet = replaced(sheet, with_zeros(sheet.columns, zeros, {plan.name: plan.unit for plan in plans}))
    sheet = replaced(sheet, with_signs(sheet.columns, marks, schema.negatives, numeric), levels)
    sheet = without_units(sheet, {plan.name: plan.unit for plan in plans if plan.levels is None})
    sheet = replaced(sheet, without_limits(sheet.columns, marks, schema.censored, numeric), levels)
    if (schema.decimal, schema.thousands, schema.date_format, schema.time_format) != (".", None, None, None):
        sheet = replaced(
            sheet,
            plain_columns(
                sheet.columns,
                marks,
                schema.decimal,
                schema.thousands,
                schema.date_format,
                schema.time_format,
                schema.last_year,
            ),
        )
    epochs = {plan.name: (plan.epoch, plan.format) for plan in plans if plan.epoch}
    return replaced(sheet, with_moments(sheet.columns, epochs))


def replaced(sheet: Sheet, columns: Mapping[str, Sequence[str]], unchanged: Collection[str] = ()) -> Sheet:
    """The sheet with other cells in some columns, but for those that stay ``unchanged``."""
    own = {name: cells for name, cells in columns.items() if name not in unchanged}
    if not own:
        return sheet
    cells = [own.get(name, sheet.columns[name]) for name in sheet.names]
    return sheet.with_columns(cells)


def without_units(sheet: Sheet, units: Mapping[str, str]) -> Sheet:
    """The sheet without the unit of a column next to its numbers; ``units`` by name of the column, "" for none."""
    own = {name: unit for name, unit in units.items() if unit and name in sheet.columns}
    if not own:
        return sheet
    stripped = {
        name: {cell: without_unit(cell, unit) for cell in set(sheet.columns[name])}
        for name, unit in own.items()
    }
    cells = [
        [stripped[name][cell] for cell in own_cells] if name in stripped else own_cells
        for name, own_cells in sheet.columns.items()
    ]
    return sheet.with_columns(cells)


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped or its name ends in .Z."""
    with unpacked(path) as file:
        data = file.read()
    if path.suffix == ".Z":
        from cfbench_tabular.unix_compress import decompressed

        data = decompressed(data, str(path))
    return data


def _file_of(sheet: Sheet) -> str:
    """The file of the first row."""
    return sheet.places[0].rpartition(":")[0] if sheet.places else ""


def table_of(sheet: Sheet, schema: Schema, name: str) -> Table:
    """The table of a sheet.

    Raises:
        UserError: for the first error, with its line and column.
    """
    plans = {plan.name: plan for plan in schema.plans()}
    class_column = _class_column(sheet, schema)
    for column in plans:
        if column not in sheet.names:
            raise UserError(f"{_file_of(sheet) or name}: no column {column!r}.{_hint(column, sheet.names)}")
    features = [
        plans.get(column, ColumnPlan(column))
        for column in sheet.names
        if column != class_column and plans.get(column, ColumnPlan(column)).kind != "drop"
    ]
    if not features:
        raise UserError(f"{_file_of(sheet) or name}: has no feature columns")
    sheet, imputed = without_missing(sheet, schema, features, class_column)
    found = [typed(sheet, plan) for plan in features]
    columns = tuple(column for column, _ in found)
    values = {column.name: cells for column, cells in found}
    wanted = schema.number_range
    predicted = numbers(sheet.columns[class_column], class_column, sheet.places) if wanted else None
    target = np.array(_classes(sheet, schema, class_column, predicted), dtype=object)
    return Table(
        name,
        columns,
        values,
        target,
        wanted.inside if wanted else None,
        schema.constraints,
        imputed,
        numbers=predicted,
        number_range=replace(wanted, column=class_column) if wanted else None,
        file_rows=sheet.file_rows,
    )


def typed(sheet: Sheet, plan: ColumnPlan) -> tuple[Column, AnyArray]:
    """A column of a sheet with its type and its values."""
    from cfbench_tabular.schema_inference import kind_of

    cells = sheet.columns[plan.name]
    kind = plan.kind or kind_of(cells)
    if kind in ("date", "time"):
        plan = ColumnPlan.of(plan.name, kind)
    if kind in ("numeric", "date", "time"):
        return _quantity(cells, plan, sheet.places)
    if plan.kind is None and len(set(cells)) > MOST_INFERRED_LEVELS:
        raise UserError(_too_many_levels(sheet, plan.name))
    for cell in set(cells):
        if len(cell) > LONGEST_IDENTIFIER or not cell.isprintable():
            check_identifier(cell, f"{sheet.places[cells.index(cell)]}: column {plan.name!r}")
    names = plan.levels if plan.levels is not None else {cell: cell for cell in in_order(set(cells))}
    unknown = set(cells) - set(names)
    if unknown:
        place = next(place for place, cell in enumerate(cells) if cell in unknown)
        raise UserError(
            f"{sheet.places[place]}: column {plan.name!r}: no level {cells[place]!r}.{_hint(cells[place], names)}"
        )
    _check_size(sheet, plan, len(names))
    levels = tuple(names.values())
    column = Column(plan.name, "categorical", levels, ordered=plan.ordered, unit=plan.unit)
    return column, np.array([names[cell] for cell in cells], dtype=object)


def _check_size(sheet: Sheet, plan: ColumnPlan, levels: int) -> None:
    size = 8 * levels * len(sheet.rows)
    if size > MOST_BYTES:
        raise UserError(
            f"{_file_of(sheet)}: column {plan.name!r}: {levels:,} levels in {len(sheet.rows):,} rows take {size / 1e9:.0f} "
            "GB when they are encoded, one number for each level. Set its type to drop, or map its values to fewer levels"
        )


def _too_many_levels(sheet: Sheet, column: str) -> str:
    """Why a column without a type cannot be a category, and what it may be instead."""
    cells = sheet.columns[column]
    strange = [cell for cell in cells if not np.isfinite(number_or_nan(cell))]
    share = 1 - len(strange) / len(cells)
    what = f"{_file_of(sheet)}: column {column!r}: has {len(set(cells)):,} different texts, too many for a category"
    if share < 0.5:
        return f"{what}. Set its type to drop, or give its levels"
    return (
        f"{what}; {share:.0%} are numbers, and {strange[0]!r} is not ({sheet.places[cells.index(strange[0])]}). "
        "If it means a missing value, add it to missing_marks; else correct it, or set decimal, thousands or the type"
    )


def _quantity(cells: Sequence[str], plan: ColumnPlan, places: Sequence[str]) -> tuple[Column, AnyArray]:
    """A column of numbers, dates or times at the multiples of its step.

    Raises:
        UserError: for the first value that is none, with its line.
    """
    values = numbers(cells, plan.name, places, plan.format)
    if plan.step is None:
        step = inferred_step(values)
    elif isinstance(plan.step, str):
        step = None
    else:
        step = plan.step
        off = off_step(values, step)
        if off.any():
            row = int(np.argmax(off))
            raise UserError(
                f"{places[row]}: column {plan.name!r}: {cells[row]!r} is not "
                f"{'a whole number' if step == 1 else f'a multiple of its step {step:g}'}: "
                "correct it, or the type of the column"
            )
    if step is not None:
        values = nearest_multiple(values, step)
    column = Column(
        plan.name,
        step=step,
        unit=plan.unit,
        low=plan.low,
        high=plan.high,
        format=plan.format,
        epoch=plan.epoch,
    )
    return column, values


def _class_column(sheet: Sheet, schema: Schema) -> str:
    name = schema.class_column if schema.class_column is not None else sheet.names[-1]
    if name not in sheet.names:
        raise UserError(f"class_column: no column {name!r}.{_hint(name, sheet.names)}")
    return name


def _classes(sheet: Sheet, schema: Schema, column: str, predicted: FloatArray | None) -> list[str]:
    cells, wanted = sheet.columns[column], schema.number_range
    if wanted is not None and predicted is not None:
        return [wanted.inside if inside else wanted.outside for inside in wanted.contains(predicted)]
    if not schema.classes:
        return list(cells)
    where = "classes"
    names = {text_of(raw, where): text_of(label, where) for raw, label in schema.classes.items()}
    for cell, place in zip(cells, sheet.places, strict=True):
        if cell not in names:
            raise UserError(f"{place}: column {column!r}: no class {cell!r}.{_hint(cell, names)}")
    return [names[cell] for cell in cells]


def _hint(wrong: str, known: Iterable[str]) -> str:
    names = [str(name) for name in known]
    shown = ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")
    return did_you_mean(wrong, names) or f" There are {shown}"
