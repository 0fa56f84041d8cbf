"""Robustness: does the counterfactual keep its class under small noise? (Artelt et al. 2021)

robustness = the share of ``draws`` small random changes of the counterfactual that keep its predicted class. Numbers
get normal noise of ``noise`` standard deviations (as in Artelt et al. 2021; Dominguez-Olmedo et al. 2022). Each
category is replaced with probability ``another_level`` by another level, drawn uniformly: 0.05 is about as rare as a
number that moves by twice its noise; 0 leaves categories unchanged, as published. A category that is not exactly
one level counts as its largest. Every counterfactual gets the same noise, so that explainers are compared on equal
terms.

Higher is better, between 0 and 1. Missing where the counterfactual is not valid, or where nothing can change,
because no column is numeric and categories are left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.lifecycle.streams import generator
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/robustness",
    summary="Does the class persist under small noise?",
    target=f"{__name__}:Robustness",
    config=f"{__name__}:Config",
    papers=("artelt2021robustness",),
    version="2",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    noise: Annotated[float, Range(above=0), Help("standard deviations of the noise")] = 0.05
    draws: Annotated[int, Range(minimum=1), Help("number of noisy copies of each counterfactual")] = 100
    another_level: Annotated[
        float, Range(minimum=0, maximum=1), Help("probability that a category is replaced by another level")
    ] = 0.05


COLUMNS = (Column("robustness", "higher", (0.0, 1.0), "How often does it keep its class under small noise?"),)


class Robustness:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        share = np.full(len(observed.valid), np.nan)
        encoding, draws = observed.encoding, self.config.draws
        numeric, still = encoding.numeric, self.config.another_level == 0
        if (not numeric.any() and still) or not observed.valid.any():
            return {"robustness": share}
        noise = np.zeros((draws, len(numeric)))
        noise[:, numeric] = generator("tabular", "robustness").normal(
            0.0, self.config.noise, size=(draws, int(numeric.sum()))
        )
        noisy = observed.counterfactuals[observed.valid][:, None] + noise
        if not still:
            self._change_levels(encoding, noisy)
        classes = predicted_classes(observed.model, noisy.reshape(-1, len(numeric))).reshape(-1, draws)
        share[observed.valid] = (classes != observed.factual_classes[observed.valid, None]).mean(axis=1)
        return {"robustness": share}

    def _change_levels(self, encoding: Encoding, noisy: FloatArray) -> None:
        """Replaces levels in the copies (B, draws, d) in place; each draw changes the same categories in all copies."""
        draw = generator("tabular", "robustness", "levels")
        for column, block in zip(encoding.columns, encoding.blocks, strict=True):
            if column.scalar:
                continue
            levels, size = len(column.levels), block.stop - block.start
            changed = draw.random(self.config.draws) < self.config.another_level
            shift = draw.integers(1, max(levels, 2), size=self.config.draws)[changed]
            part = noisy[:, changed, block]
            now = part[..., 0] >= 0.5 if size == 1 else part.argmax(axis=-1)
            other = (now + shift) % levels
            noisy[:, changed, block] = other[..., None] if size == 1 else np.eye(size)[other]
