import itertools

import numpy as np
import pytest

from cfbench_tabular.metrics.diversity import Config, Diversity

metric = Diversity(Config())
NONE = [np.nan, np.nan]


def scored(make_observed, results, valid=None):
    several = np.array([results], dtype=float)
    given = ~np.isnan(several).any(axis=2)
    result = make_observed(
        [[0.0, 0.0]],
        several[:, 0],
        alternatives=several,
        alternatives_valid=given if valid is None else np.array([valid]),
    )
    return {name: values[0] for name, values in metric.compute(result).items()}


def test_by_hand(make_observed):
    scores = scored(make_observed, [[0, 0], [3, 4], [0, 4]])
    assert scores["#distinct"] == 3
    assert scores["diversity"] == pytest.approx((5 + 4 + 3) / 3)
    assert scores["column diversity"] == pytest.approx((2 + 1 + 1) / 6)


def test_only_valid_and_different_counterfactuals_count(make_observed):
    assert scored(make_observed, [[0, 1], [0, 1], [0, 1.00001]])["#distinct"] == 1
    scores = scored(make_observed, [[0, 1], [5, 5], [0, 2], NONE], [True, False, True, False])
    assert scores["#distinct"] == 2 and scores["diversity"] == pytest.approx(1.0)
    assert scored(make_observed, [NONE, NONE])["#distinct"] == 0


def test_the_diversity_of_one_counterfactual_is_missing(make_observed):
    scores = scored(make_observed, [[0, 1], NONE])
    assert scores["#distinct"] == 1
    assert np.isnan(scores["diversity"]) and np.isnan(scores["column diversity"])


def test_the_literal_means_over_pairs(make_observed):
    results = np.random.default_rng(0).normal(size=(5, 2)).round(1)
    scores = scored(make_observed, results)
    pairs = list(itertools.combinations({tuple(result) for result in results.tolist()}, 2))
    far = [sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5 for pair in pairs]
    differing = [sum(a != b for a, b in zip(*pair, strict=True)) / 2 for pair in pairs]
    assert scores["diversity"] == pytest.approx(np.mean(far))
    assert scores["column diversity"] == pytest.approx(np.mean(differing))
