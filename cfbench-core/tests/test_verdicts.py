"""Verdicts against a plain enumeration of the cases, and their properties."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.verdicts import (
    CONFIRMED,
    NOT_COMPARABLE,
    NOT_REPRODUCIBLE,
    REFUTED,
    RELATIONS,
    UNDECIDED,
    VERDICTS,
    Interval,
    claim_verdict,
    count_verdicts,
    in_part,
    number_verdict,
    rounding,
)

NUMBERS = st.floats(-1e6, 1e6)


@pytest.mark.parametrize(
    ("ours", "deviation", "word"),
    [
        (Interval(0.52, 0.48, 0.54), math.nan, CONFIRMED),
        (Interval(0.52, 0.48, 0.56), math.nan, UNDECIDED),
        (Interval(0.60, 0.56, 0.64), math.nan, REFUTED),
        (Interval(0.60, 0.56, 0.64), 0.2, CONFIRMED),  # the printed deviation is larger than the margin
        (Interval(0.54), math.nan, CONFIRMED),
        (Interval(0.56), math.nan, REFUTED),
        (Interval(math.nan), math.nan, NOT_REPRODUCIBLE),
    ],
)
def test_a_number_is_confirmed_within_its_margin(ours: Interval, deviation: float, word: str) -> None:
    assert number_verdict(0.5, ours, deviation=deviation).word == word


@pytest.mark.parametrize(
    ("printed", "half"),
    [
        ("2", 0.0),
        ("2.0", 0.05),
        ("2.00", 0.005),
        ("-0.0286", 0.00005),
        ("0", 0.0),
        ("", 0.0),
        ("586114", 0.0),
    ],
)
def test_rounding_is_half_of_the_last_decimal(printed: str, half: float) -> None:
    assert rounding(printed) == pytest.approx(half, abs=1e-12)


@given(st.floats(-100, 100), st.integers(1, 6))
def test_a_number_lies_within_the_rounding_of_how_it_is_printed(value: float, decimals: int) -> None:
    printed = f"{value:.{decimals}f}"
    half = rounding(printed)
    assert abs(float(printed) - value) <= half * (1 + 1e-9) + 1e-13
    found = number_verdict(float(printed), Interval(value), margin=0.0, rounded_by=half + 1e-13)
    assert found.word == "confirmed"
    beyond = Interval(float(printed) + 1.01 * half)
    assert number_verdict(float(printed), beyond, margin=0.0, rounded_by=half).word == "refuted"


def test_a_number_that_is_not_printed_is_not_comparable() -> None:
    assert number_verdict(math.nan, Interval(1.0)).word == NOT_COMPARABLE


@given(NUMBERS, NUMBERS, NUMBERS, st.sampled_from(RELATIONS), NUMBERS)
def test_a_claim_is_decided_by_its_whole_interval(
    one: float, other: float, value: float, relation: str, threshold: float
) -> None:
    low, _, high = sorted((one, value, other))
    inside = [low, *(low + (high - low) * part for part in (0.25, 0.5, 0.75)), high]
    holds = [eval_relation(point, relation, threshold) for point in inside]
    word = claim_verdict(Interval(value, low, high), relation, threshold).word
    assert (word == CONFIRMED) == all(holds)
    assert (word == REFUTED) == (not any(holds))


def test_a_value_outside_of_its_interval_decides_nothing_against_itself() -> None:
    """The gap of two means that are equal is 0, and larger in every draw of the users."""
    gap = Interval(0.0, 0.08, 0.28)
    assert gap.limits == (0.0, 0.28)
    assert claim_verdict(gap, "<=", 0.05) == (UNDECIDED, "0 to 0.28 against <= 0.05")
    assert claim_verdict(gap, "<=", 0.3).word == CONFIRMED and claim_verdict(gap, ">", 0.3).word == REFUTED
    agreement = Interval(0.95, 0.8, 0.88)
    assert claim_verdict(agreement, "<", 0.9).word == UNDECIDED
    assert number_verdict(0.95, agreement, margin=0.01).word == UNDECIDED


def eval_relation(value: float, relation: str, threshold: float) -> bool:
    equal = value == threshold and "=" in relation
    return equal or (value < threshold if relation.startswith("<") else value > threshold)


def test_a_claim_without_a_statistic_is_not_reproducible() -> None:
    assert claim_verdict(Interval(math.nan), "<", 1).word == NOT_REPRODUCIBLE


@given(NUMBERS, NUMBERS, st.sampled_from(RELATIONS), NUMBERS)
def test_a_claim_that_ties_decide_is_undecided(
    one: float, other: float, relation: str, threshold: float
) -> None:
    readings = (Interval(one), Interval(other))
    found = claim_verdict(Interval((one + other) / 2), relation, threshold, readings=readings)
    same = eval_relation(one, relation, threshold) == eval_relation(other, relation, threshold)
    assert (found.word == UNDECIDED) == (not same) == found.reason.startswith("tied: ")


def test_means_that_all_tie_decide_nothing() -> None:
    for value in (math.nan, 0.0):
        found = claim_verdict(Interval(value), "<=", 1, tied="all means are 1")
        assert found == (UNDECIDED, "all means are 1")


def test_an_unknown_relation_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match="one of <, <=, >, >="):
        claim_verdict(Interval(1.0), "==", 1)


def test_verdicts_are_counted_in_their_order() -> None:
    assert count_verdicts(["refuted", "confirmed", "refuted"]) == "1 confirmed, 2 refuted"


def test_the_reason_of_a_tie_has_the_whole_range_of_both_readings() -> None:
    readings = [Interval(1.0, 0.5, 1.0), Interval(1.0, 1.0, 1.0)]
    found = claim_verdict(Interval(1.0, 0.5, 1.0), ">", 0.5, readings=readings)
    assert found == ("undecided", "tied: 0.5 to 1 by how ties are counted, against > 0.5")


@pytest.mark.parametrize(
    ("printed", "ours", "rounded_by", "reason"),
    [
        (1275.0, Interval(1275.0), 0.0, "within 1,275 to 1,275"),
        (170.16, Interval(170.1059), 0.005, "outside 170.155 to 170.165"),
        (5.07, Interval(5.0749), 0.005, "within 5.065 to 5.075"),
        (0.5, Interval(0.52, 0.48, 0.54), 0.1, "within 0.4 to 0.6"),
        (28.53, Interval(28.5, 28.4, 28.6), 0.05, "across a limit of 28.48 to 28.58"),
        (0.0, Interval(1.0), 0.00005, "outside -5e-05 to 5e-05"),
    ],
)
def test_limits_have_the_digits_that_keep_them_apart_from_ours(
    printed: float, ours: Interval, rounded_by: float, reason: str
) -> None:
    found = number_verdict(printed, ours, margin=0.0, rounded_by=rounded_by)
    assert found.reason == reason


@pytest.mark.parametrize(
    ("statistic", "threshold", "reason"),
    [
        (Interval(0.5001, 0.5001, 0.5003), 0.5002, "0.5001 to 0.5003 against < 0.5002"),
        (Interval(0.50004), 0.5, "0.50004 against < 0.5"),
        (Interval(1234.4), 1234.5, "1,234.4 against < 1,234.5"),
        (Interval(2.0), 3.0, "2 against < 3"),
    ],
)
def test_a_claim_has_the_digits_that_keep_its_numbers_apart(
    statistic: Interval, threshold: float, reason: str
) -> None:
    assert claim_verdict(statistic, "<", threshold).reason == reason


def numbers_of(reason: str) -> list[float]:
    return [float(one.replace(",", "")) for one in re.findall(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?", reason)]


NEAR = st.one_of(
    NUMBERS,
    st.sampled_from((1275.0, 170.16, 0.5, 1e-7, 999.96)).flatmap(
        lambda centre: st.floats(-1, 1).map(lambda share: centre * (1 + 1e-5 * share))
    ),
)
"""Any numbers, and numbers that agree in their first digits."""


@given(NEAR, NEAR, NEAR, st.floats(0, 0.2), st.sampled_from((0.0, 0.005, 0.5)))
def test_the_reason_on_a_number_never_contradicts_the_verdict(
    printed: float, one: float, other: float, margin: float, rounded_by: float
) -> None:
    low, high = sorted((one, other))
    found = number_verdict(printed, Interval(one, low, high), margin=margin, rounded_by=rounded_by)
    least, most = numbers_of(found.reason)
    word = UNDECIDED
    if least <= low and high <= most:
        word = CONFIRMED
    elif high < least or low > most:
        word = REFUTED
    assert word == found.word
    start = {CONFIRMED: "within", REFUTED: "outside", UNDECIDED: "across a limit of"}
    assert found.reason.startswith(start[found.word])
    around = max(abs(printed) * margin, rounded_by)
    assert (least == most) == (printed - around == printed + around)


@given(NEAR, NEAR, NEAR, st.sampled_from(RELATIONS))
def test_the_reason_on_a_claim_never_contradicts_the_verdict(
    one: float, other: float, threshold: float, relation: str
) -> None:
    low, high = sorted((one, other))
    found = claim_verdict(Interval(one, low, high), relation, threshold)
    *ours, limit = numbers_of(found.reason)
    assert len({*ours}) == len({low, high})
    holds = {eval_relation(value, relation, limit) for value in ours}
    assert found.word == (UNDECIDED if len(holds) == 2 else CONFIRMED if holds == {True} else REFUTED)


@given(NEAR, NEAR, NEAR, st.sampled_from(RELATIONS))
def test_the_reason_of_a_tie_shows_readings_that_disagree(
    one: float, other: float, threshold: float, relation: str
) -> None:
    found = claim_verdict(Interval(one), relation, threshold, readings=(Interval(one), Interval(other)))
    if found.reason.startswith("tied: "):
        first, last, limit = numbers_of(found.reason)
        assert eval_relation(first, relation, limit) != eval_relation(last, relation, limit)


@pytest.mark.parametrize(
    ("value", "bounds", "word"),
    [
        (0.7, (), "confirmed"),
        (0.7, (0.6, 0.9), "confirmed"),
        (0.7, (0.4, 0.9), "confirmed in part"),
        (0.3, (0.2, 0.8), "refuted in part"),
        (0.3, (0.2, 0.4), "refuted"),
    ],
)
def test_a_claim_that_missing_parts_could_change_is_decided_in_part(
    value: float, bounds: tuple[float, ...], word: str
) -> None:
    found = claim_verdict(Interval(value), ">", 0.5)
    verdict = in_part(found, map(Interval, bounds), ">", 0.5, "shop")
    assert verdict.word == word and verdict.word in VERDICTS
    assert verdict.reason.endswith(", which shop could change") == word.endswith("in part")


def test_what_is_undecided_is_not_decided_in_part() -> None:
    found = claim_verdict(Interval(0.5, 0.4, 0.6), ">", 0.5)
    assert in_part(found, [Interval(0.0), Interval(1.0)], ">", 0.5, "shop") == found
