"""The units of one cell as the viewer shows them: a row for each, distributions, and what their answers edit most often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.run_directory import Run, RunCell

if TYPE_CHECKING:
    import pandas as pd

BINS = 24
TIME_COLUMN = "time per explanation (ms)"
MOST_IMPORTANT = 3
"""Rows of an answer of importances that count as what it edits."""
MOST_EDITED = 15


def most_edited(run: Run, cell: RunCell, column: str) -> dict[str, Any] | None:
    """In how many units' answers each value of a column of explanations.parquet is edited, the most frequent first.

    Of importances, the ``MOST_IMPORTANT`` largest of each unit count. None where there are no answers.
    """
    import pandas as pd

    found = run.rows("explanations.parquet", cell=[cell.id])
    if column not in found or found.empty:
        return None
    found = found[found[column].notna()]
    implicit = "importance" in found and bool(found["importance"].notna().any())
    if implicit:
        found = (
            found.sort_values("importance", ascending=False, kind="stable")
            .groupby("unit")
            .head(MOST_IMPORTANT)
        )
    pairs = found[["unit", column]].astype(str).drop_duplicates()
    counts = pd.Series(pairs[column].value_counts())
    return {
        "label": f"{column.replace('_', ' ')}, among the {MOST_IMPORTANT} most important"
        if implicit
        else f"{column.replace('_', ' ')}, edited",
        "of": int(pairs["unit"].nunique()),
        "all": len(counts),
        "rows": [[str(name), int(count)] for name, count in counts.head(MOST_EDITED).items()],
    }


def wide(run: Run, cell: RunCell) -> pd.DataFrame:
    """One row for each unit of a cell, in the order of the file."""
    import pandas as pd

    further = [name for name in run.layout.unit_columns if name in run._score_columns]
    parts = list(run.batches("scores.parquet", ["unit", "metric", "value", *further], [cell.id]))
    long = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["unit", "metric", "value"])
    long = long[long["unit"].notna()]
    units = long.drop_duplicates("unit")[["unit", *(name for name in further if name in long)]]
    metrics = [str(name) for name in long["metric"].unique()]
    values = long.pivot(index="unit", columns="metric", values="value")
    frame = units.set_index("unit").join(values[metrics]).reset_index() if len(long) else units
    costs = list(run.batches("costs.parquet", ["unit", "elapsed_seconds"], [cell.id]))
    if costs:
        seconds = pd.concat(costs).drop_duplicates("unit").set_index("unit")["elapsed_seconds"]
        frame[TIME_COLUMN] = frame["unit"].map(seconds) * 1000
        metrics.append(TIME_COLUMN)
    frame = frame.loc[:, [n for n in frame if n == "unit" or frame[n].notna().any() or n in metrics]]
    frame.attrs["metrics"] = dict.fromkeys(metrics, True)
    return frame


def histogram(values: pd.Series[float]) -> dict[str, Any]:
    """Counts in equal bins from the least to the greatest value; ``missing`` units have none."""
    numbers = values.to_numpy(dtype=np.float64)
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return {"counts": [], "low": None, "high": None, "mean": None, "missing": len(numbers)}
    low, high = float(known.min()), float(known.max())
    counts, _ = np.histogram(known, bins=BINS if high > low else 1, range=(low, high) if high > low else None)
    return {
        "counts": counts.tolist(),
        "low": low,
        "high": high,
        "mean": float(known.mean()),
        "missing": int(len(numbers) - len(known)),
    }
