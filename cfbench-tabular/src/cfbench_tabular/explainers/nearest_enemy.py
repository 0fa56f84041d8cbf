"""Nearest enemy: the closest training row that the model puts into the other class.

c(x) = argmin over training rows t with M(t) != M(x) of ||t - x||_2, in the encoded space; of equally near rows, the
first. It is exact and always realistic (an existing row), but rarely sparse. A simple method of cfbench; the idea is
the "native" counterfactual of case-based explanation (Keane & Smyth 2020). Without a training row of the other
class, no counterfactual is found.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/nearest-enemy",
    summary="The closest training row of the other class",
    target=f"{__name__}:NearestEnemy",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("keane2020good",),
)


DISTANCES = 2_000_000
"""Maximum number of distances that are held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


class NearestEnemy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        found = no_counterfactuals(factuals)
        classes = predicted_classes(model, context.background)
        for label in (0, 1):
            enemies = context.background[classes != label]
            members = np.flatnonzero(factuals.classes == label)
            if len(enemies) == 0:
                continue
            step = max(1, DISTANCES // len(enemies))
            for start in range(0, len(members), step):
                block = members[start : start + step]
                nearest = cdist(factuals.vectors[block], enemies, "sqeuclidean").argmin(axis=1)
                found[block] = enemies[nearest]
        return found
