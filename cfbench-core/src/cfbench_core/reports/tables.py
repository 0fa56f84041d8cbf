"""The tables of a run, as data: what stands in each place, and what is emphasised. Renderers only paint them.

One table for each group of cells that the suite's layout names, one line for each explainer, one column for
each metric and a last one for the time of one explanation. Who wins a column, and
who is level with the winner, is told in ``winners.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.reports.winners import Verdict, verdicts
from cfbench_core.run_directory import TIME, Run, RunCell
from cfbench_core.statistics import align

if TYPE_CHECKING:
    import pandas as pd

Emphasis = Literal["", "best", "second"]

LEGEND = (
    "Mean ± half the width of its 95% interval. Bold: the best explainer, and all whose difference from it "
    "could be chance (95% paired interval: two may differ clearly though their own intervals overlap). "
    "Underlined: the next. Where units lack a value (53 of 150), the best is told by ranks over all units, "
    "a missing value being the last. Bounds and floors do not compete, nor do incomplete cells."
)
_ORDER = {"": 0, "bound": 1, "floor": 2}
_OUTCOMES = {"out_of_memory": "out of memory", "planned": "not run yet"}


class Number(NamedTuple):
    """A mean with its interval, over ``n`` of ``expected`` units."""

    mean: float = math.nan
    ci_low: float = math.nan
    ci_high: float = math.nan
    n: int = 0
    expected: int = 0

    @property
    def half_width(self) -> float:
        return (self.ci_high - self.ci_low) / 2

    @property
    def coverage(self) -> str:
        """ "310 of 500" where units lack a value, else nothing."""
        return f"{self.n:,} of {self.expected:,}" if self.n < self.expected else ""


@dataclass(frozen=True)
class Entry:
    """One place of a table: ``text`` is the mean and its interval, or the outcome in their place."""

    text: str
    number: Number
    emphasis: Emphasis = ""


@dataclass(frozen=True)
class Row:
    """One line. ``outcome`` is empty, or why there are no numbers: "skipped: has no list level"."""

    name: str
    role: str
    status: str
    reason: str
    entries: tuple[Entry, ...]

    @property
    def label(self) -> str:
        return f"{self.name} ({self.role})" if self.role else self.name

    @property
    def outcome(self) -> str:
        if any(entry.number.n for entry in self.entries):
            return ""
        status = outcome_words(self.status)
        return f"{status}: {self.reason}" if self.reason else status


@dataclass(frozen=True)
class Header:
    """A column's head. ``unit`` is that of the numbers shown; ``scale`` what the stored ones were multiplied
    by."""

    column: Column
    unit: str = ""
    scale: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.column.name} ({self.unit})" if self.unit else self.column.name

    @property
    def arrow(self) -> str:
        return {"higher": "↑", "lower": "↓"}.get(self.column.direction, "")

    @property
    def label(self) -> str:
        return f"{self.name} {self.arrow}".rstrip()


@dataclass(frozen=True)
class Lead:
    """Who leads one column.

    Attributes:
        names: the best first, then those level with it.
        text: the best one's mean and interval.
        competitors: all that have a number here, those too that are incomplete and cannot win.
        floors_not_beaten: the floors from which the best cannot be told, or that are better.
    """

    header: Header
    names: tuple[str, ...]
    text: str
    competitors: tuple[str, ...]
    floors_not_beaten: tuple[str, ...] = ()

    @property
    def tells(self) -> bool:
        """Whether the column tells any two competitors apart."""
        return len(self.names) < len(self.competitors)


@dataclass(frozen=True)
class Table:
    """A group of cells side by side.

    Attributes:
        labels: what the cells have in common, as the layout says.
        row_label: what a line is: "explainer".
        title: the part of the labels that tells this table from the others of the run.
        quality: the model's, in words: "HR@10 0.490".
        leads: of each column that has a direction and an eligible competitor.
        notes: outcomes and other things to know, a line each.
    """

    labels: Mapping[str, str | int]
    row_label: str
    title: str
    quality: str
    headers: tuple[Header, ...]
    rows: tuple[Row, ...]
    leads: tuple[Lead, ...]
    notes: tuple[str, ...]

    @property
    def caption(self) -> str:
        """All labels and the quality, for a table that stands alone."""
        return ", ".join(label_words(self.labels)) + (f". Quality: {self.quality}" if self.quality else "")


def outcome_words(status: str) -> str:
    return _OUTCOMES.get(status, status)


def label_words(labels: Mapping[str, str | int]) -> list[str]:
    """["debian-python", "mf", "item level", "k = 5"]: numbers need their name, and so do words that say
    little alone."""
    words = []
    for name, value in labels.items():
        if isinstance(value, int):
            words.append(f"{name} = {value}")
        elif name in ("level", "format", "scope"):
            words.append(f"{value} {name}")
        else:
            words.append(value)
    return words


def tables(run: Run) -> list[Table]:
    """All tables of a run, in the order of the plan."""
    groups: dict[tuple[str | int, ...], list[RunCell]] = {}
    for cell in run.cells():
        groups.setdefault(tuple(cell.labels[name] for name in run.layout.by), []).append(cell)
    summary = _numbers(run.summary)
    varying = [
        name for place, name in enumerate(run.layout.by) if len({group[place] for group in groups}) > 1
    ] or list(run.layout.by[:2])
    return [_Builder(run, cells, summary, varying).table() for cells in groups.values()]


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
        varying: Sequence[str],
    ) -> None:
        self.run = run
        self.labels = {name: cells[0].labels[name] for name in run.layout.by}
        self.title = " · ".join(label_words({name: self.labels[name] for name in varying}))
        self.names = dict(zip([cell.id for cell in cells], _row_names(run, cells), strict=True))
        self.headers = tuple(self._headers(cells, summary))
        self.numbers = {
            cell.id: [_scaled(summary.get((cell.id, h.column.name), Number()), h.scale) for h in self.headers]
            for cell in cells
        }
        self.cells = sorted(cells, key=self._place)
        measured = [cell for cell in self.cells if cell.id in run.unit_values]
        competitors = [cell for cell in measured if not cell.role and cell.done]
        self.compared = [*competitors, *(cell for cell in measured if cell.role == "floor")]

    def _headers(
        self, cells: Sequence[RunCell], summary: Mapping[tuple[str, str], Number]
    ) -> Iterator[Header]:
        yield from (Header(column) for column in {c.name: c for cell in cells for c in cell.columns}.values())
        seconds = [summary[cell.id, TIME.name].mean for cell in cells if (cell.id, TIME.name) in summary]
        seconds = [value for value in seconds if not math.isnan(value)]
        if seconds:
            brief = float(np.median(seconds)) < 1
            yield Header(TIME, "ms" if brief else "s", 1000.0 if brief else 1.0)

    def _place(self, cell: RunCell) -> tuple[int, bool, bool, float, str]:
        """Competitors, bounds, floors; each by the first metric, the best first, then the incomplete, then
        the rest."""
        first = self.numbers[cell.id][0].mean if self.headers else math.nan
        cost = -first if self.headers and self.headers[0].column.direction == "higher" else first
        missing = math.isnan(cost)
        return (
            _ORDER.get(cell.role, 0),
            missing,
            not cell.done,
            0.0 if missing else cost,
            self.names[cell.id],
        )

    def table(self) -> Table:
        decimals = [self._decimals(place) for place in range(len(self.headers))]
        found = self._verdicts()
        rows = tuple(self._row(cell, decimals, found) for cell in self.cells)
        leads = tuple(
            self._lead(place, verdict, decimals[place])
            for place, verdict in enumerate(found)
            if verdict.level
        )
        row_label = self.run.layout.row
        notes = tuple(_notes(rows))
        return Table(self.labels, row_label, self.title, self._quality(), self.headers, rows, leads, notes)

    def _lead(self, place: int, verdict: Verdict, decimals: int | None) -> Lead:
        names = [self.names[cell.id] for cell in self.compared]
        best = self.compared[verdict.level[0]]
        measured = [cell for cell in self.cells if not cell.role and self.numbers[cell.id][place].n]
        return Lead(
            self.headers[place],
            tuple(names[i] for i in verdict.level),
            _text(self.numbers[best.id][place], decimals),
            tuple(self.names[cell.id] for cell in measured),
            tuple(names[i] for i in verdict.not_beaten),
        )

    def _decimals(self, place: int) -> int | None:
        """As many as the column's typical uncertainty justifies; times span decades: None, each its own."""
        if self.headers[place].column is TIME:
            return None
        return _decimals([self.numbers[cell.id][place].half_width for cell in self.cells])

    def _row(self, cell: RunCell, decimals: Sequence[int | None], found: Sequence[Verdict]) -> Row:
        at = self.compared.index(cell) if cell in self.compared else -1
        missing = "–" if cell.done or cell.status == "partial" else outcome_words(cell.status)
        entries = []
        for number, places, verdict in zip(self.numbers[cell.id], decimals, found, strict=True):
            emphasis: Emphasis = "best" if at in verdict.level else "second" if at == verdict.second else ""
            entries.append(Entry(_text(number, places) if number.n else missing, number, emphasis))
        return Row(self.names[cell.id], cell.role, cell.status, cell.reason, tuple(entries))

    def _quality(self) -> str:
        frame = self.run.quality
        here = frame[
            (frame["dataset"] == str(self.labels.get("dataset")))
            & (frame["model"] == str(self.labels.get("model")))
        ]
        return ", ".join(
            f"{metric} {value:.3f}" for metric, value in zip(here["metric"], here["value"], strict=True)
        )

    def _verdicts(self) -> list[Verdict]:
        """Who wins each column, as places in ``self.compared``."""
        columns = [header.column for header in self.headers]
        if not self.compared:
            return [Verdict()] * len(columns)
        cells = [self.run.unit_values[cell.id] for cell in self.compared]
        _, clusters, values = align(cells, [column.name for column in columns])
        competitors = sum(1 for cell in self.compared if not cell.role)
        return verdicts(values, [column.direction for column in columns], competitors, clusters)


