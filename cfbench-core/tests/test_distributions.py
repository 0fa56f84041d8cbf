"""Tail probabilities, against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from cfbench_core.statistics.distributions import chi_square_above, f_above, normal_below

freedoms = st.integers(1, 3000)


def test_by_hand() -> None:
    assert chi_square_above(2, 2 * math.log(5)) == pytest.approx(1 / 5, rel=1e-14)  # exp(-x / 2)
    assert f_above(2, 2, 3.0) == pytest.approx(1 / 4, rel=1e-14)  # 1 / (1 + x)
    assert normal_below(np.array([0.0, 9.0])).tolist() == [0.5, 1.0]


def test_at_the_ends() -> None:
    assert chi_square_above(3, 0.0) == f_above(2, 4, 0.0) == 1.0
    assert f_above(2, 4, math.inf) == 0.0


@given(freedoms, st.floats(0.0, 4.0))
def test_chi_square_is_that_of_scipy(freedom: int, times: float) -> None:
    value = times * freedom
    expected = special.chdtrc(freedom, value)
    assert chi_square_above(freedom, value) == pytest.approx(expected, rel=1e-9, abs=1e-300)


@given(freedoms, freedoms, st.floats(0.0, 50.0))
def test_f_is_that_of_scipy(between: int, within: int, value: float) -> None:
    expected = special.fdtrc(between, within, value)
    assert f_above(between, within, value) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@given(st.lists(st.floats(-40, 40), max_size=5))
def test_the_normal_distribution_is_that_of_scipy(values: list[float]) -> None:
    np.testing.assert_allclose(normal_below(np.array(values)), special.ndtr(values), rtol=1e-12, atol=1e-307)
