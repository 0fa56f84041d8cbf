"""Verdicts against a plain enumeration of the cases, and their properties."""

from __future__ import annotations

import math

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
    Interval,
    claim_verdict,
    count_verdicts,
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
