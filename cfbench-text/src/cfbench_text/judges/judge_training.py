"""Trains the judge ``trained`` on label sets and on synthetic pairs, and measures whether it transfers.

Transfer is measured by leaving one data set out: a judge that is trained on the others scores the texts of that set, and
its scores are compared with the ratings as ``cfbench meta-evaluate`` does (StEnt-P on sentences). The last training
uses all sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cfbench_text.judges.made_pairs import MadePair
from cfbench_text.judges.pair_classifier import PairClassifier, PairSet, fit
from cfbench_text.judges.pair_features import NAMES, PairFeatures
from cfbench_text.meta_evaluation.agreement import agreement
from cfbench_text.meta_evaluation.labelled import LabelledTexts, keys_of
from cfbench_text.models.loading import Source, signature
from cfbench_text.reviews import BoolArray, FloatArray, IntArray
from cfbench_text.sentence_segmentation import sentences

ALIGNED = NAMES.index("aligned mean")
CHUNK = 20_000
"""Pairs whose features are computed at once."""


@dataclass(frozen=True)
class SentencePairs:
    """The sentences of N labelled texts against those of their evidence.

    Attributes:
        pairs: the Q distinct (premise, hypothesis). features: (Q, F).
        text, sentence, pair: (R,) a row for each pair of sentences of a text: which text, which of its sentences
            (numbered over all texts), and which distinct pair.
    """

    texts: LabelledTexts
    pairs: Sequence[tuple[str, str]]
    features: FloatArray
    text: IntArray
    sentence: IntArray
    pair: IntArray

    def best(self, scores: FloatArray) -> IntArray:
        """The row of the highest score (Q,) for each sentence."""
        order = np.lexsort((-scores[self.pair], self.sentence))
        _, first = np.unique(self.sentence[order], return_index=True)
        return np.asarray(order[first], dtype=np.int64)

    def scores(self, entailed: FloatArray) -> FloatArray:
        """(N,) StEnt-P: the mean over the sentences of a text of the highest probability (Q,); NaN without any."""
        rows = self.best(entailed)
        n = len(self.texts)
        sums = np.bincount(self.text[rows], entailed[self.pair[rows]], n)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / np.bincount(self.text[rows], minlength=n), dtype=np.float64)

    def training(self) -> PairSet:
        """Each sentence with the sentence of the evidence to which its words are best aligned."""
        rows = self.best(self.features[:, ALIGNED])
        of_text = self.text[rows]
        denied = self.texts.denied
        known = np.full(len(rows), np.nan) if denied is None else denied[of_text].astype(np.float64)
        return PairSet(
            self.texts.name,
            self.features[self.pair[rows]],
            self.texts.good[of_text],
            known,
            self.texts.documents[of_text],
        )


def sentence_pairs(texts: LabelledTexts, source: Source) -> SentencePairs:
    """All pairs of sentences of labelled texts, with their features."""
    distinct: dict[tuple[str, str], int] = {}
    rows, number = [], 0
    split = {one: sentences(one) for one in dict.fromkeys([*texts.texts, *texts.evidence])}
    for place, (text, evidence) in enumerate(zip(texts.texts, texts.evidence, strict=True)):
        for hypothesis in split[text]:
            for premise in split[evidence]:
                rows.append((place, number, distinct.setdefault((premise, hypothesis), len(distinct))))
            number += 1
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return SentencePairs(texts, list(distinct), features_of(list(distinct), source), *columns)


def features_of(pairs: Sequence[tuple[str, str]], source: Source) -> FloatArray:
    """(N, F), in parts that limit the memory for the vectors of tokens."""
    made = PairFeatures(source)
    parts = [made.of(pairs[start : start + CHUNK]) for start in range(0, len(pairs), CHUNK)]
    return np.concatenate(parts) if parts else np.empty((0, len(NAMES)))


def made_set(name: str, pairs: Sequence[MadePair], source: Source) -> PairSet:
    """Made pairs with their features."""
    known = [np.nan if one.contradicted is None else float(one.contradicted) for one in pairs]
    return PairSet(
        name,
        features_of([(one.premise, one.hypothesis) for one in pairs], source),
        np.array([one.entailed for one in pairs], dtype=bool),
        np.array(known, dtype=np.float64),
        np.array([one.document for one in pairs], dtype=np.int64),
    )


def train(
    labelled: Sequence[LabelledTexts],
    made: Mapping[str, Sequence[MadePair]],
    source: Source,
    resamples: int = 1000,
    report: Callable[[str], None] = lambda line: None,
) -> PairClassifier:
    """A classifier trained on all sets; ``about["transfer"]`` has its agreement with people on each, left out.

    Args:
        labelled: texts with human labels. made: made pairs, by the name of the data set of their statements.
        source: the encoder.
    """
    generated = []
    for name, pairs in made.items():
        report(f"{len(pairs):,} pairs made from {name}")
        generated.append(made_set(name, pairs, source))
    found = []
    for texts in labelled:
        report(f"{texts.name}: {len(texts):,} texts")
        found.append(sentence_pairs(texts, source))
    sets = [*generated, *(one.training() for one in found)]
    # Several views of the same texts (a text against its article, and against a summary) are left out together.
    transfer = [
        row
        for held in found
        if (others := [*generated, *(o.training() for o in found if not _related(o.texts, held.texts))])
        for row in [transfer_row(fit(others), held, [one.name for one in others], resamples)]
    ]
    about = {
        "sets": [{"name": one.name, "pairs": len(one.entailed)} for one in sets],
        "transfer": transfer,
    }
    seen = frozenset(key for texts in labelled for key in keys_of(texts))
    return replace(fit(sets), encoder=signature(source), about=about, seen=seen)


def _related(one: LabelledTexts, other: LabelledTexts) -> bool:
    return one is other or bool(set(one.texts) & set(other.texts))


def transfer_row(
    classifier: PairClassifier, held: SentencePairs, trained_on: Sequence[str], resamples: int
) -> dict[str, Any]:
    """Agreement with people on a set that was left out, and how well the probabilities are calibrated there."""
    texts = held.texts
    scores = held.scores(classifier.probabilities(held.features)[:, 0])
    measured = agreement(scores, texts.labels, texts.good, texts.documents, resamples)
    auc, low, high = measured.auc
    return {
        "labelset": texts.name,
        "rating": texts.rating,
        "trained_on": list(trained_on),
        "n": measured.n,
        "auc": auc,
        "auc_low": low,
        "auc_high": high,
        "calibration_error": calibration_error(scores, texts.good),
    }


def calibration_error(probabilities: FloatArray, right: BoolArray, bins: int = 10) -> float:
    """Expected calibration error (Guo et al. 2017, equation 5): bins of equal width, weighted by their numbers."""
    known = np.isfinite(probabilities)
    p, y = probabilities[known], right[known].astype(np.float64)
    place = np.minimum((p * bins).astype(np.int64), bins - 1)
    sums = [np.bincount(place, values, bins) for values in (p, y)]
    return float(np.abs(sums[0] - sums[1]).sum() / max(1, len(p)))
