"""Connectedness: does a path through the data lead from the counterfactual to a real member of its class?

Laugel et al. 2019 ("The dangers of post-hoc interpretability"): a counterfactual is justified if a training row
that truly has its class, and that the model puts there, can be reached from it in steps of at most epsilon,
without leaving the class on the way; else it may be an artifact of the classifier. Their steps go over
generated points; here they go over training rows that the model puts into the class, so a path is one of real
rows.

    connected(c) = 1 if some row r with |c - r| <= epsilon lies in a component (rows of the class, joined where at
                   most epsilon apart) that holds a row whose true class is c's; else 0

epsilon, where it is not given, is the ``quantile`` of the distance from a row of the class to the nearest other
one: as far as rows of this class mostly are from each other. Higher is better. Missing where the answer is not
valid, where fewer than two training rows are in the class, or where their true classes are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.plan import Column
from cfbench_tabular.metrics.base import Answers
from cfbench_tabular.metrics.neighbours import distances, distances_between, wanted_classes
from cfbench_tabular.table import BoolArray, FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    epsilon: Annotated[
        float | None, Range(above=0), Help("longest step, in standard deviations; none: from the quantile")
    ] = None
    quantile: Annotated[
        float, Range(above=0, maximum=1), Help("of the distances between neighbours of the class")
    ] = 0.95
    rows: Annotated[int, Range(minimum=2), Help("training rows looked at, at most; a fixed sample")] = 2000


class Connectedness:
    columns = (
        Column(
            "connected",
            "higher",
            (0.0, 1.0),
            "Does a path of training rows lead to a true member of its class?",
        ),
    )

    def __init__(self, config: Config) -> None:
        self.config = config

    def score(self, answers: Answers) -> Mapping[str, FloatArray]:
        connected = np.full(len(answers.valid), np.nan)
        for label, here, numbers in wanted_classes(answers, self.config.rows):
            if len(numbers) < 2 or not len(answers.background_labels):
                continue
            rows = answers.background[numbers]
            apart = distances_between(rows)
            epsilon = self.config.epsilon
            if epsilon is None:
                epsilon = float(np.quantile(apart.min(axis=1), self.config.quantile))
            good = _reaches(apart <= epsilon, answers.background_labels[numbers] == label)
            within = distances(answers.counterfactuals[here], rows) <= epsilon
            connected[here] = (within & good).any(axis=1)
        return {"connected": connected}


def _reaches(joined: BoolArray, true: BoolArray) -> BoolArray:
    """(n,) which nodes of a graph (n, n) are in a component with one of those marked in ``true`` (n,)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    _, component = connected_components(csr_array(joined), directed=False)
    return np.asarray(np.isin(component, component[true]))
