"""Reading and writing of the suite's tables: units, explanations (see ``changes.py``), scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_tabular.changes import apply, changes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.external import ExternalTable
from cfbench_tabular.table import AnyArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

UNIT = ("unit", "row", "factual_class")
COLUMNS = ("unit", "row", "answer", "column", "level", "original", "value", "factual_class", "wanted_class")
"""Of explanations.parquet. All but ``row`` and ``answer`` (from 1) are text; ``level`` may be null."""

MOST_ANSWERS = 1000
"""To one factual, in a table made elsewhere; more is a mistake in its column ``answer``."""


def write_explanations(
    folder: Path,
    encoding: Encoding,
    units: pd.DataFrame,
    factuals: FloatArray,
    answers: FloatArray,
    classes: tuple[str, str],
) -> int:
    """Writes ``explanations.parquet``: the changes of each answer. Returns how many factuals have one.

    units: B rows with unit, row, factual_class (0 or 1); factuals: (B, d); answers: (B, n, d); classes: their
    names. An answer that changes nothing is none: it leaves no row.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    answered = 0
    for place, (unit, row, label) in enumerate(zip(*(units[n].tolist() for n in UNIT), strict=True)):
        before = len(rows["unit"])
        for number, answer in enumerate(answers[place], start=1):
            for change in changes(encoding, factuals[place], answer):
                line = (unit, row, number, change.column, change.level, change.original, change.value)
                named = (classes[label], classes[1 - label])
                for name, value in zip(COLUMNS, (*line, *named), strict=True):
                    rows[name].append(value)
        answered += len(rows["unit"]) > before
    schema = pa.schema([(name, pa.int64() if name in ("row", "answer") else pa.string()) for name in COLUMNS])
    parquet.write_table(pa.table(rows, schema=schema), folder / "explanations.parquet", compression="zstd")
    return answered


def read_answers(
    table: pd.DataFrame, encoding: Encoding, units: Iterable[str], factuals: FloatArray
) -> FloatArray:
    """(B, n, d) the counterfactuals that a table of explanations describes; NaN for those it does not name.

    n: the largest number in its column ``answer`` among these units; 1 without that column.
    """
    known = {unit: place for place, unit in enumerate(units)}
    table = table[table["unit"].isin(known)]
    numbers = table["answer"].tolist() if "answer" in table else [1] * len(table)
    of_answer: dict[tuple[str, int], list[tuple[str, Any, Any]]] = {}
    told = (table[name] for name in ("unit", "column", "level", "value"))
    for unit, column, level, value, number in zip(*told, numbers, strict=True):
        of_answer.setdefault((unit, number), []).append((column, level, value))
    answers = np.full((len(factuals), max(numbers, default=1), factuals.shape[1]), np.nan)
    for (unit, number), changed in of_answer.items():
        answers[known[unit], number - 1] = apply(encoding, factuals[known[unit]], changed)
    return answers


def read_explanations(
    path: Path, features: Mapping[str, AnyArray], labels: Mapping[str, str | int]
) -> pd.DataFrame:
    """The part of a table of explanations, Parquet or CSV, that belongs to a cell. It has one of two forms.

    Long, a row for each change: unit, column, value; where there are several answers to a unit answer (from
    1), and level. Wide, a row for each counterfactual: unit, answer, and a value for every feature.
    ``row`` may stand in for ``unit``. Other columns (dataset, model, explainer) are kept as they are.

    Args:
        features: the raw values of the data set's columns, by name; the unit is a place in them.
        labels: of the cell; a table without a column of these names serves all its values.

    Returns:
        the long form: unit (text), answer (int), column, level (text or None), value, and the other columns.

    Raises:
        UserError: when the file cannot be read, or lacks a column, or has a wrong unit or answer.
    """
    import pandas as pd
    import pyarrow as pa

    try:
        table = pd.read_csv(path, dtype=str) if path.suffix == ".csv" else pd.read_parquet(path)
    except (pa.ArrowInvalid, pd.errors.ParserError, pd.errors.EmptyDataError, OSError) as error:
        raise UserError(f"{path}: cannot be read ({str(error).splitlines()[0]})") from None
    table = with_labels(table, labels)
    if "unit" not in table and "row" in table:
        table = table.assign(unit=table["row"])
    lacking = [name for name in ("unit", "column", "value") if name not in table]
    wide = "unit" not in lacking and bool(lacking) and bool(set(features) & set(table.columns))
    if lacking and not wide:
        raise UserError(
            f"{path}: has no column {', '.join(lacking)}; it has {', '.join(map(str, table.columns))}. "
            "It must be unit, column, value, or unit and a column for each feature"
        )
    table = table.assign(unit=_units(path, table["unit"], features), answer=_answer_numbers(path, table))
    if wide:
        return _long(path, table, features)
    level = table["level"] if "level" in table else [None] * len(table)
    names = [None if pd.isna(name) else str(name) for name in level]
    return table.assign(level=pd.Series(names, dtype=object, index=table.index))


