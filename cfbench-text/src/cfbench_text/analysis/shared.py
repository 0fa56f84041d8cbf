"""Helpers of the analyses of generated texts: their cells, and tables that may come from a CSV file."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_text.meta_evaluation.reliability import MARK

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run, RunCell
    from cfbench_text.reviews import FloatArray

_WORDS = (
    "printed_of",
    "role",
    "judge",
    "group",
    "model",
    "closest",
    "statement",
    "topic",
    "sentiment",
    "verdict",
    "text",
)


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


def values_of(run: Run, cell: str) -> dict[str, FloatArray]:
    """The values of each metric of a cell, in the order of the file; NaN where one is missing."""
    parts: dict[str, list[FloatArray]] = {}
    for rows in run.batches("scores.parquet", ["metric", "value"], [cell]):
        for metric, values in rows.groupby("metric", sort=False)["value"]:
            parts.setdefault(str(metric), []).append(values.to_numpy(np.float64))
    return {metric: np.concatenate(of_one) for metric, of_one in parts.items()}


def values_by_unit(run: Run, cell: str, metrics: Collection[str]) -> dict[str, pd.Series[float]]:
    """The values of these metrics of a cell by the unit that they are of; NaN where one is missing."""
    import pandas as pd

    parts: dict[str, list[pd.Series[float]]] = {metric: [] for metric in metrics}
    for rows in run.batches("scores.parquet", ["metric", "unit", "value"], [cell]):
        chosen = rows[rows["metric"].isin(metrics)].set_index("unit")
        for metric, values in chosen.groupby("metric", sort=False)["value"]:
            parts[str(metric)].append(values.astype(np.float64))
    return {metric: pd.concat(of_one) for metric, of_one in parts.items() if of_one}


def judge_notes(runs: Sequence[Run]) -> list[str]:
    """What was measured of the judges of these runs, each once, marked if they are not shown to be reliable."""
    columns = [column for run in runs for column in run.columns if column.note]
    return list(dict.fromkeys(f"{MARK} {c.note}" if c.doubtful else c.note for c in columns))


def repeated(runs: Sequence[Run]) -> dict[tuple[str, str], str]:
    """By data set and metric the earlier metric of the same judge with the same value in every row, NaN included.

    Metrics without any value are not compared: nothing was measured. With ``overlap``, for which a document supports a
    statement as much as its best statement does, and which rarely finds contradictions, several metrics often agree.
    Of runs with cells of one name only the later counts: studies that are not one are passed one by one.
    """
    first: dict[tuple[str, str], dict[str, FloatArray]] = {}
    for run, cell in written(runs):
        for metric, values in values_of(run, cell.id).items():
            if metric.endswith(")"):
                first.setdefault((str(cell.labels["dataset"]), metric), {})[cell.id] = values
    found: dict[tuple[str, str], str] = {}
    for place, (key, cells) in enumerate(first.items()):
        for earlier in list(first)[:place]:
            alike = earlier[0] == key[0] and _judge(earlier[1]) == _judge(key[1]) and earlier not in found
            if alike and _equal(first[earlier], cells):
                found[key] = earlier[1]
                break
    return found


def _judge(metric: str) -> str:
    """ "nli" of "StEnt-P (nli)"."""
    return metric.rpartition(" (")[2]


def _equal(some: dict[str, FloatArray], others: dict[str, FloatArray]) -> bool:
    measured = any(not np.isnan(values).all() for values in some.values())
    return (
        measured
        and some.keys() == others.keys()
        and all(np.array_equal(values, others[cell], equal_nan=True) for cell, values in some.items())
    )


def repetition_notes(runs: Sequence[Run]) -> list[str]:
    """One note for each metric that others repeat."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (dataset, metric), of in repeated(runs).items():
        groups.setdefault((dataset, of), []).append(metric)
    return [
        f"On {dataset}, {', '.join(names)} equal {of} in every row: they are one number."
        for (dataset, of), names in groups.items()
    ]


def harmonic_mean(precision: float, recall: float) -> float:
    """0 if both are 0; NaN if one is NaN: the share of a side without statements, or without verdicts."""
    total = precision + recall
    return 2 * precision * recall / total if total else total


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