def _row_names(run: Run, cells: Sequence[RunCell]) -> list[str]:
    """The label that the layout names; where that is not unique, with what else tells the cells apart."""
    others = [name for name in cells[0].labels if name not in (*run.layout.by, run.layout.row)]
    others = [name for name in others if len({cell.labels.get(name) for cell in cells}) > 1]
    return [
        ", ".join(
            [
                str(cell.labels[run.layout.row]),
                *label_words({n: cell.labels[n] for n in others if n in cell.labels}),
            ]
        )
        for cell in cells
    ]


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        if row.outcome:
            yield f"{row.name}: {row.outcome}"
        elif row.status == "partial":
            yield f"{row.name}: incomplete, {row.reason}"


def _scaled(number: Number, scale: float) -> Number:
    return number._replace(
        mean=number.mean * scale, ci_low=number.ci_low * scale, ci_high=number.ci_high * scale
    )


def _decimals(half_widths: Sequence[float]) -> int:
    """Two significant digits of the typical half width, three decimals where there is none, five at most."""
    known = [width for width in half_widths if width > 0]
    return min(max(1 - math.floor(math.log10(float(np.median(known)))), 0), 5) if known else 3


def _text(number: Number, decimals: int | None) -> str:
    """``decimals`` None: as many as the number's own uncertainty justifies."""
    if math.isnan(number.half_width):
        return f"{number.mean:.3g}" if decimals is None else f"{number.mean:.{decimals}f}"
    if decimals is None:
        decimals = _decimals([number.half_width])
    return f"{number.mean:.{decimals}f} ± {number.half_width:.{decimals}f}"
