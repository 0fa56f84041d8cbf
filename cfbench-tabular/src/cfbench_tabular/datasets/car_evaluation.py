"""Car Evaluation: 1,728 imaginary cars; would one buy it? Made from the decision model behind the data.

Bohanec & Rajkovic 1988; UCI Machine Learning Repository, CC BY 4.0. The data are every combination of six
attributes, rated by a tree of tables (DEX): price from buying and maintenance, comfort from doors, persons and
boot, technique from comfort and safety, and the car from price and technique. UCI gives the tree and not the
tables: those below are the coarsest that give UCI's classes, found by merging combinations that are always
rated equally; they give every class, in UCI's order of rows (checked against the file of CF-tabular).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, categorical
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/car-evaluation",
    summary="Acceptability of 1,728 cars, computed from the decision model",
    target=f"{__name__}:CarEvaluation",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"categorical"}}},
    papers=("bohanec1988knowledge",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


LEVELS = {
    "buying": ("vhigh", "high", "med", "low"),
    "maint": ("vhigh", "high", "med", "low"),
    "doors": ("2", "3", "4", "5more"),
    "persons": ("2", "4", "more"),
    "lug_boot": ("small", "med", "big"),
    "safety": ("low", "med", "high"),
}
# Places are levels in the order of LEVELS; larger is better.
PRICE = ((0, 0, 1, 1), (0, 1, 1, 1), (1, 1, 2, 3), (1, 2, 3, 3))  # [buying][maint]
COMFORT = (  # [persons][doors][lug_boot]
    ((0, 0, 0), (0, 0, 0), (0, 0, 0), (0, 0, 0)),
    ((1, 1, 2), (1, 1, 2), (1, 2, 2), (1, 2, 2)),
    ((0, 1, 2), (1, 2, 2), (1, 2, 2), (1, 2, 2)),
)
TECHNIQUE = ((0, 0, 0), (0, 1, 2), (0, 2, 3))  # [comfort][safety]
CAR = (  # [price][technique]
    ("unacc", "unacc", "unacc", "unacc"),
    ("unacc", "unacc", "acc", "acc"),
    ("unacc", "acc", "acc", "vgood"),
    ("unacc", "acc", "good", "vgood"),
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: unacc, acc, good, vgood."""


class CarEvaluation:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        places = product(*(range(len(levels)) for levels in LEVELS.values()))
        target = np.array([evaluate(*car) for car in places])
        rows = np.array(list(product(*LEVELS.values())))
        return apply_options(categorical("car-evaluation", LEVELS, rows, target), self.config)


def evaluate(buying: int, maint: int, doors: int, persons: int, lug_boot: int, safety: int) -> str:
    technique = TECHNIQUE[COMFORT[persons][doors][lug_boot]][safety]
    return CAR[PRICE[buying][maint]][technique]
