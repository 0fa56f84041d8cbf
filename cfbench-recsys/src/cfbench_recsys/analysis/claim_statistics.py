"""Statistics that decide claims of papers, of means by setting.

Arrays are (..., settings, options): a setting is what two sides have in common, an option what they differ in, for
example an explainer. NaN is a missing mean and is ignored; a setting counts where both sides have a mean. The leading
axes are resamples of the users, so that one call gives a statistic with all its resampled values, of shape (...).
A statistic is NaN where no setting counts. Differences smaller than ``SAME`` are none.

Statistics of ``WITH_TIES`` depend on how ties are counted: ``ties`` is the part of a tie that counts for the subject. With
0 and 1 they are the two readings that ``verdicts.claim_verdict`` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

SAME = 1e-9
FAR = 1e18
"""Higher than the mean of any metric."""


def share_highest(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """In which share of the settings the highest mean of the subject is above all others; a tie is not above."""
    return _share(_highest(subject) - _highest(against), ties)


def share_lowest(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """In which share of the settings the lowest mean of the subject is below all others; a tie is not below."""
    return share_highest(-subject, -against, ties)


def share_above(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """In which share of the pairs of a setting, one option of each side, the subject's is above; a tie is not above."""
    pairs = subject[..., :, :, None] - against[..., :, None, :]
    return _share(pairs.reshape(*pairs.shape[:-3], -1), ties)


