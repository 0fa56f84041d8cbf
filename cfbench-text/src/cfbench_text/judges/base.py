"""What the suite asks of a judge: does one statement follow from another, or contradict it?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

ENTAILMENT, CONTRADICTION, NEUTRAL = 0, 1, 2
"""Places in the last axis of what :meth:`Judge.entailment` returns."""


@dataclass(frozen=True)
class Document:
    """What a statement is held against: a paragraph and the statements in it."""

    text: str
    triplets: tuple[Triplet, ...]


class Judge(Protocol):
    """A component of kind "judge": ``Name(config)``, then ``prepare``, then questions.

    It says what it answers by ``provides={"verdict": {...}}``: "entailment" (probabilities for pairs of
    statements, as NLI models give them), "support" (of one statement by a whole document, as an LLM is asked),
    or both; metrics say which they need. Pairs come without repetition; one that asks a model sorts them by
    length, asks in batches and keeps the answers by hash. A statement is judged as the sentence
    :func:`cfbench_text.triplets.sentence` makes of it, so that its sentiment is part of it.
    """

    def prepare(self, statements: Collection[str]) -> None:
        """Is given the statements of the training reviews, once, before any question; most need nothing of it.

        They are read from a file whenever they are gone through: of many it pays to keep counts, not the list."""

    def entailment(self, pairs: Sequence[tuple[Triplet, Triplet]]) -> FloatArray:
        """(N, 3) probabilities of entailment, contradiction, neutral for (premise, hypothesis)."""

    def support(self, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
        """(N,) in [0, 1]: how sure it is that the document supports the statement."""

    def signature(self) -> Mapping[str, str]:
        """What determines its answers beside the options: model and revision or hash, label order, versions."""


def support_of_the_best(judge: Judge, pairs: Sequence[tuple[Document, Triplet]]) -> FloatArray:
    """(N,) how surely some statement of each document entails the statement; 0 without any."""
    asked = [(premise, statement) for document, statement in pairs for premise in document.triplets]
    found = judge.entailment(asked)[:, ENTAILMENT]
    ends = np.cumsum([len(document.triplets) for document, _ in pairs], dtype=np.int64)
    parts = np.split(found, ends[:-1]) if pairs else []
    return np.array([part.max(initial=0.0) for part in parts], dtype=np.float64)
