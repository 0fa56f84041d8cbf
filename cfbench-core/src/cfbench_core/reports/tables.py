"""The tables of a run, as data: what stands in each place, and what is emphasised. Renderers only paint them.

One table for each group of cells that the suite's layout names, one line for each explainer, one column for
each metric and a last one for the time of one explanation. Who wins a column, and who is level with the winner,
is told in ``winners.py``; which columns are told in a note instead, in ``columns.py``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.reports.columns import repeated
from cfbench_core.reports.winners import Verdict, verdicts
from cfbench_core.run_directory import TIME, Run, RunCell
from cfbench_core.statistics import align

if TYPE_CHECKING:
    import pandas as pd

Emphasis = Literal["", "best", "second"]

LEGEND = (
    "Mean ± half the width of its 95% interval. Bold: the best, and all whose difference from it "
    "could be chance (95% paired interval: two may differ clearly though their own intervals overlap). "
    "Underlined: the next. Where units lack a value (53 of 150), the best is told by ranks over all units, "
    "a missing value being the last. Bounds show what is reachable, floors what is had for nothing; neither "
    "competes, nor do incomplete cells."
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
    """A column's head. ``unit`` is that of times as they are shown; ``scale`` what the stored numbers were
    multiplied by."""

    column: Column
    unit: str = ""
    scale: float = 1.0

    @property
    def name(self) -> str:
        return f"{self.unit} each" if self.unit else self.column.name

    @property
    def arrow(self) -> str:
        return {"higher": "↑", "lower": "↓"}.get(self.column.direction, "")

    @property
    def label(self) -> str:
        return f"{self.name} {self.arrow}".rstrip()

    @property
    def compared(self) -> bool:
        """Whether explainers are compared by it: it has a better direction, and is not the time."""
        return bool(self.arrow) and self.column is not TIME


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
class Aside:
    """A column that is told in a note: it repeats the column ``like``, or has ``text`` in every line (None)."""

    header: Header
    like: Header | None
    text: str


@dataclass(frozen=True)
class Table:
    """A group of cells side by side.

    Attributes:
        labels: what the cells have in common, as the layout says.
        row_label: what a line is: "explainer".
        title: the part of the labels that tells this table from the others of the run.
        quality: the model's, by metric.
        headers: every column; ``shown`` are the places of those that stand in the table.
        rows: every explainer; ``lines`` are those that were to run.
        leads: of each column that is shown, has a direction and an eligible competitor.
        asides: the other columns.
    """

    labels: Mapping[str, str | int]
    row_label: str
    title: str
    quality: Mapping[str, float]
    headers: tuple[Header, ...]
    rows: tuple[Row, ...]
    leads: tuple[Lead, ...]
    shown: tuple[int, ...]
    asides: tuple[Aside, ...]

    @property
    def caption(self) -> str:
        """All labels and the quality, for a table that stands alone."""
        quality = quality_words(self.quality)
        return ", ".join(label_words(self.labels)) + (f". Quality: {quality}" if quality else "")

    @property
    def lines(self) -> list[Row]:
        return [row for row in self.rows if row.status != "skipped"]

    @property
    def problems(self) -> list[str]:
        """What went wrong, a line each: "cosine: failed: ValueError: ..."."""
        return [note for row in self.lines for note in _problem(row)]

    @property
    def absent(self) -> str:
        """What was skipped, and why: "a, b (no list level), c (needs access weights)"; empty when nothing was."""
        reasons: dict[str, list[str]] = {}
        for row in self.rows:
            if row.status == "skipped":
                reasons.setdefault(row.reason.removeprefix(f"{row.name} "), []).append(row.name)
        return ", ".join(f"{', '.join(names)} ({reason})" for reason, names in reasons.items())

    @property
    def remarks(self) -> list[str]:
        """What lines with numbers have to remark: "a, b: 3 of 9 texts were cut", without names if all do."""
        whole = [row for row in self.lines if not row.outcome and row.status != "partial"]
        found: dict[str, list[str]] = {}
        for row in whole:
            if row.reason:
                found.setdefault(row.reason, []).append(row.name)
        return [
            reason if len(names) == len(whole) else f"{', '.join(names)}: {reason}"
            for reason, names in found.items()
        ]

    @property
    def notes(self) -> list[str]:
        """All there is to know beside the numbers, a line each."""
        absent = [f"Not here: {self.absent}"] if self.absent else []
        return [*self.problems, *self.remarks, *absent, *_told_aside(self.asides)]


def outcome_words(status: str) -> str:
    return _OUTCOMES.get(status, status)


def label_words(labels: Mapping[str, str | int]) -> list[str]:
    """["debian-python", "mf", "item level", "top 5", "implicit"]: numbers need their name, and so do words that
    say little alone."""
    words = []
    for name, value in labels.items():
        if isinstance(value, int):
            words.append(f"top {value}" if name == "k" else f"{name} = {value}")
        elif name in ("level", "scope"):
            words.append(f"{value} {name}")
        elif name == "edit":
            words += [] if value == "remove" else ["removals or additions"]  # removals need no mention
        else:
            words.append(value)
    return words


def quality_words(quality: Mapping[str, float], most: int = 2) -> str:
    """The first metrics of a model's quality: "HR@10 0.490, NDCG@10 0.310"."""
    return ", ".join(f"{metric} {value:.3f}" for metric, value in [*quality.items()][:most])


