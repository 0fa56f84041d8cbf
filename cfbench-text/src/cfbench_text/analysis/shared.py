"""Helpers of the analyses of generated texts: their cells, and tables that may come from a CSV file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.run_files import REWRITE

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run, RunCell
    from cfbench_text.reviews import FloatArray

_WORDS = ("role", "judge", "group", "model", "closest", "statement", "topic", "sentiment", "verdict", "text")


def written(runs: Sequence[Run]) -> list[tuple[Run, RunCell]]:
    """The cells that have texts, in the order of the plans; of two of one name the later. Looks at plans only."""
    found = {
        cell.id: (run, cell) for run in runs for cell in run.cells() if cell.done or cell.status == "partial"
    }
    return list(found.values())


def cells_of(runs: Sequence[Run]) -> list[tuple[Run, list[RunCell]]]:
    """The same, run by run; a run of which nothing is left is not there."""
    found: dict[int, tuple[Run, list[RunCell]]] = {}
    for run, cell in written(runs):
        found.setdefault(id(run), (run, []))[1].append(cell)
    return list(found.values())


def batches(run: Run, file: str, columns: Sequence[str], cells: Sequence[str]) -> Iterator[pd.DataFrame]:
    """Some columns of a table of the run, of these cells only, in the order of the file; nothing where there is no
    such table. Never more than a few thousand rows at once: of a large run the whole is large."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    path, wanted = run.directory / file, pa.array(cells, pa.string())
    if not path.exists():
        return
    try:
        with parquet.ParquetFile(path) as table:
            groups = [n for n in range(table.num_row_groups) if _holds(table.metadata.row_group(n), cells)]
            read = list(dict.fromkeys([*columns, "cell"]))
            for batch in table.iter_batches(AT_ONCE, row_groups=groups, columns=read, use_threads=False):
                rows = batch.filter(pc.is_in(batch.column("cell"), wanted)).select(list(columns))
                if rows.num_rows:
                    yield rows.to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path}: cannot be read ({(str(error).splitlines() or [''])[0]}); {REWRITE}"
        ) from None


AT_ONCE = 20_000


def _holds(group: Any, cells: Sequence[str]) -> bool:
    """Whether a group of rows may hold one of the cells: tables are written cell by cell."""
    place = next(n for n in range(group.num_columns) if group.column(n).path_in_schema == "cell")
    bounds = group.column(place).statistics
    return bounds is None or not bounds.has_min_max or any(bounds.min <= cell <= bounds.max for cell in cells)


def filtered(run: Run, file: str, **wanted: Sequence[str]) -> pd.DataFrame:
    """The rows of a table whose columns hold one of the values ``wanted`` of each; of no table no rows."""
    import pandas as pd

    path = run.directory / file
    if not path.exists():
        return pd.DataFrame(columns=["cell", "unit", "metric", "value"])
    return pd.read_parquet(path, filters=[(name, "in", list(values)) for name, values in wanted.items()])


def values_of(run: Run, cell: str) -> dict[str, FloatArray]:
    """The values of each metric of a cell, in the order of the file; NaN where one is missing."""
    parts: dict[str, list[FloatArray]] = {}
    for rows in batches(run, "scores.parquet", ["metric", "value"], [cell]):
        for metric, values in rows.groupby("metric", sort=False)["value"]:
            parts.setdefault(str(metric), []).append(values.to_numpy(np.float64))
    return {metric: np.concatenate(of_one) for metric, of_one in parts.items()}


def why_no_verdicts(runs: Sequence[Run]) -> str:
    """Why there are no verdicts on statements; "" if there are."""
    if not written(runs):
        return "no texts were written"
    names = [column.name for run in runs for column in run.columns]
    return "" if any(name.endswith(")") for name in names) else "needs a judge that compares statements"


def competing(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of competitors; all rows if there are only controls."""
    own = table[table["role"] == ""]
    return own if len(own) else table


def tidied(table: pd.DataFrame) -> pd.DataFrame:
    """The same, with empty words where a CSV file has nothing."""
    names = [name for name in _WORDS if name in table.columns]
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in names})


def groups_of(table: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows of each combination of labels, with it, in the order of the table; nothing of an empty one."""
    if table.empty:
        return
    for values, rows in table.groupby(list(names), sort=False, dropna=False):
        yield dict(zip(names, values, strict=True)), rows
