"""What ``cfbench evaluate-extractor`` is given. Imports neither pandas nor torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cfbench_core.config import ConfiguredComponent, Help, OfKind


@dataclass(frozen=True, kw_only=True)
class ExtractorEvaluation:
    """The extractors to measure."""

    extractors: Annotated[
        tuple[ConfiguredComponent, ...], OfKind("extractor"), Help("extract the statements")
    ]