def tables(run: Run) -> list[Table]:
    """All tables of a run, in the order of the plan."""
    groups: dict[tuple[str | int, ...], list[RunCell]] = {}
    for cell in run.cells():
        groups.setdefault(tuple(cell.labels[name] for name in run.layout.by), []).append(cell)
    summary = _numbers(run.summary)
    titled = _titled(run.layout.by, list(groups))
    return [_Builder(run, cells, summary, titled).table() for cells in groups.values()]


def _titled(by: Sequence[str], groups: Sequence[tuple[str | int, ...]]) -> list[str]:
    """The labels that make a title: not the first (the data set's) where all tables share it, and not the last
    where the others tell the tables apart (a scope that follows from the model)."""
    names = list(by)
    if len(groups) > 1 and len({group[0] for group in groups}) == 1:
        names = names[1:]
    if len(by) > 2 and len({group[:-1] for group in groups}) == len(groups):
        names = names[:-1]
    return names


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
    ) -> None:
        self.run = run
        self.labels = {name: cells[0].labels[name] for name in run.layout.by}
        self.title = " · ".join(label_words({name: self.labels[name] for name in titled}))
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

    def _place(self, cell: RunCell) -> tuple[int, bool, bool, list[float], str]:
        """Competitors, bounds, floors; each by the first metric, the best first (the next metrics decide where it is
        equal), then the incomplete, then the rest."""
        compared = [
            (header.arrow, number.mean)
            for header, number in zip(self.headers, self.numbers[cell.id], strict=True)
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
        rows = tuple(self._row(cell, decimals, found) for cell in self.cells)
        measured = [[entry.number for entry in row.entries] for row in rows if not row.outcome]
        hidden = repeated([header.column for header in self.headers], measured)
        shown = tuple(place for place in range(len(self.headers)) if place not in hidden)
        leads = tuple(
            self._lead(place, found[place], decimals[place]) for place in shown if found[place].level
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
            row_label=self.run.layout.row,
            title=self.title,
            quality=self._quality(),
            headers=self.headers,
            rows=rows,
            leads=leads,
            shown=shown,
            asides=asides,
        )

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

    def _quality(self) -> dict[str, float]:
        frame = self.run.quality
        here = frame[
            (frame["dataset"] == str(self.labels.get("dataset")))
            & (frame["model"] == str(self.labels.get("model")))
        ]
        return dict(zip(here["metric"], here["value"], strict=True))

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


def _problem(row: Row) -> Iterator[str]:
    if row.outcome:
        yield f"{row.name}: {row.outcome}"
    elif row.status == "partial":
        yield f"{row.name}: incomplete, {row.reason}"


def _told_aside(asides: Sequence[Aside]) -> Iterator[str]:
    """ "Coverage, Success@5: as PN-S@5", and "In every line: #Additions 0"."""
    alike: dict[str, list[str]] = {}
    for aside in asides:
        if aside.like is not None:
            alike.setdefault(aside.like.name, []).append(aside.header.name)
    for like, names in alike.items():
        yield f"{', '.join(names)}: as {like}"
    constant = [f"{aside.header.name} {aside.text}" for aside in asides if aside.like is None]
    if constant:
        yield f"In every line: {', '.join(constant)}"


def _scaled(number: Number, scale: float) -> Number:
    return number._replace(
        mean=number.mean * scale, ci_low=number.ci_low * scale, ci_high=number.ci_high * scale
    )


def _decimals(half_widths: Sequence[float]) -> int:
    """Two significant digits of the typical half width, three decimals where there is none, five at most."""
    known = [width for width in half_widths if not math.isnan(width)]
    typical = float(np.median(known)) if known else 0.0
    return min(max(1 - math.floor(math.log10(typical)), 0), 5) if typical > 0 else 3


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
