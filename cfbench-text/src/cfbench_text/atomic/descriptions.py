"""Whether the description of a topic agrees with its keywords, by sentence embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_text.models.embeddings import Embeddings
from cfbench_text.models.loading import Source
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    from cfbench_text.domains import Domain

MARGIN = 0.05
"""How much nearer the description of another topic may be; chosen on the development half of the labelled triplets."""


class Descriptions:
    """Compares statements with the titles and descriptions of topics.

    Args:
        encoder: name, folder or package:NAME of a sentence encoder.
    """

    def __init__(self, encoder: str) -> None:
        self._embeddings = Embeddings(Source(model=encoder))

    def agree(self, triplets: Sequence[Triplet], domain: Domain) -> list[bool]:
        """For each triplet, whether no other topic's description is nearer to its statement by more than ``MARGIN``."""
        topics = list(domain.topics)
        texts = [f"{topic.title}: {topic.description}" for topic in domain.topics.values()]
        if not triplets or len(topics) < 2:
            return [True] * len(triplets)
        pairs = [(triplet.statement, text) for triplet in triplets for text in texts]
        cosines = np.asarray(self._embeddings.cosines(pairs)).reshape(len(triplets), len(topics))
        own = cosines[range(len(triplets)), [topics.index(triplet.topic) for triplet in triplets]]
        return [bool(one) for one in own >= cosines.max(axis=1) - MARGIN]
