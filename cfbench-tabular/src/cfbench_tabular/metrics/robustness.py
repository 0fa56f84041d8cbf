"""Robustness: is the counterfactual still one when it is not carried out exactly?

robustness = the share of ``draws`` small random changes of the counterfactual that the model leaves in its class.
Numbers get normal noise of ``noise`` standard deviations; categories stay as they are. (Artelt et al. 2021;
Dominguez-Olmedo et al. 2022.) Every answer meets the same noise, so that methods are compared on equal terms.

Higher is better, between 0 and 1. Missing where the answer is not valid, or no column is numeric.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.seeds import generator
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    noise: Annotated[float, Range(above=0), Help("standard deviations of the noise")] = 0.05
    draws: Annotated[int, Range(minimum=1), Help("noisy copies of each counterfactual")] = 100


class Robustness:
    columns = (
        Column("robustness", "higher", (0.0, 1.0), "How often does small noise leave it in its class?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        share = np.full(len(answers.valid), np.nan)
        numeric = answers.encoding.numeric
        if not numeric.any() or not answers.valid.any():
            return {"robustness": share}
        draws = self.config.draws
        noise = np.zeros((draws, len(numeric)))
        noise[:, numeric] = generator("tabular", "robustness").normal(
            0.0, self.config.noise, size=(draws, int(numeric.sum()))
        )
        noisy = answers.counterfactuals[answers.valid][:, None] + noise
        classes = predicted_classes(answers.model, noisy.reshape(-1, len(numeric))).reshape(-1, draws)
        share[answers.valid] = (classes != answers.factual_classes[answers.valid, None]).mean(axis=1)
        return {"robustness": share}
