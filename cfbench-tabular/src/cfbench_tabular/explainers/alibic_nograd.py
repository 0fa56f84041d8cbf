"""ALIBIC with numerical gradients, for any model that returns probabilities (Van Looveren & Klaise 2021).

See :mod:`alibic <.alibic>`. The derivative of the margin m along coordinate j is

    (m(c + h e_j) - m(c - h e_j)) / 2 h,    h = ``step`` standard deviations (or the same share of the line of levels),

for all coordinates and all factuals in one call. It is computed only while c is in the class of the factual, because
the hinge has no gradient elsewhere. Where all differences of a point are 0, as on the steps of a tree, they are
computed again with 10 times, then 100 times the step.

There is one coordinate per column, so a category of forty levels takes two model queries, not eighty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.descent import margins
from cfbench_tabular.explainers.levels import Space
from cfbench_tabular.explainers.prototypes import Options, guided
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/alibic-nograd",
    summary="ALIBIC with numerical gradients, for any model with probabilities",
    target=f"{__name__}:ALIBICNoGrad",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("vanlooveren2021prototypes",),
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of model queries that are held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config(Options):
    step: Annotated[float, Range(above=0), Help("half the distance of the two points of a difference")] = 0.01


class ALIBICNoGrad:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        def slopes(space: Space, points: FloatArray, classes: IntArray) -> FloatArray:
            found = differences(model, space, points, classes, self.config.step)
            for wider in (10, 100):
                flat = ~found.any(axis=1)
                if flat.any():
                    again = differences(model, space, points[flat], classes[flat], wider * self.config.step)
                    found[flat] = again
            return found

        return guided(self.config, model, factuals, context, slopes)


def differences(
    model: Classifier, space: Space, points: FloatArray, classes: IntArray, step: float
) -> FloatArray:
    """(n, M) central differences of the margin at the points (n, M)."""
    found = np.empty_like(points)
    moves = np.concatenate([np.eye(space.size), -np.eye(space.size)]) * step
    each = max(1, NUMBERS // (len(moves) * space.width))
    for start in range(0, len(points), each):
        part = slice(start, start + each)
        queries = (points[part, None] + moves).reshape(-1, space.size)
        found_margins = margins(model, space.mixtures(queries), np.repeat(classes[part], len(moves)))
        up, down = np.split(found_margins.reshape(-1, len(moves)), 2, axis=1)
        found[part] = (up - down) / (2 * step)
    return found
