"""The results that the analyses read: completed cells by model and data set, types of data sets, and text helpers.

A *study* comprises the results of one model (a label, such as "mlp"): data sets with the explainers that were run on
them. Where two runs contain the same cell, the later one counts. A failed explainer counts as the worst for every
factual; one that was never planned (because it cannot handle the data) is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.statistics import UnitValues, align

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.plan import Column
    from cfbench_core.run_directory import Run, RunCell

FloatArray = NDArray[np.float64]
TOTAL = "total"
GROUPS = (TOTAL, "numerical", "categorical", "mixed")
FEASIBLE, REALISTIC, VALID = "feasible", "realistic", "valid"
CRITERIA: Mapping[str, str] = {FEASIBLE: "feasible", REALISTIC: "realistic", VALID: "validity"}
"""The metric that decides which counterfactuals count, by criterion; the headline first."""
DIGITS = 10
_TEXT_COLUMNS = ("role", "type", "branch", "condition", "explainer")


@dataclass(frozen=True)
class Method:
    """An explainer on a data set with its scores by unit; None if it failed."""

    name: str
    role: str
    cell: RunCell
    values: UnitValues | None

    @property
    def competes(self) -> bool:
        return not self.role


@dataclass(frozen=True)
class DataSet:
    """One data set with one model.

    Attributes:
        type: "numerical", "categorical" or "mixed"; empty if unknown.
        summary: the summary of the data stage (rows, columns, ...); model: that of the model stage.
    """

    name: str
    type: str
    summary: Mapping[str, Any]
    model: Mapping[str, Any]
    methods: Mapping[str, Method]
    run: Run

    def values(self, names: Sequence[str], metrics: Sequence[str]) -> tuple[NDArray[Any], FloatArray]:
        """units (n,), and (n, explainers, metrics) with NaN where there is no value, also for failed explainers."""
        known = [self.methods[name].values for name in names]
        there = [values for values in known if values is not None]
        if not there:
            return np.empty(0, dtype=object), np.empty((0, len(names), len(metrics)))
        units, _, some = align(there, metrics)
        found = np.full((len(units), len(names), len(metrics)), np.nan)
        found[:, [values is not None for values in known]] = some
        return units, found


@dataclass(frozen=True)
class Study:
    """The data sets that one model was explained on."""

    model: str
    datasets: tuple[DataSet, ...]

    def group(self, name: str) -> list[DataSet]:
        """The data sets of a type, or all."""
        return [dataset for dataset in self.datasets if name in (TOTAL, dataset.type)]

    def groups(self, same_as_total: bool = False) -> Iterator[tuple[str, list[DataSet]]]:
        """Each group that has data sets, with them; a type that all are of only if ``same_as_total``."""
        for name in GROUPS:
            members = self.group(name)
            if members and (name == TOTAL or same_as_total or len(members) < len(self.datasets)):
                yield name, members

    def columns(self) -> dict[str, Column]:
        """The metric columns, by name."""
        methods = (method for dataset in self.datasets for method in dataset.methods.values())
        return {column.name: column for method in methods for column in method.cell.columns}


def competitors(datasets: Sequence[DataSet]) -> list[str]:
    """The explainers that compete on all of these data sets, in the order of the plan."""
    first = [name for name, method in datasets[0].methods.items() if method.competes]
    return [name for name in first if all(name in dataset.methods for dataset in datasets)]


def studies(runs: Sequence[Run]) -> list[Study]:
    """The studies of the runs by model, in the order of their plans."""
    found: dict[str, dict[str, dict[str, tuple[Run, RunCell]]]] = {}
    for run in runs:
        for cell in run.cells():
            if run.suite == "tabular" and cell.status not in ("skipped", "planned"):
                model, dataset, name = (
                    str(cell.labels[label]) for label in ("model", "dataset", "explainer")
                )
                found.setdefault(model, {}).setdefault(dataset, {})[name] = run, cell
    return [
        Study(model, tuple(_dataset(model, name, cells) for name, cells in datasets.items()))
        for model, datasets in found.items()
    ]


def _dataset(model: str, name: str, cells: Mapping[str, tuple[Run, RunCell]]) -> DataSet:
    run = next(iter(cells.values()))[0]
    summary = run.summaries("data").get(name, {})
    methods = {
        explainer: Method(explainer, cell.role, cell, own.unit_values.get(cell.id) if cell.done else None)
        for explainer, (own, cell) in cells.items()
    }
    about = run.summaries("model").get(f"{model} on {name}", {})
    return DataSet(name, type_of(summary), summary, about, methods, run)


def type_of(summary: Mapping[str, Any]) -> str:
    """ "numerical", "categorical" or "mixed", from how many columns of each kind there are; "" if unknown."""
    numeric, categorical = summary.get("numeric_columns", 0), summary.get("categorical_columns", 0)
    if not numeric + categorical:
        return ""
    return "mixed" if numeric and categorical else "numerical" if numeric else "categorical"


def finished(runs: Sequence[Run], *metrics: str) -> bool:
    """Whether some completed cell of a tabular run has all of these metrics. Reads plans only."""
    return any(
        run.suite == "tabular" and cell.done and {*metrics} <= {column.name for column in cell.columns}
        for run in runs
        for cell in run.cells()
    )


def masked(values: FloatArray, counted: FloatArray) -> FloatArray:
    """``values`` where the criterion ``counted`` is 1, else NaN, so that failures do not contribute distances."""
    return np.where(counted == 1.0, values, np.nan)


def comparable(values: FloatArray) -> FloatArray:
    """Values rounded to ten significant digits, so that equal counterfactuals tie although matrix products round
    differently from batch to batch. (The published ranks of MD break such ties by the last digits.)"""
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        unit = np.where((size > 0) & np.isfinite(size), 10.0 ** (np.floor(np.log10(size)) - DIGITS + 1), 1.0)
    return np.where(np.isfinite(size), np.round(values / unit) * unit, values)


# Tables that may come from a CSV file


def tidied(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty strings where a CSV file has missing text."""
    names = [name for name in _TEXT_COLUMNS if name in table.columns]
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in names})


def place(labels: Mapping[str, Any], table: pd.DataFrame) -> str:
    """The labels in which a table's rows differ, as text: "mlp · numerical"."""
    return " · ".join(str(value) for name, value in labels.items() if table[name].nunique() > 1)


def groups_of(table: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """The rows of each combination of labels, with it, in the order of the table."""
    for values, rows in table.groupby(list(names), sort=False, dropna=False):
        yield dict(zip(names, values, strict=True)), rows
