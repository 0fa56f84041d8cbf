"""Scores of cells as matrices of units by metrics, and what they are summarised as."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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

    def of_units(self, units: NDArray[Any]) -> FloatArray:
        """(len(units), metrics); NaN for a unit that is not there."""
        if np.array_equal(units, self.units):
            return self.values
        places = np.minimum(np.searchsorted(self.units, units), len(self.units) - 1)
        known = self.units[places] == units
        return np.where(known[:, None], self.values[places], np.nan)


def unit_values(
    scores: pd.DataFrame | Iterable[pd.DataFrame],
    cluster: str | None = None,
    further: pd.DataFrame | Iterable[pd.DataFrame] | None = None,
) -> dict[str, UnitValues]:
    """The long table of scores (cell, metric, unit, value) as one matrix for each cell, units sorted.

    It may come in parts, which are not stored. Rows without a unit stand for units that could not even be listed, and
    are left out.

    Args:
        cluster: the column that says which units belong together; None: each stands for itself.
        further: cell, metric, unit, value; other values of units that have scores. Others are left out.

    Raises:
        ValueError: if a cell scores one unit twice on one metric.
    """
    units, clusters = _Names(), _Names()
    cells: dict[str, _Cell] = {}
    for part in _parts(scores):
        for name, rows in _rows_by_cell(part, units, clusters, cluster):
            cells.setdefault(name, _Cell()).add(rows)
    for part in _parts(further):
        for name, rows in _rows_by_cell(part, units, clusters, None):
            if name in cells:
                cells[name].add(rows, further=True)
    if not cells:
        return {}
    places, names = _sorted(units)
    belongs = clusters.array() if cluster else names
    return {name: cell.matrix(name, places, names, belongs, bool(cluster)) for name, cell in cells.items()}


def _parts(frames: pd.DataFrame | Iterable[pd.DataFrame] | None) -> Iterable[pd.DataFrame]:
    import pandas as pd

    if frames is None:
        return []
    return [frames] if isinstance(frames, pd.DataFrame) else frames


class _Names:
    """Numbers for names, in order of appearance: one object for a name, however many cells have it."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}

    def codes(self, values: pd.Series) -> NDArray[np.int32]:
        """(rows,) the number of each value."""
        import pandas as pd

        codes, names = pd.factorize(values)
        numbers = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        return np.array(numbers, dtype=np.int32)[codes]

    def array(self) -> NDArray[Any]:
        return _array(self._numbers)


def _sorted(units: _Names) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """The place of each unit among all, and all of them, in ascending order."""
    import pandas as pd

    places, names = pd.factorize(units.array(), sort=True)
    return places.astype(np.int32), np.asarray(names)


class _Rows(NamedTuple):
    """Rows of one cell: (rows,) each; metrics as text."""

    units: NDArray[np.int32]
    clusters: NDArray[np.int32]
    metrics: NDArray[np.int32]
    values: FloatArray
    metric_names: Sequence[str]


def _rows_by_cell(
    scores: pd.DataFrame, units: _Names, clusters: _Names, cluster: str | None
) -> Iterator[tuple[str, _Rows]]:
    import pandas as pd

    scores = scores[scores["unit"].notna()]
    if not len(scores):
        return
    codes, names = pd.factorize(scores["cell"])
    metrics, metric_names = pd.factorize(scores["metric"])
    numbers = units.codes(scores["unit"])
    belongs = clusters.codes(scores[cluster]) if cluster else numbers
    values = scores["value"].to_numpy(dtype=np.float64, na_value=np.nan)
    shown = [str(name) for name in metric_names]
    order = np.argsort(codes, kind="stable")
    for name, rows in zip(
        names, np.split(order, np.searchsorted(codes[order], np.arange(1, len(names)))), strict=True
    ):
        yield (
            str(name),
            _Rows(numbers[rows], belongs[rows], metrics[rows].astype(np.int32), values[rows], shown),
        )


