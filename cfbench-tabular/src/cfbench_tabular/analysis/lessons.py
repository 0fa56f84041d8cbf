"""What the advisor learns from: every factual of the runs, what was known of it, and who answered it best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_tabular.analysis.shared import (
    JUDGES,
    VALID,
    DataSet,
    FloatArray,
    blanked,
    comparable,
    competitors,
    studies,
)
from cfbench_tabular.facts import ENEMY, MISCLASSIFIED, SCORE, SHARE

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

FACTS = (SCORE, MISCLASSIFIED, SHARE, ENEMY)
FEATURES = (
    "training rows",
    "numeric columns",
    "categorical columns",
    "one-hot share",
    "neurons",
    "test AUC",
    *FACTS,
)


@dataclass(frozen=True)
class Lessons:
    """What there is to learn from, by one metric.

    Attributes:
        features: (factuals, FEATURES), NaN where not known.
        best: (factuals, explainers) each row's weight, shared out over those who answered best.
        source: (factuals,) the data set of each.
    """

    names: tuple[str, ...]
    features: FloatArray
    best: FloatArray
    source: NDArray[Any]


def lessons(runs: Sequence[Run], metric: str, judge: str) -> Lessons | None:
    """What all studies of the runs say; explainers are those that competed on every data set of any of them."""
    asked = judge if metric == JUDGES[VALID] else metric
    sets = [
        (dataset, study.columns()[asked].direction)
        for study in studies(runs)
        for dataset in study.datasets
        if {asked, judge} <= study.columns().keys()
    ]
    names = competitors([dataset for dataset, _ in sets]) if sets else []
    if len(names) < 2:
        return None
    parts = [_of_dataset(dataset, names, asked, judge, direction) for dataset, direction in sets]
    source = np.repeat([dataset.name for dataset, _ in sets], [len(best) for _, best in parts])
    features, best = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Lessons(tuple(names), features, best, source) if len(best) else None


def _of_dataset(
    dataset: DataSet, names: Sequence[str], metric: str, judge: str, direction: str
) -> tuple[FloatArray, FloatArray]:
    units, values = dataset.values(names, (metric, judge))
    found = comparable(blanked(values[..., 0], values[..., 1]))
    answered = ~np.isnan(found).all(axis=1)
    costs = np.where(np.isnan(found), np.inf, found if direction == "lower" else -found)[answered]
    best = (costs == costs.min(axis=1, keepdims=True)).astype(np.float64)
    return _features(dataset, units[answered]), best / best.sum(axis=1, keepdims=True)


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
    own = details[details["cell"].isin(cells) & details["name"].isin(FACTS)]
    own = own.drop_duplicates(["unit", "name"]).pivot(index="unit", columns="name", values="value")
    of_units = own.reindex(index=units, columns=list(FACTS)).to_numpy(dtype=np.float64)
    return np.concatenate([np.tile(np.array(same, dtype=np.float64), (len(units), 1)), of_units], axis=1)
