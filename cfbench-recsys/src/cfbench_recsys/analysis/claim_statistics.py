"""Statistics that decide claims of papers, of means by setting.

Arrays are (..., settings, options): a setting is what two sides have in common, an option what they differ in, for
example an explainer. NaN is a missing mean and is ignored; a setting counts where both sides have a mean. The leading
axes are resamples of the users, so that one call gives a statistic with all its resampled values, of shape (...).
A statistic is NaN where no setting counts. Differences smaller than ``SAME`` are none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray, FloatArray], FloatArray]

SAME = 1e-9


def share_highest(subject: FloatArray, against: FloatArray) -> FloatArray:
    """In which share of the settings the highest mean of the subject is above all others; a tie is not above."""
    return _share(_highest(subject) - _highest(against))


def share_lowest(subject: FloatArray, against: FloatArray) -> FloatArray:
    """In which share of the settings the lowest mean of the subject is below all others; a tie is not below."""
    return share_highest(-subject, -against)


def share_above(subject: FloatArray, against: FloatArray) -> FloatArray:
    """In which share of the pairs of a setting, one option of each side, the subject's is above; a tie is not above."""
    pairs = subject[..., :, :, None] - against[..., :, None, :]
    return _share(pairs.reshape(*pairs.shape[:-3], -1))


def place_from_top(subject: FloatArray, against: FloatArray) -> FloatArray:
    """The place of the subject, 1 for the highest mean, on average over the settings in which no option is missing.

    Of several options of the subject the highest counts; of those that tie, all have the better place.
    """
    above = (against > _highest(subject)[..., None] + SAME).sum(axis=-1)
    complete = ~(np.isnan(subject).any(axis=-1) | np.isnan(against).any(axis=-1))
    return _mean(np.where(complete, 1.0 + above, np.nan))


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


def most_often_highest(subject: FloatArray, against: FloatArray) -> FloatArray:
    """The share of settings in which one option is above all others, of the option for which it is largest.

    Settings with fewer than two options do not count.
    """
    known = ~np.isnan(subject)
    counted = known.sum(axis=-1) > 1
    filled = np.where(known, subject, -np.inf)
    highest = filled.max(axis=-1, keepdims=True)
    first = (filled >= highest - SAME) & known & counted[..., None]
    alone = first & (first.sum(axis=-1, keepdims=True) == 1)
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


OF_ORDERS = ("rank-correlation", "range-difference")
"""Statistics of two lists of the same explainers; the others are of options."""

STATISTICS: Mapping[str, Statistic] = {
    "share-highest": share_highest,
    "share-lowest": share_lowest,
    "share-above": share_above,
    "place-from-top": place_from_top,
    "mean-difference": mean_difference,
    "mean-gap": mean_gap,
    "ratio": ratio,
    "largest": largest,
    "most-often-highest": most_often_highest,
    "rank-correlation": rank_correlation,
    "range-difference": range_difference,
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


def _share(differences: FloatArray) -> FloatArray:
    """Of the differences that are there, how many are positive."""
    return _mean(np.where(np.isnan(differences), np.nan, differences > SAME))


def _signs(values: FloatArray) -> FloatArray:
    """(..., options, options): 1, 0 or -1 for each pair."""
    differences = values[..., :, None] - values[..., None, :]
    return np.where(np.abs(differences) <= SAME, 0.0, np.sign(differences))
