"""Verdicts on printed numbers and claims of a paper, by one rule for all suites.

A printed number is *confirmed* when the 95% interval of ours lies within a margin of it, *refuted* when the interval
lies wholly outside of the margin, and *undecided* when it lies across. The margin is a share of the printed number, or
its printed deviation where that is larger, and at least what rounding may have changed. A claim compares a statistic
with a threshold: it is *confirmed* when the whole interval satisfies the relation, *refuted* when no part of it does,
and else *undecided*. A value without an interval (a count, a share of cases that were all observed) counts as an
interval of length zero.

What holds or fails only by how ties are counted is *undecided*: seven methods that all have the best value are all
first and all last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

CONFIRMED = "confirmed"
REFUTED = "refuted"
UNDECIDED = "undecided"
NOT_REPRODUCIBLE = "not reproducible"
NOT_COMPARABLE = "not comparable"
VERDICTS = (CONFIRMED, REFUTED, UNDECIDED, NOT_REPRODUCIBLE, NOT_COMPARABLE)
"""All verdicts in the order in which they are counted."""

MARGIN = 0.1
"""The default margin: a tenth of the printed number."""

_RELATIONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": lambda value, threshold: value < threshold,
    "<=": lambda value, threshold: value <= threshold,
    ">": lambda value, threshold: value > threshold,
    ">=": lambda value, threshold: value >= threshold,
}
RELATIONS = tuple(_RELATIONS)


class Interval(NamedTuple):
    """A value with its 95% interval. NaN as a limit: the value is exact. NaN as the value: there is none."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @property
    def limits(self) -> tuple[float, float]:
        """The interval; the value twice where it has none."""
        low = self.value if math.isnan(self.low) else self.low
        return low, self.value if math.isnan(self.high) else self.high


class Verdict(NamedTuple):
    """One of ``VERDICTS``, and its reason in a few words; the reason of a decided one is what was compared."""

    word: str
    reason: str = ""


def rounding(printed: str) -> float:
    """By how much rounding may have changed a number, from the decimals with which it is printed.

    Half of its last decimal: 0.05 for "2.0", 0.005 for "2.00". 0 for a number without decimals, which is a count, and
    for no number.
    """
    _, point, decimals = printed.partition(".")
    return 0.5 / 10 ** len(decimals) if point else 0.0


def number_verdict(
    printed: float,
    ours: Interval,
    *,
    deviation: float = math.nan,
    margin: float = MARGIN,
    rounded_by: float = 0.0,
) -> Verdict:
    """Whether our number is the printed one.

    Args:
        printed: the number in the paper.
        ours: our number with its interval.
        deviation: the printed "+-" of the number, NaN where there is none.
        margin: the share of the printed number by which ours may differ.
        rounded_by: how far the printed number may be from the one that was rounded (:func:`rounding`).
    """
    if math.isnan(printed):
        return Verdict(NOT_COMPARABLE, "no number is printed")
    if math.isnan(ours.value):
        return Verdict(NOT_REPRODUCIBLE, "not measured here")
    around = max(abs(printed) * margin, rounded_by)
    if not math.isnan(deviation):
        around = max(around, deviation)
    low, high = ours.limits
    allowed = f"{printed - around:.3g} to {printed + around:.3g}"
    if printed - around <= low and high <= printed + around:
        return Verdict(CONFIRMED, f"within {allowed}")
    if high < printed - around or low > printed + around:
        return Verdict(REFUTED, f"outside {allowed}")
    return Verdict(UNDECIDED, f"across a limit of {allowed}")


def claim_verdict(
    statistic: Interval,
    relation: str,
    threshold: float,
    *,
    readings: Sequence[Interval] = (),
    tied: str = "",
) -> Verdict:
    """Whether a claim "statistic relation threshold" holds.

    Args:
        statistic: with its interval.
        relation: one of ``RELATIONS``.
        threshold: what it is compared with.
        readings: the statistic with ties counted the one and the other way; the claim is undecided if they disagree.
        tied: why the measurements cannot decide, such as "all means are 1" or "without LXR"; empty if they can.

    Raises:
        ValueError: for an unknown relation.
    """
    if relation not in _RELATIONS:
        raise ValueError(f"relation must be one of {', '.join(RELATIONS)}, not {relation!r}")
    if tied:
        return Verdict(UNDECIDED, tied)
    if math.isnan(statistic.value):
        return Verdict(NOT_REPRODUCIBLE, "not measured here")
    if len({claim_verdict(reading, relation, threshold).word for reading in readings}) > 1:
        ends = sorted(limit for reading in readings for limit in reading.limits)
        by_ties = f"tied: {ends[0]:.3g} to {ends[-1]:.3g} by how ties are counted"
        return Verdict(UNDECIDED, f"{by_ties}, against {relation} {threshold:.3g}")
    low, high = statistic.limits
    holds = [_RELATIONS[relation](limit, threshold) for limit in (low, high)]
    shown = f"{low:.3g} to {high:.3g}" if low != high else f"{statistic.value:.3g}"
    reason = f"{shown} against {relation} {threshold:.3g}"
    if all(holds):
        return Verdict(CONFIRMED, reason)
    return Verdict(UNDECIDED if any(holds) else REFUTED, reason)


def count_verdicts(words: Iterable[str]) -> str:
    """ "7 confirmed, 4 refuted": how often each verdict occurs, in the order of ``VERDICTS``."""
    found = list(words)
    return ", ".join(f"{found.count(word)} {word}" for word in VERDICTS if word in found)
