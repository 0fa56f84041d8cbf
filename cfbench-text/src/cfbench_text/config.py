"""The configuration of a text study. Imports neither pandas nor torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.suites import Experiment


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How reviews are divided, which rows are explained, and how texts are read. Defaults: those of paper 004."""

    shorthand: ClassVar[str] = "split"

    split: Annotated[Literal["per-user", "global"], Help("by time: of each user, or one moment for all")] = (
        "per-user"
    )
    train: Annotated[float, Range(above=0, below=1), Help("share of the earliest reviews")] = 0.8
    validation: Annotated[float, Range(minimum=0, below=1), Help("share of those after them")] = 0.1
    min_reviews_per_user: Annotated[int, Range(minimum=1), Help("users with fewer reviews are excluded")] = 5
    rows: Annotated[
        int | None, Range(minimum=1), Help("explained test rows, drawn at random; none: all of them")
    ] = None
    read: Annotated[
        Literal["template", "extractor"],
        Help("template: texts in the template's form are taken apart exactly, others by the extractor"),
    ] = "template"
    reference: Annotated[
        Literal["paragraph", "written"],
        Help(
            "what texts are compared with: the true statements as a paragraph, or the review as it was written"
        ),
    ] = "paragraph"
    empty: Annotated[
        Literal["zero", "skip"],
        Help("a text without statements: its recall is 0, or it says nothing, as in the paper's code"),
    ] = "zero"

    def __post_init__(self) -> None:
        if self.train + self.validation >= 1:
            raise ValueError("train and validation must leave test rows: their sum must be below 1")


@dataclass(frozen=True, kw_only=True)
class TextConfig(Experiment):
    """The configuration of a text study."""

    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset"), Help("reviews")]
    extractor: Annotated[ConfiguredComponent, OfKind("extractor"), Help("reviews and texts into statements")]
    generators: Annotated[
        tuple[ConfiguredComponent, ...], OfKind("generator"), Help("generators of explanations")
    ]
    judges: Annotated[
        tuple[ConfiguredComponent, ...],
        OfKind("judge"),
        Help("what decides whether a statement is supported"),
    ]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None,
        OfKind("metric"),
        Help("none: all that are installed and need no model"),
    ] = None
    chunk: Annotated[int, Range(minimum=1), Help("rows per unit of work")] = 500
