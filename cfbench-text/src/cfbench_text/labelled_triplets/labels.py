"""Reads labelled triplets: JSON lines, one for each text and pass of annotation.

    {"id": "A1:B2", "pass": 1, "sha256": "0f3a...", "labels": [[0, 14, "sound", "positive"], ...]}

A label is the span of characters ``[start, end)`` of the text that states a fact, its topic and its sentiment. A file of
your own may hold the text itself as ``text`` in place of its digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from cfbench_core.errors import UserError
from cfbench_text.triplets import SENTIMENTS, Triplet

Half = Literal["development", "held-out", "all"]
DIGITS = 16
"""Hexadecimal digits of the digest of a text."""


@dataclass(frozen=True)
class LabelledText:
    """A text and its triplets in each pass of annotation; a statement is the labelled span as it is written."""

    id: str
    text: str
    passes: Mapping[int, tuple[Triplet, ...]] = field(default_factory=dict)

    @property
    def half(self) -> Half:
        """The half of the data that the text belongs to, by its id alone."""
        return half_of(self.id)


def half_of(id: str) -> Half:
    """An even first byte of the SHA-256 of the id is the development half."""
    return "held-out" if hashlib.sha256(id.encode()).digest()[0] % 2 else "development"


def digest(text: str) -> str:
    """Identifies the exact text that the spans refer to."""
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def read_labels(path: Path, texts: Mapping[str, str] | None = None) -> list[LabelledText]:
    """The labelled texts of a file, in its order.

    Args:
        texts: by id, for files that hold digests only.

    Raises:
        UserError: for a line that is not as it should be, or a text that is missing or another one.
    """
    found: dict[str, LabelledText] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        where = f"{path.name}:{number}"
        row = _row(line, where)
        known = found.setdefault(row["id"], LabelledText(row["id"], _text(row, texts or {}, where), {}))
        if row["pass"] in known.passes:
            raise UserError(f"{where}: {row['id']} has two rows of pass {row['pass']}")
        triplets = tuple(_triplet(one, known.text, where) for one in row["labels"])
        found[row["id"]] = LabelledText(known.id, known.text, {**known.passes, row["pass"]: triplets})
    if not found:
        raise UserError(f"{path}: has no labelled texts")
    return list(found.values())


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON ({error.msg})") from None
    wanted = {"id": str, "pass": int, "labels": list}
    if not isinstance(row, dict) or not all(isinstance(row.get(key), of) for key, of in wanted.items()):
        raise UserError(f"{where}: needs 'id' (a string), 'pass' (a whole number) and 'labels' (a list)")
    return row


def _text(row: Mapping[str, Any], texts: Mapping[str, str], where: str) -> str:
    text = row.get("text", texts.get(row["id"]))
    if not isinstance(text, str):
        raise UserError(f"{where}: the text of {row['id']!r} is neither in the row nor in the data")
    if "sha256" in row and digest(text) != row["sha256"]:
        raise UserError(
            f"{where}: {row['id']!r} was labelled for another version of the text than in the data"
        )
    return text


def _triplet(label: Any, text: str, where: str) -> Triplet:
    right = (
        isinstance(label, Sequence)
        and len(label) == 4
        and all(type(place) is int for place in label[:2])
        and 0 <= label[0] < label[1] <= len(text)
        and isinstance(label[2], str)
        and label[3] in SENTIMENTS
    )
    if not right:
        raise UserError(
            f"{where}: label {label!r} must be [start, end, topic, sentiment] with 0 <= start < end <= {len(text)}"
            f" and a sentiment of {', '.join(SENTIMENTS)}"
        )
    start, end, topic, sentiment = label
    return Triplet(text[start:end], topic, sentiment)
