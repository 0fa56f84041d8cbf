"""What the analyses have in common: settings of finished runs, statements with intervals, and words for both.

A *setting* is what a table of a run is: the cells that differ in their explainer alone. A *statement* is a mean over
units, of one method or of the difference between two, with its 95% interval: users are drawn, not units.
Cells that did not end well are left out: a mean over the units that happened to finish compares with nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.analysis_tables import group_rows, with_empty_text
from cfbench_core.plan import Column
from cfbench_core.statistics import UnitValues, summary_of

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import Series
    from cfbench_core.run_directory import Run, RunCell

FloatArray = NDArray[np.float64]
Labels = Mapping[str, Any]
Wanted = Callable[["RunCell"], bool]

SETTING = ("run", "dataset", "model", "level", "k", "format", "edit", "scope", "max_edits")
"""Labels of a setting, those of them that a table has; "run" is there where runs repeat settings."""
NUMBERS = ("mean", "ci_low", "ci_high", "n")
STRONG = ("certified", "reference")
"""Roles of controls that are searched on the model itself."""
OWN = ("user-vector", "user-only")
"""Scopes that come to the same: the user's own interactions."""
_WORDS = ("role", "against", "other", "reason")
_REFINED = re.compile(
    r"^(?P<metric>POS[-a-z]*@\d+),(?P<k_e>\d+)$|^(?P<other>(CDCG|INS|DEL)[-a-z]*)@(?P<length>\d+)$"
)
_CHECKPOINT = re.compile(r"@q?\d+(\.\d+)?%$")


# Settings


@dataclass(frozen=True)
class Method:
    """An explainer in a setting: what it scored, unit by unit."""

    name: str
    role: str
    cell: RunCell
    values: UnitValues
    run: Run

    @property
    def competes(self) -> bool:
        return not self.role

    @property
    def edit(self) -> str:
        """ "remove" or "remove-or-add": as the plan says, else whether any of its answers adds an edge."""
        if "edit" in self.cell.labels:
            return str(self.cell.labels["edit"])
        return "remove-or-add" if np.nansum(self.column("#Additions")) > 0 else "remove"

    def column(self, metric: str) -> FloatArray:
        """(units,), NaN where there is no value."""
        return self.values.column(metric)

    def details(self) -> dict[str, FloatArray]:
        """What the method reported about its answers: by name (units,) numbers in the order of :meth:`column`."""
        reported = self.run.detail_values.get(self.cell.id)
        if reported is None:
            return {}
        return dict(zip(reported.metrics, reported.of_units(self.values.units).T, strict=True))

    def labels(self) -> dict[str, str]:
        return {"explainer": self.name, "role": self.role}


@dataclass(frozen=True)
class Setting:
    """Methods side by side, and what their cells have in common."""

    labels: Labels
    methods: tuple[Method, ...]

    @property
    def columns(self) -> list[Column]:
        """What is measured, each name once."""
        return list({c.name: c for method in self.methods for c in method.cell.columns}.values())

    def columns_of(self, metrics: Iterable[str]) -> list[Column]:
        """The columns of some metrics, in the order of these: "PN-S" stands for "PN-S@5"."""
        return [column for metric in metrics for column in self.columns if base(column.name) == metric]


def settings(runs: Sequence[Run], wanted: Wanted, apart: Collection[str] = ()) -> list[Setting]:
    """The settings of all runs, in the order of their plans, of the cells that ended well and are ``wanted``.

    Several runs are one study as long as none repeats a setting of another; then each setting is of one run, which its
    label "run" names.

    Args:
        apart: labels that may differ within a setting.
    """
    placed = [
        (at, {by: cell.labels[by] for by in run.layout.by if by not in apart and by in cell.labels}, cell)
        for at, run in enumerate(runs)
        for cell in run.cells()
        if cell.done and wanted(cell) and cell.id in run.unit_values
    ]
    of_runs: dict[tuple[Any, ...], set[int]] = {}
    for at, labels, _ in placed:
        of_runs.setdefault(tuple(labels.items()), set()).add(at)
    repeated = any(len(places) > 1 for places in of_runs.values())
    names = _run_names(runs)
    found: dict[tuple[Any, ...], tuple[dict[str, Any], list[Method]]] = {}
    for at, labels, cell in placed:
        named = {"run": names[at], **labels} if repeated else labels
        run = runs[at]
        method = Method(str(cell.labels[run.layout.row]), cell.role, cell, run.unit_values[cell.id], run)
        found.setdefault(tuple(named.items()), (named, []))[1].append(method)
    return [Setting(labels, tuple(methods)) for labels, methods in found.values()]


