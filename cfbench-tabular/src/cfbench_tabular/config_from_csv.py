"""A configuration for a CSV file with an inferred schema: ``cfbench init --csv FILE``.

Comments in the configuration state what was inferred, so that users can check and correct it.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.account_forms import mixed_units, on_dashes
from cfbench_tabular.column_types import Format, decimals_of, inferred_step, number_of
from cfbench_tabular.constraint_mining import mine_constraints
from cfbench_tabular.detected_form import Detected, detect
from cfbench_tabular.draft_lines import Entry, commented_line, inline_yaml, run_lines, typed_entry
from cfbench_tabular.draft_remarks import (
    on_infinite,
    on_levels,
    on_moments,
    on_multiples,
    on_numbers,
    on_numbers_among_levels,
    on_step,
    on_unit,
    share_of_numbers,
)
from cfbench_tabular.file_format import (
    ZERO,
    marks_within,
)
from cfbench_tabular.number_forms import LEAST_NUMBERS, mixed_marks, remark_on
from cfbench_tabular.reading import plain
from cfbench_tabular.schema import ANY, MISSING_MARKS, Schema
from cfbench_tabular.schema_inference import in_scale, kind_of, on_dates, reason_to_drop
from cfbench_tabular.serial_moments import on_moments_as_numbers
from cfbench_tabular.sheet import Sheet, in_order

MOST_CLASSES = 20
"""A numeric class column with more distinct values gets a threshold."""
MOST_MISSING = 0.5
"""A column that lacks more of its values is left out; more rows with a missing value are filled in, not removed."""

DRAFT = """\
# Inferred from {file} ({rows:,} rows, {columns} columns). Check every line.
{remark}suite: tabular
seed: 0
data:
  - name: csv
    file: {file}
    separator: {separator}
{format}{classes}{missing}    columns:
{lines}
    immutable: []               # columns that a counterfactual must not change: [birthplace]
    direction: {{}}               # columns that may only increase or decrease: {{age: up}}
{constraints}
classifiers: [mlp, logistic-regression]      # 'cfbench list classifiers'
explainers: [{explainers}]
protocol:
  factuals: 100                 # maximum number of explained rows per predicted class
