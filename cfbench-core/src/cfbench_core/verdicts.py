"""Verdicts on printed numbers and claims of a paper, by one rule for all suites.

A printed number is *confirmed* when the 95% interval of ours lies within a margin of it, *refuted* when the interval
lies wholly outside of the margin, and *undecided* when it lies across. The margin is a share of the printed number, or
its printed deviation where that is larger, and at least what rounding may have changed. A claim compares a statistic
with a threshold: it is *confirmed* when the whole interval satisfies the relation, *refuted* when no part of it does,
and else *undecided*. A value without an interval (a count, a share of cases that were all observed) counts as an
interval of length zero, and one outside of its own interval as a part of it.

A claim of which a part was not run, such as one of its data sets, is *confirmed in part* or *refuted in part* where what was
run decides it and what is missing could change that (:func:`in_part`).

A mean of few units that all have the same value has a bootstrap interval of length zero, although units that were not
drawn may have other values. It decides nothing (:func:`too_few_equal`).

What holds or fails only by how ties are counted is *undecided*: seven methods that all have the best value are all
first and all last.

The reason of a verdict shows numbers with as many digits as keep them apart: who compares what it prints comes to the
same verdict.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

CONFIRMED = "confirmed"
REFUTED = "refuted"
UNDECIDED = "undecided"
CONFIRMED_IN_PART = "confirmed in part"
REFUTED_IN_PART = "refuted in part"
NOT_REPRODUCIBLE = "not reproducible"
NOT_COMPARABLE = "not comparable"
VERDICTS = (
    CONFIRMED,
    CONFIRMED_IN_PART,
    REFUTED,
    REFUTED_IN_PART,
    UNDECIDED,
    NOT_REPRODUCIBLE,
    NOT_COMPARABLE,
)
"""All verdicts in the order in which they are counted."""

_PARTLY = {CONFIRMED: CONFIRMED_IN_PART, REFUTED: REFUTED_IN_PART}

MARGIN = 0.1
"""The default margin: a tenth of the printed number."""

ENOUGH_EQUAL = 36
"""So many units with the same value exclude (97.5%) that a tenth of all, the default margin, has others: 0.9**36 < 0.025."""

_DIGITS, _EXACT = 3, 17
"""The significant digits of a number in a reason: usually, and at most; 17 write every number exactly."""

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
        """The interval, up to the value where that lies outside; the value twice where it has none.

        A bootstrap interval can leave its own value out: resampling adds noise, which makes gaps larger and orders less
        similar.
        """
        low = self.value if math.isnan(self.low) else min(self.low, self.value)
        return low, self.value if math.isnan(self.high) else max(self.high, self.value)


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
    allowed = " to ".join(_apart((printed - around, printed + around), (low, high)))
    if printed - around <= low and high <= printed + around:
        return Verdict(CONFIRMED, f"within {allowed}")
    if high < printed - around or low > printed + around:
        return Verdict(REFUTED, f"outside {allowed}")
    return Verdict(UNDECIDED, f"across a limit of {allowed}")


def too_few_equal(units: float, name: str) -> str:
    """Why a mean of so many units (``name``: "users"), all with the same value, decides nothing; empty if it does."""
    return f"all {units:.0f} {name} have the same value" if units < ENOUGH_EQUAL else ""


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
        first, last, limit = _apart((ends[0], ends[-1], threshold))
        return Verdict(
            UNDECIDED, f"tied: {first} to {last} by how ties are counted, against {relation} {limit}"
        )
    low, high = statistic.limits
    holds = [_RELATIONS[relation](limit, threshold) for limit in (low, high)]
    least, most, limit = _apart((low, high, threshold))
    reason = f"{least if low == high else f'{least} to {most}'} against {relation} {limit}"
    if all(holds):
        return Verdict(CONFIRMED, reason)
    return Verdict(UNDECIDED if any(holds) else REFUTED, reason)


def _apart(shown: Sequence[float], others: Sequence[float] = ()) -> list[str]:
    """Numbers with three significant digits, or as many more as they need.

    As printed they compare with each other, and with ``others`` (printed in the same way, or not), as they do exactly.
    """
    among, exact = _order(shown, shown), _order(shown, others)
    for digits in range(_DIGITS, _EXACT):
        texts = [_with_digits(number, digits) for number in shown]
        rounded = [_parsed(text) for text in texts]
        rounded_others = [_parsed(_with_digits(number, digits)) for number in others]
        same_among = _order(rounded, rounded) == among
        if same_among and exact == _order(rounded, rounded_others) == _order(rounded, others):
            return texts
    return [_with_digits(number, _EXACT) for number in shown]


def _order(numbers: Sequence[float], others: Sequence[float]) -> list[tuple[bool, bool]]:
    return [(one < other, one > other) for one in numbers for other in others]


def _with_digits(number: float, digits: int) -> str:
    """With so many significant digits; the whole part in full and with commas, as in 1,275."""
    number += 0.0  # no "-0"
    if not 1000 <= abs(number) < 1e15:
        return f"{number:.{digits}g}"
    text = f"{number:,.{max(0, digits - len(f'{abs(number):.0f}'))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _parsed(text: str) -> float:
    return float(text.replace(",", ""))


def in_part(
    found: Verdict, bounds: Iterable[Interval], relation: str, threshold: float, missing: str
) -> Verdict:
    """The verdict on a claim of which a part was not run.

    Args:
        found: the verdict by what was run.
        bounds: what the statistic could be with what is missing; nothing is missing if there are none.
        relation: one of ``RELATIONS``.
        threshold: what the statistic is compared with.
        missing: what was not run, in words.
    """
    others = {claim_verdict(bound, relation, threshold).word for bound in bounds}
    if found.word in _PARTLY and others - {found.word}:
        return Verdict(_PARTLY[found.word], f"{found.reason}, which {missing} could change")
    return found


def elsewhere(found: Verdict, here: str, paper: str) -> Verdict:
    """The verdict on a claim about data of a paper that other data decided: in part, with the data in the reason."""
    reason = "; ".join(filter(None, (found.reason, f"on {here} in place of {paper}")))
    return Verdict(_PARTLY.get(found.word, found.word), reason)


def count_verdicts(words: Iterable[str]) -> str:
    """ "7 confirmed, 4 refuted": how often each verdict occurs, in the order of ``VERDICTS``."""
    found = list(words)
    return ", ".join(f"{found.count(word)} {word}" for word in VERDICTS if word in found)
