"""Feasibility: could somebody follow the counterfactual? The headline metric of the suite.

feasible = 1 if the counterfactual is valid (the classifier predicts the other class for it), realistic (it could be a
row of the table: values at the steps of their columns and within their ranges, one level of each category, constraints
between columns satisfied) and actionable (immutable columns unchanged, one-way columns changed in their direction only);
else 0. It has a value for every factual, 0 where there is no counterfactual, so that its mean is the share of factuals
with a feasible counterfactual.

See ``validity``, ``realism`` and ``actionability`` for the three parts. CF-tabular stops at realistic; with
``protocol: paper``, where columns have no steps, immutable columns or directions, feasible and realistic agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.actionability import actionable
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.metrics.realism import multivariate, univariate
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/feasibility",
    summary="Rate of factuals with a valid, realistic and actionable counterfactual",
    target=f"{__name__}:Feasibility",
    config=f"{__name__}:Config",
    papers=("cftabular2021", "ustun2019actionable"),
    version="2",
)

COLUMNS = (
    Column(
        "feasible",
        "higher",
        (0.0, 1.0),
        "Is the counterfactual valid, could it be a row of the table, and does it respect all constraints? "
        "Others do not count for the best of a column.",
        required=True,
    ),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    tolerance: Annotated[
        float, Range(minimum=0), Help("standard deviations by which a number may exceed its limits")
    ] = 1e-11


class Feasibility:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        encoding, rows, tolerance = observed.encoding, observed.counterfactuals, self.config.tolerance
        realistic = univariate(encoding, rows, tolerance, observed.factuals) & multivariate(encoding, rows)
        allowed = actionable(encoding, observed.factuals, rows, tolerance)
        return {"feasible": (observed.valid & realistic & allowed).astype(np.float64)}
