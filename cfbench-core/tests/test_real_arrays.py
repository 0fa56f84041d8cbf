"""Only real numbers in the right shape pass; nothing is converted in silence."""

from __future__ import annotations

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_core.real_arrays import real_array


@pytest.mark.parametrize("found", [[[1, 2]], np.array([[1.0, 2.0]], np.float32), np.array([[True, False]])])
def test_real_numbers_pass_as_float64(found: object) -> None:
    values = real_array(found, (1, 2), what="x")
    assert values.dtype == np.float64 and values.shape == (1, 2)


def test_nan_is_left_to_the_caller() -> None:
    assert np.isnan(real_array([np.nan], (1,), what="x")[0])


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.array([1 + 1j]), "x must hold real numbers, got complex numbers"),
        (np.array(["1"]), "x must hold real numbers, got text"),
        (np.array(["2020-01-01"], "M8[D]"), "x must hold real numbers, got dates"),
        (np.array([object()]), r"x must hold real numbers, got objects \(object\)"),
        (None, "x must hold real numbers, got NoneType"),
        ([[1.0], [1.0, 2.0]], "x must be an array of real numbers: "),
        ([1.0, 2.0], r"x has shape \(2,\), must be \(1,\) or \(1, 3\)"),
    ],
)
def test_anything_else_is_refused_with_what_it_is(found: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        real_array(found, (1,), (1, 3), what="x")
