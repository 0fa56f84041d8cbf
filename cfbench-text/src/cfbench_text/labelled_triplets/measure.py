"""Precision and recall of an extractor on labelled triplets, and the agreement of passes of annotation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cfbench_text.contracts import Extractor
from cfbench_text.labelled_triplets.agreement import OUTCOMES, outcomes
from cfbench_text.labelled_triplets.labels import Half, LabelledText
from cfbench_text.labelled_triplets.sets import LabelledSet
from cfbench_text.statement_extraction import extract_distinct

if TYPE_CHECKING:
    import pandas as pd

AGREEMENT = "pass {}"
"""Stands for the extractor in rows that compare a later pass of annotation with the first."""


def in_half(texts: Sequence[LabelledText], half: Half) -> list[LabelledText]:
    """The texts of a half, or all."""
    return [one for one in texts if half == "all" or one.half == half]


def measured(found: LabelledSet, extractors: dict[str, Extractor], half: Half) -> list[dict[str, Any]]:
    """A row for each extractor and pass, with the number of triplets by outcome, ``precision`` and ``recall``.

    A failed extraction counts as no statement: its labels are missed. Texts without a row of a pass are left out of it.
    """
    texts = in_half(found.texts, half)
    passes = sorted({number for one in texts for number in one.passes})
    rows = []
    for name, extractor in extractors.items():
        results = extract_distinct(extractor, [one.text for one in texts], found.domain, name)
        for number in passes:
            counts: Counter[str] = Counter()
            labels = 0
            for one, result in zip(texts, results, strict=True):
                if number in one.passes:
                    counts.update(outcomes(result.triplets, one.passes[number]))
                    labels += len(one.passes[number])
            rows.append(_row(found.name, name, half, number, texts, counts, labels))
    for number in passes:
        both = [one for one in texts if number > 1 and {1, number} <= set(one.passes)]
        if both:
            counts = Counter(one for text in both for one in outcomes(text.passes[number], text.passes[1]))
            labels = sum(len(text.passes[1]) for text in both)
            rows.append(_row(found.name, AGREEMENT.format(number), half, 1, both, counts, labels))
    return rows


def _row(
    name: str,
    extractor: str,
    half: Half,
    number: int,
    texts: Sequence[LabelledText],
    counts: Counter[str],
    labels: int,
) -> dict[str, Any]:
    extracted = counts.total()
    return {
        "set": name,
        "half": half,
        "extractor": extractor,
        "labels_of_pass": number,
        "texts": sum(number in one.passes for one in texts),
        "extracted": extracted,
        "labels": labels,
        **{outcome: counts[outcome] for outcome in OUTCOMES},
        "precision": counts["right"] / extracted if extracted else float("nan"),
        "no_statement": counts["none"] / extracted if extracted else float("nan"),
        "recall": counts["right"] / labels if labels else float("nan"),
    }


def errors(found: LabelledSet, extractor: Extractor, half: Half, most: int) -> list[dict[str, str]]:
    """The first wrong triplets by the order of the ids: what each is, its topic and sentiment, without its words.

    Args:
        most: how many.
    """
    rows: list[dict[str, str]] = []
    texts = sorted(in_half(found.texts, half), key=lambda one: one.id)
    for one in texts:
        extracted = extractor.extract([one.text], found.domain)[0].triplets
        first = one.passes[min(one.passes)]
        for triplet, outcome in zip(extracted, outcomes(extracted, first), strict=True):
            if outcome != "right":
                rows.append(
                    {
                        "set": found.name,
                        "half": one.half,
                        "id": one.id,
                        "outcome": outcome,
                        "topic": triplet.topic,
                        "sentiment": triplet.sentiment,
                    }
                )
    return rows[:most]


def table(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """The rows of :func:`measured` as a table."""
    import pandas as pd

    return pd.DataFrame(rows)
