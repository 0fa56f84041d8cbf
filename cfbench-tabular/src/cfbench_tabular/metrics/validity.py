"""Validity: does the model predict the other class for the counterfactual?

validity(x, c) = 1 if there is a counterfactual c and M(c) != M(x), else 0, with M(x) the predicted class of the
factual x. CF-tabular, section 2.5, reports its mean as "coverage". The suite predicts the class of c itself; a
claim of the explainer does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/validity",
    summary="Rate of factuals with a counterfactual in the other class, as the classifier predicts it",
    target=f"{__name__}:Validity",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
    details={"factuals suffice": True},
)

COLUMNS = (
    Column(
        "validity",
        "higher",
        (0.0, 1.0),
        "Does the classifier predict the other class for the counterfactual?",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """No options."""


class Validity:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        return {"validity": observed.valid.astype(np.float64)}