class _Cell:
    """The scores of a cell as they come: of each its unit and metric as numbers, and its value."""

    def __init__(self) -> None:
        self.metrics: dict[str, int] = {}
        self.parts: list[_Rows] = []
        self.further: list[_Rows] = []

    def add(self, rows: _Rows, further: bool = False) -> None:
        """``further`` numbers are of units that have others."""
        present, codes = np.unique(rows.metrics, return_inverse=True)
        own = present[np.argsort([np.argmax(rows.metrics == metric) for metric in present])]
        for metric in own:  # in order of appearance
            self.metrics.setdefault(rows.metric_names[metric], len(self.metrics))
        numbers = [self.metrics[rows.metric_names[metric]] for metric in present]
        rows = rows._replace(metrics=np.array(numbers, dtype=np.int32)[codes])
        (self.further if further else self.parts).append(rows)

    def matrix(
        self, cell: str, places: NDArray[np.int32], names: NDArray[Any], belongs: NDArray[Any], grouped: bool
    ) -> UnitValues:
        """``places``: of each unit among ``names``; ``belongs``: what units belong to, by number if ``grouped``."""
        numbers = places[np.concatenate([part.units for part in self.parts])]
        own, first = np.unique(numbers, return_index=True)  # in the order of their names
        values = np.full((len(own), len(self.metrics)), np.nan)
        seen = np.zeros(values.shape, dtype=bool)
        for part in [*self.parts, *self.further]:
            at = places[part.units]
            rows = np.minimum(np.searchsorted(own, at), len(own) - 1)
            known = own[rows] == at
            rows, columns = rows[known], part.metrics[known]
            if seen[rows, columns].any() or len(np.unique(rows * len(self.metrics) + columns)) != len(rows):
                raise ValueError(f"{cell}: a unit is scored twice on one metric")
            seen[rows, columns] = True
            values[rows, columns] = part.values[known]
        units = names[own]
        clusters = units
        if grouped:
            clusters = belongs[np.concatenate([part.clusters for part in self.parts])[first]]
        return UnitValues(units, clusters, tuple(self.metrics), values)


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
    first_cell = cells[0]
    if all(np.array_equal(cell.units, first_cell.units) for cell in cells[1:]):
        units, clusters = first_cell.units, first_cell.clusters  # sorted already
    else:
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

    codes: dict[int, IntArray] = {}  # most cells share their clusters
    totals = {}
    for name, cell in cells.items():
        own = codes.get(id(cell.clusters))
        if own is None:
            own = codes[id(cell.clusters)] = codes_of(cell.clusters, len(cell.units))
        totals[name] = cluster_totals(cell.values, own)
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
    columns: dict[str, list[Any]] = {name: [] for name in _SUMMARY}
    for name, cell in cells.items():
        n = (~np.isnan(cell.values)).sum(axis=0)
        columns["cell"] += [name] * len(n)
        columns["metric"] += cell.metrics
        columns["mean"].append(_mean(cell.values, n))
        columns["std"].append(_standard_deviation(cell.values, n))
        columns["ci_low"].append(bounds[name][0])
        columns["ci_high"].append(bounds[name][1])
        columns["n"].append(n)
        columns["n_missing"].append(len(cell.units) - n)
    if not cells:
        return pd.DataFrame(columns=list(columns))
    text = ("cell", "metric")
    return pd.DataFrame({k: v if k in text else np.concatenate(v) for k, v in columns.items()})


_SUMMARY = ("cell", "metric", "mean", "std", "ci_low", "ci_high", "n", "n_missing")


def _mean(values: FloatArray, n: IntArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nansum(values, axis=0) / np.where(n > 0, n, np.nan))


def _standard_deviation(values: FloatArray, n: IntArray) -> FloatArray:
    """That of the units; NaN where the mean is infinite, or there is none."""
    mean = _mean(values, n)
    finite = np.isfinite(mean)
    squares = np.nansum((values - np.where(finite, mean, np.nan)) ** 2, axis=0)
    return np.asarray(np.sqrt(squares / np.where(finite & (n > 1), n - 1, np.nan)))
