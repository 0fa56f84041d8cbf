"""What the viewer shows of runs, as JSON: the overview, the tables, the units of a cell, one unit, two runs.

Numbers are those of :mod:`cfbench_core.reports.tables` and of :class:`~cfbench_core.run_directory.Run`; nothing is computed
twice. A cell's units are read when they are first shown, and the last cells stay in memory.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.plan import TIME
from cfbench_core.reports.labels import label_texts
from cfbench_core.reports.table_data import LEGEND, Table, outcome_words
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.view.blocks import to_json
from cfbench_core.view.progress import is_running
from cfbench_core.view.unit_tables import TIME_COLUMN, histogram, most_edited, wide
from cfbench_core.view.viewers import UnitData, Viewer, viewer_of

if TYPE_CHECKING:
    import pandas as pd

CACHED_CELLS = 32
MOST_ROWS = 500
"""Rows of a page at most."""
_UNIT_FILES = ("scores.parquet", "explanations.parquet", "costs.parquet", "details.parquet")


class RunView:
    """One run as the viewer shows it. Its methods may be called from several threads."""

    def __init__(self, run: Run, viewer: Viewer | None = None) -> None:
        self.run = run
        self.viewer = viewer or viewer_of(run.suite)
        self._lock, self._significance = threading.Lock(), threading.Lock()
        self._units: dict[str, pd.DataFrame] = {}
        self._most_edited: dict[str, dict[str, Any] | None] = {}

    @functools.cached_property
    def tables(self) -> list[Table]:
        """With who leads each column, which takes a while for a large run."""
        from cfbench_core.reports.tables import tables

        with self._significance:
            return self.__dict__.get("tables") or tables(self.run)

    @functools.cached_property
    def plain_tables(self) -> list[Table]:
        """The same numbers at once, without significance."""
        from cfbench_core.reports.tables import tables

        return tables(self.run, significance=False)

    @functools.cached_property
    def groups(self) -> list[list[RunCell]]:
        """The cells of each table, in the order of :attr:`tables`."""
        groups: dict[tuple[str | int, ...], list[RunCell]] = {}
        for cell in self.run.cells():
            groups.setdefault(tuple(cell.labels[name] for name in self.run.layout.by), []).append(cell)
        return list(groups.values())

    @functools.cached_property
    def places(self) -> dict[str, int]:
        """The number of each cell in the plan, which names it in addresses."""
        return {cell.id: place for place, cell in enumerate(self.run.cells())}

    # The overview and the tables

    def heading(self) -> dict[str, Any]:
        """What a list of runs says of it."""
        run, statuses = self.run, [cell.status for cell in self.run.cells()]
        seed = run.config.get("seed")
        return {
            "name": run.directory.resolve().name,
            "suite": run.suite,
            "data": run.data,
            "seed": seed,
            "statuses": {outcome_words(name): statuses.count(name) for name in dict.fromkeys(statuses)},
            "labels": self._label_values(),
            "running": is_running(run),
        }

    def overview(self, significance: bool = True) -> dict[str, Any]:
        """All tables: the numbers of the report, and with ``significance`` who leads each column."""
        tables = self.tables if significance else self.plain_tables
        shown = [self._table(number, table) for number, table in enumerate(tables)]
        return to_json(  # type: ignore[no-any-return]
            {
                **self.heading(),
                "row": self.run.layout.row,
                "legend": LEGEND,
                "significance": significance,
                "tables": shown,
            }
        )

    def _label_values(self) -> dict[str, list[Any]]:
        names = dict.fromkeys(name for cell in self.run.cells() for name in cell.labels)
        values = {
            n: list(dict.fromkeys(c.labels[n] for c in self.run.cells() if n in c.labels)) for n in names
        }
        return {name: found for name, found in values.items() if len(found) > 1}

    def _table(self, number: int, table: Table) -> dict[str, Any]:
        from cfbench_core.reports.tables import row_names

        cells = self.groups[number]
        places = {
            name: self.places[cell.id] for name, cell in zip(row_names(self.run, cells), cells, strict=True)
        }
        return {
            "number": number,
            "title": table.title or ", ".join(table.label_texts),
            "labels": table.labels,
            "texts": table.label_texts,
            "notes": table.notes,
            "primary": None if table.primary is None else table.headers[table.primary].column.name,
            "quality": {name: one.value for name, one in table.quality.items()},
            "columns": [
                {
                    "metric": header.column.name,
                    "name": header.name,
                    "direction": header.column.direction,
                    "question": header.column.question,
                    "shown": place in table.shown,
                }
                for place, header in enumerate(table.headers)
            ],
            "rows": [
                {
                    "name": row.name,
                    "role": row.role,
                    "status": outcome_words(row.status),
                    "outcome": row.outcome,
                    "cell": places[row.name],
                    "entries": [
                        {
                            "text": entry.text,
                            "mean": entry.number.mean,
                            "low": entry.number.ci_low,
                            "high": entry.number.ci_high,
                            "coverage": entry.detail,
                            "order": entry.order_in(header),
                            "emphasis": entry.emphasis,
                        }
                        for entry, header in zip(row.entries, table.headers, strict=True)
                    ],
                }
                for row in table.rows
                if row.status != "skipped"
            ],
        }

    def chart(self, number: int, metric: str) -> str:
        """The dot plot of a metric as SVG; empty where there is nothing to show."""
        from cfbench_core.reports.plots import dot_plot

        table = self._numbered(self.plain_tables, number, "table")
        places = [place for place, header in enumerate(table.headers) if header.column.name == metric]
        return dot_plot(table, places[0]) if places else ""

    # The units of a cell

    def units(
        self,
        number: int,
        sort: str = "",
        descending: bool = False,
        search: str = "",
        page: int = 0,
        size: int = 50,
    ) -> dict[str, Any]:
        """One page of a cell's units with their scores, and how each metric is distributed over all of them.

        Raises:
            UserError: for a cell or a column that does not exist.
        """
        cell = self._numbered(self.run.cells(), number, "cell")
        frame = self._frame(cell)
        found = frame
        if search:
            texts = [frame[name].astype(str) for name in frame.columns if name not in self._metrics(frame)]
            hits = np.logical_or.reduce(
                [text.str.contains(search, case=False, regex=False) for text in texts]
            )
            found = frame[hits]
        if sort:
            if sort not in frame:
                raise UserError(f"no column {sort!r}.{did_you_mean(sort, map(str, frame.columns))}")
            found = found.sort_values(sort, ascending=not descending, kind="stable", na_position="last")
        page, size = max(0, page), max(1, min(size, MOST_ROWS))
        shown = self._units_page(number, cell, frame, found.iloc[page * size : (page + 1) * size])
        return {**shown, "total": len(found), "page": page, "size": size}

    def all_units(self, number: int) -> dict[str, Any]:
        """All units of a cell, for a bundle."""
        cell = self._numbered(self.run.cells(), number, "cell")
        frame = self._frame(cell)
        return self._units_page(number, cell, frame, frame)

    def _units_page(
        self, number: int, cell: RunCell, frame: pd.DataFrame, rows: pd.DataFrame
    ) -> dict[str, Any]:
        return to_json(  # type: ignore[no-any-return]
            {
                **self.cell_heading(number),
                "columns": self._columns(cell, frame),
                "rows": [_plain(row) for row in rows.itertuples(index=False)],
                "all": len(frame),
                "edited": self._edited(cell),
                "distributions": {name: histogram(frame[name]) for name in self._metrics(frame)},
            }
        )

    def cell_heading(self, number: int) -> dict[str, Any]:
        cell = self._numbered(self.run.cells(), number, "cell")
        table = next(place for place, cells in enumerate(self.groups) if cell in cells)
        labels = {name: cell.labels[name] for name in self.run.layout.by}
        return {
            "cell": number,
            "table": table,
            "name": cell.labels[self.run.layout.row],
            "role": cell.role,
            "texts": label_texts(labels, self.run.layout.label_formats),
            "status": outcome_words(cell.status),
            "reason": cell.reason,
        }

    def _metrics(self, frame: pd.DataFrame) -> list[str]:
        return [str(name) for name in frame.columns if frame.attrs["metrics"].get(name)]

    def _columns(self, cell: RunCell, frame: pd.DataFrame) -> list[dict[str, Any]]:
        known = {**{column.name: column for column in cell.columns}, TIME_COLUMN: TIME}
        found = []
        for name in map(str, frame.columns):
            column = known.get(name)
            found.append(
                {
                    "name": name,
                    "metric": name in self._metrics(frame),
                    "direction": column.direction if column else "",
                    "question": column.question if column else "",
                }
            )
        return found

    def _edited(self, cell: RunCell) -> dict[str, Any] | None:
        """What the answers of a cell edit most often; None where its explanations do not say."""
        name = getattr(self.viewer, "edited", "")
        if name and cell.id not in self._most_edited:
            self._most_edited[cell.id] = most_edited(self.run, cell, name)
        return self._most_edited.get(cell.id)

    def _frame(self, cell: RunCell) -> pd.DataFrame:
        """The units of a cell: unit, the suite's columns, each metric, and the time in seconds."""
        with self._lock:
            if cell.id not in self._units:
                frame = wide(self.run, cell)
                while len(self._units) >= CACHED_CELLS:
                    self._units.pop(next(iter(self._units)))
                self._units[cell.id] = frame
            return self._units[cell.id]

    # Where explainers disagree

    def disagreement(self, number: int, metric: str, page: int = 0, size: int = 50) -> dict[str, Any]:
        """The units of a table by how far the competing explainers' values of a metric lie apart, farthest first."""
        import pandas as pd

        cells = [c for c in self._numbered(self.groups, number, "table") if not c.role and c.done]
        metric = TIME_COLUMN if metric == TIME.name else metric
        frames = {str(cell.labels[self.run.layout.row]): self._frame(cell) for cell in cells}
        columns = {name: frame.set_index("unit")[metric] for name, frame in frames.items() if metric in frame}
        table = pd.DataFrame(columns)
        spread = (table.max(axis=1) - table.min(axis=1)).where(table.notna().sum(axis=1) > 1)
        order = spread.sort_values(ascending=False, kind="stable", na_position="last").index
        shown = order[page * size : (page + 1) * size]
        return to_json(  # type: ignore[no-any-return]
            {
                "table": number,
                "metric": metric,
                "explainers": list(columns),
                "rows": [
                    {"unit": str(unit), "spread": float(spread[unit]), "values": table.loc[unit].tolist()}
                    for unit in shown
                ],
                "total": len(table),
                "page": page,
                "size": size,
            }
        )

    # One unit

    def unit(self, number: int, unit: str) -> dict[str, Any]:
        """The page of a unit: its scores by explainer, the suite's blocks, and the units before and after it."""
        return self.pages(number, [unit])[unit]

    def pages(self, number: int, units: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The pages of several units; each table of the run is read once."""
        return {data.unit: self._page(number, data) for data in self._units_data(number, units)}

    def _page(self, number: int, data: UnitData) -> dict[str, Any]:
        unit, columns = data.unit, {c.name: c for cell in data.cells for c in cell.columns}
        units = [str(one) for one in self._frame(data.cells[0])["unit"]] if data.cells else []
        place = units.index(unit) if unit in units else -1
        return to_json(  # type: ignore[no-any-return]
            {
                "table": number,
                "unit": unit,
                "row": self.run.layout.row,
                "texts": self._numbered(self.plain_tables, number, "table").label_texts,
                "before": units[place - 1] if place > 0 else None,
                "after": units[place + 1] if 0 <= place < len(units) - 1 else None,
                "columns": [
                    {"name": c.name, "direction": c.direction, "question": c.question}
                    for c in columns.values()
                ],
                "rows": [
                    {
                        "name": data.name(cell),
                        "role": cell.role,
                        "cell": self.places[cell.id],
                        "values": [data.scores[cell.id].get(name) for name in columns],
                        "seconds": data.seconds.get(cell.id),
                        "details": data.details[cell.id],
                    }
                    for cell in data.cells
                ],
                "blocks": list(self.viewer.unit(data)),
                "live": type(self.viewer).__name__ != "PlainViewer",
            }
        )

    def unit_data(self, number: int, unit: str) -> UnitData:
        """All that the run says of one unit in one table.

        Raises:
            UserError: if no cell of the table explained it.
        """
        return next(self._units_data(number, [unit]))

    def _units_data(self, number: int, units: Sequence[str]) -> Iterator[UnitData]:
        table = self._numbered(self.plain_tables, number, "table")
        order = {row.name: place for place, row in enumerate(table.rows)}
        row = self.run.layout.row
        cells = [cell for cell in self.groups[number] if cell.done or cell.status == "partial"]
        cells.sort(key=lambda cell: order.get(str(cell.labels[row]), len(order)))
        ids = [cell.id for cell in cells]
        scores, explanations, costs, details = (
            _Parts(self.run.rows(file, cell=ids, unit=list(units)), "unit") for file in _UNIT_FILES
        )
        for unit in units:
            if scores[unit].empty:
                raise UserError(f"{unit!r} was not explained in table {number} of {self.run.directory}")
            answers = _Parts(explanations[unit], "cell")
            measured = _Parts(scores[unit][scores[unit]["value"].notna()], "cell")
            described = _Parts(details[unit], "cell")
            yield UnitData(
                self.run,
                unit,
                table.labels,
                cells,
                {id: answers[id] for id in ids},
                {id: _mapping(measured[id], "metric", "value") for id in ids},
                {id: _mapping(described[id], "name", "value") for id in ids},
                _mapping(costs[unit], "cell", "elapsed_seconds"),
            )

    @staticmethod
    def _numbered(items: Sequence[Any], number: int, kind: str) -> Any:
        if not 0 <= number < len(items):
            raise UserError(f"no {kind} {number}: there are {len(items)}, from 0")
        return items[number]


def comparison(first: Run, second: Run) -> dict[str, Any]:
    """Two runs, cell by cell, as ``cfbench compare`` computes them."""
    from cfbench_core.comparison import compare

    found = compare(first, second)
    return to_json(  # type: ignore[no-any-return]
        {
            "first": first.directory.resolve().name,
            "second": second.directory.resolve().name,
            "differences": found.differences,
            "config": found.config,
            "outcomes": found.outcomes,
            "only_first": found.only_first,
            "only_second": found.only_second,
        }
    )


def _plain(row: Sequence[Any]) -> list[Any]:
    """Values as JSON has them."""
    convert: Callable[[Any], Any] = lambda value: value.item() if hasattr(value, "item") else value  # noqa: E731
    return [None if value is None or value != value else convert(value) for value in _without_na(row)]


def _without_na(row: Sequence[Any]) -> list[Any]:
    import pandas as pd

    return [None if value is pd.NA else value for value in row]


def _mapping(frame: pd.DataFrame, key: str, value: str) -> Mapping[str, float]:
    """Empty for an empty frame, which need not have the columns."""
    if frame.empty:
        return {}
    return {str(name): float(number) for name, number in zip(frame[key], frame[value], strict=True)}


class _Parts:
    """The rows of a frame by the value of a column; none where no row has it."""

    def __init__(self, frame: pd.DataFrame, column: str) -> None:
        self._none = frame.iloc[:0]
        self._parts = {str(value): part for value, part in frame.groupby(column, sort=False)}

    def __getitem__(self, value: str) -> pd.DataFrame:
        return self._parts.get(value, self._none)