def share_rising(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """In which share of the steps from an option of the subject to the next, in the order of the claim, the mean rises."""
    steps = subject[..., 1:] - subject[..., :-1]
    return _share(steps.reshape(*steps.shape[:-2], -1), ties)


def share_falling(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """In which share of the steps from an option of the subject to the next, in the order of the claim, the mean falls."""
    return share_rising(-subject, against, ties)


def place_from_top(subject: FloatArray, against: FloatArray, ties: float = 0.5) -> FloatArray:
    """The place of the subject, 1 for the highest mean, on average over the settings in which no option is missing.

    Of several options of the subject the highest counts; those that tie share the mean of their places.
    """
    best = _highest(subject)[..., None]
    above = (against > best + SAME).sum(axis=-1)
    level = (np.abs(against - best) <= SAME).sum(axis=-1)
    complete = ~(np.isnan(subject).any(axis=-1) | np.isnan(against).any(axis=-1))
    return _mean(np.where(complete, 1.0 + above + (1.0 - ties) * level, np.nan))


def mean_difference(subject: FloatArray, against: FloatArray) -> FloatArray:
    """The mean of the subject minus that of the others, on average over settings."""
    return _mean(_mean(subject) - _mean(against))


def mean_gap(subject: FloatArray, against: FloatArray) -> FloatArray:
    """The absolute difference of the subject's mean and that of the others, on average over settings."""
    return _mean(np.abs(_mean(subject) - _mean(against)))


def ratio(subject: FloatArray, against: FloatArray) -> FloatArray:
    """How many times the mean of the others that of the subject is: the geometric mean over settings, of positive means."""
    top, bottom = _mean(subject), _mean(against)
    positive = (top > 0) & (bottom > 0)
    logarithms = np.log(np.where(positive, top, 1.0)) - np.log(np.where(positive, bottom, 1.0))
    return np.asarray(np.exp(_mean(np.where(positive, logarithms, np.nan))))


def largest(subject: FloatArray, against: FloatArray) -> FloatArray:
    """The highest mean of the subject in any setting."""
    return _highest(_highest(subject))


def most_often_highest(subject: FloatArray, against: FloatArray, ties: float = 0.0) -> FloatArray:
    """The share of settings in which one option is above all others, of the option for which it is largest.

    Settings with fewer than two options do not count, and a tie for the first place counts for none.
    """
    known = ~np.isnan(subject)
    counted = known.sum(axis=-1) > 1
    filled = np.where(known, subject, -np.inf)
    highest = filled.max(axis=-1, keepdims=True)
    first = (filled >= highest - SAME) & known & counted[..., None]
    alone = np.where(first.sum(axis=-1, keepdims=True) == 1, 1.0, ties) * first
    settings = counted.sum(axis=-1).astype(np.float64)
    settings = np.where(settings > 0, settings, np.nan)
    return np.asarray(alone.sum(axis=-2).max(axis=-1) / settings)


def rank_correlation(subject: FloatArray, against: FloatArray) -> FloatArray:
    """Kendall's tau-b of two orders of the same options, on average over settings.

    Both arrays have the same options in the same order. A setting counts if three options or more have a mean on both
    sides, and neither side has only ties.
    """
    both = ~(np.isnan(subject) | np.isnan(against))
    first, second = np.where(both, subject, np.nan), np.where(both, against, np.nan)
    one, other = _signs(first), _signs(second)
    agreement = np.nansum(one * other, axis=(-2, -1))
    scale = np.sqrt(np.nansum(one**2, axis=(-2, -1)) * np.nansum(other**2, axis=(-2, -1)))
    usable = (both.sum(axis=-1) > 2) & (scale > 0)
    return _mean(np.where(usable, agreement / np.where(usable, scale, 1.0), np.nan))


def range_difference(subject: FloatArray, against: FloatArray) -> FloatArray:
    """How much wider the range of the options is for the subject than for the others, on average over settings.

    Both arrays have the same options in the same order; those that are missing on one side are left out of both.
    """
    both = ~(np.isnan(subject) | np.isnan(against))
    first, second = np.where(both, subject, np.nan), np.where(both, against, np.nan)
    widths = [_highest(side) + _highest(-side) for side in (first, second)]
    several = both.sum(axis=-1) > 1
    return _mean(np.where(several, widths[0] - widths[1], np.nan))


def only_ties(subject: FloatArray, against: FloatArray) -> bool:
    """Whether a setting has three options with means on both sides, so that only ties can leave an order unknown."""
    both = ~(np.isnan(subject) | np.isnan(against))
    return bool((both.sum(axis=-1) > 2).any())


def at_a_bound(subject: FloatArray, against: FloatArray) -> float:
    """0 or 1 if all means on both sides are that end of a metric's range, where nothing can differ; NaN else."""
    known = np.concatenate([side[~np.isnan(side)] for side in (subject, against)])
    for end in (0.0, 1.0):
        if len(known) and (np.abs(known - end) <= SAME).all():
            return end
    return float("nan")


def with_missing_options(
    statistic: Callable[..., FloatArray],
    subject: FloatArray,
    against: FloatArray,
    missing: tuple[BoolArray, BoolArray],
) -> tuple[FloatArray, FloatArray]:
    """A statistic with missing means of both sides, (settings, options) each, being the best and the worst for the subject.

    Highest on the subject's side and lowest on the other, and the converse: between them lies the statistic for any means
    of the missing options, if it rises with each mean of one side and falls with each of the other.
    """
    ends = []
    for far in (FAR, -FAR):
        sides = [
            np.where(gaps, end, side)
            for side, gaps, end in zip((subject, against), missing, (far, -far), strict=True)
        ]
        ends.append(statistic(*sides))
    return ends[0], ends[1]


def with_missing_settings(
    low: float, high: float, present: int, absent: int, limits: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float]:
    """The limits of a mean over settings, if ``absent`` more parts had settings, too.

    Args:
        low, high: the limits of the mean over those that are present.
        present, absent: parts of what the mean is over, such as data sets; they have equally many settings each.
        limits: between which values the mean of a setting lies.
    """
    whole = present + absent
    return (low * present + limits[0] * absent) / whole, (high * present + limits[1] * absent) / whole


OF_ORDERS: Mapping[str, str] = {
    "rank-correlation": "explainer",
    "range-difference": "explainer",
    "place-gap-difference": "rank",
}
"""Statistics of two lists of the same options, and the label that distinguishes these; in others the contrast does."""
OF_DIFFERENCES = ("mean-difference", "mean-gap", "range-difference", "place-gap-difference")
"""Statistics that are zero if all means are at the same end of a metric's range."""
MONOTONIC = (
    "share-highest",
    "share-lowest",
    "share-above",
    "place-from-top",
    "mean-difference",
    "ratio",
    "largest",
)
"""Statistics that never fall, or never rise, with a mean of one side, and the converse with a mean of the other."""
WITH_TIES = (
    "share-highest",
    "share-lowest",
    "share-above",
    "place-from-top",
    "share-rising",
    "share-falling",
    "most-often-highest",
)

STATISTICS: Mapping[str, Callable[..., FloatArray]] = {
    "share-highest": share_highest,
    "share-lowest": share_lowest,
    "share-above": share_above,
    "share-rising": share_rising,
    "share-falling": share_falling,
    "place-from-top": place_from_top,
    "mean-difference": mean_difference,
    "mean-gap": mean_gap,
    "ratio": ratio,
    "largest": largest,
    "most-often-highest": most_often_highest,
    "rank-correlation": rank_correlation,
    "range-difference": range_difference,
    "place-gap-difference": range_difference,
}


def _mean(values: FloatArray) -> FloatArray:
    """Over the last axis, of what is there."""
    count = (~np.isnan(values)).sum(axis=-1).astype(np.float64)
    return np.asarray(np.nansum(values, axis=-1) / np.where(count > 0, count, np.nan))


def _highest(values: FloatArray) -> FloatArray:
    """Over the last axis, of what is there."""
    if values.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    filled = np.where(np.isnan(values), -np.inf, values).max(axis=-1)
    return np.asarray(np.where(np.isinf(filled), np.nan, filled))


def _share(differences: FloatArray, ties: float) -> FloatArray:
    """Of the differences that are there, how many are positive; those that are none count as ``ties``."""
    positive = np.where(np.abs(differences) <= SAME, ties, differences > SAME)
    return _mean(np.where(np.isnan(differences), np.nan, positive))


def _signs(values: FloatArray) -> FloatArray:
    """(..., options, options): 1, 0 or -1 for each pair."""
    differences = values[..., :, None] - values[..., None, :]
    return np.where(np.abs(differences) <= SAME, 0.0, np.sign(differences))
