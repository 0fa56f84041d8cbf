"""The tables of a chunk: units, explanations, costs, details and scores, written and read in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cfbench_core import units_file
from cfbench_core.errors import UserError
from cfbench_core.real_arrays import FloatArray as FloatArray
from cfbench_core.real_arrays import real_array
from cfbench_core.stages import UNITS, TaskContext

BoolArray = NDArray[np.bool_]

UNITS_FILE, EXPLANATIONS_FILE, COSTS_FILE = "units.parquet", "explanations.parquet", "costs.parquet"
DETAILS_FILE, SCORES_FILE = "details.parquet", "scores.parquet"

CODEC: Final = "snappy"
"""Of tables of a chunk. They are written and read in half the time that zstd takes, and a fifth larger; those of a run
directory, which stay, are written with zstd."""


def write_units(context: TaskContext, units: pd.DataFrame) -> int:
    """``units.parquet``; returns the number of groups.

    Raises:
        UserError: when a unit is listed twice, or the groups are not 0, 1, 2, ... in ascending order.
    """
    twice = units["unit"].duplicated()
    if twice.any():
        raise UserError(f"{context.task.label}: unit {units['unit'][twice].iloc[0]!r} is listed twice")
    groups = units["group"].to_numpy()
    if len(groups) and (groups[0] != 0 or not np.isin(np.diff(groups), (0, 1)).all()):
        raise UserError(f"{context.task.label}: the groups of units must be 0, 1, 2, ... in ascending order")
    units.to_parquet(context.output / UNITS_FILE, index=False, row_group_size=units_file.ROWS)
    return int(groups[-1]) + 1 if len(groups) else 0


def read_units(folder: Path) -> pd.DataFrame:
    """All units, in the order of their groups."""
    return pd.read_parquet(folder / UNITS_FILE)


def units_of_chunk(context: TaskContext) -> pd.DataFrame:
    """The units of the task's chunk; all of them when the stage is not chunked."""
    if context.chunk is None:
        return context.load(UNITS, read_units)
    units: pd.DataFrame = units_file.read_range(
        context.input_paths[UNITS] / UNITS_FILE, *context.chunk
    ).to_pandas()
    return units


def read_explanations(
    context: TaskContext, role: str = "explanations", units: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The explanations of the chunk, as the stage in that role wrote them; only those of ``units`` if given."""
    wanted = None if units is None else [("unit", "in", units["unit"].tolist())]
    return pd.read_parquet(context.input_paths[role] / EXPLANATIONS_FILE, filters=wanted)


def write_explanations(
    context: TaskContext,
    units: pd.DataFrame,
    rows: pd.DataFrame,
    seconds: FloatArray | float,
    details: Mapping[str, FloatArray] | None = None,
) -> dict[str, Any]:
    """``explanations.parquet``, ``costs.parquet`` and, if there are any, ``details.parquet`` of a chunk.

    Args:
        units: B units. rows: the explanations in the columns of the contract, any number for each unit.
        seconds: (B,) what each took, or one number for all; NaN where it is unknown.
        details: by name, (B,) numbers.
    """
    rows.to_parquet(context.output / EXPLANATIONS_FILE, index=False, compression=CODEC)
    costs = pd.DataFrame({"unit": units["unit"], "elapsed_seconds": seconds})
    costs.to_parquet(context.output / COSTS_FILE, index=False)
    if details:
        listed = [pd.DataFrame({"unit": units["unit"], "name": n, "value": v}) for n, v in details.items()]
        pd.concat(listed).to_parquet(context.output / DETAILS_FILE, index=False, compression=CODEC)
    return {"units": len(units), "answered": int(rows["unit"].nunique())}


def checked_details(details: Mapping[str, Any], units: int, label: str) -> dict[str, FloatArray]:
    """Details that an explainer reported, each (B,).

    Raises:
        UserError: when one is no real number for each unit.
    """
    return {
        name: real_array(numbers, (units,), what=f"{label}: the detail {name!r}")
        for name, numbers in details.items()
    }


def read_costs(context: TaskContext, role: str) -> FloatArray:
    """(B,) seconds of the chunk's units, as the stage in that role wrote them."""
    return pd.read_parquet(context.input_paths[role] / COSTS_FILE)["elapsed_seconds"].to_numpy(np.float64)


def read_detail(context: TaskContext, role: str, name: str, units: pd.DataFrame) -> FloatArray:
    """(B,) a detail of the explanations in that role."""
    details = pd.read_parquet(context.input_paths[role] / DETAILS_FILE)
    own = details[details["name"] == name].set_index("unit")["value"]
    return own.reindex(units["unit"]).to_numpy(np.float64)


def write_scores(
    context: TaskContext,
    units: pd.DataFrame,
    unit_columns: Sequence[str],
    values: Mapping[str, FloatArray],
    answered: BoolArray,
    failed: Mapping[str, BoolArray] | None = None,
) -> None:
    """``scores.parquet``: metric by metric, a row for each unit.

    A unit without an answer has no score, and its status is "skipped"; so is the status of a NaN, by which a metric
    says that it does not apply to an answer. Where ``failed`` (by name, (B,)) says that the score could not be
    determined, it is "failed".
    """
    frame = units[["unit", *unit_columns]]
    parts = []
    for name, column in values.items():
        shown = np.where(answered, column, np.nan)
        lost = (failed or {}).get(name, np.zeros(len(units), dtype=bool)) & np.isnan(shown)
        status = np.where(lost, "failed", np.where(np.isnan(shown), "skipped", "ok"))
        parts.append(frame.assign(metric=name, value=shown, status=status))
    columns = ["metric", "unit", "value", "status", *unit_columns]
    scores = pd.concat(parts, ignore_index=True)[columns]
    scores.to_parquet(context.output / SCORES_FILE, index=False, compression=CODEC)


def compute_metrics(
    metrics: Iterable[tuple[Any, Mapping[str, str], Any]], units: int
) -> dict[str, FloatArray]:
    """The values of metrics, (B,) each, by the names of their columns.

    Args:
        metrics: each with its columns (own name -> name in the tables) and what it observes.
        units: B.

    Raises:
        UserError: when a metric returns other columns than it declares, or values of another shape or type.
    """
    results: dict[str, FloatArray] = {}
    for metric, columns, observed in metrics:
        found = metric.compute(observed)
        name = type(metric).__name__
        if not isinstance(found, Mapping) or set(found) != set(columns):
            returned = sorted(found) if isinstance(found, Mapping) else type(found).__name__
            raise UserError(f"{name} declares the columns {sorted(columns)}, but compute returned {returned}")
        for own, shown in columns.items():
            results[shown] = real_array(found[own], (units,), what=f"{name}: {own}")
    return results


def means_by_unit(values: FloatArray, owner: NDArray[np.int64], units: int) -> FloatArray:
    """(B,) the mean of the ``values`` (R,) of each unit, ignoring NaN; NaN where there is no value.

    Args:
        owner: (R,) the unit of each value, from 0 to B - 1. units: B.
    """
    known = ~np.isnan(values)
    counts = np.bincount(owner[known], minlength=units)
    sums = np.bincount(owner[known], values[known], minlength=units)
    means: FloatArray = np.divide(sums, counts, out=np.full(units, np.nan), where=counts > 0)
    return means
