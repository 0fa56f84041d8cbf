"""What the tables of a run consist of: numbers, rows, headers, and who leads a column. Renderers only paint them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cfbench_core.model_quality import Quality, quality_words
from cfbench_core.plan import TIME, Column

Emphasis = Literal["", "best", "second"]

LEGEND = (
    "Mean ± half the width of its 95% interval. Rows are ordered by the primary metric (marked ★). Bold: the best, and all "
    "that are statistically tied with it (the 95% paired interval of the difference contains zero). Underlined: the next. "
    "Where units lack a value, the table shows how many have one, and average ranks over all units, a missing value being "
    "the last, determine the order and the best. Certified and "
    "reference rows show what is reachable, baselines what every method should beat; these controls do not compete, nor "
    "do incomplete cells."
)
DOUBTFUL = "†"
"""Marks a column that rests on something that is not shown to be reliable, and the note that says so."""
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
    """One place of a table: ``text`` is the mean and its interval, or the outcome in their place. ``rank``: the average rank
    over all units in a column that ranks decide, see ``winners.py``."""

    text: str
    number: Number
    emphasis: Emphasis = ""
    rank: float = math.nan

    @property
    def detail(self) -> str:
        """ "310 of 500, average rank 2.13" where units lack a value and where ranks decide the column."""
        if not self.number.n:
            return ""
        ranked = "" if math.isnan(self.rank) else f"average rank {self.rank:.2f}"
        return ", ".join(filter(None, (self.number.coverage, ranked)))

    def order_in(self, header: Header) -> float:
        """By what the column is sorted, in its own direction: the average rank where ranks decide it, else the mean."""
        if math.isnan(self.rank):
            return self.number.mean
        return -self.rank if header.column.direction == "higher" else self.rank


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
        mark = f" {DOUBTFUL}" if self.column.doubtful else ""
        return f"time per explanation ({self.unit})" if self.unit else self.column.name + mark

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
class Effect:
    """By how much the best of a column is better than another: the mean paired difference with its 95% interval.

    Positive is better in either direction. ``ranked``: a difference of average ranks.
    """

    over: str
    value: float
    low: float
    high: float
    ranked: bool = False

    @property
    def reversed(self) -> Effect:
        """By how much the other is better."""
        return Effect(self.over, -self.value, -self.high, -self.low, self.ranked)

    @property
    def significant(self) -> bool:
        return self.low > 0 or self.high < 0

    @property
    def text(self) -> str:
        """ "0.021 (0.012 to 0.03)": rounded to two digits of the interval's half width."""
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{self.value:.3g} (no interval)"
        digits = decimals_of((self.high - self.low) / 2)
        numbers = [
            f"{round(number, digits) + 0.0:.{digits}f}" for number in (self.value, self.low, self.high)
        ]
        return f"{numbers[0]}{' ranks' if self.ranked else ''} ({numbers[1]} to {numbers[2]})"


def decimals_of(half_width: float) -> int:
    """Two significant digits of an interval's half width, three decimals where it is zero, five at most."""
    return min(max(1 - math.floor(math.log10(half_width)), 0), 5) if half_width > 0 else 3


@dataclass(frozen=True)
class Lead:
    """Who leads one column.

    Attributes:
        names: the best first, then those statistically tied with it.
        text: the best one's mean and interval.
        competitors: all that have a number here, those too that are incomplete and cannot win.
        baselines_not_beaten: the baselines from which the best does not differ significantly, or that are better.
        over_next: the best against the competitor that comes next; over_baseline: against the best baseline.
        agreement: Kendall's tau of the order of the competitors with that by the primary metric; NaN with fewer than
            three competitors.
    """

    header: Header
    names: tuple[str, ...]
    text: str
    competitors: tuple[str, ...]
    baselines_not_beaten: tuple[str, ...] = ()
    over_next: Effect | None = None
    over_baseline: Effect | None = None
    agreement: float = math.nan

    @property
    def distinguishes(self) -> bool:
        """Whether any two competitors differ significantly in the column."""
        return len(self.names) < len(self.competitors)


@dataclass(frozen=True)
class Aside:
    """A column that a note replaces: it repeats the column ``like``, or has ``text`` in every row (None)."""

    header: Header
    like: Header | None
    text: str


@dataclass(frozen=True)
class Table:
    """A group of cells side by side.

    Attributes:
        labels: what the cells have in common, as the layout says; ``label_texts`` the same for people.
        row_label: what a line is: "explainer".
        title: the part of the labels that distinguishes this table from the others of the run.
        quality: the model's, by metric.
        headers: every column; ``shown`` are the places of those that stand in the table.
        rows: every explainer; ``lines`` are those that were to run.
        leads: of each column that is shown, has a direction and an eligible competitor.
        asides: the other columns.
        left_out: how many rows are not among ``rows``, because the page has no room for them.
        primary: the place of the primary metric, which orders the rows; None where no column has a better direction.
    """

    labels: Mapping[str, str | int]
    label_texts: tuple[str, ...]
    row_label: str
    title: str
    quality: Mapping[str, Quality]
    headers: tuple[Header, ...]
    rows: tuple[Row, ...]
    leads: tuple[Lead, ...]
    shown: tuple[int, ...]
    asides: tuple[Aside, ...]
    left_out: int = 0
    primary: int | None = None

    @property
    def lead(self) -> Lead | None:
        """Of the primary metric; None where nobody can lead it."""
        if self.primary is None:
            return None
        header = self.headers[self.primary]
        return next((lead for lead in self.leads if lead.header == header), None)

    @property
    def caption(self) -> str:
        """All labels and the quality, for a table that stands alone."""
        quality = quality_words(self.quality)
        return ", ".join(self.label_texts) + (f". Quality: {quality}" if quality else "")

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
    def warnings(self) -> list[str]:
        """The warnings of rows with numbers: "a, b: 3 of 9 texts were cut", without names if all have it."""
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
    def column_notes(self) -> list[str]:
        """The notes of the columns, each once; those of doubtful columns begin with their mark."""
        columns = [header.column for header in self.headers if header.column.note]
        return list(dict.fromkeys(f"{DOUBTFUL} {c.note}" if c.doubtful else c.note for c in columns))

    @property
    def notes(self) -> list[str]:
        """All notes to the numbers, a line each."""
        absent = [f"Not applicable: {self.absent}"] if self.absent else []
        return [
            *self.problems,
            *self.warnings,
            *absent,
            *self.column_notes,
            *_notes_of_asides(self.asides),
        ]


def outcome_words(status: str) -> str:
    return _OUTCOMES.get(status, status)


def _problem(row: Row) -> Iterator[str]:
    if row.outcome:
        yield f"{row.name}: {row.outcome}"
    elif row.status == "partial":
        yield f"{row.name}: incomplete, {row.reason}"


def _notes_of_asides(asides: Sequence[Aside]) -> Iterator[str]:
    """ "Coverage, Success@5: as PN-S@5", and "Same for all rows: #Additions 0"."""
    repeating: dict[str, list[str]] = {}
    for aside in asides:
        if aside.like is not None:
            repeating.setdefault(aside.like.name, []).append(aside.header.name)
    for like, names in repeating.items():
        yield f"{', '.join(names)}: identical to {like}"
    constant = [f"{aside.header.name} {aside.text}" for aside in asides if aside.like is None]
    if constant:
        yield f"Same for all rows: {', '.join(constant)}"
