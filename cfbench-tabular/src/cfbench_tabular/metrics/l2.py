"""L2: the Euclidean distance between factual and counterfactual, ||c - x||_2, in the encoded space.

CF-tabular, table 3. In standard deviations of the training rows; a changed category counts as sqrt(2). Missing
where the counterfactual is not valid. CF-tabular rounds both rows to four decimals first, as ``decimals: 4`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.metrics.base import Observed, where_valid
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/metric/l2",
    summary="Euclidean distance in standard deviations",
    target=f"{__name__}:L2",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
    details={"factuals suffice": True},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[
        int | None,
        Range(minimum=0),
        Help("to which both rows are rounded first; none: no rounding; CF-tabular: 4"),
    ] = None


COLUMNS = (Column("L2", "lower", None, "How far, in standard deviations, is the counterfactual?"),)


class L2:
    def __init__(self, config: Config) -> None:
        self.config = config

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return COLUMNS

    def compute(self, observed: Observed) -> Mapping[str, FloatArray]:
        pair = observed.counterfactuals, observed.factuals
        if self.config.decimals is not None:
            pair = np.round(pair[0], self.config.decimals), np.round(pair[1], self.config.decimals)
        distances = np.linalg.norm(pair[0] - pair[1], axis=1)
        return {"L2": where_valid(observed, distances)}
