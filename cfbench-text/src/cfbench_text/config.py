"""The configuration of a text study. Imports neither pandas nor torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range
from cfbench_core.suites import Experiment


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How reviews are split, which rows are explained, and how texts are parsed. Defaults: Statement factuality."""

    shorthand: ClassVar[str] = "split"

    split: Annotated[
        Literal["per-user", "global"], Help("by time: per user, or at one moment for all users")
    ] = "per-user"
    train: Annotated[float, Range(above=0, below=1), Help("share of the earliest reviews")] = 0.8
    validation: Annotated[float, Range(minimum=0, below=1), Help("share of those after them")] = 0.1
    min_reviews_per_user: Annotated[int, Range(minimum=1), Help("users with fewer reviews are excluded")] = 5
    rows: Annotated[int | None, Range(minimum=1), Help("explained test rows, drawn at random; none: all")] = (
        None
    )
    read: Annotated[
        Literal["template", "extractor"],
        Help("template: texts that follow the template are parsed exactly, others by the extractor"),
    ] = "template"
    reference: Annotated[
        Literal["paragraph", "written"],
        Help("the reference text: the true statements as a paragraph, or the review as written"),
    ] = "paragraph"
    learn: Annotated[
        Literal["paragraph", "written"],
        Help("what generators learn to write: the true statements as a paragraph, or the review as written"),
    ] = "paragraph"
    empty: Annotated[
        Literal["zero", "skip"],
        Help("a text without statements: recall 0, or excluded, as in the code of Statement factuality"),
    ] = "zero"
    max_failed: Annotated[
        float,
        Range(minimum=0, maximum=1),
        Help("share of rows whose extraction or judgement may fail; with more, the cell fails"),
    ] = 0.1

    def __post_init__(self) -> None:
        if self.train + self.validation >= 1:
            raise ValueError("train and validation must leave test rows: their sum must be below 1")


@dataclass(frozen=True, kw_only=True)
class TextConfig(Experiment):
    """The configuration of a text study."""

    data: Annotated[tuple[ConfiguredComponent, ...], OfKind("dataset"), Help("reviews")]
    extractor: Annotated[
        ConfiguredComponent, OfKind("extractor"), Help("extracts statements from reviews and texts")
    ]
    generators: Annotated[
        tuple[ConfiguredComponent, ...], OfKind("generator"), Help("write the explanations")
    ]
    judges: Annotated[
        tuple[ConfiguredComponent, ...],
        OfKind("judge"),
        Help("decide whether a statement is supported"),
    ]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None,
        OfKind("metric"),
        Help("none: all installed metrics that need no model"),
    ] = None
    chunk: Annotated[int, Range(minimum=1), Help("rows per task")] = 500
