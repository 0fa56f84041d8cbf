"""The schema of a delimited text file: a few lines of YAML, for users' files and published data sets.

    class_column: outcome            # none: the last column
    missing: drop                    # or: error, median, mode, model
    columns:
      age: integer
      height: numeric                # with the decimals that all values share
      income: {type: numeric, step: 0.01, unit: EUR, range: [0, 1000000]}
      grade: {type: ordinal, levels: [low, middle, high]}
      born: date                     # 1987-06-05
      opened: {type: date, epoch: spreadsheet}      # 45123 is 2023-07-16; time with epoch unix: seconds since 1970
      balance: {type: numeric, step: 0.01, zero: "-"}      # as accounts write 0
      sex: [female, male]            # categories, in this order
      smoker: {levels: {1: never, 2: former, 3: current}}    # value in the file: name of the level
      town: categorical              # levels as found in the file, sorted
      id: drop
      f1..f617: numeric              # f1, f2, ..., f617
    constraints:
      - {column: bmi, relation: ratio, of: [mass, height2], absolute: 0.05}

The types of columns that the schema does not name are inferred from their values. A counterfactual changes a column
with a step by whole steps: integers and days by 1, amounts of money by 0.01. ``step: any`` allows any number. The
range is that of counterfactuals; a row of the file may lie outside it. A unit is shown in sentences, and in the file it
may stand next to the numbers: 12.50 EUR.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.column_types import Format, number_of
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.number_range import NumberRange

KINDS = ("numeric", "integer", "date", "time", "ordinal", "categorical", "drop")
KEYS = ("type", "levels", "step", "unit", "range", "zero", "epoch")
EPOCHS = ("spreadsheet", "unix")
ANY = "any"
"""As a step: any number."""
MISSING_MARKS = (
    *("", "?", "NA", "N/A", "NaN", "nan", "null", "None"),
    *("NULL", "n/a", "N.A.", "n.a.", "#N/A", "#NA", "<NA>", "NAN", "-NaN", "-nan", "NaT"),
)
"""Text that programs write for a missing value, and that is hardly ever anything else."""
WHITESPACE = "whitespace"
MOST_COLUMNS = 100_000
"""Of one range of names."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """How to read a text file."""

    class_column: Annotated[str | None, Help("column with the class of each row; none: the last")] = None
    classes: Annotated[
        Mapping[str, Any], Help("names of the classes, by their values in the file: {g: gamma, h: hadron}")
    ] = field(default_factory=dict)
    threshold: Annotated[
        float | None, Help("for a class column of numbers: the classes are below this, and at least this")
    ] = None
    target_range: Annotated[
        tuple[float | None, float | None] | None,
        Help(
            "for a class column of numbers: the target class is from the first to the second; null: no limit"
        ),
    ] = None
    columns: Annotated[
        Mapping[str, Any],
        Help(
            "numeric, integer, date, time, ordinal, categorical, drop, a list of levels, or a mapping with type, "
            "levels, step, unit, range, zero, epoch; by name; others are inferred"
        ),
    ] = field(default_factory=dict)
    constraints: Annotated[tuple[Constraint, ...], Help("between numeric columns")] = ()
    separator: Annotated[str | None, Help("one character, or whitespace; none: detected")] = None
    header: Annotated[bool, Help("whether the first line names the columns; else 'columns' does")] = True
    skip_lines: Annotated[
        int, Range(minimum=0), Help("lines before that with the names of the columns, such as a title")
    ] = 0
    missing: Annotated[
        Literal["error", "drop", "median", "mode", "model"],
        Help(
            "rows with a missing value: refuse the file, drop them, or fill in the median (the most frequent level "
            "of categories), the most frequent value of the column, or what a model predicts from the other columns"
        ),
    ] = "error"
    missing_marks: Annotated[
        tuple[str, ...],
        Help("text of a missing value, unless it is a level of the column or one of the classes"),
    ] = MISSING_MARKS
    encoding: Annotated[str, Help("of the text")] = "utf-8"
    decimal: Annotated[Literal[".", ","], Help("decimal mark of numbers")] = "."
    thousands: Annotated[
        Literal[".", ",", " ", "'"] | None, Help("mark between groups of three digits: 1,234.50")
    ] = None
    negatives: Annotated[
        Literal["minus", "parentheses", "trailing"],
        Help("how negative numbers are written: -5, (5) as in accounts, or 5-; a minus sign is always read"),
    ] = "minus"
    censored: Annotated[
        Literal["error", "limit", "missing"],
        Help("numbers such as <5, >= 100 and 80+: refused, read as 5, 100 and 80, or missing"),
    ] = "error"
    date_format: Annotated[
        str | None, Help("of dates that are not ISO 8601, as strptime reads it: '%d.%m.%Y'")
    ] = None
    time_format: Annotated[
        str | None, Help("of times that are not ISO 8601, as strptime reads it: '%d.%m.%Y %H:%M'")
    ] = None
    last_year: Annotated[
        int | None,
        Range(minimum=100, maximum=9999),
        Help(
            "of dates whose years have two digits: with 2026, 61 is 1961; none: 69 to 99 are of the last century"
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator != WHITESPACE and len(self.separator) != 1:
            raise ValueError(f"separator must be one character or {WHITESPACE}, got {self.separator!r}")
        given = {
            "threshold": self.threshold,
            "target_range": self.target_range,
            "classes": self.classes or None,
        }
        both = [name for name, value in given.items() if value is not None]
        if len(both) > 1:
            raise ValueError(f"{' and '.join(both[:2])} exclude each other: remove one of them")
        if self.target_range is not None:
            low, high = self.target_range
            if (low is None and high is None) or (low is not None and high is not None and low >= high):
                raise ValueError(
                    f"target_range must have a lower limit below the upper one, got {[low, high]}"
                )
        if not self.header and not self.columns:
            raise ValueError("header: false needs all columns, in their order, in 'columns'")
        if len(set(self.missing_marks)) < len(self.missing_marks):
            raise ValueError("missing_marks: a mark is given twice")
        if self.thousands == self.decimal:
            raise ValueError(f"thousands: must differ from the decimal mark, both are {self.decimal!r}")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise ValueError(f"encoding: {self.encoding!r} is no encoding of text") from None
        self.plans()

    @property
    def number_range(self) -> NumberRange | None:
        """The wanted numbers of a class column of numbers."""
        if self.threshold is not None:
            return NumberRange(self.threshold, None)
        return NumberRange(*self.target_range) if self.target_range is not None else None

    def plans(self) -> tuple[ColumnPlan, ...]:
        """The plans of the columns, in order, with ranges of names expanded.

        Raises:
            UserError: if the entry of a column is not valid.
        """
        found: dict[str, ColumnPlan] = {}
        for names, entry in self.columns.items():
            for name in _expanded(str(names)):
                if name in found:
                    raise UserError(f"columns: {name!r} is given twice, once in {names!r}")
                found[name] = ColumnPlan.of(name, entry)
        return tuple(found.values())


@dataclass(frozen=True)
class ColumnPlan:
    """The schema of one column.

    Attributes:
        kind: numeric, categorical or drop; None if it is to be inferred from the values.
        levels: the names of the levels of a categorical column by their values in the file, in order; None if they are
            to be read from the file.
        step: a number, "any", or None if it is to be inferred from the values.
        ordered: whether the levels ascend.
        unit, low, high, format: as in :class:`~cfbench_tabular.table.Column`.
        zero: text that means 0, such as - in accounts; "" for none.
        epoch: how the file counts dates or times as numbers: spreadsheet or unix; "" if it holds them as text.
    """

    name: str
    kind: str | None = None
    levels: Mapping[str, str] | None = None
    step: float | str | None = None
    ordered: bool = False
    unit: str = ""
    low: float | None = None
    high: float | None = None
    format: Format = "number"
    zero: str = ""
    epoch: str = ""

    @staticmethod
    def of(name: str, entry: Any) -> ColumnPlan:
        if isinstance(entry, Sequence) and not isinstance(entry, str):
            return ColumnPlan(name, "categorical", _levels(name, entry))
        fields = dict(entry) if isinstance(entry, Mapping) else {"type": entry}
        unknown = [str(key) for key in fields if key not in KEYS]
        if unknown:
            hint = did_you_mean(unknown[0], KEYS) or f" Known: {', '.join(KEYS)}"
            raise UserError(f"column {name!r}: unknown key {unknown[0]!r}.{hint}")
        kind = fields.get("type")
        if kind is not None and kind not in KINDS:
            hint = did_you_mean(str(kind), KINDS)
            raise UserError(
                f"column {name!r}: must be {', '.join(KINDS)} or a list of levels, got {str(kind)!r}.{hint}"
            )
        if fields.get("levels") is not None:
            return _categorical(name, kind or "categorical", fields)
        if kind == "ordinal":
            raise UserError(f"column {name!r}: an ordinal column needs its levels, in ascending order")
        return _quantity(name, kind, fields)


def _categorical(name: str, kind: str, fields: Mapping[str, Any]) -> ColumnPlan:
    if kind not in ("categorical", "ordinal"):
        raise UserError(f"column {name!r}: has levels, so its type cannot be {kind}")
    for key in ("step", "range", "zero", "epoch"):
        if fields.get(key) is not None:
            raise UserError(
                f"column {name!r}: has levels, so it cannot have {'an' if key == 'epoch' else 'a'} {key}"
            )
    levels = _levels(name, fields["levels"])
    return ColumnPlan(
        name, "categorical", levels, ordered=kind == "ordinal", unit=str(fields.get("unit") or "")
    )


def _quantity(name: str, kind: str | None, fields: Mapping[str, Any]) -> ColumnPlan:
    """The plan of a column without levels: a number, a date or a time, or one of unknown type."""
    form: Format = "date" if kind == "date" else "time" if kind == "time" else "number"
    step, given = fields.get("step"), fields.get("range")
    quantity = kind in ("numeric", "integer", "date", "time")
    if not quantity and (step is not None or given is not None):
        what = "step" if step is not None else "range"
        raise UserError(f"column {name!r}: has a {what}, so its type must be numeric, integer, date or time")
    if step is not None and step != ANY and (not _is_number(step) or step <= 0):
        raise UserError(f"column {name!r}: step must be a positive number or {ANY}, got {step!r}")
    whole = kind in ("integer", "date")
    if whole and step is not None and (step == ANY or step != round(step)):
        raise UserError(
            f"column {name!r}: step of a column of type {kind} must be a whole number, got {step!r}"
        )
    if step is None and (whole or kind == "time"):
        step = 1.0
    low, high = _range(name, given, form)
    return ColumnPlan(
        name,
        "numeric" if quantity else kind,
        step=step if step is None or step == ANY else float(step),
        unit=str(fields.get("unit") or ""),
        low=low,
        high=high,
        format=form,
        zero=_zero(name, fields, quantity and form == "number"),
        epoch=_epoch(name, fields, form),
    )


def _zero(name: str, fields: Mapping[str, Any], is_number: bool) -> str:
    """The text that means 0."""
    zero = fields.get("zero")
    if zero is None:
        return ""
    if not isinstance(zero, str) or not zero.strip():
        raise UserError(f"column {name!r}: zero must be the text that means 0, such as '-', got {zero!r}")
    if not is_number:
        raise UserError(f"column {name!r}: has a zero, so its type must be numeric or integer")
    return zero.strip()


def _epoch(name: str, fields: Mapping[str, Any], form: Format) -> str:
    """How dates or times are counted."""
    epoch = fields.get("epoch")
    if epoch is None:
        return ""
    if epoch not in EPOCHS:
        raise UserError(f"column {name!r}: epoch must be {' or '.join(EPOCHS)}, got {epoch!r}")
    kinds = ("date", "time") if epoch == "spreadsheet" else ("time",)
    if form not in kinds:
        raise UserError(f"column {name!r}: has the epoch {epoch}, so its type must be {' or '.join(kinds)}")
    return str(epoch)


def _range(name: str, given: Any, form: Format) -> tuple[float | None, float | None]:
    """The two ends of a range; null: the observed end."""
    if given is None:
        return None, None
    if not isinstance(given, Sequence) or isinstance(given, str) or len(given) != 2:
        raise UserError(f"column {name!r}: range must be two values, [lowest, highest], got {given!r}")
    ends: list[float | None] = []
    for end in given:
        try:
            ends.append(None if end is None else number_of(end, form))
        except (TypeError, ValueError):
            raise UserError(f"column {name!r}: range: {end!r} is not a {form}") from None
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        raise UserError(f"column {name!r}: range must ascend, got {given[0]} to {given[1]}")
    return ends[0], ends[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def text_of(value: Any, where: str) -> str:
    """A level or class as text.

    Raises:
        UserError: for true and false, as which YAML reads an unquoted yes, no, on or off.
    """
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise UserError(
            f'{where}: {str(value).lower()} is not text; YAML reads an unquoted {word} as a boolean: quote it ("{word}")'
        )
    return str(value)


def _levels(name: str, entry: Any) -> Mapping[str, str]:
    where = f"column {name!r}: levels"
    if not isinstance(entry, (Mapping, Sequence)) or isinstance(entry, str):
        raise UserError(f"{where}: must be a list, or a mapping from values in the file to names")
    pairs = entry.items() if isinstance(entry, Mapping) else [(level, level) for level in entry]
    levels = [(text_of(raw, where), text_of(label, where)) for raw, label in pairs]
    for names in zip(*levels, strict=True):
        duplicates = {level for level in names if names.count(level) > 1}
        if duplicates:
            raise UserError(f"{where}: {min(duplicates)!r} occurs twice")
    return dict(levels)


def _expanded(name: str) -> list[str]:
    """``f1..f617`` as f1, f2, ..., f617; any other name as it is."""
    found = re.fullmatch(r"(.*?)([0-9]{1,9})\.\.\1([0-9]{1,9})", name)
    if not found:
        return [name]
    first, last = int(found[2]), int(found[3])
    if last - first >= MOST_COLUMNS:
        raise UserError(f"columns: {name!r} stands for more than {MOST_COLUMNS:,} columns")
    return [f"{found[1]}{number}" for number in range(first, last + 1)]
