"""Quality of models: how it reads, and Wilson's interval."""

from __future__ import annotations

import pytest
from scipy import stats

from cfbench_core.model_quality import Quality, quality_words, wilson_interval


def test_the_interval_solves_the_equation_of_the_score_test() -> None:
    """At both ends the mean is 1.96 standard errors away, of the standard error that holds there; SciPy agrees."""
    for hits, n in ((0, 7), (1, 7), (40, 163), (163, 163)):
        low, high = wilson_interval(hits / n, n)
        expected = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
        assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-12)
        for end in (low, high):
            if 0 < end < 1:
                assert abs(hits / n - end) == pytest.approx(1.96 * (end * (1 - end) / n) ** 0.5, rel=1e-4)


def test_no_hit_among_seven_users_says_little() -> None:
    assert wilson_interval(0.0, 7) == pytest.approx((0.0, 0.354), abs=1e-3)


def test_the_words_show_the_size_and_the_interval_where_they_are_known() -> None:
    reported = {"value": 0.0, "n": 7, "ci_low": 0.0, "ci_high": 0.354}
    hit_rate = Quality.of(reported)
    assert quality_words({"HR@10": hit_rate}) == "HR@10 0.000 (0.000 to 0.354), n = 7"
    assert hit_rate.cells() == ["0", "7", "0", "0.354"]
    plain = Quality.of(0.5)
    assert quality_words({"AUC": plain, "accuracy": plain, "third": plain}) == "AUC 0.500, accuracy 0.500"
    assert plain.cells() == ["0.5", "", "", ""]
