"""How much rankings of explainers agree across levels of a model's quality, and what a sample of users makes of it.

Arrays alone. Throughout: U users, K places of the list, M metrics, L levels, E explainers, R resamples of users.
``top`` is how many of the first places of each user's list are averaged, 1..K.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cfbench_recsys.edits import BoolArray, FloatArray, IntArray

STATISTICS = ("spearman", "kendall", "rank variance", "rank changes")
_SAME = 12  # decimals: means that agree in these tie; what differs beyond is rounding
_BLOCK = 1_000_000  # draws of users held at once: 8 MB


# Agreement of rankings


def agreement(costs: FloatArray) -> FloatArray:
    """(..., 4) the ``STATISTICS`` of the rankings at L levels, from ``costs`` (..., L, E), low being good.

    - spearman, kendall: the mean over pairs of levels of Spearman's rho (Pearson's r of average ranks) and of
      Kendall's tau-b. A pair with a level at which all explainers tie has none and is left out.
    - rank variance: that of an explainer's rank over the L levels (divided by L), mean over explainers.
    - rank changes: the share of explainers and pairs of levels in which the rank is not the same.

    NaN where a cost is missing, or no pair has a correlation.
    """
    signs = _signs(costs)
    ranked = _ranks_from(signs)
    i, j = np.triu_indices(costs.shape[-1], 1)
    a, b = np.triu_indices(costs.shape[-2], 1)
    changed = (ranked[..., a, :] != ranked[..., b, :]).mean(axis=(-2, -1))
    found = (
        _mean_correlation(ranked - (costs.shape[-1] + 1) / 2),
        _mean_correlation(signs[..., i, j]),
        ranked.var(axis=-2).mean(axis=-1),
        np.where(np.isnan(ranked).any(axis=(-2, -1)), np.nan, changed),
    )
    return np.round(np.stack(found, axis=-1), _SAME)


def ranks(costs: FloatArray) -> FloatArray:
    """(..., E) ranks of ``costs`` (..., E), 1 the lowest, ties averaged; NaN where any is missing."""
    return _ranks_from(_signs(costs))


def shares_first(costs: FloatArray) -> FloatArray:
    """(..., E) at which share of the levels of ``costs`` (..., L, E) each has the lowest alone, of levels with all costs.

    NaN where there is no such level.
    """
    ranked = ranks(costs)
    return mean_of_known(np.where(np.isnan(ranked), np.nan, ranked == 1), axis=-2)


def _signs(costs: FloatArray) -> FloatArray:
    """(..., E, E) 1 where the first has the higher cost, -1 where the second, 0 where they tie."""
    rounded = np.round(costs, _SAME)
    signs: FloatArray = np.sign(rounded[..., :, None] - rounded[..., None, :])
    return signs


def _ranks_from(signs: FloatArray) -> FloatArray:
    found: FloatArray = (signs.shape[-1] + 1 + signs.sum(axis=-1)) / 2
    return found


def _mean_correlation(vectors: FloatArray) -> FloatArray:
    """(...) mean cosine of the pairs of L ``vectors`` (..., L, P), of the pairs that have one."""
    products = vectors @ np.swapaxes(vectors, -1, -2)
    squares = np.diagonal(products, axis1=-2, axis2=-1)
    a, b = np.triu_indices(vectors.shape[-2], 1)
    with np.errstate(invalid="ignore"):
        cosines = products[..., a, b] / np.sqrt(squares[..., a] * squares[..., b])
    return mean_of_known(cosines, axis=-1)


def mean_of_known(values: FloatArray, axis: int) -> FloatArray:
    """The mean of what is there, NaN where nothing is."""
    counts = (~np.isnan(values)).sum(axis=axis)
    return np.asarray(np.nansum(values, axis=axis) / np.where(counts > 0, counts, np.nan))


# Samples of users


class Sample:
    """Scores of explanations for U users, added up so that the means of any draw of users are one product.

    Explainers are compared on the same explanations: a place of a user's list counts for a metric and a level
    where every explainer has a value.
    """

    def __init__(self, values: FloatArray, higher: BoolArray) -> None:
        """``values`` (U, K, M, L, E), NaN where there is none; ``higher`` (M,) whether higher is better."""
        self.users, self.places, *self._shape = values.shape
        self._sign = np.where(higher, -1.0, 1.0)[:, None, None]
        there = np.asarray(~np.isnan(values).any(axis=-1))
        sums = np.where(there[..., None], values, 0.0).cumsum(axis=1)
        counts = there.cumsum(axis=1).astype(np.float64)
        self._sums = np.ascontiguousarray(sums.reshape(self.users, self.places, -1).swapaxes(0, 1))
        self._counts = np.ascontiguousarray(counts.reshape(self.users, self.places, -1).swapaxes(0, 1))

    def means(self, weights: FloatArray, top: int) -> FloatArray:
        """(R, M, L, E) means over the first ``top`` places of users who count ``weights`` (R, U) times."""
        metrics, levels, explainers = self._shape
        sums = (weights @ self._sums[top - 1]).reshape(-1, metrics, levels, explainers)
        counts = (weights @ self._counts[top - 1]).reshape(-1, metrics, levels, 1)
        return np.asarray(sums / np.where(counts > 0, counts, np.nan))

    def costs(self, means: FloatArray) -> FloatArray:
        """``means`` (..., M, L, E), turned so that low is good."""
        return self._sign * means

    def explanations(self, top: int) -> IntArray:
        """(M,) how many explanations are behind a mean over the first ``top`` places: the fewest of the levels."""
        counts = self._counts[top - 1].sum(axis=0).reshape(self._shape[:2])
        return np.asarray(counts.min(axis=1), dtype=np.int64)


def plain(sample: Sample, draws: IntArray) -> FloatArray:
    """(R, K, M, 4) agreement at top 1..K among all users of each draw, ``draws`` (R, U) indices of users."""
    weights = _weights(draws, sample.users)
    return np.stack([_agreement(sample, weights, top) for top in range(1, sample.places + 1)], axis=1)


def size_matched(sample: Sample, draws: IntArray) -> FloatArray:
    """(R, K, M, 4) as :func:`plain`, with as many explanations at top k as at top 1: U/k users, k items each.

    Of each draw, the first U/k users, the next U/k, ... are k samples of that size; their agreement is averaged.
    NaN where there are fewer than k users.
    """
    found = []
    for top in range(1, sample.places + 1):
        size = sample.users // top
        parts = [draws[:, part * size : (part + 1) * size] for part in range(top)]
        agreements = [_agreement(sample, _weights(part, sample.users), top) for part in parts]
        found.append(mean_of_known(np.stack(agreements), axis=0))
    return np.stack(found, axis=1)


def level_means(sample: Sample, draws: IntArray) -> FloatArray:
    """(R, K, M, L, E) means of each explainer at each level, at top 1, 2, ..., K."""
    weights = _weights(draws, sample.users)
    return np.stack([sample.means(weights, top) for top in range(1, sample.places + 1)], axis=1)


def _agreement(sample: Sample, weights: FloatArray, top: int) -> FloatArray:
    return agreement(sample.costs(sample.means(weights, top)))


def _weights(draws: IntArray, users: int) -> FloatArray:
    """(R, U) how often each user is in each of ``draws`` (R, n)."""
    rows = len(draws)
    places = draws + np.arange(rows)[:, None] * users
    return np.bincount(places.ravel(), minlength=rows * users).reshape(rows, users).astype(np.float64)


def bootstrap_draws(users: int, resamples: int, generator: np.random.Generator) -> Iterator[IntArray]:
    """Blocks (rows, U) of users drawn with replacement."""
    for rows in _blocks(users, resamples):
        yield generator.integers(0, users, size=(rows, users))


def partition_draws(users: int, partitions: int, generator: np.random.Generator) -> Iterator[IntArray]:
    """Blocks (rows, U) of all users in random order."""
    for rows in _blocks(users, partitions):
        yield generator.permuted(np.tile(np.arange(users), (rows, 1)), axis=1)


def _blocks(users: int, rows: int) -> Iterable[int]:
    size = max(1, _BLOCK // max(1, users))
    return [min(size, rows - start) for start in range(0, rows, size)]


# Estimates


class Estimate:
    """Numbers with their replicates: ``point`` (...), ``replicates`` (R, ...) over resamples of users."""

    def __init__(self, point: FloatArray, replicates: FloatArray) -> None:
        self.point = point
        self.replicates = replicates

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.point - other.point, self.replicates - other.replicates)

    def first_place(self) -> Estimate:
        """The first along the first axis, without dropping that axis."""
        return Estimate(self.point[:1], self.replicates[:, :1])

    def interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Percentiles of the replicates, of those that are there; NaN where none is."""
        tails = [(1 - level) / 2, (1 + level) / 2]
        known = ~np.isnan(self.replicates).all(axis=0)
        filled = np.where(known, self.replicates, 0.0)
        low, high = np.nanquantile(filled, tails, axis=0)
        return np.where(known, low, np.nan), np.where(known, high, np.nan)

    @staticmethod
    def mean(estimates: list[Estimate]) -> Estimate:
        """Of several samples: of points, and of replicates that are paired at random."""
        return Estimate(
            mean_of_known(np.stack([one.point for one in estimates]), axis=0),
            mean_of_known(np.stack([one.replicates for one in estimates]), axis=0),
        )
