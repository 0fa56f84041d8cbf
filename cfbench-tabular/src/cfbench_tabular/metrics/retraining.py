"""Robustness to retraining: is the counterfactual still one for a model that was trained again?

retraining = 1 if a second model, trained on the same rows in the same way with another seed, puts the
counterfactual into the wanted class too; else 0. (Upadhyay et al. 2021; Black et al. 2022.) Only of factuals that
the second model puts where the first does: of the others it has nothing to say.

A study asks for the second model with ``protocol.again``. Higher is better, between 0 and 1. Missing where the
answer is not valid, where the second model disagrees about the factual, and where there is no second model: its
training drew nothing at random, or the weights were given, so that it would be the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


class Retraining:
    columns = (
        Column("retraining", "higher", (0.0, 1.0), "Does a second model put it into the wanted class too?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        kept = np.full(len(answers.valid), np.nan)
        second = answers.second_model
        if second is not None:
            agreed = answers.valid & (predicted_classes(second, answers.factuals) == answers.factual_classes)
            classes = predicted_classes(second, answers.counterfactuals[agreed])
            kept[agreed] = classes != answers.factual_classes[agreed]
        return {"retraining": kept}
