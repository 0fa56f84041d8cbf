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
from cfbench_tabular.explainers.prototypes import Derivatives, Options, guided
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/alibic-nograd",
    summary="ALIBIC with numerical gradients, for any model with probabilities",
    target=f"{__name__}:ALIBICNoGrad",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("vanlooveren2021prototypes",),
    version="5",
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
        step = self.config.step

        def slopes(space: Space, points: FloatArray, classes: IntArray) -> FloatArray:
            return widened(model, space, points, classes, step, np.arange(space.size))

        def switches(space: Space, points: FloatArray, classes: IntArray) -> tuple[FloatArray, FloatArray]:
            return (
                widened(model, space, points, classes, step, space.numbers),
                switched(model, space, points, classes),
            )

        return guided(self.config, model, factuals, context, Derivatives(slopes, switches))


def widened(
    model: Classifier, space: Space, points: FloatArray, classes: IntArray, step: float, columns: IntArray
) -> FloatArray:
    """(n, m) the differences along the coordinates ``columns`` (m,), with a wider step where all of a point are 0."""
    found = differences(model, space, points, classes, step, columns)
    for wider in (10, 100):
        flat = ~found.any(axis=1)
        if flat.any():
            found[flat] = differences(model, space, points[flat], classes[flat], wider * step, columns)
    return found


def switched(model: Classifier, space: Space, points: FloatArray, classes: IntArray) -> FloatArray:
    """(n, C, L) the change of the margin by a switch of each category to each level; 0 in the padding."""
    found = np.zeros((len(points), *space.places.shape))
    row, level = np.nonzero(np.isfinite(space.places))
    if not len(row):
        return found
    each = max(1, NUMBERS // (len(row) * space.width))
    for start in range(0, len(points), each):
        part = slice(start, start + each)
        queries = np.repeat(points[part, None], len(row), axis=1)
        queries[:, np.arange(len(row)), space.categories[row]] = space.places[row, level]
        own = margins(model, space.mixtures(points[part]), classes[part])
        moved = margins(
            model, space.mixtures(queries.reshape(-1, space.size)), np.repeat(classes[part], len(row))
        )
        found[part, row, level] = moved.reshape(-1, len(row)) - own[:, None]
    return found


def differences(
    model: Classifier,
    space: Space,
    points: FloatArray,
    classes: IntArray,
    step: float,
    columns: IntArray | None = None,
) -> FloatArray:
    """(n, m) central differences of the margin at the points (n, M), along the coordinates ``columns`` (m,), or all."""
    columns = np.arange(space.size) if columns is None else columns
    found = np.empty((len(points), len(columns)))
    if not len(columns):
        return found
    along = np.eye(space.size)[columns]
    moves = np.concatenate([along, -along]) * step
    each = max(1, NUMBERS // (len(moves) * space.width))
    for start in range(0, len(points), each):
        part = slice(start, start + each)
        queries = (points[part, None] + moves).reshape(-1, space.size)
        found_margins = margins(model, space.mixtures(queries), np.repeat(classes[part], len(moves)))
        up, down = np.split(found_margins.reshape(-1, len(moves)), 2, axis=1)
        found[part] = (up - down) / (2 * step)
    return found