"""


def csv_document(
    path: Path, class_column: str | None, explainers: Sequence[str], encoding: str | None = None
) -> str:
    """A commented configuration with the inferred schema of the file; ``encoding``: of the text, None: detected.

    Raises:
        UserError: if the file cannot be read, lacks the class column, or has only one class.
    """
    detected = detect(path, encoding)
    raw, schema = detected.sheet, detected.schema
    if class_column is not None and class_column not in raw.names:
        hint = did_you_mean(class_column, raw.names) or f" There are {', '.join(raw.names)}"
        raise UserError(f"{path}: no column {class_column!r}.{hint}")
    marks = set(schema.missing_marks)
    # A separator at the end of each line makes an empty column without a name.
    named = [name for name, cells in raw.columns.items() if name or not marks.issuperset(cells)]
    label = class_column if class_column is not None else [*raw.names[:1], *named][-1]
    if len(raw.names) < 2:
        raise UserError(f"{path}: has only the column {label!r}; its separator must be one of , ; | or a tab")
    draft = _Draft(plain(raw, schema), detected, label)
    return DRAFT.format(
        file=inline_yaml(str(path)),
        rows=len(raw.rows),
        columns=len(raw.names),
        remark=f"# {detected.remark}\n" if detected.remark else "",
        separator=inline_yaml(schema.separator),
        format="".join(
            f"    {commented_line(key, getattr(schema, key), why)}\n" for key, why in detected.reasons.items()
        ),
        classes="".join(f"    {line}\n" for line in _class_lines(path, draft, class_column is not None)),
        missing=_missing_line(draft),
        lines="\n".join(f"      {line}" for line in _column_lines(draft)),
        constraints="\n".join(f"    {line}" for line in _constraint_lines(draft)),
        explainers=", ".join(explainers),
    )


@dataclass(frozen=True)
class _Draft:
    """A table whose columns are being described.

    ``sheet`` is the table as a run reads it, ``label`` the class column.
    """

    sheet: Sheet
    detected: Detected
    label: str

    @property
    def schema(self) -> Schema:
        return self.detected.schema

    @property
    def written(self) -> Sheet:
        """The table as in the file."""
        return self.detected.written

    def options(self, name: str) -> dict[str, str]:
        """What stands next to the numbers of a column, and instead of 0."""
        found = {"unit": self.detected.units.get(name, ""), "zero": self.detected.zeros.get(name, "")}
        return {key: value for key, value in found.items() if value}

    def class_options(self) -> dict[str, str]:
        """The entry of the class column."""
        own = self.options(self.label)
        return {"type": "numeric", **own} if own else {}

    @functools.cached_property
    def marks(self) -> dict[str, set[str]]:
        """Signs of missing values by column."""
        marks = self.schema.missing_marks
        return {name: marks_within(cells, marks, MISSING_MARKS) for name, cells in self.sheet.columns.items()}

    @property
    def header(self) -> bool:
        """Whether the first line names the columns."""
        return self.schema.header

    @functools.cached_property
    def features(self) -> tuple[str, ...]:
        return tuple(name for name in self.sheet.names if name != self.label)

    @functools.cached_property
    def present(self) -> dict[str, list[str]]:
        """The cells of each column that are not missing."""
        return {
            name: [cell for cell in cells if cell not in self.marks[name]]
            for name, cells in self.sheet.columns.items()
        }

    @functools.cached_property
    def dropped(self) -> dict[str, str]:
        """Why columns are left out, by name."""
        return {name: why for name in self.features if (why := self._reason(name))}

    def _reason(self, name: str) -> str:
        cells, rows = self.present[name], len(self.sheet.rows)
        if not cells:
            return "always missing"
        if len(cells) < (1 - MOST_MISSING) * rows:
            signs = sorted(self.marks[name].intersection(self.sheet.columns[name]) - {""})
            shown = f" ({', '.join(map(repr, signs))})" if signs else ""
            return f"missing in {1 - len(cells) / rows:.0%} of the rows{shown}; give its type to use it"
        if mixed := self.mixed(name):
            return f"mixes {mixed}: write all numbers in the same way to use it"
        why = reason_to_drop(name, cells)
        if not why.startswith("text"):
            return why
        remark = on_unit(cells) or on_multiples(cells)
        return "; ".join(filter(None, (why + share_of_numbers(cells), remark)))

    def mixed(self, name: str) -> str:
        """Two numbers with different decimal marks or units, and where they stand; "" if the column does not mix them."""
        if kind_of(self.present[name]) == "numeric":
            return ""
        pair = mixed_marks(self.present[name])
        if pair:
            return f"decimal marks, {self._shown(name, pair)}"
        return self.mixed_units(name) if len(set(self.present[name])) > LEAST_NUMBERS else ""

    def mixed_units(self, name: str) -> str:
        """Two numbers with different units, as :meth:`mixed` says it; few such numbers are levels."""
        pair = mixed_units(self.present[name])
        return f"units, {self._shown(name, pair)}" if pair else ""

    def _shown(self, name: str, pair: tuple[int, int]) -> str:
        """Two cells that are not missing, and where they stand."""
        rows = [row for row, cell in enumerate(self.sheet.columns[name]) if cell not in self.marks[name]]
        return " and ".join(
            f"{self.present[name][place]!r} ({self.sheet.places[rows[place]]})" for place in pair
        )

    def remark(self, name: str) -> str:
        """What is not read as it looks in a column of numbers."""
        written, plain = self.written.columns[name], self.sheet.columns[name]
        bare = self.detected.sheet.columns[name]
        return remark_on(written, bare, self.marks[name], plain, self.schema.thousands)

    @functools.cached_property
    def lacking(self) -> dict[str, list[int]]:
        """The rows without a value, of the columns that are used."""
        used = [name for name in (*self.features, self.label) if name not in self.dropped]
        cells = {
            name: self.sheet.columns[name] for name in used if len(self.present[name]) < len(self.sheet.rows)
        }
        return {
            name: [row for row, cell in enumerate(own) if cell in self.marks[name]]
            for name, own in cells.items()
        }


def _class_lines(path: Path, draft: _Draft, named: bool) -> Iterator[str]:
    label, cells = draft.label, draft.present[draft.label]
    counts = Counter(cells)
    if len(counts) < 2:
        marks = draft.marks[label].intersection(draft.sheet.columns[label]) - {""}
        lacks = f", or a sign of a missing value: {', '.join(map(repr, sorted(marks)))}" if marks else ""
        only = f"every row has {cells[0]!r}{lacks}" if cells else "it is empty"
        raise UserError(
            f"{path}: column {label!r} has only one class ({only}); name another one with --target COLUMN"
        )
    why = "from --target" if named else "inferred: the last column"
    if len(counts) > MOST_CLASSES and kind_of(cells) == "numeric":
        yield commented_line("class_column", label, why)
        median = float(np.median([float(cell) for cell in cells]))
        yield commented_line(
            "threshold", int(median) if median.is_integer() else median, "inferred: the median"
        )
        return
    if mixed := draft.mixed(label):
        raise UserError(
            f"{path}: column {label!r} mixes {mixed}: write all numbers in the same way, or name another "
            "column with --target COLUMN"
        )
    if len(counts) > max(MOST_CLASSES, len(cells) // 2):
        raise UserError(
            f"{path}: column {label!r} has {len(counts):,} distinct values, too many for classes; name another "
            "one with --target COLUMN"
        )
    shown = [f"{name} {count:,}" for name, count in counts.most_common(4)]
    rest = f", and {len(counts) - 4} more" if len(counts) > 4 else ""
    remark = on_levels(
        in_order(counts), draft.sheet.columns[label], draft.marks[label], "a class: in 'classes'"
    )
    yield commented_line(
        "class_column", label, "; ".join(filter(None, (f"{why}; rows: {', '.join(shown)}{rest}", remark)))
    )
    if not draft.marks[label].issuperset(draft.schema.missing_marks):
        yield commented_line(
            "classes", {name: name for name in in_order(counts)}, "all are classes, none a missing value"
        )
    most = max(counts.values())
    majority = max(name for name, count in counts.items() if count == most)
    yield commented_line(
        "target", majority, "the class to predict against the rest; inferred: the most frequent one"
    )


def _missing_line(draft: _Draft) -> str:
    if not draft.lacking:
        return ""
    rows = {row for places in draft.lacking.values() for row in places}
    names = list(draft.lacking)
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    text = f"{len(rows):,} of {len(draft.sheet.rows):,} rows have a missing value ({shown}{_marks_shown(draft)}); "
    if len(rows) <= MOST_MISSING * len(draft.sheet.rows):
        value, why = "drop", "drop removes them; median, mode or model fills the gaps in"
    else:
        value, why = "median", "median fills them in, drop would remove most rows"
    return f"    {commented_line('missing', value, text + why)}\n"


def _marks_shown(draft: _Draft) -> str:
    """The signs of missing values that stand in the columns that are used, but for empty cells alone."""
    found = {draft.sheet.columns[name][row] for name, rows in draft.lacking.items() for row in rows}
    if found == {""}:
        return ""
    return ": " + ", ".join(repr(mark) if mark else "empty" for mark in sorted(found))


def _column_lines(draft: _Draft) -> Iterator[str]:
    """A line for each column, or for several numbered columns x1, x2, ... of the same type."""
    run: list[tuple[str, Entry]] = []
    for name in draft.features if draft.header else draft.sheet.names:
        own = name == draft.label
        entry = Entry(draft.class_options(), "the classes") if own else _drafted(draft, name)
        if not entry.continues(run, name):
            yield from run_lines(run)
            run = []
        if entry.continues(run, name):
            run.append((name, entry))
        else:
            yield commented_line(name, entry.value, entry.comment)
    yield from run_lines(run)
    if draft.header and draft.options(draft.label):
        yield commented_line(
            draft.label, draft.class_options(), "the class column, whose numbers are written so"
        )


def _drafted(draft: _Draft, name: str) -> Entry:
    if name in draft.dropped:
        return Entry("drop", draft.dropped[name])
    cells = draft.present[name]
    kind = kind_of(cells)
    if kind == "categorical":
        levels = in_order(set(cells))
        ascending = in_scale(levels)
        if ascending is not None:
            return Entry({"type": "ordinal", "levels": ascending}, "a common scale, in ascending order")
        units = draft.mixed_units(name)
        remarks = [
            on_levels(levels, draft.sheet.columns[name], draft.marks[name]),
            on_dates(levels)[2:],
            f"mixes {units}" if units else on_unit(levels) or on_multiples(levels),
            on_numbers_among_levels(cells),
        ]
        return Entry(levels, "", "; ".join(filter(None, remarks)))
    if kind in ("date", "time"):
        return _drafted_moment(draft, name, kind)
    return _drafted_number(draft, name)


def _drafted_number(draft: _Draft, name: str) -> Entry:
    cells = draft.present[name]
    numbers = np.array([float(cell) for cell in cells])
    reach, step = f"{numbers.min():g} to {numbers.max():g}", inferred_step(numbers)
    own: dict[str, Any] = draft.options(name)
    stated = ""
    if "unit" in own:
        bare = any(map(ZERO.fullmatch, draft.written.columns[name]))
        stated = f"; {own['unit']} next to every number{' but 0' if bare else ''}"
    dash = on_dashes(draft.written.columns[name], draft.marks[name], own.get("zero", ""))
    larger = on_step(numbers, step) if step is not None else ""
    infinite = on_infinite(draft.written.columns[name], draft.marks[name], draft.sheet.places)
    found = (
        infinite,
        on_numbers(numbers),
        draft.remark(name),
        dash,
        on_moments_as_numbers(name, cells),
        larger,
    )
    remark = "; ".join(filter(None, found))
    if step is None:
        return Entry(typed_entry("numeric", own), f"{reach}; any number of decimals{stated}", remark, True)
    if step == 1:
        return Entry(typed_entry("integer", own), f"{reach}; whole numbers{stated}", remark, True)
    decimals = decimals_of(step)
    why = f"{reach}; up to {decimals} decimal{'' if decimals == 1 else 's'}{stated}"
    return Entry(typed_entry("numeric", {"step": step, **own}), why, remark, True)


def _drafted_moment(draft: _Draft, name: str, kind: Format) -> Entry:
    """A date or time; with fractions of a second it has a step."""
    cells = draft.present[name]
    reach = f"{min(cells)} to {max(cells)}"
    remark = on_moments(draft.written.columns[name], draft.sheet.columns[name], draft.marks[name])
    step = inferred_step(np.array([number_of(cell, kind) for cell in cells]))
    if step == 1:
        return Entry(kind, reach, remark, True)
    entry = typed_entry(kind, {"step": ANY if step is None else step})
    return Entry(entry, f"{reach}; fractions of a second", remark, True)


def _constraint_lines(draft: _Draft) -> Iterator[str]:
    """Of the rows without a missing value, which all columns have in common."""
    gaps = {row for places in draft.lacking.values() for row in places}
    whole = [row for row in range(len(draft.sheet.rows)) if row not in gaps]
    numeric = {
        name: [draft.sheet.columns[name][row] for row in whole]
        for name in draft.features
        if whole and name not in draft.dropped and kind_of(draft.present[name]) == "numeric"
    }
    constraints = mine_constraints(numeric)
    if not constraints:
        yield commented_line(
            "constraints", [], "between numbers: [{column: area, relation: product, of: [height, width]}]"
        )
        return
    yield f"{'constraints:':<27} # satisfied by every row, up to rounding, and by counterfactuals"
    for constraint in constraints:
        parts = {
            "column": constraint.column,
            "relation": constraint.relation,
            "of": list(constraint.of),
            "absolute": constraint.absolute,
        }
        yield f"  - {inline_yaml(parts)}"


def default_explainers(names: Iterable[str]) -> list[str]:
    """A few fast explainers, of those that are installed."""
    quick = ("nearest-enemy", "nice", "growing-spheres", "cadex", "dice")
    return [name for name in quick if name in set(names)]
