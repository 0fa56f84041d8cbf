"""Breast Cancer Wisconsin (diagnostic): 569 tumours by 30 measurements of their cells, benign or malignant.

Source: Wolberg et al. 1995; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn carries.
Not the
set of the study (paper 003), which is the prognostic one (198 rows).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cfbench_core.config import Help
from cfbench_tabular.datasets.base import from_scikit_learn
from cfbench_tabular.table import Table


@dataclass(frozen=True, kw_only=True)
class Config:
    target: Annotated[
        str | None, Help("benign or malignant; class to tell from the rest, none: the majority")
    ] = None


class BreastCancer:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_breast_cancer

        return from_scikit_learn("breast-cancer", load_breast_cancer(), self.config.target)
