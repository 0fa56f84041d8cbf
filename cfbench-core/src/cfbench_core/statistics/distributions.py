"""Tail probabilities of three distributions, for whole degrees of freedom, without SciPy.

The import of ``scipy.special`` takes a tenth of a second, more than all rankings of a report.
"""

from __future__ import annotations

import math

import numpy as np

from cfbench_core.statistics.bootstrap import FloatArray

_ERFC = np.frompyfunc(math.erfc, 1, 1)
_TINY = 1e-300
_ENOUGH = 10_000
"""Steps of a continued fraction; some ten suffice nearly everywhere."""


def normal_below(values: FloatArray) -> FloatArray:
    """The probability that a standard normal number is below each of the values."""
    found: FloatArray = np.asarray(_ERFC(np.asarray(values) / -math.sqrt(2)), dtype=np.float64) / 2
    return found


def chi_square_above(freedom: int, value: float) -> float:
    """The probability that a chi-square number exceeds a value: a finite sum (Abramowitz and Stegun 26.4.4 and 26.4.5)."""
    half = value / 2
    if half <= 0:
        return 1.0
    odd = freedom % 2
    powers = [n + odd / 2 for n in range(freedom // 2)]
    terms = [math.exp(power * math.log(half) - half - math.lgamma(power + 1)) for power in powers]
    return min(1.0, math.fsum([*terms, math.erfc(math.sqrt(half)) if odd else 0.0]))


def f_above(between: int, within: int, value: float) -> float:
    """The probability that a number of the F distribution exceeds a value; 0 for infinity."""
    if value <= 0:
        return 1.0
    if math.isinf(value):
        return 0.0
    share = within / (within + between * value)
    return _incomplete_beta(within / 2, between / 2, share)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function for 0 < x <= 1, by its continued fraction (DLMF 8.17.22)."""
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1.0 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    )
    # Lentz's method: the ratios of successive numerators and denominators
    above, below = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    found = below
    for m in range(1, _ENOUGH):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            below = 1 / _not_zero(1 + factor * below)
            above = _not_zero(1 + factor / above)
            found *= above * below
        if abs(above * below - 1) < 1e-15:
            break
    return front * found / a


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
