"""Scores of cells as matrices of units by metrics, and what they are summarised as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    FloatArray,
    IntArray,
    cluster_totals,
    codes_of,
    intervals_of,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class UnitValues:
    """The scores of one cell: ``values`` (units, metrics), NaN where there is none; ``clusters`` (units,)."""

    units: NDArray[Any]
    clusters: NDArray[Any]
    metrics: tuple[str, ...]
    values: FloatArray

    def column(self, metric: str) -> FloatArray:
        """(units,) of one metric; all NaN when the cell does not have it."""
        if metric not in self.metrics:
            return np.full(len(self.units), np.nan)
        return self.values[:, self.metrics.index(metric)]


def unit_values(
    scores: pd.DataFrame | Iterable[pd.DataFrame],
    cluster: str | None = None,
    further: pd.DataFrame | None = None,
) -> dict[str, UnitValues]:
    """The long table of scores (cell, metric, unit, value) as one matrix for each cell, units sorted.

    It may come in parts, which are not stored. Rows without a unit stand for units that could not even be listed, and
    are left out.

    Args:
        cluster: the column that says which units belong together; None: each stands for itself.
        further: cell, metric, unit, value; what units that have scores have besides. Others are left out.

    Raises:
        ValueError: if a cell scores one unit twice on one metric.
    """
    import pandas as pd

    cells: dict[str, _Cell] = {}
    for part in [scores] if isinstance(scores, pd.DataFrame) else scores:
        for name, rows in _by_cell(part[part["unit"].notna()]):
            cells.setdefault(name, _Cell()).add(rows, cluster)
    for name, rows in [] if further is None else _by_cell(further):
        if name in cells:
            cells[name].add(rows[rows["unit"].isin(list(cells[name].units))], None)
    return {name: cell.matrix(name) for name, cell in cells.items()}


def _by_cell(scores: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    import pandas as pd

    codes, names = pd.factorize(scores["cell"])
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(1, len(names)))
    for name, rows in zip(names, np.split(order, ends) if len(names) else [], strict=True):
        yield str(name), scores.iloc[rows]


class _Cell:
    """The scores of a cell as they come: of each its unit and metric as numbers, and its value."""

    def __init__(self) -> None:
        self.units: dict[Any, int] = {}
        self.clusters: list[Any] = []
        self.metrics: dict[str, int] = {}
        self.parts: list[tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]] = []

    def add(self, scores: pd.DataFrame, cluster: str | None) -> None:
        import pandas as pd

        codes, names = pd.factorize(scores["unit"])
        _, first = np.unique(codes, return_index=True)
        belongs = scores[cluster].iloc[first].tolist() if cluster else list(names)
        for unit, of_unit in zip(names, belongs, strict=True):
            if unit not in self.units:
                self.units[unit] = len(self.units)
                self.clusters.append(of_unit)
        units = np.array([self.units[unit] for unit in names], dtype=np.int32)[codes]
        codes, names = pd.factorize(scores["metric"])
        metrics = [self.metrics.setdefault(str(metric), len(self.metrics)) for metric in names]
        values = scores["value"].to_numpy(dtype=np.float64, na_value=np.nan)
        self.parts.append((units, np.array(metrics, dtype=np.int32)[codes], values))

    def matrix(self, cell: str) -> UnitValues:
        import pandas as pd

        units, metrics, numbers = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        places, names = pd.factorize(_array(self.units), sort=True)
        flat = places[units].astype(np.int64) * len(self.metrics) + metrics
        values = np.full(len(self.units) * len(self.metrics), np.nan)
        seen = np.zeros(len(values), dtype=bool)
        seen[flat] = True
        if seen.sum() != len(flat):
            raise ValueError(f"{cell}: a unit is scored twice on one metric")
        values[flat] = numbers
        clusters = _array(self.clusters)[np.argsort(places)]
        shape = len(self.units), len(self.metrics)
        return UnitValues(np.asarray(names), clusters, tuple(self.metrics), values.reshape(shape))


def _array(values: Iterable[Any]) -> NDArray[Any]:
    """As pandas has them: text and whatever else is no number as objects."""
    listed = list(values)
    found = np.asarray(listed)
    if found.ndim == 1 and found.dtype.kind in "iufb":
        return found
    objects: NDArray[Any] = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


def align(
    cells: Sequence[UnitValues], metrics: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any], FloatArray]:
    """Cells side by side on the union of their units.

    Returns:
        units (n,), clusters (n,), values (n, cells, metrics), NaN where a cell has no value for a unit.
    """
    units, first = np.unique(np.concatenate([cell.units for cell in cells]), return_index=True)
    clusters = np.concatenate([cell.clusters for cell in cells])[first]
    values = np.full((len(units), len(cells), len(metrics)), np.nan)
    for place, cell in enumerate(cells):
        rows = np.searchsorted(units, cell.units)
        for column, metric in enumerate(metrics):
            values[rows, place, column] = cell.column(metric)
    return units, clusters, values


def summarise(scores: pd.DataFrame, cluster: str | None = None, level: float = LEVEL) -> pd.DataFrame:
    """One row for each cell and metric: mean, std, ci_low, ci_high, n, n_missing.

    ``std`` is that of the units (n - 1 in the denominator), the interval is that of the mean, ``n`` counts
    the units with a value and ``n_missing`` those of the cell's units without one.

    Args:
        scores: long, with the columns cell, metric, unit, value.
        cluster: as in :func:`unit_values`.
    """
    return summary_of(unit_values(scores, cluster), level)


def summary_of(cells: Mapping[str, UnitValues], level: float = LEVEL) -> pd.DataFrame:
    """As :func:`summarise`, of matrices. Cells with equally many clusters are resampled together."""
    import pandas as pd

    totals = {
        name: cluster_totals(cell.values, codes_of(cell.clusters, len(cell.units)))
        for name, cell in cells.items()
    }
    together: dict[int, list[str]] = {}
    for name, (sums, _) in totals.items():
        together.setdefault(len(sums), []).append(name)
    bounds: dict[str, tuple[FloatArray, FloatArray]] = {}
    for names in together.values():
        sums = np.concatenate([totals[name][0] for name in names], axis=1)
        counts = np.concatenate([totals[name][1] for name in names], axis=1)
        low, high = intervals_of(sums, counts, level, RESAMPLES, None)
        ends = np.cumsum([len(cells[name].metrics) for name in names])[:-1]
        bounds |= zip(names, zip(np.split(low, ends), np.split(high, ends), strict=True), strict=True)
    frames = []
    for name, cell in cells.items():
        n = (~np.isnan(cell.values)).sum(axis=0)
        frames.append(
            pd.DataFrame(
                {
                    "cell": name,
                    "metric": list(cell.metrics),
                    "mean": _mean(cell.values, n),
                    "std": _standard_deviation(cell.values, n),
                    "ci_low": bounds[name][0],
                    "ci_high": bounds[name][1],
                    "n": n,
                    "n_missing": len(cell.units) - n,
                }
            )
        )
    columns = ["cell", "metric", "mean", "std", "ci_low", "ci_high", "n", "n_missing"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def _mean(values: FloatArray, n: IntArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values, axis=0) / np.where(n > 0, n, np.nan))


def _standard_deviation(values: FloatArray, n: IntArray) -> FloatArray:
    squares = np.nansum((values - _mean(values, n)) ** 2, axis=0)
    return np.asarray(np.sqrt(squares / np.where(n > 1, n - 1, np.nan)))
