"""Realism: could the counterfactual be a row of the table? (CF-tabular, section 2.5 and table 3.)

- RUC (univariate): each categorical position is exactly 0 or 1, and each number lies within the range of its column
  and is a multiple of its step (1 for whole numbers), if it has one. The range is that of all rows of the table unless
  the schema gives one; it is widened by ``tolerance`` standard deviations to absorb rounding errors. Where the factual
  lies outside of it, its own value and those on the way to the range are possible. CF-tabular has no steps.
- RMC (multivariate): each one-hot category has exactly one active level, and the constraints between the columns of
  the data set hold within their tolerance.
- realistic: valid, RUC and RMC. It has a value for every factual, so that its mean is the realistic validity
  ("realistic coverage" in CF-tabular).

RUC and RMC are missing where the counterfactual is not valid.

``constraint_check: one-sided`` reproduces the checks of CF-tabular: of a category one position must be other than
0, whatever its value; a product (the areas of PBC and BCW) is only checked against being too small, and a ratio
against being too large. This was inferred from the values published with its counterfactuals; its RUC has no
tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed, where_valid
from cfbench_tabular.table import BoolArray, FloatArray, complete

SPEC = ComponentSpec(
    id="tabular/metric/realism",
    summary="Univariate (RUC) and multivariate (RMC) realism of the counterfactual",
    target=f"{__name__}:Realism",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    tolerance: Annotated[
        float,
        Range(minimum=0),
        Help("standard deviations by which a number may exceed its range; CF-tabular: 0"),
    ] = 1e-11
    constraint_check: Annotated[
        Literal["two-sided", "one-sided"], Help("how RMC checks constraints; CF-tabular: one-sided")
    ] = "two-sided"


COLUMNS = (
    Column("RUC", "higher", (0.0, 1.0), "Is each value possible for its column?"),
    Column(
        "RMC", "higher", (0.0, 1.0), "Does each category have exactly one level, and do the constraints hold?"
    ),
    Column(
        "realistic",
        "higher",
        (0.0, 1.0),
        "Is the counterfactual valid and could it be a row of the table?",
    ),
)


class Realism:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        ruc = univariate(
            observed.encoding, observed.counterfactuals, self.config.tolerance, observed.factuals
        )
        check = multivariate if self.config.constraint_check == "two-sided" else one_sided_multivariate
        rmc = check(observed.encoding, observed.counterfactuals)
        realistic = observed.valid & ruc & rmc
        return {
            "RUC": where_valid(observed, ruc),
            "RMC": where_valid(observed, rmc),
            "realistic": realistic.astype(np.float64),
        }


def univariate(
    encoding: Encoding, vectors: FloatArray, tolerance: float, factuals: FloatArray | None = None
) -> BoolArray:
    """(B,) whether every value of the vectors (B, d) is possible for its column, whose range ``factuals`` (B, d) extend."""
    low, high = encoding.bounds
    if factuals is not None:
        low, high = np.minimum(low, factuals), np.maximum(high, factuals)
    possible = (vectors >= low - tolerance) & (vectors <= high + tolerance) & ~encoding.grid.missed(vectors)
    if factuals is not None:
        possible |= vectors == factuals
    zero_or_one = (vectors == 0.0) | (vectors == 1.0)
    return np.asarray(np.where(encoding.numeric, possible, zero_or_one).all(axis=1))


def multivariate(encoding: Encoding, vectors: FloatArray) -> BoolArray:
    """(B,) whether every one-hot group of the vectors (B, d) is exactly one 1 and 0 elsewhere, and all constraints hold."""
    good = encoding.constraints_hold(vectors)
    for group in encoding.groups:
        part = vectors[:, group]
        good &= ((part == 1.0).sum(axis=1) == 1) & ((part != 0.0).sum(axis=1) == 1)
    return good


def one_sided_multivariate(encoding: Encoding, vectors: FloatArray) -> BoolArray:
    """(B,) the same with one side of each check: one place not 0; products not too small, ratios not too large."""
    good = complete(vectors)
    for group in encoding.groups:
        good &= (vectors[:, group] != 0.0).sum(axis=1) == 1
    values = {
        column.name: encoding.decode_number(place, vectors[:, block.start])
        for place, (column, block) in enumerate(zip(encoding.columns, encoding.blocks, strict=True))
        if column.kind == "numeric"
    }
    for constraint in encoding.constraints:
        expected = constraint.expected(values)
        excess = values[constraint.column] - expected
        tolerance = constraint.absolute + constraint.relative * np.abs(expected)
        good &= excess >= -tolerance if constraint.relation == "product" else excess <= tolerance
    return good
