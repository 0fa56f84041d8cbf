"""Asks a judge about rows of statements: every distinct question once, in one batch for both directions."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from cfbench_text.judges.base import Document, Judge
from cfbench_text.metrics.base import Verdicts
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

Triplets = Sequence[tuple[Triplet, ...]]


def verdicts(
    judge: Judge,
    asked: Collection[str],
    predicted: Triplets,
    evidence: Triplets,
    texts: Sequence[str],
    references: Sequence[str],
) -> Verdicts:
    """What the judge says of B rows. ``asked``: "entailment", "support" or both; the rest stays empty."""
    found: dict[str, Any] = {}
    if "entailment" in asked:
        pairs = [
            [(premise, hypothesis) for hypothesis in mine for premise in others]
            for mine, others in _both_ways(predicted, evidence)
        ]
        answers = each_once(pairs, judge.entailment)
        shaped = [
            answer.reshape(len(mine), len(others), 3)
            for answer, (mine, others) in zip(answers, _both_ways(predicted, evidence), strict=True)
        ]
        found["of_predicted"], found["of_evidence"] = shaped[: len(predicted)], shaped[len(predicted) :]
    if "support" in asked:
        sides = zip([*references, *texts], [*evidence, *predicted], strict=True)
        documents = [Document(text, triplets) for text, triplets in sides]
        questions = [
            [(document, statement) for statement in statements]
            for document, statements in zip(documents, [*predicted, *evidence], strict=True)
        ]
        answers = each_once(questions, judge.support)
        found["supported"], found["covered"] = answers[: len(predicted)], answers[len(predicted) :]
    return Verdicts(**found)


def _both_ways(
    predicted: Triplets, evidence: Triplets
) -> list[tuple[tuple[Triplet, ...], tuple[Triplet, ...]]]:
    """(hypotheses, premises) of each row: the text's statements first, then the reference's."""
    return [*zip(predicted, evidence, strict=True), *zip(evidence, predicted, strict=True)]


def each_once(questions: Sequence[Sequence[Hashable]], ask: Any) -> list[FloatArray]:
    """The answers to lists of questions; each distinct question is asked once."""
    distinct = {
        question: place for place, question in enumerate(dict.fromkeys(q for row in questions for q in row))
    }
    answers = np.asarray(ask(list(distinct)), dtype=np.float64) if distinct else np.empty(0)
    if len(answers) != len(distinct) or not np.isfinite(answers).all():
        raise ValueError(
            f"the judge gave shape {answers.shape} for {len(distinct)} questions, or no finite number"
        )
    return [answers[[distinct[question] for question in row]] for row in questions]
