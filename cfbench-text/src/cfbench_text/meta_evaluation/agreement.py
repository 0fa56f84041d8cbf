"""How well the values of a metric agree with human ratings: AUC, pairwise accuracy and Kendall's tau, with intervals.

- **AUC**: the probability that a text that people find right has a higher value than one that they do not (Mann & Whitney
  1947; ties count one half).
- **Pairwise accuracy** (as in the shared tasks on metrics of machine translation, Kocmi et al. 2021): of the pairs of texts
  with different ratings, the share that the metric orders as people do; ties of the metric count one half. Pairs are
  within a document if documents have several texts with different ratings, otherwise over all texts.
- **Kendall's tau-b** over all pairs, corrected for ties on both sides (Kendall 1945).

Intervals are percentile bootstraps over documents (Efron & Tibshirani 1993): the texts of a document are not
independent. All three are ratios of sums over pairs of texts, weighted by how often each text was drawn; a text that
was drawn twice is tied with itself. These sums come from cumulative weights in the order of the metric, so a resample
costs O(values x ratings), and all resamples of a block are computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_text.reviews import BoolArray, FloatArray, IntArray

LEVEL = 0.95
RESAMPLES = 1000
_BLOCK = 2_000_000  # weights held at once: 16 MB

MEASURES = ("auc", "pairwise", "kendall")


@dataclass(frozen=True)
class Agreement:
    """Each measure as (value, low, high), NaN where it is undefined, over ``n`` texts.

    Attributes:
        pairs: number of pairs of texts with different ratings behind ``pairwise``.
        within: whether these pairs are within documents.
    """

    auc: tuple[float, float, float]
    pairwise: tuple[float, float, float]
    kendall: tuple[float, float, float]
    n: int
    pairs: int
    within: bool


def agreement(
    values: FloatArray,
    labels: FloatArray,
    good: BoolArray,
    documents: IntArray,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Agreement:
    """Agreement of the values of a metric (higher is better) with human ratings.

    Args:
        values: (N,), NaN where the metric has no value: these texts are left out.
        labels: (N,) the ratings. good: (N,) which texts count as right.
        documents: (N,) rows with equal numbers are drawn together.
        resamples: of the bootstrap. seed: of its random stream; all metrics of a data set share the draws.
    """
    clusters = int(documents.max(initial=-1)) + 1
    known = np.isfinite(values)
    values, labels, good, documents = values[known], labels[known], good[known], documents[known]
    pairs = _Pairs(values, labels, good, documents)
    point = pairs.measures(np.ones((1, len(values))))[0]
    found = [pairs.measures(draws[:, documents]) for draws in _draws(clusters, len(values), resamples, seed)]
    drawn = np.concatenate(found) if found else np.empty((0, len(MEASURES)))
    enough = len(np.unique(documents)) >= 2
    auc, pairwise, kendall = (
        (float(value), *(_interval(column) if enough else (np.nan, np.nan)))
        for value, column in zip(point, drawn.T, strict=True)
    )
    return Agreement(auc, pairwise, kendall, n=len(values), pairs=pairs.number, within=pairs.within)


def _interval(drawn: FloatArray) -> tuple[float, float]:
    """The middle 95% of the resamples in which the measure is defined."""
    known = drawn[np.isfinite(drawn)]
    if len(known) < 2:
        return np.nan, np.nan
    low, high = np.quantile(known, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _draws(clusters: int, texts: int, resamples: int, seed: int) -> Iterator[FloatArray]:
    """How often each document is drawn in each resample, in blocks of (resamples of the block, clusters)."""
    stream = generator(seed, "meta-evaluation", clusters)
    size = max(1, _BLOCK // max(clusters, texts, 1))
    for start in range(0, resamples, size):
        rows = min(size, resamples - start)
        drawn = stream.integers(0, clusters, size=(rows, clusters)) + np.arange(rows)[:, None] * clusters
        yield np.bincount(drawn.ravel(), minlength=rows * clusters).reshape(rows, clusters).astype(np.float64)


class _Pairs:
    """Sums over pairs of N texts; rows of weights (R, N) say how often each text counts."""

    def __init__(self, values: FloatArray, labels: FloatArray, good: BoolArray, documents: IntArray) -> None:
        order = np.argsort(values, kind="stable")
        self._order = order
        ordered = values[order]
        new = np.ones(len(ordered), dtype=bool)
        new[1:] = ordered[1:] != ordered[:-1]
        self._starts = np.flatnonzero(new)
        self._good = good[order]
        self._levels = [labels[order] == level for level in np.unique(labels)]
        self._within = _pairs_within(values, labels, documents)
        self.within = bool(self._within.any())
        self._first_of = np.unique(documents, return_index=True)[1]
        self.number = int(self._within.sum()) if self.within else _different(labels)

    def measures(self, weights: FloatArray) -> FloatArray:
        """(R, 3): AUC, pairwise accuracy and tau-b for rows of weights (R, N)."""
        if not len(self._starts):
            return np.full((len(weights), 3), np.nan)
        ordered = weights[:, self._order]
        with np.errstate(invalid="ignore", divide="ignore"):
            excess, pairs = self._ordered(ordered, self._good, ~self._good)
            auc = (excess / pairs + 1) / 2
            concordant, different = self._over_ratings(ordered)
            kendall = concordant / np.sqrt(self._untied(ordered) * different)
            if self.within:
                sums = weights[:, self._first_of] @ self._within
                pairwise = (sums[:, 0] + sums[:, 2] / 2) / sums.sum(axis=1)
            else:
                pairwise = (concordant / different + 1) / 2
        return np.column_stack([auc, pairwise, kendall])

    def _over_ratings(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(R,) concordant minus discordant pairs, and pairs with different ratings."""
        excess, pairs = np.zeros(len(weights)), np.zeros(len(weights))
        lower = np.zeros(weights.shape[1], dtype=bool)
        for level in self._levels:
            more, some = self._ordered(weights, level, lower)
            excess, pairs, lower = excess + more, pairs + some, lower | level
        return excess, pairs

    def _ordered(
        self, weights: FloatArray, better: BoolArray, worse: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """(R,) pairs that the metric orders rightly minus those that it orders wrongly, and all such pairs."""
        if not worse.any():
            return np.zeros(len(weights)), np.zeros(len(weights))
        above = np.add.reduceat(weights * better, self._starts, axis=1)
        below = np.add.reduceat(weights * worse, self._starts, axis=1)
        beneath = np.cumsum(below, axis=1)
        all_below = beneath[:, -1]
        # Below a value minus above it: (beneath - below) - (all - beneath).
        excess = np.einsum("ij,ij->i", above, 2 * beneath - below - all_below[:, None])
        return excess, above.sum(axis=1) * all_below

    def _untied(self, weights: FloatArray) -> FloatArray:
        """(R,) pairs with different values of the metric."""
        of_value = np.add.reduceat(weights, self._starts, axis=1)
        untied: FloatArray = (weights.sum(axis=1) ** 2 - np.einsum("ij,ij->i", of_value, of_value)) / 2
        return untied


def _different(labels: FloatArray) -> int:
    """Number of pairs with different ratings."""
    counts = np.unique(labels, return_counts=True)[1]
    return int((len(labels) ** 2 - (counts**2).sum()) // 2)


def _pairs_within(values: FloatArray, labels: FloatArray, documents: IntArray) -> FloatArray:
    """(D, 3) for each document with a text, in ascending order: its concordant, discordant and tied pairs."""
    order = np.argsort(documents, kind="stable")
    ends = np.flatnonzero(np.diff(documents[order])) + 1
    found = []
    for rows in np.split(order, ends) if len(order) else []:
        signs = np.sign(labels[rows][:, None] - labels[rows]) * np.sign(values[rows][:, None] - values[rows])
        higher = labels[rows][:, None] > labels[rows]
        found.append([((signs == sign) & higher).sum() for sign in (1, -1, 0)])
    return np.asarray(found, dtype=np.float64).reshape(-1, 3)
