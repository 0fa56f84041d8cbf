"""``file``: your own labelled texts, JSON lines or CSV, gzipped or not.

    labelsets: [{name: file, path: mine.jsonl}]

A row has a text, its evidence (a review, an article, or a list of statements) and a rating: a number, or yes / no.
Columns are recognised by their usual names, or named by options. Without ``threshold`` only the best rating that
occurs counts as right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, InputFile
from cfbench_core.data_files import DataAccess, Source
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_core.user_files import find_column, need_column, user_files

if TYPE_CHECKING:
    from cfbench_text.meta_evaluation.labelled import LabelledTexts

SPEC = ComponentSpec(
    id="text/labelset/file",
    summary="Your own labelled texts: JSON lines or CSV with text, evidence and label",
    target=f"{__name__}:LabelledFile",
    config=f"{__name__}:Config",
    details={"licence": "", "embedded": False},
)

USUAL = {
    "text": ("text", "claim", "hypothesis", "summary", "explanation", "response", "prediction"),
    "evidence": (
        "evidence",
        "premise",
        "document",
        "doc",
        "source",
        "reference",
        "review",
        "context",
        "fact",
    ),
    "rating": ("label", "score", "rating", "factuality", "consistency", "supported"),
    "document": ("doc_id", "document_id", "group"),
}
"""What the columns are called; the first that is there counts."""

WORDS = {
    **dict.fromkeys(("yes", "true", "supported", "entailment", "consistent", "factual", "correct"), 1.0),
    **dict.fromkeys(
        ("no", "false", "unsupported", "not_supported", "neutral", "contradiction", "not_entailment"), 0.0
    ),
    **dict.fromkeys(("inconsistent", "refuted", "hallucinated", "incorrect"), 0.0),
}
"""Labels that are words."""


@dataclass(frozen=True, kw_only=True)
class Config:
    path: Annotated[str, InputFile(), Help("JSON lines or CSV, gzipped or not")]
    text: Annotated[str | None, Help("column of the text; none: by its usual names")] = None
    evidence: Annotated[str | None, Help("column of the evidence; none: by its usual names")] = None
    rating: Annotated[str | None, Help("column of the rating; none: by its usual names")] = None
    document: Annotated[
        str | None,
        Help("column of what belongs together; none: doc_id, group; without either: equal evidence"),
    ] = None
    threshold: Annotated[
        float | None, Help("ratings from here on count as right; none: only the best that occurs")
    ] = None


class LabelledFile:
    def __init__(self, config: Config) -> None:
        self.config = config

    def find(self, access: DataAccess) -> Source:
        return user_files({"path": self.config.path})

    def load(self, source: Source | Mapping[str, Any]) -> LabelledTexts:
        from cfbench_text.external_texts import rows_of
        from cfbench_text.meta_evaluation.labelled import labelled

        path = Source.of(source).paths["path"]
        columns: dict[str, str | None] = {}
        rows, documents = [], []
        for number, row in rows_of(path):
            if not columns:
                columns = self._columns(path, list(map(str, row)))
            where = f"{path}:{number}"
            text, evidence, rated = (str(columns[name]) for name in ("text", "evidence", "rating"))
            rows.append(
                (
                    _text(where, text, row.get(text)),
                    _text(where, evidence, row.get(evidence)),
                    rating_of(where, rated, row.get(rated)),
                )
            )
            group = None if columns["document"] is None else row.get(columns["document"])
            documents.append(("evidence", rows[-1][1]) if group in (None, "") else ("group", group))
        if not rows:
            raise UserError(f"{path}: holds no labelled texts")
        name = path.name.partition(".")[0]
        return labelled(name, str(columns["rating"]), rows, documents, self.config.threshold)

    def _columns(self, path: Any, there: list[str]) -> dict[str, str | None]:
        given = {name: getattr(self.config, name) for name in USUAL}
        return {
            name: (find_column if name == "document" else need_column)(there, path, given[name], usual, name)
            for name, usual in USUAL.items()
        }


def _text(where: str, column: str, value: Any) -> str:
    """A text, or statements as a list, one sentence each."""
    from cfbench_text.field_checks import review_text

    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise UserError(f"{where}: {column} must be text or a list of statements, got {str(value)[:40]!r}")
    return review_text(where, value)


def rating_of(where: str, column: str, value: Any) -> float:
    """A rating as a number: a number, true or false, or one of ``WORDS``.

    Raises:
        UserError: if it is none of these.
    """
    word = str(value).strip().lower().replace(" ", "_")
    if word in WORDS:
        return WORDS[word]
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(
            f"{where}: {column} must be a number or one of {', '.join(WORDS)}, got {str(value)[:40]!r}"
        )
    return number
