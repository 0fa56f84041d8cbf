"""What a page of the viewer consists of. Suites make blocks, the core renders them (``static/app.js``).

Blocks are plain data: texts are escaped when they are rendered, and ``to_json`` writes them for the page.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Tone = Literal["", "good", "bad", "warn", "muted", "mark", "removed", "added"]
"""How a text is shown; a tone always comes with a word or a sign, never colour alone."""


@dataclass(frozen=True)
class Text:
    """A cell of a table or a part of a passage.

    Attributes:
        text: what is shown. title: a longer text, shown on hover and focus.
        bar: 0 to 1, the length of a bar behind the text; None: no bar.
    """

    text: str
    tone: Tone = ""
    title: str = ""
    bar: float | None = None


@dataclass(frozen=True)
class Facts:
    """Names with values: "label: text"."""

    items: Sequence[tuple[str, str]]
    title: str = ""
    type: str = field(default="facts", init=False)


@dataclass(frozen=True)
class Grid:
    """A table. ``numeric`` are the places of columns whose cells are aligned as numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Text | str]]
    numeric: Sequence[int] = ()
    note: str = ""
    type: str = field(default="grid", init=False)


@dataclass(frozen=True)
class Passage:
    """A text with marked parts."""

    title: str
    parts: Sequence[Text]
    note: str = ""
    type: str = field(default="passage", init=False)


@dataclass(frozen=True)
class Note:
    """A sentence."""

    text: str
    tone: Tone = "muted"
    type: str = field(default="note", init=False)


@dataclass(frozen=True)
class Drawing:
    """A chart of ``cfbench_core.reports.charts``, whose SVG says in words what it shows."""

    title: str
    svg: str
    note: str = ""
    type: str = field(default="drawing", init=False)


@dataclass(frozen=True)
class Field:
    """One thing that an editor can change.

    Attributes:
        kind: "switch" (value: bool), "number" or "choice" (one of ``levels``).
        value: that of the unit. locked: explainers must not change it; ``note`` says why or within which range.
    """

    name: str
    label: str
    kind: Literal["switch", "number", "choice"]
    value: bool | float | str
    levels: Sequence[str] = ()
    low: float | None = None
    high: float | None = None
    step: float | None = None
    unit: str = ""
    locked: bool = False
    note: str = ""


@dataclass(frozen=True)
class Proposal:
    """An answer of an explainer as values of fields."""

    label: str
    edit: Mapping[str, bool | float | str]


@dataclass(frozen=True)
class Editor:
    """Fields that can be changed, and what explainers propose; the model's answer to an edit is queried live."""

    title: str
    fields: Sequence[Field]
    proposals: Sequence[Proposal] = ()
    addable: Sequence[tuple[str, str]] = ()
    """Further switches that can be added, as (name, label)."""
    note: str = ""
    constrainable: bool = False
    """Whether the viewer can query an explainer anew under constraints on the fields."""
    curves: bool = False
    """Whether the viewer can draw deletion and insertion curves of the unit."""
    type: str = field(default="editor", init=False)


Block = Facts | Grid | Passage | Note | Drawing | Editor


def to_json(value: Any) -> Any:
    """Blocks, and whatever they hold, as JSON; numbers that are not finite become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: to_json(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
