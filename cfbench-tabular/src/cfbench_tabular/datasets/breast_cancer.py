"""Breast Cancer Wisconsin (diagnostic): 569 tumours by 30 measurements of their cells, benign or malignant.

Source: Wolberg et al. 1995; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn
carries. Not the data set of CF-tabular, which is the prognostic one (198 rows): `bcw`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, from_scikit_learn
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/breast-cancer",
    summary="Benign or malignant tumours, 569 rows, 30 measurements",
    target=f"{__name__}:BreastCancer",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"numeric"}}},
    papers=("wolberg1995diagnostic",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: benign, malignant."""


class BreastCancer:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_breast_cancer

        return apply_options(from_scikit_learn("breast-cancer", load_breast_cancer()), self.config)
