"""Texts with human labels: what a metric, a judge or an extractor is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cfbench_core.data_files import DataAccess, DataFiles, Source
from cfbench_core.errors import UserError
from cfbench_core.hashing import digest
from cfbench_core.user_files import user_files
from cfbench_text.reviews import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LabelledTexts:
    """N texts, what each is compared with, and how people rated it.

    Attributes:
        name: of the data set. rating: what people rated ("fact", "entailment").
        texts: what was rated. evidence: what each is compared with.
        labels: (N,) the ratings; higher is better.
        good: (N,) which texts count as right, for the AUC. rule: how this follows from the rating, in a few words.
        documents: (N,) rows with equal numbers belong to one document; they are drawn together.
        denied: (N,) which texts contradict their evidence; None where the labels do not tell.
    """

    name: str
    rating: str
    texts: Sequence[str]
    evidence: Sequence[str]
    labels: FloatArray
    good: BoolArray
    documents: IntArray
    rule: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)
    denied: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, places: IntArray) -> LabelledTexts:
        """Some rows, in that order."""
        return replace(
            self,
            texts=[self.texts[place] for place in places.tolist()],
            evidence=[self.evidence[place] for place in places.tolist()],
            labels=self.labels[places],
            good=self.good[places],
            documents=self.documents[places],
            denied=None if self.denied is None else self.denied[places],
        )


def located(files: DataFiles, path: str | None, access: DataAccess) -> Source:
    """The file that a configuration names, or those of a label set in the data folders.

    Raises:
        UserError: if they are not there; where they were looked for, and how to get them.
    """
    return access.find(files) if path is None else user_files({"path": path})


def labelled(
    name: str,
    rating: str,
    rows: Sequence[tuple[str, str, float]],
    documents: Sequence[Any] | None = None,
    threshold: float | None = None,
) -> LabelledTexts:
    """Rows of text, evidence and rating.

    Args:
        documents: what each row belongs to; None: rows with the same evidence belong together.
        threshold: ratings from here on count as right; None: only the best rating that occurs.

    Raises:
        UserError: if there are fewer than two ratings to tell apart.
    """
    ratings = np.array([rated for _, _, rated in rows], dtype=np.float64)
    if len(rows) < 2 or np.ptp(ratings) == 0:
        raise UserError(f"{name}: needs texts with at least two different ratings ({rating})")
    limit = float(ratings.max()) if threshold is None else threshold
    good = ratings >= limit - 1e-9
    if good.all() or not good.any():
        raise UserError(
            f"{name}: {'all' if good.all() else 'no'} ratings are at least {limit:g}; they are from "
            f"{ratings.min():g} to {ratings.max():g} ({rating})"
        )
    belongs = [str(evidence) for _, evidence, _ in rows] if documents is None else list(map(str, documents))
    numbers = np.unique(np.asarray(belongs, dtype=object), return_inverse=True)[1].astype(np.int64)
    return LabelledTexts(
        name,
        rating,
        [text for text, _, _ in rows],
        [evidence for _, evidence, _ in rows],
        ratings,
        good,
        numbers,
        f"{rating} >= {limit:g}",
    )


def keys_of(texts: LabelledTexts) -> list[str]:
    """A short digest of each text with its evidence, by which a judge that was trained on it is recognised."""
    return [digest([text, e])[:12] for text, e in zip(texts.texts, texts.evidence, strict=True)]
