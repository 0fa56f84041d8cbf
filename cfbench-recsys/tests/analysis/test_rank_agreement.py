"""Agreement of rankings across levels, and what a sample of users makes of it."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cfbench_recsys.analysis.rank_agreement import (
    Estimate,
    Sample,
    agreement,
    bootstrap_draws,
    level_means,
    partition_draws,
    plain,
    ranks,
    shares_first,
    size_matched,
)


def literal(costs: np.ndarray) -> list[float]:
    """The four statistics of ``costs`` (L, E), pair by pair, with scipy."""
    costs = costs.round(10)  # sums in another order
    pairs = list(itertools.combinations(costs, 2))
    ranked = [stats.rankdata(level) for level in costs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", stats.ConstantInputWarning)
        rho = [stats.spearmanr(a, b).statistic for a, b in pairs]
        tau = [stats.kendalltau(a, b).statistic for a, b in pairs]
    rho, tau = ([value for value in found if not np.isnan(value)] for found in (rho, tau))
    correlations = [float(np.mean(found)) if found else np.nan for found in (rho, tau)]
    if np.isnan(costs).any():  # a level without any explanation has no ranks
        return [*correlations, np.nan, np.nan]
    variance = np.mean([np.var(of_one) for of_one in np.transpose(ranked)])
    changes = [a != b for pair in itertools.combinations(ranked, 2) for a, b in zip(*pair, strict=True)]
    return [*correlations, float(variance), float(np.mean(changes))]


def literal_means(values: np.ndarray, users: Sequence[int], top: int) -> np.ndarray:
    """(L, E) of one metric, over the places where every explainer has a value; ``values`` (U, K, L, E)."""
    found = np.full(values.shape[2:], np.nan)
    for level in range(values.shape[2]):
        rows = [values[user, place, level] for user in users for place in range(top)]
        rows = [row for row in rows if not np.isnan(row).any()]
        if rows:
            found[level] = np.mean(rows, axis=0)
    return found


def test_rankings_that_are_the_same_agree_wholly() -> None:
    costs = np.array([[0.1, 0.2, 0.3], [0.5, 0.6, 0.9]])
    np.testing.assert_array_equal(agreement(costs), [1, 1, 0, 0])


def test_rankings_that_are_reversed_disagree_wholly() -> None:
    costs = np.array([[0.1, 0.2, 0.3], [0.9, 0.6, 0.5]])
    assert agreement(costs) == pytest.approx([-1, -1, 2 / 3, 2 / 3])  # the second of three has the same rank


def test_those_who_tie_share_a_rank() -> None:
    np.testing.assert_array_equal(ranks(np.array([0.2, 0.1, 0.1 + 1e-15, 0.5])), [3, 1.5, 1.5, 4])


def test_a_level_at_which_all_tie_has_no_ranking() -> None:
    costs = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [2.0, 3.0, 4.0]])
    spearman, kendall, variance, changes = agreement(costs)
    assert (spearman, kendall) == (1, 1)  # of the one pair that has a correlation
    assert variance == pytest.approx(np.mean([np.var([1, 2, 1]), 0, np.var([3, 2, 3])]))
    assert changes == pytest.approx((2 + 2 + 0) / 9)
    assert np.isnan(agreement(costs[[1, 1]])[:2]).all()


@settings(max_examples=200, deadline=None)
@given(data=st.data(), levels=st.integers(2, 4), explainers=st.integers(2, 6))
def test_it_equals_scipy_pair_by_pair_with_ties(data: st.DataObject, levels: int, explainers: int) -> None:
    number = st.sampled_from([0.0, 0.25, 0.5, 1.0])
    rows = st.lists(
        st.lists(number, min_size=explainers, max_size=explainers), min_size=levels, max_size=levels
    )
    many = np.array([data.draw(rows), data.draw(rows)])  # at once, as replicates are
    np.testing.assert_allclose(agreement(many), [literal(costs) for costs in many], atol=1e-12)


def drawn_values(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Few different values, so that means tie; some are missing."""
    values = rng.choice([0.0, 0.5, 1.0], size=shape)
    values[rng.random(shape) < 0.05] = np.nan
    return values


