"""Nursery: 12,960 imaginary applications for a nursery school in Ljubljana; how should each be ranked?

Olave, Rajkovic & Bohanec 1989; UCI Machine Learning Repository, CC BY 4.0. The data are every combination of
eight attributes, rated by a tree of tables (DEX): employment from parents and the child's present nursery,
structure from the form of the family and its children, standing from structure, housing and finance, and the
rank from these and from social picture and health. UCI gives the tree and not the tables: those below are the
coarsest that give UCI's classes, found by merging combinations that are always rated equally; they give every
class, in UCI's order of rows (checked against the file of CF-tabular).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, categorical
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/nursery",
    summary="Ranks of 12,960 nursery applications, computed from the decision model",
    target=f"{__name__}:Nursery",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"categorical"}}},
    papers=("olave1989application",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


LEVELS = {
    "parents": ("usual", "pretentious", "great_pret"),
    "has_nurs": ("proper", "less_proper", "improper", "critical", "very_crit"),
    "form": ("complete", "completed", "incomplete", "foster"),
    "children": ("1", "2", "3", "more"),
    "housing": ("convenient", "less_conv", "critical"),
    "finance": ("convenient", "inconv"),
    "social": ("nonprob", "slightly_prob", "problematic"),
    "health": ("recommended", "priority", "not_recom"),
}
# Places are levels in the order of LEVELS; larger is a greater need.
EMPLOYMENT = ((0, 1, 1, 2, 3), (1, 1, 2, 3, 3), (2, 2, 3, 3, 3))  # [parents][has_nurs]
STRUCTURE = ((0, 1, 2, 2), (1, 1, 2, 2), (1, 2, 2, 2), (2, 2, 2, 2))  # [form][children]
STANDING = (  # [structure][housing][finance]
    ((0, 1), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (2, 2)),
    ((1, 2), (2, 2), (2, 2)),
)
WELL = (  # [employment][standing], of children in good health from families without problems
    ("recommend", "very_recom", "priority"),
    ("very_recom", "very_recom", "priority"),
    ("priority", "priority", "priority"),
    ("priority", "priority", "spec_prior"),
)
IN_NEED = (  # [employment][standing], of the others
    ("priority", "priority", "priority"),
    ("priority", "priority", "priority"),
    ("priority", "priority", "spec_prior"),
    ("priority", "spec_prior", "spec_prior"),
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: not_recom, recommend, very_recom, priority, spec_prior."""


class Nursery:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        places = product(*(range(len(levels)) for levels in LEVELS.values()))
        target = np.array([ranked(*application) for application in places])
        rows = np.array(list(product(*LEVELS.values())))
        return apply_options(categorical("nursery", LEVELS, rows, target), self.config)


def ranked(
    parents: int,
    has_nurs: int,
    form: int,
    children: int,
    housing: int,
    finance: int,
    social: int,
    health: int,
) -> str:
    if LEVELS["health"][health] == "not_recom":
        return "not_recom"
    well = LEVELS["health"][health] == "recommended" and LEVELS["social"][social] != "problematic"
    standing = STANDING[STRUCTURE[form][children]][housing][finance]
    return (WELL if well else IN_NEED)[EMPLOYMENT[parents][has_nurs]][standing]
