"""Gini index of the importances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_recsys.metrics.gini import gini


def literal(importances: list[float]) -> float:
    """Equation 6, word for word."""
    n, low, high = len(importances), min(importances), max(importances)
    if low == high:
        return 0.0
    m = sorted((value - low) / (high - low) for value in importances)
    return 1 - 2 * sum(m_k / sum(m) * (n - k + 0.5) / n for k, m_k in enumerate(m, start=1))


def one(importances: list[float]) -> float:
    return float(gini(np.array([importances]), np.zeros((1, len(importances)), dtype=bool))[0])


def test_one_of_two_interactions_has_it_all() -> None:
    assert one([3.0, 7.0]) == pytest.approx(0.5)  # 1 - 2 * (1 * 0.5 / 2)


def test_one_of_four_interactions_has_it_all() -> None:
    assert one([0.0, 1.0, 0.0, 0.0]) == pytest.approx(0.75)


@pytest.mark.parametrize("importances", [[5.0], [2.0, 2.0, 2.0], [0.0, 0.0]])
def test_equal_importances_are_not_concentrated(importances: list[float]) -> None:
    assert one(importances) == 0.0


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([-3.0, -1.0, 0.0, 0.25, 0.5, 4.0]), min_size=1, max_size=8),
        min_size=1,
        max_size=5,
    )
)
def test_it_equals_the_formula_and_padding_does_not_matter(units: list[list[float]]) -> None:
    width = max(map(len, units))
    padding = np.array([[place >= len(unit) for place in range(width)] for unit in units])
    importances = np.array([unit + [np.nan] * (width - len(unit)) for unit in units])
    values = gini(importances, padding)
    assert values == pytest.approx([literal(unit) for unit in units], abs=1e-12)
    assert ((values >= 0) & (values < 1)).all()


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=8), st.integers(1, 9), st.integers(-9, 9))
def test_scale_and_shift_do_not_matter(importances: list[int], scale: int, shift: int) -> None:
    values = [float(value) for value in importances]
    assert one([scale * value + shift for value in values]) == pytest.approx(one(values), abs=1e-12)


@settings(deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8))
def test_the_largest_numbers_have_the_index_of_small_ones(importances: list[int]) -> None:
    """Up to +-1.5e308, whose differences are no numbers any more."""
    assert one([value * 0.5e308 for value in importances]) == pytest.approx(
        one([float(v) for v in importances])
    )