def unit_ranks(run: Run, cells: Sequence[str] | None = None) -> dict[str, pd.Series[float]]:
    """The rank of each unit's item in its list, by cell (of all if None); a cell without ranks (list level) is not there."""
    import pandas as pd

    wanted = set(run.unit_values) if cells is None else set(cells)
    first = list(
        dict.fromkeys(cell.columns[0].name for cell in run.cells() if cell.id in wanted and cell.columns)
    )
    parts: dict[str, list[pd.Series[float]]] = {}
    names: dict[Any, Any] = {}  # one object for a unit, however many cells have it
    # each metric has a row for each unit, so one metric of each cell has all ranks
    for batch in run.batches("scores.parquet", ["cell", "unit", "rank"], cells, first):
        listed = batch.dropna().drop_duplicates(["cell", "unit"])
        for cell, rows in listed.groupby("cell", sort=False):
            units = [names.setdefault(unit, unit) for unit in rows["unit"].to_numpy(object)]
            parts.setdefault(str(cell), []).append(
                pd.Series(rows["rank"].to_numpy(), index=pd.Index(units, dtype=object))
            )
    found = {cell: pd.concat(own) for cell, own in parts.items()}
    return {cell: ranks[~ranks.index.duplicated()] for cell, ranks in found.items()}


def _run_names(runs: Sequence[Run]) -> list[str]:
    names = [run.directory.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.directory) for run in runs]


def finished(runs: Sequence[Run], wanted: Wanted) -> list[RunCell]:
    """The cells that ended well and are ``wanted``, from the plans of the recommender suite's runs."""
    cells = [cell for run in runs if run.suite == "recsys" for cell in run.cells()]
    return [cell for cell in cells if cell.done and wanted(cell)]


def differ_in(name: str, cells: Iterable[Labels]) -> bool:
    """Whether two of these labels of cells differ in the one called ``name`` alone."""
    seen: dict[frozenset[Any], set[Any]] = {}
    for labels in cells:
        others = frozenset(item for item in labels.items() if item[0] != name)
        seen.setdefault(others, set()).add(labels.get(name))
    return any(len(values) > 1 for values in seen.values())


def has_metric(*metrics: str) -> Wanted:
    """Whether a cell measures one of these: "PN-S" stands for "PN-S@5"."""
    return lambda cell: any(base(column.name) in metrics for column in cell.columns)


def base(metric: str) -> str:
    """ "POS-P" of "POS-P@5 (T=20)"."""
    return metric.partition("@")[0]


def refined(metric: str) -> tuple[str, int] | None:
    """("POS@20", 3) of "POS@20,3": a metric of Refined fidelity and its K_e; None of any other metric."""
    found = _REFINED.match(metric)
    if found is None:
        return None
    return found["metric"] or found["other"], int(found["k_e"] or found["length"])


def is_checkpoint(model: str) -> bool:
    """Whether a model is one level of quality of another: "mf@25%", "mf@q80%"."""
    return _CHECKPOINT.search(model) is not None


# Statements


class Statements:
    """Collects means of units, and gives them all their intervals at once."""

    def __init__(self) -> None:
        self._labels: list[dict[str, Any]] = []
        self._together: dict[int, list[tuple[int, FloatArray, NDArray[Any]]]] = {}

    def add(self, labels: Labels, values: FloatArray, clusters: NDArray[Any]) -> None:
        """``values`` (units,), NaN where there is none; ``clusters`` (units,) whose they are."""
        # Most statements are of the units of one cell. The array is held here, so no other gets its id.
        self._together.setdefault(id(clusters), []).append((len(self._labels), values, clusters))
        self._labels.append(dict(labels))

    def frame(self) -> pd.DataFrame:
        """A row for each statement: its labels, then mean, ci_low, ci_high and n."""
        import pandas as pd

        cells = {
            str(name): UnitValues(
                np.arange(len(listed[0][1])),
                listed[0][2],
                tuple(str(number) for number, _, _ in listed),
                np.array([values for _, values, _ in listed]).T,
            )
            for name, listed in self._together.items()
        }
        summary = summary_of(cells)
        numbers = summary.set_index(summary["metric"].astype("int64"))[list(NUMBERS)].sort_index()
        labels = pd.DataFrame(self._labels)
        return pd.concat([labels, numbers.astype({"n": "int64"}).reset_index(drop=True)], axis=1)


# A table that may come from a CSV file


def normalized(table: pd.DataFrame) -> pd.DataFrame:
    """The same, with empty text where a CSV file has nothing."""
    return with_empty_text(table, _WORDS)


def labels_in(table: pd.DataFrame) -> list[str]:
    """The labels of a setting that a table has."""
    return [name for name in SETTING if name in table.columns]


