"""A configuration for a CSV file with an inferred schema: ``cfbench init --csv FILE``.

Comments in the configuration state what was inferred, so that users can check and correct it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.column_types import decimals_of, inferred_step
from cfbench_tabular.constraint_mining import mine_constraints
from cfbench_tabular.reading import Sheet, in_order, read_sheet, read_text, separator_of
from cfbench_tabular.schema import MISSING_MARKS, Schema
from cfbench_tabular.schema_inference import in_scale, kind_of, reason_to_drop

MOST_CLASSES = 20
"""A numeric class column with more distinct values gets a threshold."""
RUN = 4
"""At least this many consecutive numeric columns x1, x2, ... are written as one line."""

DRAFT = """\
# Inferred from {file} ({rows:,} rows, {columns} columns). Check every line.
suite: tabular
seed: 0
data:
  - name: csv
    file: {file}
    separator: {separator}
{classes}{missing}    columns:
{lines}
    immutable: []               # columns that a counterfactual must not change: [birthplace]
    direction: {{}}               # columns that may only increase or decrease: {{age: up}}
{constraints}
classifiers: [mlp, logistic-regression]      # 'cfbench list classifiers'
explainers: [{explainers}]
protocol:
  factuals: 100                 # maximum number of explained rows per predicted class
"""


def csv_document(path: Path, class_column: str | None, explainers: Sequence[str]) -> str:
    """A commented configuration with the inferred schema of the file.

    Raises:
        UserError: if the file cannot be read, lacks the class column, or has only one class.
    """
    sheet = read_sheet(path, Schema())
    if class_column is not None and class_column not in sheet.names:
        hint = did_you_mean(class_column, sheet.names) or f" There are {', '.join(sheet.names)}"
        raise UserError(f"{path}: no column {class_column!r}.{hint}")
    label = class_column if class_column is not None else sheet.names[-1]
    if len(sheet.names) < 2:
        raise UserError(f"{path}: has only the column {label!r}; its separator must be one of , ; | or a tab")
    features = [name for name in sheet.names if name != label]
    whole = _whole_rows(sheet)
    return DRAFT.format(
        file=_yaml(str(path)),
        rows=len(sheet.rows),
        columns=len(sheet.names),
        separator=_yaml(separator_of(read_text(path, Schema().encoding))),
        classes="".join(
            f"    {line}\n" for line in _class_lines(path, sheet, label, class_column is not None)
        ),
        missing=_missing_line(sheet, whole),
        lines="\n".join(f"      {line}" for line in _column_lines(sheet, features, whole)),
        constraints="\n".join(f"    {line}" for line in _constraint_lines(sheet, features, whole)),
        explainers=", ".join(explainers),
    )


def _whole_rows(sheet: Sheet) -> list[int]:
    """The rows without a missing value; all where that leaves none."""
    marks = set(MISSING_MARKS)
    whole = [place for place, row in enumerate(sheet.rows) if marks.isdisjoint(row)]
    return whole or list(range(len(sheet.rows)))


def _class_lines(path: Path, sheet: Sheet, label: str, named: bool) -> Iterator[str]:
    cells = [cell for cell in sheet.columns[label] if cell not in MISSING_MARKS]
    counts = Counter(cells)
    if len(counts) < 2:
        only = f"every row has {cells[0]!r}" if cells else "it is empty"
        raise UserError(
            f"{path}: column {label!r} has only one class ({only}); name another one with --target COLUMN"
        )
    why = "from --target" if named else "inferred: the last column"
    if len(counts) > MOST_CLASSES and kind_of(cells) == "numeric":
        yield _line("class_column", label, why)
        yield _line("threshold", float(np.median([float(cell) for cell in cells])), "inferred: the median")
        return
    if len(counts) > max(MOST_CLASSES, len(cells) // 2):
        raise UserError(
            f"{path}: column {label!r} has {len(counts):,} distinct values, too many for classes; name another "
            "one with --target COLUMN"
        )
    shown = [f"{name} {count:,}" for name, count in counts.most_common(4)]
    rest = f", and {len(counts) - 4} more" if len(counts) > 4 else ""
    yield _line("class_column", label, f"{why}; rows: {', '.join(shown)}{rest}")
    most = max(counts.values())
    majority = max(name for name, count in counts.items() if count == most)
    yield _line("target", majority, "the class to predict against the rest; inferred: the most frequent one")


def _missing_line(sheet: Sheet, whole: Sequence[int]) -> str:
    lacking = len(sheet.rows) - len(whole)
    if not lacking:
        return ""
    marks = set(MISSING_MARKS)
    where = [name for name, cells in sheet.columns.items() if marks & set(cells)]
    shown = ", ".join(where[:5]) + (", ..." if len(where) > 5 else "")
    text = f"{lacking:,} of {len(sheet.rows):,} rows have a missing value ({shown}); drop removes them"
    return f"    {_line('missing', 'drop', text)}\n"


def _column_lines(sheet: Sheet, features: Sequence[str], whole: Sequence[int]) -> Iterator[str]:
    """A line for each column, or for several numbered columns x1, x2, ... of the same type."""
    run: list[tuple[str, Any, str]] = []
    for name in features:
        entry, why, is_quantity = _drafted(sheet, name, whole)
        if is_quantity and (not run or (_next(run[-1][0]) == name and run[-1][1] == entry)):
            run.append((name, entry, why))
            continue
        yield from _run_lines(run)
        run = [(name, entry, why)] if is_quantity else []
        if not is_quantity:
            yield _line(name, entry, why)
    yield from _run_lines(run)


def _drafted(sheet: Sheet, name: str, whole: Sequence[int]) -> tuple[Any, str, bool]:
    """The entry of a column in the schema, the reason, and whether it is a number, date or time."""
    cells = [sheet.columns[name][place] for place in whole]
    why = reason_to_drop(name, cells)
    if why:
        return "drop", why, False
    kind = kind_of(cells)
    if kind == "categorical":
        levels = in_order(set(cells))
        ascending = in_scale(levels)
        if ascending is not None:
            return {"type": "ordinal", "levels": ascending}, "a common scale, in ascending order", False
        return levels, "", False
    if kind in ("date", "time"):
        return kind, f"{min(cells)} to {max(cells)}", True
    numbers = np.array([float(cell) for cell in cells])
    reach, step = f"{numbers.min():g} to {numbers.max():g}", inferred_step(numbers)
    if step is None:
        return "numeric", f"{reach}; any number of decimals", True
    if step == 1:
        return "integer", f"{reach}; whole numbers", True
    decimals = decimals_of(step)
    plural = "" if decimals == 1 else "s"
    return {"type": "numeric", "step": step}, f"{reach}; up to {decimals} decimal{plural}", True


def _run_lines(run: Sequence[tuple[str, Any, str]]) -> Iterator[str]:
    if len(run) >= RUN:
        yield _line(f"{run[0][0]}..{run[-1][0]}", run[0][1], f"{len(run)} columns")
        return
    for name, entry, why in run:
        yield _line(name, entry, why)


def _constraint_lines(sheet: Sheet, features: Sequence[str], whole: Sequence[int]) -> Iterator[str]:
    numeric = {}
    for name in features:
        cells = [sheet.columns[name][place] for place in whole]
        if not reason_to_drop(name, cells) and kind_of(cells) == "numeric":
            numeric[name] = cells
    constraints = mine_constraints(numeric)
    if not constraints:
        yield _line(
            "constraints", [], "between numbers: [{column: area, relation: product, of: [height, width]}]"
        )
        return
    yield f"{'constraints:':<27} # satisfied by every row, up to rounding; checked by the metric realism"
    for constraint in constraints:
        parts = {
            "column": constraint.column,
            "relation": constraint.relation,
            "of": list(constraint.of),
            "absolute": constraint.absolute,
        }
        yield f"  - {_yaml(parts)}"


def _next(name: str) -> str | None:
    """``x8`` after ``x7``; None for a name that does not end in a number."""
    found = re.fullmatch(r"(.*?)(0|[1-9]\d*)", name)
    return f"{found[1]}{int(found[2]) + 1}" if found else None


def _line(key: str, value: Any, comment: str) -> str:
    text = f"{_yaml(key)}: {_yaml(value)}"
    return f"{text:<27} # {comment}" if comment else text


def _yaml(value: Any) -> str:
    """A value as inline YAML, quoted where necessary."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def default_explainers(names: Iterable[str]) -> list[str]:
    """A few fast explainers, of those that are installed."""
    quick = ("nearest-enemy", "nice", "growing-spheres", "cadex", "dice")
    return [name for name in quick if name in set(names)]
