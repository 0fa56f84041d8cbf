"""Robustness to retraining: is the counterfactual valid for models that are trained again? (Upadhyay et al. 2021)

retraining = the share of ``protocol.retrained_models`` models that put the counterfactual into the wanted class, which is
not the one that the explained model predicted for the factual. They are trained as the explained model was, on a
bootstrap sample of the training rows or with another seed, or both (``protocol.model_changes``). ``protocol.repeats`` alone
trains one, with another seed. No explainer sees them.

Higher is better, between 0 and 1. Missing where the counterfactual is not valid, and where no model can differ from the
explained one, because its training is deterministic or its weights were given.
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
    summary="Is it a counterfactual for retrained models?",
    target=f"{__name__}:Retraining",
    config=f"{__name__}:Config",
    papers=("upadhyay2021robust",),
    details={"protocol": "retrained_models repeats", "models": "retrained"},
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """No options."""


COLUMNS = (
    Column("retraining", "higher", (0.0, 1.0), "Share of retrained models that put it into the other class"),
)


class Retraining:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        values = np.full(len(observed.valid), np.nan)
        valid = observed.valid
        if observed.retrained:
            rows, wanted = observed.counterfactuals[valid], 1 - observed.factual_classes[valid]
            votes = [predicted_classes(model, rows) == wanted for model in observed.retrained]
            values[valid] = np.mean(votes, axis=0)
        return {"retraining": values}
