"""The network that was published with CF-tabular for a data set; it is not trained.

Needs ``protocol: paper``, which locates the file: the network was trained on rows in the published order of columns,
scaled by all rows. For other data and other weights use ``{name: mlp, weights: FILE}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, InputFile
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Report
from cfbench_tabular.classifiers import mlp
from cfbench_tabular.prepared_dataset import PreparedDataset

SPEC = ComponentSpec(
    id="tabular/classifier/study-network",
    summary="The network published with CF-tabular for a data set; needs protocol: paper",
    target=f"{__name__}:StudyNetwork",
    config=f"{__name__}:Config",
    provides={"access": {"gradients", "layers", "scores"}},
    papers=("cftabular2021",),
    details={"weights": "study"},
)


@dataclass(frozen=True, kw_only=True)
class Config:
    weights: Annotated[
        str | None, InputFile(), Help("W1, b1, W2, b2 as .npz or .safetensors; none: the published ones")
    ] = None


class StudyNetwork(mlp.MLP):
    def __init__(self, config: Config) -> None:
        super().__init__(mlp.Config(weights=config.weights))

    def fit(self, data: PreparedDataset, generator: np.random.Generator, report: Report) -> None:
        if self.config.weights is None:
            raise UserError("study-network needs 'protocol: paper', or a file of weights")
        self.load_state(mlp.read_weights(Path(self.config.weights)), data)
        mlp.check_weights(self.weights, data, self.config.weights)
