"""Stability: does the explainer return the same counterfactual with another seed?

stability = 1 if a second call, with the same model and factual and another random stream, returns the same
counterfactual to ``decimals`` decimals; else 0 (CF-tabular, table 3 and figure 5, whose formula tests whether the
differences *sum* to zero, so that changes that cancel count as none; here every column must agree).

With the same stream every explainer is exactly reproducible, which the conformance checks verify. Stability measures
how much of a counterfactual is due to chance. ``protocol.repeats`` makes the second call, which doubles the time.

Higher is better. Missing if neither call found a counterfactual or there was no second call; 0 if only one call
found a counterfactual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed
from cfbench_tabular.table import FloatArray, complete

SPEC = ComponentSpec(
    id="tabular/metric/stability",
    summary="Is the counterfactual reproduced with another seed?",
    target=f"{__name__}:Stability",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
    details={"protocol": "repeats"},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[int, Range(minimum=0), Help("to which both counterfactuals are rounded")] = 4


COLUMNS = (Column("stability", "higher", (0.0, 1.0), "Is the same counterfactual found with another seed?"),)


class Stability:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        if observed.repeated is None:
            return {"stability": np.full(len(observed.valid), np.nan)}
        decimals = self.config.decimals
        same = (np.round(observed.counterfactuals, decimals) == np.round(observed.repeated, decimals)).all(
            axis=1
        )
        found = complete(observed.counterfactuals) | complete(observed.repeated)
        return {"stability": np.where(found, same, np.nan)}
