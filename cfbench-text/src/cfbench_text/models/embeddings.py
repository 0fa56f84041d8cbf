"""Sentence embeddings, computed once per text: all generators share the references.

They are cached by the digest of (model, text) in single precision.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence

import numpy as np

from cfbench_core.hashing import digest
from cfbench_text.models.loading import Source, signature
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.models.tokens import Encoder
from cfbench_text.reviews import FloatArray


class Embeddings:
    def __init__(self, source: Source) -> None:
        self.source = source
        self._encoder = Encoder(source)

    def cosines(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N,) in [-1, 1], of pairs of texts that are not empty."""
        distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: at for at, text in enumerate(distinct)}
        vectors = self._of(distinct)
        found = [vectors[place[one]] @ vectors[place[other]] for one, other in pairs]
        return np.clip(np.array(found, dtype=np.float64), -1.0, 1.0)

    def _of(self, texts: Sequence[str]) -> FloatArray:
        """(N, d) unit vectors."""
        model = json.dumps(signature(self.source), sort_keys=True)

        def computed(places: Sequence[int]) -> Iterator[tuple[int, str]]:
            found = self._encoder.embeddings([texts[place] for place in places]).astype("<f4")
            for place, vector in zip(places, found, strict=True):
                yield place, base64.b64encode(vector.tobytes()).decode()

        stored = ResponseCache("embeddings").values([digest([model, text]) for text in texts], computed)
        vectors = [np.frombuffer(base64.b64decode(value), "<f4") for value in stored]
        return np.array(vectors, dtype=np.float64)
