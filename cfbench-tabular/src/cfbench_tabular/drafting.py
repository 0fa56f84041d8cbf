"""A configuration for a CSV file that nobody has described yet: ``cfbench init --csv FILE``.

Everything in it is guessed by looking, and says so: people correct a draft more easily than they write one.
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
from cfbench_tabular.guessing import kind_of, useless
from cfbench_tabular.reading import Sheet, in_order, read_sheet, read_text, separator_of
from cfbench_tabular.relations import rules_in
from cfbench_tabular.schema import MARKS, Schema

MOST_CLASSES = 20
"""A class column of numbers with more different ones gets a threshold."""
RUN = 4
"""So many columns x1, x2, ... of numbers in a row are written as one line."""

DRAFT = """\
# Drafted by looking at {file}: {rows:,} rows, {columns} columns. Everything below is a guess: read it through.
suite: tabular
seed: 0
data:
  - name: csv
    file: {file}
    separator: {separator}
{classes}{missing}    columns:
{lines}
    immutable: []               # columns that a counterfactual should leave alone: [birthplace]
    direction: {{}}               # columns that only go one way: {{age: up}}
{rules}
classifiers: [mlp, logistic-regression]      # 'cfbench list classifiers'
explainers: [{explainers}]
protocol:
  factuals: 100                 # explained rows per predicted class
"""


def csv_document(path: Path, class_column: str | None, explainers: Sequence[str]) -> str:
    """A commented configuration with a schema of the file.

    Raises:
        UserError: when the file cannot be read, has no such column, or one class only.
    """
    sheet = read_sheet(path, Schema())
    if class_column is not None and class_column not in sheet.names:
        hint = did_you_mean(class_column, sheet.names) or f" There are {', '.join(sheet.names)}"
        raise UserError(f"{path}: no column {class_column!r}.{hint}")
    label = class_column if class_column is not None else sheet.names[-1]
    if len(sheet.names) < 2:
        raise UserError(f"{path}: has the one column {label!r}; is its separator one of , ; | or a tab?")
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
        rules="\n".join(f"    {line}" for line in _rule_lines(sheet, features, whole)),
        explainers=", ".join(explainers),
    )


def _whole_rows(sheet: Sheet) -> list[int]:
    """The rows without a missing value; all where that leaves none."""
    marks = set(MARKS)
    whole = [place for place, row in enumerate(sheet.rows) if marks.isdisjoint(row)]
    return whole or list(range(len(sheet.rows)))


def _class_lines(path: Path, sheet: Sheet, label: str, told: bool) -> Iterator[str]:
    cells = [cell for cell in sheet.columns[label] if cell not in MARKS]
    counts = Counter(cells)
    if len(counts) < 2:
        only = f"every row has {cells[0]!r}" if cells else "it is empty"
        raise UserError(
            f"{path}: column {label!r} tells no classes apart ({only}); name another with --target COLUMN"
        )
    why = "as told" if told else "guessed: the last column"
    if len(counts) > MOST_CLASSES and kind_of(cells) == "numeric":
        yield _line("class_column", label, why)
        yield _line("threshold", float(np.median([float(cell) for cell in cells])), "guessed: the median")
        return
    if len(counts) > max(MOST_CLASSES, len(cells) // 2):
        raise UserError(
            f"{path}: column {label!r} has {len(counts):,} different values, too many for classes; name another "
            "with --target COLUMN"
        )
    shown = [f"{name} {count:,}" for name, count in counts.most_common(4)]
    rest = f", and {len(counts) - 4} more" if len(counts) > 4 else ""
    yield _line("class_column", label, f"{why}; rows: {', '.join(shown)}{rest}")
    most = max(counts.values())
    majority = max(name for name, count in counts.items() if count == most)
    yield _line("target", majority, "the class to tell from the rest; guessed: the most frequent")


def _missing_line(sheet: Sheet, whole: Sequence[int]) -> str:
    lacking = len(sheet.rows) - len(whole)
    if not lacking:
        return ""
    marks = set(MARKS)
    where = [name for name, cells in sheet.columns.items() if marks & set(cells)]
    shown = ", ".join(where[:5]) + (", ..." if len(where) > 5 else "")
    text = f"{lacking:,} of {len(sheet.rows):,} rows lack a value ({shown}); or fill them in, and say error"
    return f"    {_line('missing', 'drop', text)}\n"


def _column_lines(sheet: Sheet, features: Sequence[str], whole: Sequence[int]) -> Iterator[str]:
    run: list[str] = []
    for name in features:
        cells = [sheet.columns[name][place] for place in whole]
        why = useless(name, cells)
        kind = "drop" if why else kind_of(cells)
        if kind == "numeric" and (not run or _next(run[-1]) == name):
            run.append(name)
            continue
        yield from _run_lines(sheet, run, whole)
        run = [name] if kind == "numeric" else []
        if kind == "drop":
            yield _line(name, "drop", why)
        elif kind == "categorical":
            yield _line(name, in_order(set(cells)), "")
    yield from _run_lines(sheet, run, whole)


def _run_lines(sheet: Sheet, run: Sequence[str], whole: Sequence[int]) -> Iterator[str]:
    if len(run) >= RUN:
        yield _line(f"{run[0]}..{run[-1]}", "numeric", f"{len(run)} columns")
        return
    for name in run:
        numbers = [float(sheet.columns[name][place]) for place in whole]
        yield _line(name, "numeric", f"{min(numbers):g} to {max(numbers):g}")


def _rule_lines(sheet: Sheet, features: Sequence[str], whole: Sequence[int]) -> Iterator[str]:
    numeric = {}
    for name in features:
        cells = [sheet.columns[name][place] for place in whole]
        if not useless(name, cells) and kind_of(cells) == "numeric":
            numeric[name] = cells
    rules = rules_in(numeric)
    if not rules:
        yield _line("rules", [], "between numbers: [{column: area, relation: product, of: [height, width]}]")
        return
    yield f"{'rules:':<27} # hold in every row, within what the file rounds; a realistic row keeps them"
    for rule in rules:
        told = {
            "column": rule.column,
            "relation": rule.relation,
            "of": list(rule.of),
            "absolute": rule.absolute,
        }
        yield f"  - {_yaml(told)}"


def _next(name: str) -> str | None:
    """``x8`` after ``x7``; None for a name that ends in no number."""
    found = re.fullmatch(r"(.*?)(0|[1-9]\d*)", name)
    return f"{found[1]}{int(found[2]) + 1}" if found else None


def _line(key: str, value: Any, comment: str) -> str:
    text = f"{_yaml(key)}: {_yaml(value)}"
    return f"{text:<27} # {comment}" if comment else text


def _yaml(value: Any) -> str:
    """A value as it stands in a line of YAML, quoted where it must be."""
    text: str = yaml.safe_dump(
        value, default_flow_style=True, width=10**9, allow_unicode=True, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def drafted_explainers(names: Iterable[str]) -> list[str]:
    """A few that are quick on any table, of those that are installed."""
    quick = ("nearest-enemy", "nice", "growing-spheres", "cadex", "dice")
    return [name for name in quick if name in set(names)]
