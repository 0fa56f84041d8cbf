"""Robustness: is the counterfactual still one when it is not carried out exactly?

robustness = the share of ``draws`` small random changes of the counterfactual that the model leaves in its class.
Numbers get normal noise of ``noise`` standard deviations (Artelt et al. 2021; Dominguez-Olmedo et al. 2022, whose
noise is on numbers alone). Each category is with probability ``another_level`` another one, drawn evenly from the
rest: 0.05 is as rare as a number that moves by twice its noise; 0 leaves categories alone, as published. A category
that is not exactly one level counts as its largest. Every answer meets the same noise, so that methods are compared
on equal terms.

Higher is better, between 0 and 1. Missing where the answer is not valid, or where there is nothing to
change: no column is numeric, and categories are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.lifecycle.streams import generator
from cfbench_core.plan import Column
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    noise: Annotated[float, Range(above=0), Help("standard deviations of the noise")] = 0.05
    draws: Annotated[int, Range(minimum=1), Help("noisy copies of each counterfactual")] = 100
    another_level: Annotated[
        float, Range(minimum=0, maximum=1), Help("probability of each category to be another one")
    ] = 0.05


class Robustness:
    columns = (
        Column("robustness", "higher", (0.0, 1.0), "How often does small noise leave it in its class?"),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        share = np.full(len(answers.valid), np.nan)
        encoding, draws = answers.encoding, self.config.draws
        numeric, still = encoding.numeric, self.config.another_level == 0
        if (not numeric.any() and still) or not answers.valid.any():
            return {"robustness": share}
        noise = np.zeros((draws, len(numeric)))
        noise[:, numeric] = generator("tabular", "robustness").normal(
            0.0, self.config.noise, size=(draws, int(numeric.sum()))
        )
        noisy = answers.counterfactuals[answers.valid][:, None] + noise
        if not still:
            self._change_levels(encoding, noisy)
        classes = predicted_classes(answers.model, noisy.reshape(-1, len(numeric))).reshape(-1, draws)
        share[answers.valid] = (classes != answers.factual_classes[answers.valid, None]).mean(axis=1)
        return {"robustness": share}

    def _change_levels(self, encoding: Encoding, noisy: FloatArray) -> None:
        """Other levels in the copies (B, draws, d), in place: in each draw the same categories, as far on."""
        draw = generator("tabular", "robustness", "levels")
        for column, block in zip(encoding.columns, encoding.blocks, strict=True):
            if column.kind == "numeric":
                continue
            levels, size = len(column.levels), block.stop - block.start
            changed = draw.random(self.config.draws) < self.config.another_level
            further = draw.integers(1, max(levels, 2), size=self.config.draws)[changed]
            part = noisy[:, changed, block]
            now = part[..., 0] >= 0.5 if size == 1 else part.argmax(axis=-1)
            other = (now + further) % levels
            noisy[:, changed, block] = other[..., None] if size == 1 else np.eye(size)[other]
