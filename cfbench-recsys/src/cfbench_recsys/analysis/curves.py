"""Fidelity against the share of the profile that is removed (Refined fidelity, figure 1, left column).

POS-P@T, NDCG-P, INS-P and DEL-P at 0 %, 10 %, ..., 100 % of a user's interactions, a line for each explainer. The paper's
finding is that the curves of removals are not monotonic: the lowest value is reached before everything is removed, since the
last interactions speak against the item.

A row is the mean of ``explainer`` at ``share``. Where ``against`` names another share (the one with the lowest mean),
it is the mean difference of the value after full removal less the value there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of
from cfbench_recsys.analysis.shared import (
    Method,
    Setting,
    Statements,
    by_setting,
    clear,
    finished,
    line_figures,
    longest,
    mean_ci,
    normalized,
    place,
    settings,
    style_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/curves",
    summary="Faithfulness by the share of the profile that is removed",
    target=f"{__name__}:Curves",
    papers=("refinedfidelity2025", "barkan2024lxr"),
)

REMOVAL = "lower"
"""The direction of the curves of removals."""
_POINT = re.compile(r"^curve-(?P<curve>.+)\[(?P<share>\d+)%\]$")


def point_of(column: str) -> tuple[str, int] | None:
    """("POS-P@20", 70) of "curve-POS-P@20[70%]"; None of any other metric."""
    match = _POINT.match(column)
    return (match["curve"], int(match["share"])) if match else None


def _points(columns: Sequence[Column]) -> dict[str, dict[int, Column]]:
    """The columns of each curve by share."""
    found: dict[str, dict[int, Column]] = {}
    for column in columns:
        if point := point_of(column.name):
            found.setdefault(point[0], {})[point[1]] = column
    return found


def _wanted(cell: RunCell) -> bool:
    return bool(_points(cell.columns))


class Curves:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, _wanted) else "needs the metric lxr-curves"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric, direction, explainer, role, share, against, mean, ci_low, ci_high, n."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            for curve, points in _points(setting.columns).items():
                for method in setting.methods:
                    _state(statements, setting, method, curve, points)
        frame = statements.frame()
        return frame.assign(against=frame["against"].astype("Int64"))

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = normalized(table)
        plain = table[table["against"] == ""]
        note = "Vertical lines are 95% intervals. Controls are grey."
        return line_figures(
            by_setting(longest(plain), "metric"),
            table,
            style_numbers(plain),
            "share",
            "interactions removed (INS-P: added), %",
            note,
        )

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        ends = [row for row in table[(table["role"] == "")].to_dict("records") if row["against"] != ""]
        if not ends:
            return ""
        rising = [row for row in ends if clear(row) and row["mean"] > 0]
        text = (
            f"Removing the last interactions raises the value again in {len(rising)} of "
            f"{count_of(len(ends), 'curve')} of removals."
        )
        if not rising:
            return text
        most = max(rising, key=lambda row: row["mean"])
        return (
            f"{text} Most for {most['metric']} of {most['explainer']} ({place(most, table)}): "
            f"lowest at {most['against']} %, then higher by {mean_ci(most)} after full removal."
        )


def _state(
    statements: Statements, setting: Setting, method: Method, curve: str, points: dict[int, Column]
) -> None:
    """The means of one curve of one method, and how much it rises after its lowest point."""
    shares = sorted(points)
    common = {**setting.labels, "metric": curve, "direction": points[shares[0]].direction, **method.labels()}
    values = np.stack([method.column(points[share].name) for share in shares])
    for share, own in zip(shares, values, strict=True):
        statements.add({**common, "share": share, "against": None}, own, method.values.clusters)
    if common["direction"] != REMOVAL or np.isnan(values).all():
        return
    lowest = int(np.argmin(np.nanmean(values, axis=1)))
    labels = {**common, "share": shares[-1], "against": shares[lowest]}
    statements.add(labels, values[-1] - values[lowest], method.values.clusters)
