"""Wine: 178 Italian wines of three growers, by 13 chemical measurements.

Source: Forina et al. 1991; UCI Machine Learning Repository, CC BY 4.0; the copy that scikit-learn
carries. The majority is the second grower, class_1, 71 wines.
"""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_core.specs import ComponentSpec
from cfbench_tabular.datasets.base import DatasetConfig, apply_options, from_scikit_learn
from cfbench_tabular.table import Table

SPEC = ComponentSpec(
    id="tabular/dataset/wine",
    summary="Growers of 178 wines, 13 measurements",
    target=f"{__name__}:Wine",
    config=f"{__name__}:Config",
    needs={"explainer": {"columns": {"numeric"}}},
    papers=("forina1991parvus",),
    details={"embedded": True, "licence": "CC BY 4.0"},
)


@dataclass(frozen=True, kw_only=True)
class Config(DatasetConfig):
    """The options of every data set. Classes: class_0, class_1, class_2."""


class Wine:
    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self) -> Table:
        from sklearn.datasets import load_wine

        return apply_options(from_scikit_learn("wine", load_wine()), self.config)
