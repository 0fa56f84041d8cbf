"""Coverage: does the explainer return a counterfactual for the factual?

coverage(x) = 1 if the explainer returned a counterfactual, valid or not, else 0. A counterfactual that changes no
column counts as none. See ``validity`` for the share that really changes the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import FloatArray, complete

SPEC = ComponentSpec(
    id="tabular/metric/coverage",
    summary="Rate of factuals for which the explainer returns a counterfactual",
    target=f"{__name__}:Coverage",
    config=f"{__name__}:Config",
    details={"factuals suffice": True},
)

COLUMNS = (
    Column("coverage", "higher", (0.0, 1.0), "Does the explainer return a counterfactual, valid or not?"),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """No options."""


class Coverage:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        changed = (observed.counterfactuals != observed.factuals).any(axis=1)
        return {"coverage": (complete(observed.counterfactuals) & changed).astype(np.float64)}