def _units(path: Path, given: pd.Series, features: Mapping[str, AnyArray]) -> list[str]:
    """Numbers of rows as text, "7" for 7.0 too."""
    import pandas as pd

    rows = len(next(iter(features.values())))
    numbers = pd.to_numeric(given, errors="coerce")
    wrong = given[~(numbers.between(0, rows - 1) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{path}: unit {str(wrong.iloc[0])!r} is not a row of the data set (0 to {rows - 1})")
    return [str(int(number)) for number in numbers]


def _answer_numbers(path: Path, table: pd.DataFrame) -> list[int]:
    import pandas as pd

    if "answer" not in table:
        return [1] * len(table)
    numbers = pd.to_numeric(table["answer"], errors="coerce")
    wrong = table["answer"][~(numbers.between(1, MOST_ANSWERS) & (numbers % 1 == 0))]
    if len(wrong):
        raise UserError(f"{path}: answer must be 1, 2, 3, ..., got {str(wrong.iloc[0])!r}")
    return [int(number) for number in numbers]


def _long(path: Path, table: pd.DataFrame, features: Mapping[str, AnyArray]) -> pd.DataFrame:
    """Whole counterfactual rows as changes: what differs from the row of the data set; an empty cell does not."""
    import pandas as pd

    lacking = [name for name in features if name not in table]
    if lacking:
        raise UserError(f"{path}: has whole rows, but no column {', '.join(map(repr, lacking))}")
    twice = table[["unit", "answer", *(name for name in ExternalTable.known if name in table)]].duplicated()
    if twice.any():
        unit = table["unit"][twice].iloc[0]
        raise UserError(f"{path}: two rows for unit {unit!r}: number them in a column 'answer'")
    rows = table["unit"].astype(int).to_numpy()
    others = table.drop(columns=list(features))
    parts = []
    for name, values in features.items():
        given = _in_words_of(values, table[name])
        changed = [
            not pd.isna(new) and not _same(old, new) for old, new in zip(values[rows], given, strict=True)
        ]
        parts.append(others[changed].assign(column=name, level=None, value=given[changed].astype(str)))
    return pd.concat(parts, ignore_index=True)


def _in_words_of(values: AnyArray, given: pd.Series) -> pd.Series:
    """Cells of a category as the data set writes its levels: pandas makes 2.0 of "2" where cells are empty."""
    levels = set(values.tolist())
    if not all(isinstance(level, str) for level in levels):
        return given
    words = {
        cell: str(cell).removesuffix(".0") for cell in given.dropna().unique() if str(cell) not in levels
    }
    return given.astype(object).replace({cell: word for cell, word in words.items() if word in levels})


def _same(old: Any, new: Any) -> bool:
    """Whether a cell holds what the row of the data set holds: as a number where that is one, else as text."""
    if isinstance(old, str):
        return old == str(new)
    try:
        return float(old) == float(new)
    except ValueError:
        return False


def with_labels(table: pd.DataFrame, labels: Mapping[str, str | int]) -> pd.DataFrame:
    """The rows of a table that belong to a cell, as far as the table has columns that tell."""
    for name, value in labels.items():
        if name in table:
            table = table[table[name].astype(str) == str(value)]
    return table
