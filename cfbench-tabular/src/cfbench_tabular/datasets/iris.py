"""Iris: 150 flowers of three species, measured in four places.

Source: Fisher 1936; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn carries. All
species are equally frequent; the "majority" is the last by name, virginica, as in the study (paper 003).
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_tabular.datasets.base import DatasetConfig, as_asked, from_scikit_learn
from cfbench_tabular.table import Table


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """Nothing of its own. Classes: setosa, versicolor, virginica."""


class Iris:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_iris

        return as_asked(from_scikit_learn("iris", load_iris()), self.config)
