"""Iris: 150 flowers of three species, measured in four places.

Source: Fisher 1936; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn carries. All
species are equally frequent; the "majority" is the last by name, virginica, as in CF-tabular.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, from_scikit_learn
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/iris",
    summary="Species of 150 iris flowers, 4 measurements",
    target=f"{__name__}:Iris",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"numeric"}}},
    papers=("fisher1936use",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: setosa, versicolor, virginica."""


class Iris:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_iris

        return apply_options(from_scikit_learn("iris", load_iris()), self.config)
