"""L2: the Euclidean distance between factual and counterfactual, ||c - x||_2, in the encoded space.

Paper 003, table 3. In standard deviations of the training rows; a category that changes counts as sqrt(2).
Missing where the answer is not valid. The study rounds both rows to four decimals first, as ``decimals: 4``
does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers, where_valid
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[
        int | None,
        Range(minimum=0),
        Help("to which both rows are rounded first; none: not at all; the study: 4"),
    ] = None


class L2:
    columns = (Column("L2", "lower", None, "How far, in standard deviations, is the counterfactual?"),)

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        pair = answers.counterfactuals, answers.factuals
        if self.config.decimals is not None:
            pair = np.round(pair[0], self.config.decimals), np.round(pair[1], self.config.decimals)
        distances = np.linalg.norm(pair[0] - pair[1], axis=1)
        return {"L2": where_valid(answers, distances)}
