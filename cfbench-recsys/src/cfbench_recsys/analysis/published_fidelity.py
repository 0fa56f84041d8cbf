"""Refined fidelity's figure 1 and its claims, and the same numbers of runs.

The paper prints one figure and no table. Its left column are curves over the share of the profile that is removed,
its right column bars over the length of the explanation. The claims (``published/refined_fidelity_claims.csv``) are
sentences of sections 2.2 and 4.1 about MF on MovieLens 1M; the metrics are those of the paper, contradictory
interactions included ("-all").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_recsys.analysis.claim_gaps import on_other_data
from cfbench_recsys.analysis.curves import point_of
from cfbench_recsys.analysis.measured_means import (
    MeasuredMeans,
    best_measured,
    config_of,
    measure,
    split_label,
)
from cfbench_recsys.analysis.published_claims import claim_rows
from cfbench_recsys.analysis.published_tables import read_published
from cfbench_recsys.analysis.shared import refined

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

EXPLAINERS = ("cosine", "jaccard", "lime-rs", "shap", "accent", "lxr")
DATASET, USERS = "ml-1m", 1208
ITEMS = {
    "figure-1-left": "curves over the share of the profile that is removed",
    "figure-1-right": "fidelity over the length of the explanation",
}
"""What each half of the figure shows."""
NO_NUMBERS = "the paper draws this figure without numbers"


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, what ``published_claims.py`` needs to decide it, relation, threshold."""
    return read_published("refined_fidelity_claims.csv")


def item_of(metric: str) -> str:
    """The half of the figure that shows a metric; "" if neither does."""
    if point_of(metric):
        return "figure-1-left"
    return "figure-1-right" if refined(metric) else ""


def incompatibility(runs: Sequence[Run], other_data: bool) -> str:
    """Why there is nothing to compare; empty if there is. Reads plans only."""
    for run in runs:
        for cell in run.cells():
            name = split_label(str(cell.labels.get("explainer", "")), cell.labels, EXPLAINERS)[0]
            on_data = other_data or cell.labels.get("dataset") == DATASET
            if name and on_data and any(item_of(column.name) for column in cell.columns):
                return ""
    where = "" if other_data else f" on {DATASET} (other_data: true for any)"
    return f"needs an explainer of Refined fidelity{where}, and lxr-curves or a metric of a fixed length"


def compare(runs: Sequence[Run], other_data: bool) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The numbers of both halves of the figure, and the claims, on these runs."""
    metrics = [
        name
        for run in runs
        for cell in run.cells()
        for name in (column.name for column in cell.columns)
        if item_of(name) or name.startswith("LXR-")
    ]
    means = best_measured(measure(runs, EXPLAINERS, set(metrics), ()))
    if not other_data and len(means.frame):
        means = means.rows((means.frame["dataset"] == DATASET).to_numpy())
    decided = claims()
    if other_data:
        decided = decided.assign(dataset="")
    nothing = MeasuredMeans(means.frame.iloc[:0], np.empty((1, 0)))
    rows = claim_rows(decided, nothing, means)
    here = list(dict.fromkeys(means.frame["dataset"])) if other_data and len(means.frame) else [DATASET]
    return _numbers(means), list(on_other_data(rows, set(decided["claim"]), here, [DATASET]))


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """What to know before trusting the comparison."""
    yield "The paper prints a figure without numbers: its claims are decided, its bars and curves are not comparable."
    for run in runs:
        protocol: Mapping[str, Any] = config_of(run).get("protocol") or {}
        users = int(protocol.get("users", USERS))
        if users != USERS:
            yield f"{run.directory.name} explains {users} users, LXR's split holds out {USERS}."


def _numbers(means: MeasuredMeans) -> pd.DataFrame:
    frame = means.frame
    if frame.empty:
        return frame
    shown = frame.assign(item=frame["metric"].map(item_of))
    shown = shown[shown["item"] != ""]
    nothing = dict.fromkeys(("page", "printed", "printed_deviation", "deviation"), np.nan)
    return shown.assign(ours=shown["mean"], reason=NO_NUMBERS, **nothing).sort_values("item", kind="stable")
