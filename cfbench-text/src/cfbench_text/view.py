"""The viewer's page of a text: its statements, matched to the user's review or marked as unsupported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_core.view.blocks import Block, Facts, Grid, Note, Passage, Text, Tone

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.view.viewers import LiveUnit, UnitData

SPEC = ComponentSpec(
    id="text/viewer/text",
    summary="The texts of one review with their statements, supported or not, and the judge's reliability",
    target=f"{__name__}:TextViewer",
)

TONES: Mapping[str, Tone] = {"entailed": "good", "unsupported": "bad", "contradicted": "bad"}
SIGNS: Mapping[str, str] = {"entailed": "✓", "unsupported": "?", "contradicted": "✗"}
WORDS: Mapping[str, str] = {
    "entailed": "supported by",
    "unsupported": "no support found",
    "contradicted": "contradicted by",
}


class TextViewer:
    """Texts: see :class:`cfbench_core.view.viewers.Viewer`."""

    def __init__(self, config: None = None) -> None:
        """There is nothing to set."""

    def unit(self, unit: UnitData) -> Sequence[Block]:
        """What is known of the judges, the reference, and the text of each generator with its statements."""
        ids = [cell.id for cell in unit.cells]
        statements = unit.run.rows("statements.parquet", cell=ids, unit=[unit.unit])
        first = next((rows.iloc[0] for rows in unit.explanations.values() if len(rows)), None)
        blocks: list[Block] = []
        if first is not None:
            blocks.append(Facts([("user", str(first["user"])), ("item", str(first["item"]))]))
        blocks += _reliability(unit)
        if first is not None and isinstance(first.get("reference"), str):
            blocks.append(Passage("Reference: the user's own review", [Text(str(first["reference"]))]))
        for cell in unit.cells:
            rows = unit.explanations[cell.id]
            if len(rows):
                own = statements[statements["cell"] == cell.id]
                blocks += _text(unit.name(cell), cell.role, str(rows.iloc[0]["text"]), own)
        return blocks

    def respond(self, live: LiveUnit, edit: Mapping[str, bool | float | str]) -> Sequence[Block]:
        """Texts have no editor."""
        raise UserError(
            "the text suite has no what-if queries: its generators write texts, nothing is edited"
        )


def _reliability(unit: UnitData) -> Iterator[Block]:
    notes = dict.fromkeys(
        (column.note, column.doubtful) for cell in unit.cells for column in cell.columns if column.note
    )
    for note, doubtful in notes:
        yield Note(
            f"{'Not to be taken for a fact: ' if doubtful else ''}{note}", "warn" if doubtful else "muted"
        )


def _text(name: str, role: str, text: str, statements: pd.DataFrame) -> Iterator[Block]:
    """A text with its statements highlighted, and a table of the statements for each judge."""
    judges = list(dict.fromkeys(statements["judge"])) if len(statements) else []
    title = f"{name} ({role})" if role else name
    if not judges:
        yield Passage(title, [Text(text or "(empty)")], "No statements were extracted from this text.")
        return
    for judge in judges:
        own = statements[(statements["judge"] == judge) & (statements["side"] == "text")]
        rows = own.to_dict("records")
        supported = sum(row["verdict"] == "entailed" for row in rows)
        note = f"Judge {judge}: {supported} of {len(rows)} statements are supported by the reference."
        yield Passage(title if len(judges) == 1 else f"{title}, judge {judge}", _marked(text, rows), note)
        yield Grid(
            f"Statements of {title}",
            ["statement", "topic", "sentiment", "verdict", "matched statement of the reference"],
            [_line(row) for row in rows],
        )
        yield from _omitted(statements[(statements["judge"] == judge) & (statements["side"] == "reference")])


def _line(row: Mapping[Any, Any]) -> list[Text | str]:
    verdict = str(row["verdict"])
    other = row["other"] if isinstance(row["other"], str) else "–"
    return [
        str(row["statement"]),
        _plain(row["topic"]),
        _plain(row["sentiment"]),
        Text(f"{SIGNS.get(verdict, '')} {verdict}", TONES.get(verdict, "")),
        Text(other, "" if other != "–" else "muted"),
    ]


def _omitted(reference: pd.DataFrame) -> Iterator[Note]:
    left_out = reference[reference["verdict"] != "entailed"]["statement"].astype(str).tolist()
    if left_out:
        yield Note(f"Left out of the text: {'; '.join(left_out)}.")


def _plain(value: object) -> str:
    return value if isinstance(value, str) else ""


def _marked(text: str, rows: Sequence[Mapping[Any, Any]]) -> list[Text]:
    """The text in parts: where a statement stands literally, with its verdict. Others are in the table alone."""
    spans = []
    lowered = text.lower()
    for row in rows:
        statement = str(row["statement"])
        start = lowered.find(statement.lower())
        if start >= 0 and len(lowered) == len(text):
            spans.append((start, start + len(statement), row))
    parts, at = [], 0
    for start, end, row in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start < at:
            continue
        verdict = str(row["verdict"])
        evidence = f" “{row['other']}”" if isinstance(row["other"], str) else ""
        parts.append(Text(text[at:start]))
        shown = f"{text[start:end]} {SIGNS.get(verdict, '')}"
        parts.append(Text(shown, TONES.get(verdict, "mark"), f"{WORDS.get(verdict, verdict)}{evidence}"))
        at = end
    return [part for part in [*parts, Text(text[at:])] if part.text]
