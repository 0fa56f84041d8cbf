"""Nearest enemy: the closest admissible training row that the model puts into the other class.

c(x) = argmin over training rows t with M(t) != M(x) of ||t - x||_2, in the encoded space; of equally near rows, the
first. Admissible are rows that agree with x in all immutable columns, and differ in one-way columns only in their
direction; with ``constraints: ignore`` all rows are. It is exact and always realistic (an existing row), but rarely
sparse. A simple method of cfbench; the idea is the "native" counterfactual of case-based explanation (Keane & Smyth
2020). Without an admissible row of the other class, no counterfactual is found.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import numpy as np
from scipy.spatial.distance import cdist

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.dominance import Dominance
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/nearest-enemy",
    summary="The closest admissible training row of the other class",
    target=f"{__name__}:NearestEnemy",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("keane2020good",),
    details={"rows": "existing"},
)


DISTANCES = 2_000_000
"""Maximum number of distances that are held in memory at once."""

PRODUCT = 16
"""Columns above which distances are faster by a matrix product."""


@dataclass(frozen=True, kw_only=True)
class Config:
    constraints: Annotated[
        Literal["respect", "ignore"], Help("immutable columns, directions and ranges; ignore: any row")
    ] = "respect"


class NearestEnemy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), the nearest first; a training row that contains the changes of a nearer one is left out."""
        wanted = context.counterfactuals_per_instance
        found = np.full((len(factuals), wanted, context.encoding.width), np.nan)
        classes = predicted_classes(model, context.background)
        dominance = Dominance(context.encoding, factuals.vectors)
        for label in (0, 1):
            enemies = context.background[classes != label]
            members = np.flatnonzero(factuals.classes == label)
            if len(enemies) == 0:
                continue
            if wanted > 1:
                enemies = enemies[np.sort(np.unique(enemies, axis=0, return_index=True)[1])]
            step = max(1, DISTANCES // len(enemies))
            for start in range(0, len(members), step):
                block = members[start : start + step]
                if wanted == 1 and self._free(context.encoding, factuals.vectors[block], enemies):
                    found[block, 0] = enemies[_nearest(factuals.vectors[block], enemies)]
                    continue
                distances = cdist(factuals.vectors[block], enemies, "sqeuclidean")
                if self.config.constraints == "respect":
                    distances[~_admissible(context.encoding, factuals.vectors[block], enemies)] = np.inf
                for place in range(min(wanted, len(enemies))):
                    nearest = distances.argmin(axis=1)
                    good = np.isfinite(distances[np.arange(len(block)), nearest])
                    found[block[good], place] = enemies[nearest[good]]
                    if place + 1 == wanted:
                        break
                    for at in np.flatnonzero(good).tolist():
                        contains = dominance.of(int(block[at]), enemies, found[block[at], place])
                        distances[at, contains] = np.inf
        return found if wanted > 1 else found[:, 0]

    def _free(self, encoding: Encoding, rows: FloatArray, others: FloatArray) -> bool:
        """Whether each of ``others`` (n, d) may be a counterfactual of each of the rows (A, d)."""
        return self.config.constraints == "ignore" or not len(exceeded(encoding, rows, others))


def nearest_enemies(model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
    """(B, d) the nearest training row of the other class that is admissible; NaN where there is none."""
    return NearestEnemy(Config()).counterfactuals(
        model, factuals, replace(context, counterfactuals_per_instance=1)
    )


def _nearest(rows: FloatArray, others: FloatArray) -> IntArray:
    """(A,) the index of the nearest of ``others`` (n, d) for each of the rows (A, d), by L2; the first of equals."""
    if rows.shape[1] <= PRODUCT:
        return np.asarray(cdist(rows, others, "sqeuclidean").argmin(axis=1))
    # |a - b|^2 - |a|^2 = |b|^2 - 2 ab: one matrix product, whose rounding errors a second look removes.
    squares = np.einsum("nd,nd->n", others, others)
    distances = rows @ others.T
    distances *= -2
    distances += squares
    error = 1e-9 * (1 + squares.max() + np.einsum("nd,nd->n", rows, rows))
    found = np.empty(len(rows), dtype=np.int64)
    for place, row in enumerate(distances):
        close = np.flatnonzero(row <= row.min() + error[place])
        exact = cdist(rows[place : place + 1], others[close], "sqeuclidean")
        found[place] = close[exact.argmin()]
    return found


def exceeded(encoding: Encoding, rows: FloatArray, others: FloatArray) -> IntArray:
    """Positions in which one of ``others`` (n, d), rows of the table, is outside the limits of one of ``rows`` (A, d)."""
    positions = encoding.restricted
    if not len(positions):
        return positions
    low, high = (limit[:, positions] for limit in encoding.allowed(rows))
    values = others[:, positions]
    exceeded = (low.max(axis=0) > values.min(axis=0)) | (high.min(axis=0) < values.max(axis=0))
    found: IntArray = positions[exceeded]
    return found


def _admissible(encoding: Encoding, rows: FloatArray, others: FloatArray) -> BoolArray:
    """(A, n) which of ``others`` (n, d) are within the limits of the counterfactuals of ``rows`` (A, d)."""
    found = np.ones((len(rows), len(others)), dtype=np.bool_)
    low, high = encoding.allowed(rows)
    for position in exceeded(encoding, rows, others):
        values = others[:, position]
        found &= (low[:, position, None] <= values) & (values <= high[:, position, None])
    return found
