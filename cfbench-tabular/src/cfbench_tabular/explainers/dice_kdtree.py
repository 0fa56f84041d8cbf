"""DiCE from training rows: the nearest ones of the other class, made sparse as a set. For any classifier.

The method "kdtree" of the library of Mothilal, Sharma & Tan 2020, "Explaining machine learning classifiers through
diverse counterfactual explanations" (dice-ml); the paper has only the descent, which is ``dice``.

1. Take the ``neighbours`` training rows of the other class (as the model predicts) nearest to x by L2, and then as
   many again, until the valid ones contain k that are ``minimum_distance`` apart.
2. k of them, chosen one after the other, minimise cost / k - diversity det(K), where the cost is
   proximity dist(c, x) / d + changes (share of changed columns), with dist and K as in ``dice``.
3. They are made sparse as a set: no column is reset that would bring two of them closer than ``minimum_distance``, and
what contains the changes of another one is replaced or left out (:mod:`dominance <.dominance>`).

Departures from the library: a training row that changes an immutable column, or leaves the limits of a column, has
the factual's value there and is tested on the model again (the library discards it, so that few immutable
columns leave nothing); the set is diverse (the library takes the nearest rows); categories are reset, too
(``restored: numbers`` is as in the library). All training rows are compared, which gives the neighbours of a k-d tree
and is as fast with many columns. The result does not depend on chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.black_box_sets import SetOptions, SetSearch
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/dice-kdtree",
    summary="Several diverse training rows of the other class, made sparse",
    target=f"{__name__}:DiCEKDTree",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("mothilal2020dice",),
)


@dataclass(frozen=True, kw_only=True)
class Config(SetOptions):
    neighbours: Annotated[int, Range(minimum=1), Help("training rows that are taken at a time")] = 50


class DiCEKDTree:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), the closest first."""
        search = SetSearch(self.config, model, factuals, context)
        classes = predicted_classes(model, context.background)
        enemies = [np.unique(context.background[classes != label], axis=0) for label in (0, 1)]
        pools = [
            self._pool(search, enemies[label], place) for place, label in enumerate(factuals.classes.tolist())
        ]
        return search.results(pools)

    def _pool(self, search: SetSearch, enemies: FloatArray, place: int) -> FloatArray:
        """(r, d) the valid ones of the nearest rows among ``enemies`` (n, d)."""
        rows = search.admissible(enemies, place)
        away = ((rows - search.factuals.vectors[place]) ** 2).sum(axis=1)
        order, step = away.argsort(kind="stable"), self.config.neighbours
        pool: FloatArray = np.empty((0, search.encoding.width))
        for start in range(0, len(order), step):
            near = rows[order[start : start + step]]
            pool = np.concatenate([pool, near[search.valid(near, np.full(len(near), place))]])
            if len(search.subset(pool, place)) == search.size:
                break
        return pool
