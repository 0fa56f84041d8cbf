"""L2: the Euclidean distance between factual and counterfactual, ||c - x||_2, in the encoded space.

Paper 003, table 3. In standard deviations of the training rows; a category that changes counts as sqrt(2).
Missing where the answer is not valid.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers, where_valid
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


class L2:
    columns = (Column("L2", "lower", None, "How far, in standard deviations, is the counterfactual?"),)

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        distances = np.linalg.norm(answers.counterfactuals - answers.factuals, axis=1)
        return {"L2": where_valid(answers, distances)}
