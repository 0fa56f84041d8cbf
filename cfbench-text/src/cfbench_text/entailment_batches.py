"""Queries a judge for rows of statements: each distinct query once, in one batch for both directions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from cfbench_text.documents import Document
from cfbench_text.metrics.base import ObservedTexts, Verdicts
from cfbench_text.reviews import FloatArray
from cfbench_text.triplets import Triplet

if TYPE_CHECKING:
    from cfbench_text.contracts import EntailmentJudge, Judge, SupportJudge

Triplets = Sequence[tuple[Triplet, ...]]
Query = TypeVar("Query", bound=Hashable)


def judged_texts(
    seen: ObservedTexts, judges: Mapping[str, Judge], needed: Sequence[tuple[str, str]]
) -> dict[str, Verdicts]:
    """The verdicts of judges on B texts, by the label of the judge.

    Args:
        judges: by label. needed: pairs of such a label and a verdict, "entailment" or "support".
    """
    sides = (seen.predicted, seen.evidence, seen.texts, seen.references)
    return {
        label: verdicts(judge, {verdict for by, verdict in needed if by == label}, *sides)
        for label, judge in judges.items()
    }


def verdicts(
    judge: Judge,
    needed: Collection[str],
    predicted: Triplets,
    evidence: Triplets,
    texts: Sequence[str],
    references: Sequence[str],
) -> Verdicts:
    """The verdicts on B rows. ``needed``: "entailment", "support" or both; the other fields stay empty."""
    found: dict[str, Any] = {}
    if "entailment" in needed:
        sides = [*zip(predicted, evidence, strict=True), *zip(evidence, predicted, strict=True)]
        pairs = [
            [(premise, hypothesis) for hypothesis in hypotheses for premise in premises]
            for hypotheses, premises in sides
        ]
        probabilities = distinct_queries(pairs, cast("EntailmentJudge", judge).entailment)
        shaped = [
            of_row.reshape(len(hypotheses), len(premises), 3)
            for of_row, (hypotheses, premises) in zip(probabilities, sides, strict=True)
        ]
        found["of_predicted"], found["of_evidence"] = shaped[: len(predicted)], shaped[len(predicted) :]
    if "support" in needed:
        documents = [
            Document(text, triplets)
            for text, triplets in zip([*references, *texts], [*evidence, *predicted], strict=True)
        ]
        queries = [
            [(document, statement) for statement in statements]
            for document, statements in zip(documents, [*predicted, *evidence], strict=True)
        ]
        support = distinct_queries(queries, cast("SupportJudge", judge).support, undecided=True)
        found["supported"], found["covered"] = support[: len(predicted)], support[len(predicted) :]
    return Verdicts(**found)


def distinct_queries(
    queries: Sequence[Sequence[Query]],
    answer: Callable[[Sequence[Query]], FloatArray],
    undecided: bool = False,
) -> list[FloatArray]:
    """The results of lists of queries; ``answer`` receives each distinct query once.

    Args:
        undecided: whether a result may be NaN.

    Raises:
        ValueError: if ``answer`` does not return a finite number for each query.
    """
    place = {query: at for at, query in enumerate(dict.fromkeys(query for row in queries for query in row))}
    values = np.asarray(answer(list(place)), dtype=np.float64) if place else np.empty(0)
    if len(values) != len(place) or not (np.isfinite(values) | (undecided & np.isnan(values))).all():
        raise ValueError(
            f"the judge returned shape {values.shape} for {len(place)} queries, or a number that is not finite"
        )
    return [values[[place[query] for query in row]] for row in queries]