def by_setting(table: pd.DataFrame, *more: str) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows of each setting (and of each value of ``more``), with its labels, in the order of the table."""
    return group_rows(table, [*labels_in(table), *more])


def longest(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of the longest lists: a figure for each k would be the same figure again."""
    others = [name for name in labels_in(table) if name != "k"]
    if "k" not in table.columns:
        return table
    most = table.groupby(others, dropna=False)["k"].transform("max") if others else table["k"].max()
    return table[table["k"] == most]


def place(labels: Any, table: pd.DataFrame) -> str:
    """The labels that distinguish a setting from the others of a table, as text: "debian-python · mf · top 5"."""
    from cfbench_core.reports.labels import label_texts
    from cfbench_recsys.labels import LABEL_FORMATS

    names = [name for name in SETTING if name in labels]
    telling = [name for name in names if table[name].nunique(dropna=False) > 1]
    # The scope mostly follows from the model: it is shown where it does not.
    others = [name for name in telling if name != "scope"]
    if others and "scope" in telling and not _differs_within(table, others, "scope"):
        telling = others
    # A profile has no choice of scope, and the format follows from the metric.
    said = {name: labels[name] for name in telling if labels[name] != OWN[0]}
    if "metric" in labels:
        said.pop("format", None)
    shown = label_texts(said, LABEL_FORMATS)
    shown = shown or [labels[name] for name in ("dataset", "model") if name in labels]
    return " · ".join(shown)


def _differs_within(table: pd.DataFrame, groups: list[str], name: str) -> bool:
    return bool((table.groupby(groups, dropna=False)[name].nunique(dropna=False) > 1).any())


def style_numbers(table: pd.DataFrame) -> dict[str, int]:
    """The number of the line style of each competitor, the same in all figures of a table."""
    competitors = table.loc[table["role"] == "", "explainer"]
    return {name: number for number, name in enumerate(dict.fromkeys(competitors))}


def lines(rows: pd.DataFrame, x: str, places: Mapping[str, int]) -> list[Series]:
    """A line for each explainer, over the numbers of the column ``x``."""
    from cfbench_core.reports.charts import Series

    return [
        Series(
            str(name),
            own[x].astype(float),
            own["mean"],
            own["ci_low"],
            own["ci_high"],
            own["role"].iloc[0],
            places.get(str(name)),
        )
        for name, own in rows.groupby("explainer", sort=False)
    ]


def line_figures(
    groups: Iterable[tuple[dict[str, Any], pd.DataFrame]],
    table: pd.DataFrame,
    places: Mapping[str, int],
    x: str,
    x_label: str,
    note: str,
    x_names: Sequence[str] | None = None,
) -> list[Figure]:
    """A line chart of each group (a setting and a metric), explainers over the numbers of the column ``x``.

    Args:
        table: whose settings the titles must distinguish. places: line styles of the competitors.
        note: below the first. x_names: what stands at 0, 1, 2, ...
    """
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import line_chart

    drawn: list[Figure] = []
    for labels, rows in groups:
        title = f"{labels['metric']}: {place(labels, table)}"
        svg = line_chart(
            lines(rows, x, places),
            title=title,
            x_label=x_label,
            y_label=str(labels["metric"]),
            direction=rows["direction"].iloc[0],
            x_names=x_names,
        )
        drawn.append(Figure(title, svg, "" if drawn else note))
    return drawn


def coordinates(row: Any, axis: str) -> dict[str, float]:
    """A mean and its interval as the arguments of a point: x, x_low, x_high."""
    return {
        axis: float(row["mean"]),
        f"{axis}_low": float(row["ci_low"]),
        f"{axis}_high": float(row["ci_high"]),
    }


# Words


def mean_ci(row: Any) -> str:
    """ "0.31 (0.28 to 0.34)": a mean and its interval."""
    if np.isnan(row["ci_low"]):
        return f"{row['mean']:.3g}"
    return f"{row['mean']:.3g} ({row['ci_low']:.3g} to {row['ci_high']:.3g})"


def clear(row: Any) -> bool:
    """Whether a difference is more than chance: its interval leaves zero out."""
    return bool(row["ci_low"] > 0 or row["ci_high"] < 0)


def better(values: FloatArray, direction: str) -> int:
    """The place of the best value, the first of equal ones; -1 where all are missing."""
    costs = np.where(np.isnan(values), np.inf, values if direction == "lower" else -values)
    return int(np.argmin(costs)) if len(costs) and np.isfinite(costs).any() else -1


def means(values: FloatArray) -> FloatArray:
    """Over the first axis, of what is there; NaN where nothing is."""
    counts = (~np.isnan(values)).sum(axis=0)
    return np.asarray(np.nansum(values, axis=0) / np.where(counts > 0, counts, np.nan))
