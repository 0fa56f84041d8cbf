"""What judges share: the order of their verdicts, and verdicts on documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_text.documents import Document
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    from cfbench_text.contracts import EntailmentJudge

ENTAILMENT, CONTRADICTION, NEUTRAL = 0, 1, 2
"""Indices in the last axis of what :meth:`~cfbench_text.contracts.EntailmentJudge.entailment` returns."""


def support_of_the_best(judge: EntailmentJudge, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
    """(N,) the largest probability with which a statement of the document entails the statement; 0 without any."""
    queries = [(premise, statement) for document, statement in pairs for premise in document.triplets]
    found = judge.entailment(queries)[:, ENTAILMENT]
    ends = np.cumsum([len(document.triplets) for document, _ in pairs], dtype=np.int64)
    parts = np.split(found, ends[:-1]) if pairs else []
    return np.array([part.max(initial=0.0) for part in parts], dtype=np.float64)
