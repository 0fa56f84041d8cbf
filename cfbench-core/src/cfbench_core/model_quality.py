"""Quality of a model on held-out data, with what it was measured on and how certain it is.

A model's stage reports ``{"quality": {name: number}}``, or in place of a number ``{"value", "n", "ci_low", "ci_high"}``
(see :class:`Quality`). This module imports nothing but the standard library.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FIELDS = ("value", "n", "ci_low", "ci_high")


@dataclass(frozen=True)
class Quality:
    """One measure of a model's quality.

    Attributes:
        n: on how many users (rows, texts) it was measured; None where the suite does not report it.
        ci_low, ci_high: its 95% interval; NaN where the suite does not report one.
    """

    value: float
    n: int | None = None
    ci_low: float = math.nan
    ci_high: float = math.nan

    @staticmethod
    def of(reported: Any) -> Quality:
        """From what a stage reported, a number or a mapping; a row of ``quality.csv`` is one, with NaN for no n."""
        if not isinstance(reported, Mapping):
            return Quality(float(reported))
        value, n, low, high = (float(reported.get(name, math.nan)) for name in FIELDS)
        return Quality(value, None if math.isnan(n) else int(n), low, high)

    def text(self, decimals: int = 3) -> str:
        """ "0.490 (0.446 to 0.534)"."""
        if math.isnan(self.ci_low):
            return f"{self.value:.{decimals}f}"
        return f"{self.value:.{decimals}f} ({self.ci_low:.{decimals}f} to {self.ci_high:.{decimals}f})"

    def cells(self) -> list[str]:
        """What stands in the columns ``FIELDS`` of a CSV file; empty where it is not known."""
        numbers = ["" if math.isnan(x) else f"{x:.6g}" for x in (self.value, self.ci_low, self.ci_high)]
        return [numbers[0], "" if self.n is None else str(self.n), *numbers[1:]]


def quality_words(quality: Mapping[str, Quality], most: int = 2, decimals: int = 3) -> str:
    """The first measures: "HR@10 0.490 (0.446 to 0.534), NDCG@10 0.310 (0.271 to 0.352), n = 502"."""
    shown = [*quality.items()][:most]
    words = [f"{name} {one.text(decimals)}" for name, one in shown]
    sizes = {one.n for _, one in shown if one.n is not None}
    if len(sizes) == 1:
        words.append(f"n = {sizes.pop():,}")
    return ", ".join(words)


def wilson_interval(mean: float, n: int) -> tuple[float, float]:
    """95% interval of the expectation of a variable in [0, 1], from the mean of n independent observations.

    Wilson's score interval (Wilson 1927). It is meant for a variable that is 0 or 1. Of all variables in [0, 1] with the
    same expectation this one has the largest variance, so for the others the interval is too wide rather
    than too narrow. Unlike a bootstrap it does not shrink to a point where all observations are equal.
    """
    z = 1.959963984540054
    center = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    return max(0.0, min(mean, center - half)), min(1.0, max(mean, center + half))
