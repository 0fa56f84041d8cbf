"""Breast Cancer Wisconsin (diagnostic): 569 tumours by 30 measurements of their cells, benign or malignant.

Source: Wolberg et al. 1995; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn
carries. Not the set of the study (paper 003), which is the prognostic one (198 rows): `bcw`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_tabular.datasets.base import DatasetConfig, as_asked, from_scikit_learn
from cfbench_tabular.table import Table


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """Nothing of its own. Classes: benign, malignant."""


class BreastCancer:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_breast_cancer

        return as_asked(from_scikit_learn("breast-cancer", load_breast_cancer()), self.config)
