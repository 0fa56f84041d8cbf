"""The training set of the analysis ``advice``: features of every factual and the explainers that are best for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_tabular.analysis.run_data import (
    CRITERIA,
    VALID,
    DataSet,
    FloatArray,
    comparable,
    competitors,
    masked,
    studies,
)
from cfbench_tabular.instance_features import ENEMY, MISCLASSIFIED, SCORE, SHARE

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

NEURONS = "neurons"
INSTANCE_FEATURES = (SCORE, MISCLASSIFIED, SHARE, ENEMY)
FEATURES = (
    "training rows",
    "numeric columns",
    "categorical columns",
    "one-hot share",
    NEURONS,
    "test AUC",
    *INSTANCE_FEATURES,
)


STRATEGIES: Mapping[str, str] = {
    **dict.fromkeys(
        ("alibic", "alibic-nograd", "cadex", "dice", "ml-explain", "synas"), "convex optimisation"
    ),
    **dict.fromkeys(("growing-spheres", "lore", "sedc"), "heuristic search"),
    "mace": "satisfiability solver",
}
"""The search strategies of the algorithms of CF-tabular (table 1 and figure 8)."""


@dataclass(frozen=True)
class TrainingSet:
    """The training set of one metric.

    Attributes:
        features: (factuals, FEATURES), NaN where unknown.
        best: (factuals, explainers) the weight of each factual, divided among its best explainers.
        source: (factuals,) the data set of each.
    """

    names: tuple[str, ...]
    features: FloatArray
    best: FloatArray
    source: NDArray[Any]


def training_set(runs: Sequence[Run], metric: str, judge: str) -> TrainingSet | None:
    """The factuals of all studies; the explainers are those that competed on every data set of them."""
    column = judge if metric == CRITERIA[VALID] else metric
    sets = [
        (dataset, study.columns()[column].direction)
        for study in studies(runs)
        for dataset in study.datasets
        if {column, judge} <= study.columns().keys()
    ]
    names = competitors([dataset for dataset, _ in sets]) if sets else []
    if len(names) < 2:
        return None
    parts = [_of_dataset(dataset, names, column, judge, direction) for dataset, direction in sets]
    source = np.repeat([dataset.name for dataset, _ in sets], [len(best) for _, best in parts])
    features, best = (np.concatenate(part) for part in zip(*parts, strict=True))
    return TrainingSet(tuple(names), features, best, source) if len(best) else None


def by_strategy(training: TrainingSet) -> TrainingSet:
    """The same with a strategy in place of its explainers, whose weights are added; other explainers stay as they are."""
    names = [STRATEGIES.get(name, name) for name in training.names]
    known = tuple(dict.fromkeys(names))
    member = np.array([[name == strategy for strategy in known] for name in names], dtype=np.float64)
    return replace(training, names=known, best=training.best @ member)


def _of_dataset(
    dataset: DataSet, names: Sequence[str], metric: str, judge: str, direction: str
) -> tuple[FloatArray, FloatArray]:
    units, values = dataset.values(names, (metric, judge))
    found = comparable(masked(values[..., 0], values[..., 1]))
    explained = ~np.isnan(found).all(axis=1)
    costs = np.where(np.isnan(found), np.inf, found if direction == "lower" else -found)[explained]
    best = (costs == costs.min(axis=1, keepdims=True)).astype(np.float64)
    return _features(dataset, units[explained]), best / best.sum(axis=1, keepdims=True)


def _features(dataset: DataSet, units: NDArray[Any]) -> FloatArray:
    """(units, FEATURES)"""
    data, model = dataset.summary, dataset.model
    encoded = data.get("encoded_columns", 0)
    same = [
        data.get("training_rows", np.nan),
        data.get("numeric_columns", np.nan),
        data.get("categorical_columns", np.nan),
        data.get("one_hot_columns", np.nan) / encoded if encoded else np.nan,
        model.get("neurons", np.nan),
        model.get("quality", {}).get("AUC", np.nan),
    ]
    cells = [method.cell.id for method in dataset.methods.values() if method.values is not None]
    details = dataset.run.details
    own = details[details["cell"].isin(cells) & details["name"].isin(INSTANCE_FEATURES)]
    own = own.drop_duplicates(["unit", "name"]).pivot(index="unit", columns="name", values="value")
    of_units = own.reindex(index=units, columns=list(INSTANCE_FEATURES)).to_numpy(dtype=np.float64)
    return np.concatenate([np.tile(np.array(same, dtype=np.float64), (len(units), 1)), of_units], axis=1)
