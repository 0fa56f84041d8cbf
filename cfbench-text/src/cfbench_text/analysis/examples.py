"""``examples``: generated texts, statement by statement, with the verdict on each statement.

For each competitor (or each control if there are no competitors) it shows a few texts: the statements of each text,
which the user's own review supports, contradicts or does not mention, with the closest statement of the review; then
the statements of the review that the text omits. The closest statement is the one that entails or contradicts it,
according to the judge. If there is none, or the judge compared it with the whole review, it is the statement on the same
topic with most words in common (Jaccard; for contradicted statements those of the opposite sentiment first), because
the largest of several small probabilities is arbitrary.

If a metric finds spans of a text that the review does not support (``lettucedetect``), they are marked in the text.

The rows are those for which most generators have a text, in an order that depends on their names alone, so they are not
selected by hand, and all generators are shown on the same rows. Verdicts are those of one judge: the first, or the one
that ``judge`` names.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.analyses import Figure
from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.specs import ComponentSpec
from cfbench_text.analysis.shared import cells_of, groups_of, judge_notes, tidied, why_no_verdicts
from cfbench_text.analysis.topics import NO_TOPIC

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/analysis/examples",
    summary="Generated texts with the verdict on each of their statements",
    target=f"{__name__}:Examples",
    config=f"{__name__}:Config",
)


MARKS = {"entailed": "+", "contradicted": "!", "unsupported": "?", "undecided": "~"}
WORDS = {
    "entailed": "supported",
    "contradicted": "contradicted",
    "unsupported": "unsupported",
    "undecided": "undecided",
}
COLOURS = {"entailed": "certified", "contradicted": "baseline", "unsupported": "hint", "undecided": "hint"}
"""Classes of the page: green, orange, grey. Each statement has its mark too."""
COLUMNS = ["dataset", "model", "role", "judge", "unit", "text", "side", "statement", "topic", "sentiment",
           "verdict", "closest", "spans"]  # fmt: skip
TEXT = ["dataset", "model", "unit"]
TEXTS, STATEMENTS, SPANS = "explanations.parquet", "statements.parquet", "spans.parquet"
OPEN, SHUT = "\ue000", "\ue001"
"""Around an unsupported span while lines are made; private characters, which are removed from texts."""
NOTHING = "not mentioned in the review"
LETTERS, LINE, WIDTH = 118, 16, 900


@dataclass(frozen=True, kw_only=True)
class Config:
    rows: Annotated[int, Range(minimum=1), Help("texts of each generator")] = 3
    judge: Annotated[str | None, Help("whose verdicts; none: those of the first")] = None


class Examples:
    def __init__(self, config: Config | None = None) -> None:
        self._config = config or Config()

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return why_no_verdicts(runs)

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """A row for each statement of either side (``side``): dataset, model, role, judge, unit, text, statement,
        topic, sentiment, verdict, closest (statement of the other side, if any is on its topic), spans (unsupported
        characters of the text, as "3-9 20-31"). A text of a row without any statement has one row, with nothing in
        these."""
        import pandas as pd

        found = [self._table_of(run, {c.id: c.role for c in cells}) for run, cells in cells_of(runs)]
        return pd.concat(found, ignore_index=True)[COLUMNS]

    def _table_of(self, run: Run, roles: Mapping[str, str]) -> pd.DataFrame:
        import pandas as pd

        judges = dict.fromkeys(
            judge
            for statements in run.batches(STATEMENTS, ["judge"], [*roles])
            for judge in statements["judge"].drop_duplicates()
        )
        if not judges:
            return pd.DataFrame(columns=COLUMNS)
        judge = _chosen(self._config.judge, list(judges))
        parts = []
        for cells in _by_dataset(run, roles).values():
            counts = _texts_of(run, cells)
            cells = [cell for cell in counts if not roles[cell]] or list(counts)
            chosen = _units(sum((counts[cell] for cell in cells), Counter()), self._config.rows)
            units = {unit: place for place, unit in enumerate(chosen)}
            shown = run.rows(TEXTS, cell=cells, unit=chosen)
            shown = shown.assign(judge=judge, role=shown["cell"].map(roles))
            shown["place"] = shown["cell"].map(cells.index) * len(units) + shown["unit"].map(units)
            statements = run.rows(STATEMENTS, cell=cells, unit=chosen, judge=[judge])
            named = shown.sort_values("place")[["cell", "dataset", "model", "role", "judge", "unit", "text"]]
            rows = named.merge(
                statements.drop(columns=["dataset", "model", "judge"]), on=["cell", "unit"], how="left"
            )
            closest = pd.array(_closest(rows), dtype="string")
            parts.append(rows.assign(closest=closest, spans=_spans(run, rows)))
        return pd.concat(parts, ignore_index=True)

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        """How reliable the judges are."""
        return judge_notes(runs)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        """The texts of a generator under each other."""
        drawn = []
        for labels, rows in groups_of(tidied(table), ("dataset", "model")):
            heading = f"{labels['model']}, {labels['dataset']}"
            note = f"Verdicts of the judge {rows['judge'].iloc[0]}: {_legend(rows)}.{_about_spans(rows)}"
            drawn.append(Figure(heading, _drawing(heading, list(_lines(rows))), note, wide=True))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        return ""

    def text(self, table: pd.DataFrame) -> str:
        """The same on a terminal; verdicts are words."""
        parts = []
        for labels, rows in groups_of(tidied(table), ("dataset", "model")):
            lines = [line.replace(OPEN, "[[").replace(SHUT, "]]") for _, line in _lines(rows)]
            parts.append("\n".join([f"{labels['model']} on {labels['dataset']}", *lines]))
        judges = " and ".join(table["judge"].drop_duplicates()) if len(table) else "no judge"
        return "\n\n".join(
            [*parts, f"Verdicts of {judges}: {_legend(table)}.{_about_spans(table, '[[', ']]')}"]
        )


def _about_spans(rows: pd.DataFrame, *marks: str) -> str:
    if "spans" not in rows or not any(isinstance(spans, str) and spans for spans in rows["spans"]):
        return ""
    how = f"Between {marks[0]} and {marks[1]}" if marks else "Underlined"
    return f" {how}: what a model of spans finds unsupported by the review."


def _legend(rows: pd.DataFrame) -> str:
    shown = {"entailed", "contradicted", "unsupported", *rows["verdict"].dropna()}
    return ", ".join(f"{MARKS[verdict]} {word}" for verdict, word in WORDS.items() if verdict in shown)


def _chosen(judge: str | None, judges: Sequence[str]) -> str:
    if judge is not None and judge not in judges:
        raise UserError(
            f"no judge {judge!r} in this run.{did_you_mean(judge, judges)} It has {', '.join(judges)}"
        )
    return judge or judges[0]


def _by_dataset(run: Run, roles: Mapping[str, str]) -> dict[str, list[str]]:
    """The cells that have texts, by their data sets."""
    found: dict[str, list[str]] = {}
    for cell in run.cells():
        if cell.id in roles:
            found.setdefault(str(cell.labels["dataset"]), []).append(cell.id)
    return found


def _texts_of(run: Run, cells: Sequence[str]) -> dict[str, Counter[str]]:
    """The rows that each of these cells has a text for, of those that have any."""
    found: dict[str, Counter[str]] = {}
    for texts in run.batches(TEXTS, ["cell", "unit"], cells):
        for cell, units in texts.groupby("cell", sort=False)["unit"]:
            found.setdefault(str(cell), Counter()).update(units.tolist())
    return {cell: found[cell] for cell in cells if cell in found}


def _units(counts: Mapping[str, int], most: int) -> list[str]:
    """The rows with most texts; of equals, by a hash of the name, which knows nothing of what is in them."""

    def rank(unit: str) -> tuple[int, str]:
        return -counts[unit], hashlib.sha256(unit.encode()).hexdigest()

    return heapq.nsmallest(most, counts, key=rank)


def _spans(run: Run, rows: pd.DataFrame) -> list[str]:
    """For each row the unsupported characters of its text, of all metrics that find any."""
    if not (run.directory / SPANS).is_file():
        return [""] * len(rows)
    found: dict[tuple[str, str], set[str]] = {}
    cells, units = rows["cell"].unique().tolist(), rows["unit"].unique().tolist()
    for row in run.rows(SPANS, cell=cells, unit=units).sort_values("start").to_dict("records"):
        found.setdefault((row["cell"], row["unit"]), set()).add(f"{row['start']}-{row['end']}")
    return [
        " ".join(sorted(found.get(key, ()), key=lambda span: int(span.split("-")[0])))
        for key in zip(rows["cell"], rows["unit"], strict=True)
    ]


def _marked(text: str, spans: object) -> str:
    """The text with its spans between ``OPEN`` and ``SHUT``."""
    inside = [False] * len(text)
    for span in spans.split() if isinstance(spans, str) else ():
        start, end = map(int, span.split("-"))
        inside[start:end] = [True] * len(inside[start:end])
    parts = []
    for within, letters in itertools.groupby(zip(inside, text, strict=True), key=lambda one: one[0]):
        run = "".join(letter for _, letter in letters if letter not in (OPEN, SHUT))
        parts.append(f"{OPEN}{run}{SHUT}" if within else run)
    return "".join(parts)


def _whole_marks(lines: Sequence[str]) -> Iterator[str]:
    """Lines in which each span that goes on in the next line ends, and begins again there."""
    within = False
    for line in lines:
        given = f"{OPEN}{line}" if within else line
        within = given.rfind(OPEN) > given.rfind(SHUT)
        yield f"{given}{SHUT}" if within else given


def _closest(rows: pd.DataFrame) -> list[str | None]:
    """For each row the statement of the other side that it is best compared with."""
    sides: dict[tuple[Any, ...], list[Mapping[Any, Any]]] = {}
    records = rows.to_dict("records")
    for row in records:
        sides.setdefault((row["cell"], row["unit"], row["side"]), []).append(row)
    across = {"text": "reference", "reference": "text"}
    found: list[str | None] = []
    for row in records:
        others = sides.get((row["cell"], row["unit"], across.get(row["side"])), [])
        on_topic = [other for other in others if other["topic"] == row["topic"]]
        if isinstance(row["other"], str):
            found.append(row["other"])
        else:
            found.append(
                max(on_topic, key=lambda other: _nearness(row, other))["statement"] if on_topic else None
            )
    return found


def _nearness(row: Mapping[Any, Any], other: Mapping[Any, Any]) -> tuple[bool, float]:
    from cfbench_text.judges.overlap import words
    from cfbench_text.judges.similarity_judge import OPPOSITES

    one, two = {*words(row["statement"])}, {*words(other["statement"])}
    denies = row["verdict"] == "contradicted" and (row["sentiment"], other["sentiment"]) in OPPOSITES
    return denies, len(one & two) / len(one | two) if one | two else 1.0


def _lines(rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """(class, line) of the texts of one generator."""
    for place, (labels, of_text) in enumerate(groups_of(rows, TEXT)):
        if place:
            yield "", ""
        yield "tick", str(labels["unit"])
        written = str(of_text["text"].iloc[0])
        marked = _marked(written, of_text["spans"].iloc[0] if "spans" in of_text else "")
        for line in _whole_marks(textwrap.wrap(f"“{marked}”", LETTERS)) if written else ["(an empty text)"]:
            yield "name", line
        sides = {side: of_text[of_text["side"] == side].to_dict("records") for side in ("text", "reference")}
        if not sides["text"]:
            yield "hint", "  no statement of it was judged"
        for row in sides["text"]:
            closest = f" · closest in the review: {row['closest']}" if row["closest"] else ""
            if not closest and row["verdict"] in ("contradicted", "unsupported"):
                closest = f" · {NOTHING}"
            yield from _wrapped(row, f"{WORDS[row['verdict']]}: {_told(row)}{closest}")
        for row in sides["reference"]:
            if row["verdict"] in ("contradicted", "unsupported"):
                yield from _wrapped({"verdict": "unsupported"}, f"left out: {_told(row)}", mark="-")


def _told(row: Mapping[Any, Any]) -> str:
    return f"{row['statement']} ({row['topic'] or NO_TOPIC}, {row['sentiment']})"


def _wrapped(row: Mapping[Any, Any], words: str, mark: str = "") -> Iterator[tuple[str, str]]:
    head = f"  {mark or MARKS[row['verdict']]} "
    for line in textwrap.wrap(words, LETTERS, initial_indent=head, subsequent_indent="      "):
        yield COLOURS[row["verdict"]], line


def _drawing(title: str, lines: Sequence[tuple[str, str]]) -> str:
    from cfbench_core.reports.charts.svg import drawing, text

    begin, end = '<tspan text-decoration="underline">', "</tspan>"
    parts = []
    for place, (colour, line) in enumerate(lines):
        words = line.lstrip()
        if words:
            shown = text(colour, 4 + 5 * (len(line) - len(words)), LINE * (place + 1), words)
            parts.append(shown.replace(OPEN, begin).replace(SHUT, end))
    summary = "; ".join(line.strip() for _, line in lines if line).replace(OPEN, "[[").replace(SHUT, "]]")
    return drawing(WIDTH, LINE * (len(lines) + 1), f"{title}. {summary}", parts, title)