@pytest.mark.parametrize("seed", range(5))
def test_plain_and_size_matched_equal_loops_over_users(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = drawn_values(rng, (7, 3, 2, 3, 4))  # users, places, metrics, levels, explainers
    higher = np.array([False, True])
    sample = Sample(values, higher)
    draws = rng.integers(0, 7, size=(6, 7))
    all_users, matched = plain(sample, draws), size_matched(sample, draws)
    means = level_means(sample, draws)
    for row, metric in itertools.product(range(6), range(2)):
        own, sign = values[:, :, metric], -1 if higher[metric] else 1
        for place, top in ((0, 1), (1, 2), (2, 3)):
            np.testing.assert_allclose(
                means[row, place, metric], literal_means(own, draws[row], top), atol=1e-12
            )
        for top in (1, 2, 3):
            expected = literal(sign * literal_means(own, draws[row], top))
            np.testing.assert_allclose(all_users[row, top - 1, metric], expected, atol=1e-12)
            size = 7 // top
            parts = [draws[row][part * size : (part + 1) * size] for part in range(top)]
            by_part = [literal(sign * literal_means(own, part, top)) for part in parts]
            expected = [
                np.mean([v for v in column if not np.isnan(v)]) for column in zip(*by_part, strict=True)
            ]
            np.testing.assert_allclose(matched[row, top - 1, metric], expected, atol=1e-12)


def test_with_fewer_users_than_items_there_is_no_matched_sample() -> None:
    sample = Sample(np.random.default_rng(0).random((2, 3, 1, 2, 3)), np.array([False]))
    found = size_matched(sample, np.array([[0, 1]]))[0, :, 0]
    assert not np.isnan(found[:2]).any() and np.isnan(found[2]).all()


def test_explanations_are_counted_where_every_explainer_has_a_value() -> None:
    values = np.zeros((4, 2, 1, 2, 3))
    values[0, 0, 0, 1, 2] = np.nan  # one explainer lacks one place at the second level
    sample = Sample(values, np.array([False]))
    assert (sample.explanations(1), sample.explanations(2)) == ([3], [7])


def planted(rng: np.random.Generator, interaction: float) -> Sample:
    """200 users, 5 places, 4 levels, 5 explainers that truly differ by 0.02 at every level, in noise of 0.3.

    ``interaction``: how much the first place, and only it, favours other explainers at every level.
    """
    truth = np.broadcast_to(0.5 + 0.02 * np.arange(5), (5, 1, 4, 5)).copy()
    truth[0, 0] += interaction * rng.normal(size=(4, 5))
    return Sample(truth + 0.3 * rng.normal(size=(200, 5, 1, 4, 5)), np.array([False]))


def mean_gains(interaction: float, cases: int = 40) -> tuple[float, float]:
    """Of Spearman's rho, top 5 less top 1: among all users, and size-matched."""
    gains = []
    for seed in range(cases):
        rng = np.random.default_rng(seed)
        sample = planted(rng, interaction)
        all_users = plain(sample, np.arange(200)[None])[0, :, 0, 0]
        (cuts,) = partition_draws(200, 20, rng)
        matched = size_matched(sample, cuts).mean(axis=0)[:, 0, 0]
        gains.append((all_users[4] - all_users[0], matched[4] - all_users[0]))
    return tuple(np.mean(gains, axis=0))


def test_where_more_data_is_the_only_gain_the_size_matched_control_shows_none() -> None:
    """Every place says the same of an explainer: top 5 is top 1 with five times the explanations."""
    all_users, matched = mean_gains(interaction=0.0)
    assert all_users > 0.15
    assert abs(matched) < 0.05


def test_where_the_first_place_is_inconsistent_the_size_matched_control_shows_the_gain() -> None:
    all_users, matched = mean_gains(interaction=0.1)
    assert all_users > matched > 0.2


def test_draws_are_users_with_replacement_and_partitions_without() -> None:
    drawn = np.concatenate(list(bootstrap_draws(3, 4000, np.random.default_rng(0))))
    assert drawn.shape == (4000, 3)
    assert len(np.unique(drawn, axis=0)) == 27
    (cuts,) = partition_draws(6, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(cuts, axis=1), np.tile(np.arange(6), (50, 1)))
    assert len(np.unique(cuts, axis=0)) > 40


def test_many_users_are_drawn_in_blocks() -> None:
    blocks = list(bootstrap_draws(300_000, 8, np.random.default_rng(0)))
    assert [block.shape for block in blocks] == [(3, 300_000), (3, 300_000), (2, 300_000)]


def test_an_interval_is_made_of_the_replicates_that_are_there() -> None:
    replicates = np.column_stack([np.arange(101.0), [np.nan, *range(100)], np.full(101, np.nan)])
    low, high = Estimate(np.zeros(3), replicates).interval()
    np.testing.assert_allclose(low[:2], [2.5, 99 * 0.025])
    np.testing.assert_allclose(high[:2], [97.5, 99 * 0.975])
    assert np.isnan([low[2], high[2]]).all()


def test_shares_of_levels_at_which_each_is_the_best_alone() -> None:
    costs = np.array([[1.0, 2.0, 3.0], [1.0, 1.0, 2.0], [3.0, 0.0, 1.0], [np.nan, 0.0, 1.0]])
    np.testing.assert_allclose(shares_first(costs), [1 / 3, 1 / 3, 0])  # a tie is nobody's, a gap no level
    assert np.isnan(shares_first(costs[3:])).all()


@given(st.integers(0, 2**32 - 1))
def test_shares_first_count_the_levels(seed: int) -> None:
    costs = np.random.default_rng(seed).integers(0, 3, (2, 4, 3)).astype(float)
    for found, levels in zip(shares_first(costs), costs, strict=True):
        best = [int(np.argmin(level)) for level in levels if sorted(level)[0] < sorted(level)[1]]
        np.testing.assert_allclose(found, [best.count(which) / 4 for which in range(3)])
