"""Ranks of methods over units: tests of many at once, critical differences, agreement, wins.

Sources: Demšar 2006 (Friedman, Iman-Davenport, Nemenyi, critical differences), Conover 1999 (tie-corrected
Friedman), Kendall 1945 (tau-b).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cfbench_core.statistics.bootstrap import FloatArray


def ranks(values: ArrayLike, direction: str) -> FloatArray:
    """Ranks of the methods for each unit, 1 the best; ties averaged; who has no value shares the worst rank.

    Args:
        values: (units, methods), NaN where a method has no value.
        direction: "higher" or "lower", which is better.
    """
    import pandas as pd  # not SciPy, whose import takes half a second that a report need not spend

    costs = np.asarray(values, dtype=np.float64) * (-1.0 if _higher(direction) else 1.0)
    return pd.DataFrame(np.where(np.isnan(costs), np.inf, costs)).rank(axis=1).to_numpy(np.float64)


def _higher(direction: str) -> bool:
    if direction not in ("higher", "lower"):
        raise ValueError(f"direction {direction!r}: must be 'higher' or 'lower'")
    return direction == "higher"


class Friedman(NamedTuple):
    """Friedman's test with Iman and Davenport's F; ``average_ranks`` (methods,), 1 the best."""

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float
    average_ranks: FloatArray
    units: int


def friedman(values: ArrayLike, direction: str) -> Friedman:
    """Do the methods differ at all? Tie-corrected.

        chi2 = (k - 1) sum_j (R_j - N (k + 1) / 2)^2 / (sum_ij r_ij^2 - N k (k + 1)^2 / 4),   R_j = sum_i r_ij
        F    = (N - 1) chi2 / (N (k - 1) - chi2),   with (k - 1) and (k - 1) (N - 1) degrees of freedom

    Args:
        values: (N units, k methods); see :func:`ranks`. When all methods tie on all units, p is 1.
    """
    from scipy.special import chdtrc, fdtrc

    ranked = ranks(values, direction)
    n, k = ranked.shape
    if k < 2 or n < 2:
        raise ValueError(f"Friedman's test needs at least 2 units and 2 methods, got {n} and {k}")
    between = float(((ranked.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    total = float((ranked**2).sum()) - n * k * (k + 1) ** 2 / 4
    statistic = (k - 1) * between / total if total > 1e-9 else 0.0
    room = n * (k - 1) - statistic
    f_statistic = (n - 1) * statistic / room if room > 1e-9 else np.inf
    return Friedman(
        statistic,
        float(chdtrc(k - 1, statistic)),
        f_statistic,
        float(fdtrc(k - 1, (k - 1) * (n - 1), f_statistic)),
        ranked.mean(axis=0),
        n,
    )


@functools.cache
def nemenyi_critical_difference(methods: int, units: int, alpha: float = 0.05) -> float:
    """Average ranks further apart than this differ: q_alpha sqrt(k (k + 1) / (6 N)), Demšar 2006, section
    3.2.2."""
    low, high = 0.0, 100.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _exceeds(np.array(middle), methods) > alpha else (low, middle)
    return float(low / np.sqrt(2) * np.sqrt(methods * (methods + 1) / (6 * units)))


def nemenyi_p_values(average_ranks: ArrayLike, units: int) -> FloatArray:
    """(methods, methods) p-values of Nemenyi's test for all pairs; 1 on the diagonal."""
    average_ranks = np.asarray(average_ranks, dtype=np.float64)
    k = len(average_ranks)
    apart = np.abs(average_ranks[:, None] - average_ranks) / np.sqrt(k * (k + 1) / (6 * units))
    p_values = _exceeds(apart * np.sqrt(2), k)
    np.fill_diagonal(p_values, 1.0)
    return p_values


def _exceeds(distances: FloatArray, k: int) -> FloatArray:
    """The probability that the range of k standard normal numbers exceeds each of some distances q.

        1 - k int phi(z) (Phi(z) - Phi(z - q))^(k - 1) dz

    The studentized range with known variance, as in SciPy's ``stats``, whose import takes half a second. The trapezoidal
    rule is exact to rounding here: the integrand is smooth, and nothing beyond nine standard deviations.
    """
    from scipy.special import ndtr

    step = 0.02
    z = np.arange(-9, 9 + step / 2, step)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
    within = (ndtr(z) - ndtr(z - distances[..., None])) ** (k - 1)
    return np.asarray(np.clip(1 - k * step * (within @ density), 0.0, 1.0))


def indistinguishable(average_ranks: ArrayLike, critical_difference: float) -> list[tuple[int, ...]]:
    """Bars of a critical-difference diagram: largest runs of methods, best first, within one difference."""
    average_ranks = np.asarray(average_ranks, dtype=np.float64)
    order = np.argsort(average_ranks, kind="stable")
    runs: list[tuple[int, ...]] = []
    reached = 0
    for start in range(len(order)):
        within = average_ranks[order] <= average_ranks[order[start]] + critical_difference
        stop = int(np.flatnonzero(within).max()) + 1
        if stop > reached and stop - start > 1:
            runs.append(tuple(int(method) for method in order[start:stop]))
        reached = max(reached, stop)
    return runs


FEW_METHODS = 100
"""Up to so many are compared pair by pair, which takes a twentieth of the time that SciPy takes for twenty."""


def rank_agreement(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two rankings (or scores) of the same methods; aware of ties; NaN when one has only
    ties, or a value is NaN.

    sum sign(x_i - x_j) sign(y_i - y_j) / sqrt(pairs that x does not tie * pairs that y does not tie), over all pairs.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if len(x) > FEW_METHODS:
        from scipy import stats

        return float(stats.kendalltau(x, y, variant="b").statistic)
    if np.isnan(x).any() or np.isnan(y).any():
        return float("nan")
    # not the sign of a difference: that of two infinite values is NaN
    x, y = (
        np.greater.outer(values, values).astype(np.float64) - np.less.outer(values, values)
        for values in (x, y)
    )
    untied = np.sqrt(float((x * x).sum()) * float((y * y).sum()))
    return float((x * y).sum() / untied) if untied else float("nan")


def win_rates(values: ArrayLike, direction: str) -> FloatArray:
    """(methods, methods): the share of units on which the row's method beats the column's; ties count half.

    Args:
        values: (units, methods); a method without a value loses against one that has one.
    """
    ranked = ranks(values, direction)
    return np.stack([((mine < ranked) + (mine == ranked) / 2).mean(axis=0) for mine in ranked.T[:, :, None]])
