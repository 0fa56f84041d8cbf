"""Features of a premise and a hypothesis, for a classifier of entailment.

- *cosine* of the sentence embeddings;
- *alignment* of the tokens, as in BERTScore (Zhang et al. 2020): each token of the hypothesis is matched with the most
  similar token of the premise; the mean, the least and the second least of these similarities say how much of the
  hypothesis has a counterpart, and the mean in the other direction how much of the premise has one;
- words, negation, numbers, names, antonyms and sentiment (``lexical.py``).

None of them depends on which words occur, so that a classifier can be applied to other domains.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cfbench_text.judges import lexical
from cfbench_text.models.loading import Source
from cfbench_text.models.tokens import Encoder
from cfbench_text.reviews import FloatArray

ALIGNMENT = ("cosine", "aligned mean", "aligned least", "aligned second least", "aligned back")
NAMES = (*ALIGNMENT, *lexical.NAMES)


class PairFeatures:
    def __init__(self, source: Source) -> None:
        self._encoder = Encoder(source)

    def of(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """(N, len(NAMES)), of pairs of premise and hypothesis. Each distinct text is encoded once."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        place = {text: at for at, text in enumerate(texts)}
        words = [lexical.read(text) for text in texts]
        tokens: dict[int, NDArray[np.float32]] = {}
        means = {}
        for at, vectors in self._encoder.vectors(texts):
            states = vectors.states.astype(np.float32)
            means[at] = _unit(states.mean(axis=0))
            own = states[~vectors.special]
            tokens[at] = _unit(own if len(own) else states)
        found = np.empty((len(pairs), len(NAMES)))
        for row, (premise, hypothesis) in enumerate(pairs):
            p, h = place[premise], place[hypothesis]
            found[row] = (
                float(means[p] @ means[h]),
                *_alignment(tokens[p], tokens[h]),
                *lexical.compared(words[p], words[h]),
            )
        return found


def _alignment(premise: NDArray[np.float32], hypothesis: NDArray[np.float32]) -> tuple[float, ...]:
    """From (P, d) and (H, d) unit vectors."""
    cosines = hypothesis @ premise.T
    best = np.sort(cosines.max(axis=1))
    second = best[min(1, len(best) - 1)]
    return float(best.mean()), float(best[0]), float(second), float(cosines.max(axis=0).mean())


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)
