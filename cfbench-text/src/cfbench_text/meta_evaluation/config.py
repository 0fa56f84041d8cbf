"""What ``cfbench meta-evaluate`` is given. Imports neither pandas nor torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cfbench_core.config import ConfiguredComponent, Help, OfKind, Range


@dataclass(frozen=True, kw_only=True)
class MetaEvaluation:
    """What is compared with which human labels."""

    labelsets: Annotated[tuple[ConfiguredComponent, ...], OfKind("labelset"), Help("texts with human labels")]
    judges: Annotated[tuple[ConfiguredComponent, ...], OfKind("judge"), Help("decide on statements")] = ()
    metrics: Annotated[
        tuple[ConfiguredComponent, ...] | None,
        OfKind("metric"),
        Help("none: those that need no model, and of statements all that the judges serve"),
    ] = None
    extractor: Annotated[
        ConfiguredComponent | None,
        OfKind("extractor"),
        Help("makes the statements; none: every sentence is one"),
    ] = None
    domain: Annotated[
        str | None, Help("topics for the extractor: the name of a domain, or the path of a YAML file")
    ] = None
    rows: Annotated[
        int | None, Range(minimum=2), Help("texts of a label set, whole documents drawn at random; none: all")
    ] = 5000
    resamples: Annotated[int, Range(minimum=1), Help("of the bootstrap")] = 1000
    seed: Annotated[int, Range(minimum=0), Help("of drawn rows and resamples")] = 0

    def __post_init__(self) -> None:
        if self.extractor is not None and self.domain is None:
            raise ValueError("an extractor needs a 'domain', whose topics its statements have")
