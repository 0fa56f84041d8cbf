"""Reads a run directory: the plan with how each cell ended, and the tables, as pandas frames.

The files are those of the contract (``docs/explanation/design.md``, section 5); they are read when first
used. ``summary.csv`` is written here, from the others.
"""

from __future__ import annotations

import contextlib
import functools
import html
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.model_quality import FIELDS, Quality
from cfbench_core.outcomes import DONE
from cfbench_core.plan import TIME, Column, TableLayout
from cfbench_core.run_files import REWRITE, RunFiles
from cfbench_core.run_summary import SUMMARY, summarise
from cfbench_core.specs import resolve
from cfbench_core.yaml_nodes import compose, plain

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from cfbench_core.statistics import UnitValues

_NOT_LABELS = {"cell", "role", "status", "reason", "metrics", "stages", "coverage", "units"}
_SCORES = ("cell", "metric", "unit", "value", "status")
_TABLES = ("scores", "explanations", "costs", "details")
_SMALL = 16_000_000
"""Bytes of a table that is read once as a whole, not once for each cell."""


@dataclass(frozen=True)
class RunCell:
    """A cell of the plan and how it ended.

    ``status`` is that of an outcome, or "partial" (some units have no result), or "planned" (not run yet).
    """

    id: str
    labels: Mapping[str, str | int]
    role: str
    status: str
    reason: str
    columns: tuple[Column, ...]

    @property
    def done(self) -> bool:
        return self.status in DONE

    @property
    def problem(self) -> bool:
        """Whether it was to run and did not, or not wholly."""
        return not self.done and self.status != "skipped"


