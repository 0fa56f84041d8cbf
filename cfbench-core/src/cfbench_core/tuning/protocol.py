"""What a suite says of a search: which stages a trial comes to, and where its value stands.

A suite whose components can be tuned has a method ::

    def tunable(self, config, registry, access, reference, metric, sample) -> Tunable

``reference`` is the component of ``config`` whose options are searched; ``metric`` what the user chose, None
for the suite's choice; ``sample`` on how many users or rows an explainer is judged. It raises UserError where there
is nothing to judge by. The value must come from validation data: neither what a run reports on (test data,
explained users) nor what the component learns from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError
from cfbench_core.runner import Results
from cfbench_core.stages import Stage
from cfbench_core.store import Store


@dataclass(frozen=True)
class TrialPlan:
    """One trial: its stages by role, as of a cell, and its value when they are done.

    ``value`` raises UserError where there is none; that trial has failed then.
    """

    stages: Mapping[str, Stage]
    value: Callable[[Results, Store], float]


@dataclass(frozen=True)
class Tunable:
    """What a search makes as good as it can be.

    Attributes:
        metric: with where it is measured, "validation NDCG@10".
        direction: which values are better.
        data: what it is measured on, in a few words: "ml-1m".
        plan: the trial of a component with other options.
        shared: stages that every trial reads and none changes; computed first, and the search ends if one fails.
        held_out: judges a component by the same metric on data that judge no trial; after the search, for the best options
            and those as configured. None where there are no such data.
        held_out_metric: the metric with where ``held_out`` measures it, "test NDCG@10"; "METRIC, held out" if empty.
    """

    metric: str
    direction: Literal["higher", "lower"]
    data: str
    plan: Callable[[ConfiguredComponent], TrialPlan]
    shared: Mapping[str, Stage] = field(default_factory=dict)
    held_out: Callable[[ConfiguredComponent], TrialPlan] | None = None
    held_out_metric: str = ""


def reported(results: Results, stage: Stage, *path: str) -> float:
    """A number in the summary of a stage that is not chunked: ``reported(results, model, "fit", "validation", "HR@10")``.

    Raises:
        UserError: when it is not there.
    """
    ((_, outcome),) = results.of(stage)
    found: Any = outcome.summary
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    if not isinstance(found, (int, float)) or not math.isfinite(found):
        raise UserError(f"{stage.label} reports no {' '.join(path)}: it cannot be judged by it")
    return float(found)


def mean_score(results: Results, stage: Stage, store: Store, metric: str) -> float:
    """The mean of a metric over the units of a stage of kind "scores"; units without a value are left out.

    Raises:
        UserError: when no unit has a value.
    """
    import pandas as pd

    columns = ["metric", "value", "status"]
    parts = [
        pd.read_parquet(store.path(task.kind, task.key) / "scores.parquet", columns=columns)
        for task, _ in results.of(stage)
    ]
    scores = pd.concat(parts) if parts else pd.DataFrame(columns=columns)
    values = scores["value"][(scores["metric"] == metric) & (scores["status"] == "ok")].dropna()
    if values.empty:
        raise UserError(f"{stage.label}: no unit has a value of {metric}")
    return float(values.mean())
