"""What the columns of a text file are: a few lines of YAML, for files of users and for published data sets alike.

    class_column: outcome            # none: the last column
    missing: drop                    # or: error
    columns:
      age: numeric
      sex: [female, male]            # categories, in this order
      smoker: {levels: {1: never, 2: former, 3: current}}    # what stands in the file: what it means
      town: categorical              # levels as they are found, sorted
      id: drop
      f1..f617: numeric              # f1, f2, ..., f617
    rules:
      - {column: bmi, relation: ratio, of: [mass, height2], absolute: 0.05}

A column that is not named is guessed from its values.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from cfbench_core.config import Help
from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.rules import Rule

KINDS = ("numeric", "categorical", "drop")
MARKS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "None")
WHITESPACE = "whitespace"


@dataclass(frozen=True, kw_only=True)
class Schema:
    """How a text file is read."""

    class_column: Annotated[str | None, Help("column with the class of each row; none: the last")] = None
    classes: Annotated[
        Mapping[str, Any], Help("names of the classes, by what stands in the file: {g: gamma, h: hadron}")
    ] = field(default_factory=dict)
    threshold: Annotated[
        float | None, Help("for a class column of numbers: the classes are below this, and at least this")
    ] = None
    columns: Annotated[
        Mapping[str, Any],
        Help("numeric, categorical, drop, or a list of levels, by name; others are guessed"),
    ] = field(default_factory=dict)
    rules: Annotated[tuple[Rule, ...], Help("between numeric columns")] = ()
    separator: Annotated[str | None, Help("one character, or whitespace; none: found in the file")] = None
    header: Annotated[bool, Help("whether the first line names the columns; else 'columns' does")] = True
    missing: Annotated[
        Literal["error", "drop"], Help("rows with a missing value: refuse the file, or leave them out")
    ] = "error"
    missing_marks: Annotated[
        tuple[str, ...], Help("what a missing value looks like, unless it is a level of the column")
    ] = MARKS
    encoding: Annotated[str, Help("of the text")] = "utf-8"

    def __post_init__(self) -> None:
        if self.separator is not None and self.separator != WHITESPACE and len(self.separator) != 1:
            raise ValueError(f"separator must be one character or {WHITESPACE}, got {self.separator!r}")
        if self.threshold is not None and self.classes:
            raise ValueError("a threshold makes its own classes: leave out one of the two")
        if not self.header and not self.columns:
            raise ValueError("header: false needs all columns, in their order, in 'columns'")

    def plans(self) -> tuple[ColumnPlan, ...]:
        """What is told of the columns, in order, ranges of names written out.

        Raises:
            UserError: when a column is told something that cannot be.
        """
        return tuple(
            ColumnPlan.of(name, told)
            for names, told in self.columns.items()
            for name in _expanded(str(names))
        )


@dataclass(frozen=True)
class ColumnPlan:
    """What is told of one column.

    Attributes:
        kind: None where its values decide.
        levels: of a categorical column, what they are called by what stands in the file, in order; None where
            the file decides.
    """

    name: str
    kind: str | None = None
    levels: Mapping[str, str] | None = None

    @staticmethod
    def of(name: str, told: Any) -> ColumnPlan:
        if isinstance(told, Mapping):
            unknown = [str(key) for key in told if key not in ("type", "levels")]
            if unknown:
                hint = did_you_mean(unknown[0], ["type", "levels"])
                raise UserError(
                    f"column {name!r}: unknown key {unknown[0]!r}.{hint or ' Known: type, levels'}"
                )
            if told.get("levels") is not None:
                if told.get("type", "categorical") != "categorical":
                    raise UserError(f"column {name!r}: has levels, so it cannot be {told['type']}")
                return ColumnPlan(name, "categorical", _levels(name, told["levels"]))
            told = told.get("type")
        if isinstance(told, Sequence) and not isinstance(told, str):
            return ColumnPlan(name, "categorical", _levels(name, told))
        if told is not None and told not in KINDS:
            hint = did_you_mean(str(told), KINDS)
            raise UserError(
                f"column {name!r}: must be {', '.join(KINDS)} or a list of levels, got {str(told)!r}.{hint}"
            )
        return ColumnPlan(name, told)


def text_of(value: Any, where: str) -> str:
    """A level or class as it stands in the file.

    Raises:
        UserError: for true and false, which YAML makes of an unquoted yes, no, on or off.
    """
    if isinstance(value, bool):
        word = "yes" if value else "no"
        raise UserError(
            f'{where}: {str(value).lower()} is not text; YAML reads {word} so: put it in quotes ("{word}")'
        )
    return str(value)


def _levels(name: str, told: Any) -> Mapping[str, str]:
    where = f"column {name!r}: levels"
    if not isinstance(told, (Mapping, Sequence)) or isinstance(told, str):
        raise UserError(f"{where}: must be a list, or what they mean by what stands in the file")
    pairs = told.items() if isinstance(told, Mapping) else [(level, level) for level in told]
    levels = [(text_of(raw, where), text_of(label, where)) for raw, label in pairs]
    for which in zip(*levels, strict=True):
        twice = {level for level in which if which.count(level) > 1}
        if twice:
            raise UserError(f"{where}: {min(twice)!r} is there twice")
    return dict(levels)


def _expanded(name: str) -> list[str]:
    """``f1..f617`` as f1, f2, ..., f617; any other name as it is."""
    found = re.fullmatch(r"(.*?)(\d+)\.\.\1(\d+)", name)
    if not found:
        return [name]
    first, last = int(found[2]), int(found[3])
    return [f"{found[1]}{number}" for number in range(first, last + 1)]
