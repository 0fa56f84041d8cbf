"""The study's own network of a data set: the weights that paper 003 published, nothing is trained.

Needs ``protocol: paper``, which finds the file: the network was trained on rows in the study's order of columns,
scaled by all rows. For other data and other weights there is ``{name: mlp, weights: FILE}``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, InputFile
from cfbench_core.errors import UserError
from cfbench_tabular.classifiers import mlp
from cfbench_tabular.classifiers.base import Report
from cfbench_tabular.problem import Problem


@dataclass(frozen=True, kw_only=True)
class Config:
    weights: Annotated[
        str | None, InputFile(), Help("W1, b1, W2, b2 as .npz or .safetensors; none: the study's own")
    ] = None


class StudyNetwork(mlp.MLP):
    def __init__(self, config: Config) -> None:
        super().__init__(mlp.Config(weights=config.weights))

    def fit(self, problem: Problem, generator: np.random.Generator, report: Report) -> None:
        if self.config.weights is None:
            raise UserError("study-network needs 'protocol: paper', or the file of its weights")
        self.load_state(mlp.read_weights(Path(self.config.weights)))
        mlp.check_weights(self.weights, problem, self.config.weights)
