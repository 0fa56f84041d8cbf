"""Builds the tables of a run as data.

One table for each group of cells that the suite's layout names, one row for each explainer, one column for
each metric and a last one for the time of one explanation. ``winners.py`` decides who wins a column and who is tied
with the winner; ``columns.py`` which columns a note replaces.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.primary_metric import primary_place
from cfbench_core.reports.columns import in_doubt, repeated
from cfbench_core.reports.labels import label_texts
from cfbench_core.reports.saved import saved_tables
from cfbench_core.reports.table_data import (
    Aside,
    Effect,
    Emphasis,
    Entry,
    Header,
    Lead,
    Number,
    Row,
    Table,
    decimals_of,
    outcome_words,
)
from cfbench_core.reports.winners import Advantage, Verdict, required_only, verdicts
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.statistics import align, rank_agreement

if TYPE_CHECKING:
    import pandas as pd

_ORDER = {"": 0, "certified": 1, "reference": 2, "baseline": 3}


def tables(run: Run, significance: bool = True) -> list[Table]:
    """All tables of a run, in the order of the plan. Computed once for a run, and not at all where they are saved.

    Without ``significance``, tables that are not saved are read from ``summary.csv`` alone: nobody leads a column.
    """
    if run not in _known:
        found = saved_tables(run)
        if found is None and not significance:
            return built(run, significance=False)
        _known[run] = built(run) if found is None else found
    return list(_known[run])


_known: WeakKeyDictionary[Run, list[Table]] = WeakKeyDictionary()


def built(run: Run, significance: bool = True) -> list[Table]:
    """The tables, computed from the scores."""
    groups: dict[tuple[str | int, ...], list[RunCell]] = {}
    for cell in run.cells():
        groups.setdefault(tuple(cell.labels[name] for name in run.layout.by), []).append(cell)
    summary = _numbers(run.summary)
    titled = _titled(run.layout.by, list(groups))
    return [_Builder(run, cells, summary, titled, significance).table() for cells in groups.values()]


def _titled(by: Sequence[str], groups: Sequence[tuple[str | int, ...]]) -> list[str]:
    """The labels that make a title: not the first (the data set's) where all tables share it."""
    shared = len(groups) > 1 and len({group[0] for group in groups}) == 1
    return list(by)[1:] if shared else list(by)


def _numbers(summary: pd.DataFrame) -> dict[tuple[str, str], Number]:
    columns = ["cell", "metric", "mean", "ci_low", "ci_high", "n", "n_missing"]
    return {
        (cell, metric): Number(mean, low, high, int(n), int(n) + int(missing))
        for cell, metric, mean, low, high, n, missing in summary[columns].itertuples(index=False)
    }


class _Builder:
    """One table of one group of cells."""

    def __init__(
        self,
        run: Run,
        cells: Sequence[RunCell],
        summary: Mapping[tuple[str, str], Number],
        titled: Sequence[str],
        significance: bool,
    ) -> None:
        self.run = run
        self.labels = {name: cells[0].labels[name] for name in run.layout.by}
        self.title = " · ".join(self._texts(titled))
        self.names = dict(zip([cell.id for cell in cells], row_names(run, cells), strict=True))
        self._unit_values = run.unit_values if significance else {}
        self.headers = tuple(self._headers(cells, summary))
        self.numbers = {
            cell.id: [_scaled(summary.get((cell.id, h.column.name), Number()), h.scale) for h in self.headers]
            for cell in cells
        }
        place = primary_place([header.column for header in self.headers], run.layout.primary)
        self.primary = None if place is None or self.headers[place].column is TIME else place
        self.cells = sorted(cells, key=self._place)
        measured = [cell for cell in self.cells if cell.id in self._unit_values]
        competitors = [cell for cell in measured if not cell.role and cell.done]
        self.compared = [*competitors, *(cell for cell in measured if cell.role == "baseline")]
        self.places = {cell.id: place for place, cell in enumerate(self.compared)}

    def _texts(self, names: Iterable[str]) -> list[str]:
        return label_texts({name: self.labels[name] for name in names}, self.run.layout.label_formats)

    def _headers(
        self, cells: Sequence[RunCell], summary: Mapping[tuple[str, str], Number]
    ) -> Iterator[Header]:
        measured = [self._unit_values[cell.id] for cell in cells if cell.id in self._unit_values]
        for column in {c.name: c for cell in cells for c in cell.columns}.values():
            yield Header(in_doubt(column, measured))
        seconds = [summary[cell.id, TIME.name].mean for cell in cells if (cell.id, TIME.name) in summary]
        seconds = [value for value in seconds if not math.isnan(value)]
        if seconds:
            yield Header(TIME, "ms", 1000.0)

    def _place(self, cell: RunCell) -> tuple[int, bool, bool, list[float], str]:
        """Competitors, then controls by role; each by the primary metric, the best first (ties by the other metrics), then
        the incomplete, then the rest."""
        compared = [
            (header.arrow, number.mean)
            for place, (header, number) in sorted(
                enumerate(zip(self.headers, self.numbers[cell.id], strict=True)),
                key=lambda numbered: numbered[0] != self.primary,
            )
            if header.compared
        ] or [("↓", number.mean) for number in self.numbers[cell.id][:1]]
        costs = [
            math.inf if math.isnan(mean) else -mean if arrow == "↑" else mean for arrow, mean in compared
        ]
        missing = not costs or math.isinf(costs[0])
        return _ORDER.get(cell.role, 0), missing, not cell.done, [] if missing else costs, self.names[cell.id]

    def table(self) -> Table:
        decimals = [self._decimals(place) for place in range(len(self.headers))]
        found = self._verdicts()
        self._reorder(found)
        rows = tuple(self._row(cell, decimals, found) for cell in self.cells)
        measured = [[entry.number for entry in row.entries] for row in rows if not row.outcome]
        hidden = repeated([header.column for header in self.headers], measured)
        shown = tuple(place for place in range(len(self.headers)) if place not in hidden)
        leads = tuple(
            self._lead(place, found[place], decimals[place], self._agreement(rows, place))
            for place in shown
            if found[place].tied
        )
        asides = tuple(
            Aside(
                self.headers[place],
                None if like is None else self.headers[like],
                _brief(measured[0][place], decimals[place]),
            )
            for place, like in hidden.items()
        )
        return Table(
            labels=self.labels,
            label_texts=tuple(self._texts(self.labels)),
            row_label=self.run.layout.row,
            title=self.title,
            quality=self.run.quality_of(self.labels.get("dataset"), self.labels.get("model")),
            headers=self.headers,
            rows=rows,
            leads=leads,
            shown=shown,
            asides=asides,
            primary=self.primary,
        )

    def _reorder(self, found: Sequence[Verdict]) -> None:
        """Competitors with results in the order of the primary column's ranks, where ranks decide it."""
        ranks = () if self.primary is None else found[self.primary].ranks
        if ranks:
            at = [n for n, cell in enumerate(self.cells) if not cell.role and cell.id in self.places]
            ordered = sorted((self.cells[n] for n in at), key=lambda cell: ranks[self.places[cell.id]])
            for n, cell in zip(at, ordered, strict=True):
                self.cells[n] = cell

    def _agreement(self, rows: Sequence[Row], place: int) -> float:
        """Kendall's tau of the order of the complete competitors by a column and by the primary one."""
        if self.primary is None:
            return math.nan
        headers, competing = self.headers, [row for row in rows if not row.role and not row.outcome]
        pairs = [
            [row.entries[at].order_in(headers[at]) for at in (self.primary, place)]
            for row in competing
            if row.status != "partial"
        ]
        known = [pair for pair in pairs if not any(map(math.isnan, pair))]
        if len(known) < 3:
            return math.nan
        first, second = zip(*known, strict=True)
        same = headers[self.primary].column.direction == headers[place].column.direction
        tau = rank_agreement(first, second)
        return tau if same else -tau

    def _effect(self, advantage: Advantage | None, ranked: bool) -> Effect | None:
        if advantage is None:
            return None
        over = self.names[self.compared[advantage.over].id]
        return Effect(over, advantage.value, advantage.low, advantage.high, ranked)

    def _lead(self, place: int, verdict: Verdict, decimals: int | None, agreement: float) -> Lead:
        names = [self.names[cell.id] for cell in self.compared]
        best = self.compared[verdict.tied[0]]
        measured = [cell for cell in self.cells if not cell.role and self.numbers[cell.id][place].n]
        return Lead(
            self.headers[place],
            tuple(names[i] for i in verdict.tied),
            _text(self.numbers[best.id][place], decimals),
            tuple(self.names[cell.id] for cell in measured),
            tuple(names[i] for i in verdict.not_beaten),
            self._effect(verdict.over_next, bool(verdict.ranks)),
            self._effect(verdict.over_baseline, bool(verdict.ranks)),
            agreement,
        )

    def _decimals(self, place: int) -> int | None:
        """As many as the column's typical uncertainty justifies; times span decades: None, each its own."""
        if self.headers[place].column is TIME:
            return None
        return _decimals([self.numbers[cell.id][place].half_width for cell in self.cells])

    def _row(self, cell: RunCell, decimals: Sequence[int | None], found: Sequence[Verdict]) -> Row:
        at = self.places.get(cell.id, -1)
        missing = "–" if cell.done or cell.status == "partial" else outcome_words(cell.status)
        entries = []
        for number, places, verdict in zip(self.numbers[cell.id], decimals, found, strict=True):
            emphasis: Emphasis = "best" if at in verdict.tied else "second" if at == verdict.second else ""
            rank = verdict.ranks[at] if verdict.ranks and at >= 0 else math.nan
            entries.append(Entry(_text(number, places) if number.n else missing, number, emphasis, rank))
        return Row(self.names[cell.id], cell.role, cell.status, cell.reason, tuple(entries))

    def _verdicts(self) -> list[Verdict]:
        """Who wins each column, as places in ``self.compared``."""
        columns = [header.column for header in self.headers]
        if not self.compared:
            return [Verdict()] * len(columns)
        cells = [self.run.unit_values[cell.id] for cell in self.compared]
        _, clusters, values = align(cells, [column.name for column in columns])
        values = required_only(values, [column.required for column in columns], [c is TIME for c in columns])
        competitors = sum(1 for cell in self.compared if not cell.role)
        return verdicts(values, [column.direction for column in columns], competitors, clusters)


def row_names(run: Run, cells: Sequence[RunCell]) -> list[str]:
    """The label that the layout names; where that is not unique, with what else distinguishes the cells."""
    others = [name for name in cells[0].labels if name not in (*run.layout.by, run.layout.row)]
    others = [name for name in others if len({cell.labels.get(name) for cell in cells}) > 1]
    return [
        ", ".join(
            [
                str(cell.labels[run.layout.row]),
                *label_texts(
                    {n: cell.labels[n] for n in others if n in cell.labels}, run.layout.label_formats
                ),
            ]
        )
        for cell in cells
    ]


def _scaled(number: Number, scale: float) -> Number:
    return number._replace(
        mean=number.mean * scale, ci_low=number.ci_low * scale, ci_high=number.ci_high * scale
    )


def _decimals(half_widths: Sequence[float]) -> int:
    """Two significant digits of the typical half width, three decimals where there is none, five at most."""
    known = [width for width in half_widths if not math.isnan(width)]
    typical = float(np.median(known)) if known else 0.0
    return decimals_of(typical)


def _text(number: Number, decimals: int | None) -> str:
    """``decimals`` None: as many as the number's own uncertainty justifies."""
    if math.isnan(number.half_width):
        return f"{number.mean:.3g}" if decimals is None else f"{number.mean:.{decimals}f}"
    if decimals is None:
        decimals = _decimals([number.half_width])
    return f"{number.mean:.{decimals}f} ± {number.half_width:.{decimals}f}"


def _brief(number: Number, decimals: int | None) -> str:
    """A constant without the interval that it does not have."""
    return _text(number, decimals) if number.half_width else f"{number.mean:g}"