class Run:
    """A run directory.

    Raises:
        UserError: if the directory is no run, and from each property if its file is missing or cannot be
            read.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        if not self.directory.is_dir():
            raise UserError(
                f"{self.directory}: no such directory; give the one that 'cfbench run' printed at its end"
            )
        if not (self.directory / "plan.json").is_file():
            raise UserError(f"{self.directory}: not a run directory, it has no plan.json")
        self._files = RunFiles(self.directory)

    def __repr__(self) -> str:
        return f"Run({str(self.directory)!r})"

    def _repr_html_(self) -> str:
        """The first tables, for a notebook; what cannot be read is a line in their place."""
        # Named as text, as components are: reports read runs, so this module cannot import them.
        render = resolve("cfbench_core.reports.notebook:render")
        try:
            return str(render(self))
        except UserError as error:
            return f"<pre>{html.escape(chr(10).join([repr(self), *error.lines]))}</pre>"

    def verified(self, name: str) -> Path:
        """The path of a file of the directory, ``"summary.csv"``.

        Raises:
            UserError: when it has changed, or was removed, since the run wrote it.
        """
        return self._files.verified(name)

    def to_arrow(self, name: str) -> pa.Table:
        """A table of the run as Arrow, without a copy through pandas.

        Args:
            name: "scores", "explanations", "costs", "details", or one of the suite's own tables (:attr:`table_names`).

        Raises:
            UserError: for an unknown name, or a file that is missing or damaged.
        """
        return self._files.arrow(f"{self._known(name)}.parquet")

    def to_pandas(self, name: str) -> pd.DataFrame:
        """The same as :meth:`to_arrow`, as a pandas frame."""
        frame: pd.DataFrame = self.to_arrow(name).to_pandas()
        return frame

    def to_polars(self, name: str) -> pl.DataFrame:
        """The same as :meth:`to_arrow`, as a polars frame. Needs ``pip install polars``.

        Raises:
            UserError: as :meth:`to_arrow`, and where polars is not installed.
        """
        try:
            import polars
        except ModuleNotFoundError:
            raise UserError("polars is not installed: pip install polars") from None
        frame = polars.from_arrow(self.to_arrow(name))
        assert isinstance(frame, polars.DataFrame)
        return frame

    @property
    def table_names(self) -> list[str]:
        """The tables that the run has, as :meth:`to_arrow` names them."""
        own = [Path(file).stem for file in self.layout.tables]
        names = dict.fromkeys([*_TABLES, *own])
        return [name for name in names if (self.directory / f"{name}.parquet").is_file()]

    def _known(self, name: str) -> str:
        if name not in self.table_names:
            hint = did_you_mean(name, self.table_names)
            raise UserError(
                f"{self.directory}: has no table {name!r}.{hint}  ({', '.join(self.table_names)})"
            )
        return name

    @functools.cached_property
    def plan(self) -> dict[str, Any]:
        """``plan.json``: suite, layout, and the list of cells."""
        plan, path = self._files.json("plan.json"), self.directory / "plan.json"
        if not {"suite", "layout", "cells"} <= plan.keys():
            raise UserError(f"{path}: has no suite, layout and cells; {REWRITE}")
        try:
            for entry in plan["cells"]:
                _cell(entry)
            _layout(plan["layout"])
            dict(plan.get("summaries", {}))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path}: cannot be read ({type(error).__name__}: {error}); {REWRITE}") from None
        return plan

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """``config.yaml`` as resolved."""
        path = self.directory / "config.yaml"
        text = self._files.text("config.yaml")
        root = compose(text, lambda line: f"{path}:{line}")
        config = None if root is None else plain(root)
        if not isinstance(config, dict):
            raise UserError(f"{path}: cannot be read (not a mapping); {REWRITE}")
        return config

    def read_json(self, name: str) -> dict[str, Any]:
        """A file of the run that holds a JSON object.

        Raises:
            UserError: when it is missing, or not as the run wrote it.
        """
        return self._files.json(name)

    @functools.cached_property
    def environment(self) -> dict[str, Any]:
        """``environment.json``: versions, platform, hardware, seeds."""
        return self._files.json("environment.json")

    @property
    def suite(self) -> str:
        return str(self.plan["suite"])

    @property
    def data(self) -> str:
        """A few words on the data: "debian-python (1,685 packages, ...) · 100 users"; empty before the run's end."""
        return str(self.plan.get("data", ""))

    def summaries(self, kind: str) -> Mapping[str, Mapping[str, Any]]:
        """The summaries of the stages of a kind ("data", "model", "statements") by their labels; "signatures": what
        determines numbers in addition to the options, by stage. Empty for earlier runs, and before the run's end."""
        found: Mapping[str, Mapping[str, Any]] = self.plan.get("summaries", {}).get(kind, {})
        return found

    @property
    def layout(self) -> TableLayout:
        return _layout(self.plan["layout"])

    @functools.cached_property
    def _cells(self) -> tuple[RunCell, ...]:
        return tuple(_cell(entry) for entry in self.plan["cells"])

    def cells(self, status: str | None = None) -> list[RunCell]:
        """All cells in the order of the plan, or those with one status."""
        return [cell for cell in self._cells if status in (None, cell.status)]

    @property
    def columns(self) -> list[Column]:
        """What is measured, each name once, in the order of the plan."""
        return list({column.name: column for cell in self._cells for column in cell.columns}.values())

    @property
    def exit_code(self) -> int:
        """0: all went well; 1: some cells failed; 2: the data cannot be read; 3: there was nothing to run."""
        if self.plan.get("wrong_input"):
            return 2
        if all(cell.status == "skipped" for cell in self._cells):
            return 3
        return int(any(cell.problem for cell in self._cells))

    # Tables

    @functools.cached_property
    def scores(self) -> pd.DataFrame:
        """Long: cell, labels, metric, unit, value, status and the suite's own columns."""
        return self._files.parquet("scores.parquet", _SCORES, self._attempted)

    @functools.cached_property
    def explanations(self) -> pd.DataFrame:
        """The explanations, in the suite's own columns."""
        return self._files.parquet("explanations.parquet", ("cell", "unit"), self._any_result)

    def explanations_of(self, cell: str) -> pd.DataFrame:
        """The explanations of one cell. Reads no more than that, where the whole is large."""
        if self._small_explanations is not None:
            from pyarrow import compute

            whole = self._small_explanations
            frame: pd.DataFrame = whole.filter(compute.equal(whole["cell"], cell)).to_pandas()
            return frame
        return self._files.parquet(
            "explanations.parquet", ("cell", "unit"), self._any_result, filters=[("cell", "==", cell)]
        )

    @functools.cached_property
    def _small_explanations(self) -> pa.Table | None:
        """All explanations, read once for all cells; None where there are none, or too many."""
        path = self._files.verified("explanations.parquet")
        if not path.exists() or path.stat().st_size > _SMALL:
            return None
        whole = self._files.arrow("explanations.parquet")
        return whole if {"cell", "unit"} <= {*whole.column_names} else None

    @functools.cached_property
    def costs(self) -> pd.DataFrame:
        """cell, unit, elapsed_seconds: wall time of explaining alone."""
        return self._files.parquet("costs.parquet", ("cell", "unit", "elapsed_seconds"), self._any_result)

    @functools.cached_property
    def details(self) -> pd.DataFrame:
        """cell, unit, name, value: details of single explanations; empty if there are none."""
        return self._files.parquet("details.parquet", ("cell", "unit", "name", "value"), expected=False)

    def rows(self, name: str, **wanted: Sequence[str]) -> pd.DataFrame:
        """The rows of a table whose columns hold one of the values ``wanted`` of each; reads no others."""
        filters = [(column, "in", list(values)) for column, values in wanted.items()]
        columns = _SCORES if name == "scores.parquet" else ("cell", "unit")
        return self._files.parquet(name, columns, expected=False, filters=filters)

    def batches(
        self,
        name: str,
        columns: Sequence[str],
        cells: Sequence[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Iterator[pd.DataFrame]:
        """Some columns of a table, of these cells and metrics only (all of them if None), a part at a time."""
        return self._files.batches(name, columns, cells, metrics)

    def table(self, name: str) -> pd.DataFrame:
        """One of the further tables that the suite's layout names: cell, labels, unit and its own columns."""
        return self._files.parquet(name, ("cell", "unit"), expected=False)

    @functools.cached_property
    def quality(self) -> pd.DataFrame:
        """dataset, model, metric, value, n, ci_low, ci_high: the models' quality on held-out data.

        n is on how many users (rows, texts) a value was measured, the interval has a level of 95%; NaN where the suite
        does not report them.
        """
        return self._files.csv("quality.csv", ("dataset", "model", "metric", *FIELDS))

    def quality_of(self, dataset: object, model: object) -> dict[str, Quality]:
        """The quality of one model, by metric; empty if none was reported."""
        return self._qualities.get((str(dataset), str(model)), {})

    @functools.cached_property
    def _qualities(self) -> dict[tuple[str, str], dict[str, Quality]]:
        found: dict[tuple[str, str], dict[str, Quality]] = {}
        for row in self.quality.to_dict("records"):
            found.setdefault((row["dataset"], row["model"]), {})[row["metric"]] = Quality.of(row)
        return found

    @functools.cached_property
    def outcomes(self) -> list[dict[str, Any]]:
        """The lines of ``outcomes.jsonl``: key, stage, kind, status, elapsed_seconds, peak_memory_bytes, ... of each
        task, in the order in which they ended. A resumed run has some twice; the half line
        that a kill left behind, and lines that were damaged before the run resumed, are not there."""
        found = []
        for line in self._files.text("outcomes.jsonl", errors="replace").splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(line))
        return [line for line in found if _is_outcome(line)]

    @functools.cached_property
    def summary(self) -> pd.DataFrame:
        """``summary.csv``; computed where the file does not exist yet."""
        if self._files.verified("summary.csv").exists():
            return self._files.csv("summary.csv", ("cell", "metric", *SUMMARY))
        return summarise(self.cells(), self.unit_values)

    @functools.cached_property
    def unit_values(self) -> Mapping[str, UnitValues]:
        """Each cell's scores and times as a matrix (units, metrics and "time")."""
        from cfbench_core.statistics import unit_values

        cluster = self._cluster
        self._files.parquet(
            "costs.parquet", ("cell", "unit", "elapsed_seconds"), self._any_result, rows=False
        )
        columns = ["cell", "metric", "unit", "value", *cluster]
        costs = self._files.batches("costs.parquet", ["cell", "unit", "elapsed_seconds"])
        times = (part.rename(columns={"elapsed_seconds": "value"}).assign(metric=TIME.name) for part in costs)
        return unit_values(self.batches("scores.parquet", columns), next(iter(cluster), None), times)

    @functools.cached_property
    def detail_values(self) -> Mapping[str, UnitValues]:
        """What explainers reported about their answers, of each cell as a matrix (units, names)."""
        from cfbench_core.statistics import unit_values

        return unit_values(self.details.rename(columns={"name": "metric"}))

    @functools.cached_property
    def _score_columns(self) -> list[str]:
        """What the table of scores has; nothing where no cell could have written to it."""
        return list(self._files.parquet("scores.parquet", _SCORES, self._attempted, rows=False).columns)

    @property
    def _attempted(self) -> bool:
        return any(cell.status not in ("skipped", "planned") for cell in self._cells)

    @property
    def _any_result(self) -> bool:
        return any(cell.done or cell.status == "partial" for cell in self._cells)

    @property
    def _cluster(self) -> list[str]:
        """The column of the scores that says which units belong together, if there is one: the layout names
        it."""
        named = self.plan["layout"].get("cluster")
        return [named] if named and named in self._score_columns else []


def _layout(entry: Mapping[str, Any]) -> TableLayout:
    return TableLayout(
        tuple(entry["by"]),
        entry["row"],
        entry.get("cluster", ""),
        tuple(entry.get("unit_columns", ())),
        dict(entry.get("tables", {})),
        dict(entry.get("label_formats", {})),
        tuple(entry.get("primary", ())),
    )


def _is_outcome(line: object) -> bool:
    return (
        isinstance(line, dict)
        and all(isinstance(line.get(name), str) for name in ("key", "kind", "status"))
        and all(isinstance(line.get(name), (int, float)) for name in ("elapsed_seconds", "peak_memory_bytes"))
    )


def _range(bounds: Sequence[float | None] | None) -> tuple[float, float] | None:
    """The range of a column, of which an infinite bound is stored as null."""
    if bounds is None:
        return None
    low, high = bounds
    return -math.inf if low is None else low, math.inf if high is None else high


def _cell(entry: Mapping[str, Any]) -> RunCell:
    return RunCell(
        id=entry["cell"],
        labels={key: value for key, value in entry.items() if key not in _NOT_LABELS},
        role=entry["role"],
        status=entry["status"],
        reason=entry["reason"],
        columns=tuple(
            Column(
                metric["name"],
                metric["direction"],
                _range(metric["range"]),
                metric["question"],
                str(metric.get("note", "")),
                bool(metric.get("doubtful", False)),
                bool(metric.get("required", False)),
            )
            for metric in entry["metrics"]
        ),
    )


def write_summary(run: Run) -> Path:
    """Writes ``summary.csv``, ten significant digits, and returns its path."""
    from cfbench_core.csv_cells import protected_frame
    from cfbench_core.files import write_atomically

    path = run.directory / "summary.csv"
    frame = summarise(run.cells(), run.unit_values)
    text = protected_frame(frame).to_csv(index=False, float_format="%.10g", lineterminator="\n")
    write_atomically(path, text)
    run.__dict__.pop("summary", None)  # what was read before is read anew
    return path
