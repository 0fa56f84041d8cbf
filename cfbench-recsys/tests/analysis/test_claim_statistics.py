"""Statistics of claims, each against plain loops, with missing means and ties."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cfbench_recsys.analysis.claim_statistics import (
    MONOTONIC,
    OF_ORDERS,
    STATISTICS,
    WITH_TIES,
    at_a_bound,
    only_ties,
    with_missing_options,
    with_missing_settings,
)

Row = list[float]
Oracle = Callable[[list[Row], list[Row]], float]


def known(row: Row) -> Row:
    return [value for value in row if not math.isnan(value)]


def mean(values: Row) -> float:
    return sum(values) / len(values) if values else math.nan


def settings(subject: list[Row], against: list[Row]) -> list[tuple[Row, Row]]:
    pairs = [(known(one), known(other)) for one, other in zip(subject, against, strict=True)]
    return [(one, other) for one, other in pairs if one and other]


def share_highest(subject: list[Row], against: list[Row]) -> float:
    return mean([float(max(one) > max(other)) for one, other in settings(subject, against)])


def share_lowest(subject: list[Row], against: list[Row]) -> float:
    return mean([float(min(one) < min(other)) for one, other in settings(subject, against)])


def share_above(subject: list[Row], against: list[Row]) -> float:
    return mean([float(x > y) for one, other in settings(subject, against) for x in one for y in other])


def share_rising(subject: list[Row], against: list[Row]) -> float:
    steps = [(x, y) for row in subject for x, y in itertools.pairwise(row)]
    return mean([float(y > x) for x, y in steps if not math.isnan(x) and not math.isnan(y)])


def share_falling(subject: list[Row], against: list[Row]) -> float:
    return share_rising([row[::-1] for row in subject], against)


def place_from_top(subject: list[Row], against: list[Row]) -> float:
    places = []
    for one, other in zip(subject, against, strict=True):
        if len(known(one)) == len(one) and len(known(other)) == len(other):
            best = max(one)
            places.append(1.0 + sum(1.0 if y > best else 0.5 if y == best else 0.0 for y in other))
    return mean(places)


def mean_difference(subject: list[Row], against: list[Row]) -> float:
    return mean([mean(one) - mean(other) for one, other in settings(subject, against)])


def mean_gap(subject: list[Row], against: list[Row]) -> float:
    return mean([abs(mean(one) - mean(other)) for one, other in settings(subject, against)])


def ratio(subject: list[Row], against: list[Row]) -> float:
    logs = [
        math.log(mean(one) / mean(other))
        for one, other in settings(subject, against)
        if mean(one) > 0 and mean(other) > 0
    ]
    return math.exp(mean(logs)) if logs else math.nan


def largest(subject: list[Row], against: list[Row]) -> float:
    values = [value for row in subject for value in known(row)]
    return max(values) if values else math.nan


def most_often_highest(subject: list[Row], against: list[Row]) -> float:
    wins, counted = [0] * len(subject[0]), 0
    for row in subject:
        if len(known(row)) < 2:
            continue
        counted += 1
        best = max(known(row))
        first = [at for at, value in enumerate(row) if value == best]
        if len(first) == 1:
            wins[first[0]] += 1
    return max(wins) / counted if counted else math.nan


def rank_correlation(subject: list[Row], against: list[Row]) -> float:
    found = []
    for one, other in zip(subject, against, strict=True):
        both = [(x, y) for x, y in zip(one, other, strict=True) if not math.isnan(x) and not math.isnan(y)]
        if len(both) > 2:
            found.append(float(stats.kendalltau(*zip(*both, strict=True)).statistic))
    return mean(known(found))


def range_difference(subject: list[Row], against: list[Row]) -> float:
    found = []
    for one, other in zip(subject, against, strict=True):
        both = [(x, y) for x, y in zip(one, other, strict=True) if not math.isnan(x) and not math.isnan(y)]
        if len(both) > 1:
            first, second = zip(*both, strict=True)
            found.append(max(first) - min(first) - (max(second) - min(second)))
    return mean(found)


ORACLES: dict[str, Oracle] = {
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


def draw(rng: np.random.Generator, resamples: int, rows: int, columns: int) -> np.ndarray:
    """Few distinct values, so that many tie; about a sixth is missing."""
    values = rng.integers(0, 6, (resamples, rows, columns)) / 4
    return np.where(rng.random(values.shape) < 0.17, np.nan, values)


def test_every_statistic_has_an_oracle() -> None:
    assert ORACLES.keys() == STATISTICS.keys()


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize("seed", range(6))
def test_a_statistic_of_all_resamples_is_that_of_plain_loops_over_each(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, columns = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    subject = draw(rng, 20, rows, columns)
    against = draw(rng, 20, rows, columns if name in OF_ORDERS else int(rng.integers(1, 4)))
    found = STATISTICS[name](subject, against)
    expected = [
        ORACLES[name](one.tolist(), other.tolist()) for one, other in zip(subject, against, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", WITH_TIES[:4])
@pytest.mark.parametrize("seed", range(6))
def test_a_reading_of_ties_is_that_of_a_subject_that_is_slightly_above_or_below(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    subject, against = draw(rng, 20, 4, 3), draw(rng, 20, 4, 2)
    better = -1e-3 if name == "share-lowest" else 1e-3
    for ties, moved in ((1.0, subject + better), (0.0, subject - better)):
        expected = STATISTICS[name](moved, against)
        np.testing.assert_allclose(STATISTICS[name](subject, against, ties), expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_kinder_reading_of_the_best_counts_every_shared_first_place(seed: int) -> None:
    values = draw(np.random.default_rng(seed), 20, 5, 3)
    found = STATISTICS["most-often-highest"](values, values[..., :0], 1.0)
    for one, share in zip(values, found, strict=True):
        rows = [row for row in one if len(known(list(row))) > 1]
        wins = [sum(row[at] == np.nanmax(row) for row in rows) for at in range(3)]
        assert share == pytest.approx(max(wins) / len(rows)) if rows else np.isnan(share)


def test_means_that_cannot_differ_are_recognised() -> None:
    ones, parts = np.array([[1.0, np.nan], [1.0, 1.0]]), np.array([[1.0], [0.5]])
    assert at_a_bound(ones, ones) == 1.0 and at_a_bound(ones - 1, ones - 1) == 0.0
    assert np.isnan(at_a_bound(ones, parts)) and np.isnan(at_a_bound(ones * np.nan, ones * np.nan))
    assert only_ties(np.ones((1, 3)), np.ones((1, 3))) and not only_ties(np.ones((5, 2)), np.ones((5, 2)))


@pytest.mark.parametrize("name", STATISTICS)
def test_nothing_known_is_nan(name: str) -> None:
    nothing = np.full((1, 2, 3), np.nan)
    assert np.isnan(STATISTICS[name](nothing, nothing)).all()


def test_the_smallest_example() -> None:
    """Two settings, one explainer against two: 0.2 of (0.3, 0.4), and 0.5 of (0.1, 0.6)."""
    subject, against = np.array([[[0.2], [0.5]]]), np.array([[[0.3, 0.4], [0.1, 0.6]]])
    values = {name: float(STATISTICS[name](subject, against)[0]) for name in ORACLES if name not in OF_ORDERS}
    assert values["share-lowest"] == 0.5 and values["share-highest"] == 0.0
    assert values["share-above"] == 0.25 and values["place-from-top"] == 2.5
    assert values["mean-difference"] == pytest.approx(0.0) and values["mean-gap"] == pytest.approx(0.15)
    assert values["largest"] == 0.5


@pytest.mark.parametrize("name", [name for name in MONOTONIC if name != "ratio"])
def test_no_means_of_missing_options_leave_the_bounds(name: str) -> None:
    """Against a hundred random fillings of one missing option on each side."""
    random = np.random.default_rng(3)
    sides = [random.random((4, options)) for options in (2, 5)]
    gaps = [np.zeros(side.shape, dtype=bool) for side in sides]
    gaps[0][:, 1] = gaps[1][:, 3:] = gaps[1][2, 0] = (
        True  # two options are missing everywhere, one in a setting
    )
    ends = with_missing_options(STATISTICS[name], *sides, (gaps[0], gaps[1]))
    for _ in range(100):
        filled = STATISTICS[name](
            *(
                np.where(missing, random.uniform(-1, 2, side.shape), side)
                for side, missing in zip(sides, gaps, strict=True)
            )
        )
        assert min(ends) - 1e-12 <= filled <= max(ends) + 1e-12


def test_missing_settings_count_between_their_limits() -> None:
    assert with_missing_settings(0.4, 0.5, 3, 2) == pytest.approx((3 * 0.4 / 5, (3 * 0.5 + 2) / 5))
    assert with_missing_settings(0.4, 0.5, 3, 2, (-1.0, 1.0)) == pytest.approx((-0.16, 0.7))
