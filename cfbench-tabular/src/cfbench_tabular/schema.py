"""The schema of a delimited text file: a few lines of YAML, for users' files and published data sets.

    class_column: outcome            # none: the last column
    missing: drop                    # or: error
    columns:
      age: numeric
      sex: [female, male]            # categories, in this order
      smoker: {levels: {1: never, 2: former, 3: current}}    # value in the file: name of the level
      town: categorical              # levels as found in the file, sorted
      id: drop
      f1..f617: numeric              # f1, f2, ..., f617
    constraints:
      - {column: bmi, relation: ratio, of: [mass, height2], absolute: 0.05}

The types of columns that the schema does not name are inferred from their values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from cfbench_core.config import Help
from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.constraints import Constraint

KINDS = ("numeric", "categorical", "drop")
MISSING_MARKS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")
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
    columns: Annotated[
        Mapping[str, Any],
        Help("numeric, categorical, drop, or a list of levels, by name; others are inferred"),
    ] = field(default_factory=dict)
    constraints: Annotated[tuple[Constraint, ...], Help("between numeric columns")] = ()
    separator: Annotated[str | None, Help("one character, or whitespace; none: detected")] = None
    header: Annotated[bool, Help("whether the first line names the columns; else 'columns' does")] = True
    missing: Annotated[
        Literal["error", "drop"], Help("rows with a missing value: refuse the file, or drop them")
    ] = "error"
    missing_marks: Annotated[
        tuple[str, ...], Help("text of a missing value, unless it is a level of the column")
    ] = MISSING_MARKS
    encoding: Annotated[str, Help("of the text")] = "utf-8"

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator != WHITESPACE and len(self.separator) != 1:
            raise ValueError(f"separator must be one character or {WHITESPACE}, got {self.separator!r}")
        if self.threshold is not None and self.classes:
            raise ValueError("threshold and classes exclude each other: remove one of them")
        if not self.header and not self.columns:
            raise ValueError("header: false needs all columns, in their order, in 'columns'")
        if len(set(self.missing_marks)) < len(self.missing_marks):
            raise ValueError("missing_marks: a mark is given twice")
        try:
            "".encode(self.encoding)
        except (LookupError, ValueError):
            raise ValueError(f"encoding: {self.encoding!r} is no encoding of text") from None
        self.plans()

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
        kind: None if it is to be inferred from the values.
        levels: the names of the levels of a categorical column by their values in the file, in order; None if they are
            to be read from the file.
    """

    name: str
    kind: str | None = None
    levels: Mapping[str, str] | None = None

    @staticmethod
    def of(name: str, entry: Any) -> ColumnPlan:
        if isinstance(entry, Mapping):
            unknown = [str(key) for key in entry if key not in ("type", "levels")]
            if unknown:
                hint = did_you_mean(unknown[0], ["type", "levels"])
                raise UserError(
                    f"column {name!r}: unknown key {unknown[0]!r}.{hint or ' Known: type, levels'}"
                )
            if entry.get("levels") is not None:
                if entry.get("type", "categorical") != "categorical":
                    raise UserError(f"column {name!r}: has levels, so its type cannot be {entry['type']}")
                return ColumnPlan(name, "categorical", _levels(name, entry["levels"]))
            entry = entry.get("type")
        if isinstance(entry, Sequence) and not isinstance(entry, str):
            return ColumnPlan(name, "categorical", _levels(name, entry))
        if entry is not None and entry not in KINDS:
            hint = did_you_mean(str(entry), KINDS)
            raise UserError(
                f"column {name!r}: must be {', '.join(KINDS)} or a list of levels, got {str(entry)!r}.{hint}"
            )
        return ColumnPlan(name, entry)


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
