"""Diversity: how different are the answers to one factual from each other? (Mothilal et al. 2020, section 3.1.)

- #answers: how many different valid answers there are (equal to ``decimals`` decimals is the same).
- diversity: mean Euclidean distance between two of them, in standard deviations.
- column diversity: the mean share of the table's columns in which two of them differ ("count diversity").

For studies that ask for several answers (``protocol.answers``); of a single answer only #answers says anything.
Higher is better; column diversity between 0 and 1. Diversities are missing where there are fewer than two
different valid answers; #answers is 0 where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.metrics.neighbours import distances
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    decimals: Annotated[int, Range(minimum=0), Help("to which answers are rounded, to be compared")] = 4


class Diversity:
    columns = (
        Column("#answers", "higher", None, "How many different valid answers are there?"),
        Column("diversity", "higher", None, "How far apart are two valid answers to the same factual?"),
        Column(
            "column diversity", "higher", (0.0, 1.0), "In which share of the columns do two of them differ?"
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        number, apart, columns = np.full((3, len(answers.valid)), np.nan)
        starts = [block.start for block in answers.encoding.blocks]
        for unit, (given, valid) in enumerate(zip(answers.all, answers.all_valid, strict=True)):
            # + 0.0: no minus before zero, which would be another number
            different = np.unique(np.round(given[valid], self.config.decimals) + 0.0, axis=0)
            number[unit] = len(different)
            if len(different) < 2:
                continue
            first, second = np.triu_indices(len(different), k=1)
            apart[unit] = distances(different, different)[first, second].mean()
            changed = np.logical_or.reduceat(different[first] != different[second], starts, axis=1)
            columns[unit] = changed.mean()
        return {"#answers": number, "diversity": apart, "column diversity": columns}
