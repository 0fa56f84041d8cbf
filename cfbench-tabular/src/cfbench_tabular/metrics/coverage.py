"""Coverage: is there an answer, and does the model really put it into the other class?

coverage(x, c) = 1 if M(c) != M(x) else 0. Paper 003, section 2.5 ("validity"). The class is
predicted anew; what the explainer says of its answer does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    """Nothing to set."""


class Coverage:
    columns = (
        Column(
            "coverage",
            "higher",
            (0.0, 1.0),
            "Does the classifier put the counterfactual into the other class?",
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        return {"coverage": answers.valid.astype(np.float64)}
