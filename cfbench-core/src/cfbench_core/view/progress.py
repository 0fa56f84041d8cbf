"""What a run that is still going on has so far: the finished chunks of each cell, with the means of their scores.

The tables of a run are written at its end. Until then, ``outcomes.jsonl`` names each finished task, and its scores are in
the cache.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cfbench_core.locks import is_locked
from cfbench_core.outcomes import DONE
from cfbench_core.run_directory import Run
from cfbench_core.view.blocks import to_json
from cfbench_core.view.viewers import known_store


def is_running(run: Run) -> bool:
    """Whether a process computes it now and has not written its tables yet."""
    return is_locked(run.directory) and any(cell.status == "planned" for cell in run.cells())


def progress(directory: Path) -> dict[str, Any]:
    """The tasks that ended, and every cell with scores: finished units, and the mean of each metric over them."""
    run = Run(directory)  # what ended since the last call is in no cache
    known = (directory / "outcomes.jsonl").exists()
    latest = {line["key"]: line for line in run.outcomes} if known else {}
    scored: dict[str, list[str]] = {}
    for key, line in latest.items():
        if line["kind"] == "scores" and line["status"] in DONE:
            scored.setdefault(str(line.get("stage", key)), []).append(key)
    stages = {entry["cell"]: entry.get("stages", {}).get("scores", "") for entry in run.plan["cells"]}
    cells = []
    for place, cell in enumerate(run.cells()):
        parts = [part for key in scored.get(stages.get(cell.id, ""), ()) if (part := _sums(key))]
        if parts:
            cells.append({"cell": place, "labels": cell.labels, "role": cell.role, **_means(parts)})
    columns = {
        c.name: {"name": c.name, "direction": c.direction} for cell in run.cells() for c in cell.columns
    }
    return to_json(  # type: ignore[no-any-return]
        {
            "running": is_running(run),
            "tasks": dict(Counter(line["status"] for line in latest.values())),
            "cells": cells,
            "columns": list(columns.values()),
            "planned": sum(cell.status == "planned" for cell in run.cells()),
            "row": run.layout.row,
        }
    )


@functools.lru_cache(maxsize=20_000)
def _sums(key: str) -> Mapping[str, tuple[float, int, int]] | None:
    """Sum, number of values and of units by metric in one finished task; None where it is not in the cache any more."""
    import pandas as pd

    path = known_store().path("scores", key) / "scores.parquet"
    if not path.is_file():
        return None
    frame = pd.read_parquet(path, columns=["metric", "unit", "value"])
    grouped = frame.groupby("metric", sort=False)
    sums, counts, units = grouped["value"].sum(), grouped["value"].count(), grouped["unit"].nunique()
    return {str(name): (float(sums[name]), int(counts[name]), int(units[name])) for name in sums.index}


def _means(parts: list[Mapping[str, tuple[float, int, int]]]) -> dict[str, Any]:
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: [part[name] for part in parts if name in part] for name in names}
    means = {
        name: sum(one[0] for one in values) / count if (count := sum(one[1] for one in values)) else None
        for name, values in found.items()
    }
    return {"means": means, "units": max(sum(one[2] for one in values) for values in found.values())}
