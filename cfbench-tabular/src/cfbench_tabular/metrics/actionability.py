"""Actionability: does the counterfactual respect immutable columns, directions and ranges? (Ustun et al. 2019)

actionable = 1 if every immutable column is unchanged, every column with a direction moved only in that direction,
and every number lies within the range of its column (or no further out than the factual's own value); else 0.
Immutable columns and directions are properties of the data set or options of the user (``Column.immutable``,
``Column.direction``). CF-tabular does not measure actionability.

Without such properties only the ranges constrain a counterfactual. The tolerance absorbs rounding errors, as in
RUC. Higher is better. Missing where the counterfactual is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed, where_valid
from cfbench_tabular.table import BoolArray, FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/actionability",
    summary="Are immutable columns, one-way columns and ranges respected?",
    target=f"{__name__}:Actionability",
    config=f"{__name__}:Config",
    papers=("ustun2019actionable",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    tolerance: Annotated[
        float, Range(minimum=0), Help("standard deviations by which a number may exceed its limits")
    ] = 1e-11


COLUMNS = (
    Column(
        "actionable",
        "higher",
        (0.0, 1.0),
        "Are immutable columns, directions and ranges of the columns respected?",
    ),
)


class Actionability:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        found = actionable(
            observed.encoding, observed.factuals, observed.counterfactuals, self.config.tolerance
        )
        return {"actionable": where_valid(observed, found)}


def actionable(
    encoding: Encoding, factuals: FloatArray, counterfactuals: FloatArray, tolerance: float
) -> BoolArray:
    """(B,) whether the counterfactuals (B, d) are within the limits of their factuals (B, d)."""
    low, high = encoding.allowed(factuals)
    above, below = counterfactuals >= low - tolerance, counterfactuals <= high + tolerance
    return np.asarray((above & below).all(axis=1))
