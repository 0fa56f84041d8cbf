"""Balance Scale: weights and distances on both arms of a scale; which side tips? 625 rows, made from the rule.

Siegler 1976; UCI Machine Learning Repository, CC BY 4.0. Every combination of four values 1 to 5; the class is
the side with the larger weight times distance (L, R), or B. The rows equal UCI's, in UCI's order (checked
against the file of CF-tabular). L and R are equally frequent; the "majority" is R, the last, as in CF-tabular.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, categorical
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/balance-scale",
    summary="Which side of a balance tips, 625 combinations computed from the rule",
    target=f"{__name__}:BalanceScale",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"categorical"}}},
    papers=("siegler1976three",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


COLUMNS = ("left-weight", "left-distance", "right-weight", "right-distance")
LEVELS = ("1", "2", "3", "4", "5")


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: L, R, B."""


class BalanceScale:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        numbers = np.array(list(product(range(1, 6), repeat=4)))
        tilt = numbers[:, 0] * numbers[:, 1] - numbers[:, 2] * numbers[:, 3]
        side = np.array(["R", "B", "L"])[np.sign(tilt) + 1]
        levels = dict.fromkeys(COLUMNS, LEVELS)
        return apply_options(categorical("balance-scale", levels, numbers.astype(str), side), self.config)
