"""The table of ``summary.csv``: the mean of each metric of each cell, with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cfbench_core.plan import TIME, Column

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.statistics import UnitValues
    from cfbench_core.statistics.bootstrap import FloatArray

SUMMARY = ("mean", "std", "ci_low", "ci_high", "n", "n_missing")
"""Columns of numbers."""


class SummarisedCell(Protocol):
    """What is needed of a cell of a run."""

    @property
    def id(self) -> str: ...

    @property
    def labels(self) -> Mapping[str, str | int]: ...

    @property
    def status(self) -> str: ...

    @property
    def columns(self) -> Sequence[Column]: ...


def summarise(cells: Iterable[SummarisedCell], values: Mapping[str, UnitValues]) -> pd.DataFrame:
    """One row for each cell and metric, in the order of the cells, "time" last.

    Columns: cell, its labels, metric, status, mean, std, ci_low, ci_high, n, n_missing. A cell that was to
    run and has no result has rows with n = 0; a skipped cell has none.
    """
    import pandas as pd

    from cfbench_core.statistics import summary_of

    cells = list(cells)
    found: dict[Any, dict[Any, Any]] = {
        (row["cell"], row["metric"]): row for row in summary_of(values).to_dict("records")
    }
    rows: list[dict[Any, Any]] = []
    for cell in cells:
        if cell.status == "skipped":
            continue
        measured = values[cell.id].metrics if cell.id in values else ()
        for metric in dict.fromkeys([*(column.name for column in cell.columns), *measured]):
            numbers = found.get((cell.id, metric), {"n": 0, "n_missing": 0})
            if metric == TIME.name:
                numbers = numbers | _time_interval(values[cell.id].column(metric))
            rows.append({**numbers, "cell": cell.id, **cell.labels, "metric": metric, "status": cell.status})
    labels = dict.fromkeys(label for cell in cells for label in cell.labels)
    frame = pd.DataFrame(rows, columns=["cell", *labels, "metric", "status", *SUMMARY])
    return frame.astype({"n": "int64", "n_missing": "int64"})


def _time_interval(seconds: FloatArray) -> dict[str, float]:
    """Units explained in one batch share its time evenly: equal times are one measurement, not many."""
    import numpy as np

    from cfbench_core.statistics import bootstrap_interval

    measured = seconds[~np.isnan(seconds)]
    low, high = bootstrap_interval(measured, clusters=measured)
    return {"ci_low": float(low), "ci_high": float(high)}
