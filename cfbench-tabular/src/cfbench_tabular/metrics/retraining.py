"""Robustness to retraining: is the counterfactual valid for a second model as well? (Upadhyay et al. 2021)

retraining = 1 if a second model, trained on the same rows in the same way with another seed, puts the counterfactual
into the other class too; else 0. Factuals whose class the second model predicts differently are left out.

``protocol.repeats`` trains the second model. Higher is better, between 0 and 1. Missing where the counterfactual is
not valid, where the second model disagrees about the factual, and where the second model would equal the first,
because its training is deterministic or its weights were loaded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/retraining",
    summary="Is it a counterfactual for a retrained model?",
    target=f"{__name__}:Retraining",
    config=f"{__name__}:Config",
    papers=("upadhyay2021robust",),
    details={"protocol": "repeats"},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """No options."""


COLUMNS = (
    Column("retraining", "higher", (0.0, 1.0), "Does a second model put it into the other class too?"),
)


class Retraining:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        values = np.full(len(observed.valid), np.nan)
        second = observed.second_model
        if second is not None:
            agreed = observed.valid & (
                predicted_classes(second, observed.factuals) == observed.factual_classes
            )
            classes = predicted_classes(second, observed.counterfactuals[agreed])
            values[agreed] = classes != observed.factual_classes[agreed]
        return {"retraining": values}
