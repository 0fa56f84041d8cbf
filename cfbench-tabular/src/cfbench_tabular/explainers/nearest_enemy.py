"""Nearest enemy: the closest training row that the model puts into the other class.

c(x) = argmin over training rows t with M(t) != M(x) of ||t - x||_2, in the encoded space; of rows equally
near, the first. Exact, always realistic (it is a row that exists), seldom sparse. Ours as a baseline; the
idea is the "native" counterfactual of case-based explanation (Keane & Smyth 2020). Without a training row of
the other class: no answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cfbench_tabular.classifiers.base import Classifier, predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals, no_answers
from cfbench_tabular.table import FloatArray

DISTANCES = 2_000_000
"""How many are held at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


class NearestEnemy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        answers = no_answers(factuals)
        classes = predicted_classes(model, context.background)
        for label in (0, 1):
            enemies = context.background[classes != label]
            asked = np.flatnonzero(factuals.classes == label)
            if len(enemies) == 0:
                continue
            step = max(1, DISTANCES // len(enemies))
            for start in range(0, len(asked), step):
                block = asked[start : start + step]
                nearest = cdist(factuals.vectors[block], enemies, "sqeuclidean").argmin(axis=1)
                answers[block] = enemies[nearest]
        return answers
