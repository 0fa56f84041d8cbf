"""What does effectiveness cost? PN-S against the number of edits, and against the time, with the Pareto front.

CFExpRec ends with a trade-off between effectiveness and sparsity; here it is drawn, and the explainers that no
other beats on both is marked. Sparsity is #Perturb of the successes: over all units an explainer that answers
nothing would be the sparsest. (It is a mean over other units for every explainer: who answers only the easy ones
needs few edits. The analysis ``smallest`` compares unit by unit.)

Methods that may add edges are not compared with those that only remove: a new edge can do more than any removal. They
have a front of their own, in a figure of its own. Controls are drawn, and are on no front.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of, join_words
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Setting,
    Statements,
    by_setting,
    coordinates,
    finished,
    has_metric,
    labels_in,
    longest,
    mean_ci,
    normalized,
    place,
    settings,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/trade-off",
    summary="Effectiveness against the number of edits and against time",
    target=f"{__name__}:TradeOff",
    papers=("cfexprec2026",),
)

EFFECTIVENESS, EDITS, SECONDS = "effectiveness", "edits", "time per explanation"


def _wanted(cell: RunCell) -> bool:
    return has_metric("PN-S")(cell)


class TradeOff:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, _wanted) else "needs the metric pn-s of explicit answers"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, axis (effectiveness, edits, time per explanation), metric, direction, explainer, role, edit,
        mean, ci_low, ci_high, n, front: whether no competitor of its kind of edits beats it on effectiveness and on this."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            _state(statements, setting)
        return _with_fronts(statements.frame())

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import Point, scatter_chart
        from cfbench_core.reports.charts.svg import duration, written

        table = normalized(table)
        note = (
            "Up is more effective, left is cheaper; the stairs join the competitors that no other beats on both. "
            "Lines are 95% intervals. Edits are those of answers that work."
        )
        drawn = []
        for labels, rows in by_setting(longest(table)):
            if rows["explainer"].nunique() < 2:
                continue
            parts = {axis: own.set_index("explainer") for axis, own in rows.groupby("axis")}
            effect = parts[EFFECTIVENESS]
            metric = str(effect["metric"].iloc[0])
            for axis, words in (
                (EDITS, "edits of a successful answer"),
                (SECONDS, "time of an explanation"),
            ):
                if axis not in parts or parts[axis]["mean"].isna().all():
                    continue
                points = [
                    Point(
                        str(name),
                        **coordinates(row, "x"),
                        **coordinates(effect.loc[str(name)], "y"),
                        role=row["role"],
                    )
                    for name, row in parts[axis].iterrows()
                ]
                title = f"{metric} against {axis}: {place(labels, table)}"
                svg = scatter_chart(
                    points,
                    title=title,
                    x_label=words,
                    y_label=metric,
                    x_direction="lower",
                    y_direction="higher",
                    log_x=axis == SECONDS,
                    x_text=duration if axis == SECONDS else written,
                )
                drawn.append(Figure(title, svg, note))
                note = ""
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        competing = table[(table["axis"] == EDITS) & (table["role"] == "") & table["mean"].notna()]
        groups = [rows[rows["front"].astype(bool)] for _, rows in by_setting(competing) if len(rows) > 1]
        if not groups:
            return ""
        often = Counter(name for rows in groups for name in rows["explainer"]).most_common()
        most = [name for name, times in often if times == often[0][1]]
        return (
            f"Most often on the Pareto front of PN-S and edits: {join_words(most)}, in {often[0][1]} of "
            f"{count_of(len(groups), 'setting')}. {_ends(groups[0], table)}{_apart(table)}"
        )


def _ends(front: pd.DataFrame, table: pd.DataFrame) -> str:
    """The sparsest and the most effective of one front."""
    labels = labels_in(table)
    effect = table[table["axis"] == EFFECTIVENESS].set_index([*labels, "explainer"])
    ordered = front.sort_values("mean").to_dict("records")
    said = []
    for row in ordered if len(ordered) < 2 else (ordered[0], ordered[-1]):
        reached = effect.loc[tuple(row[name] for name in (*labels, "explainer"))]
        said.append(f"{row['explainer']} ({reached['metric']} {mean_ci(reached)} with {mean_ci(row)} edits)")
    where = place(ordered[0], table)
    return f"On {where} the front {'goes from ' + ' to '.join(said) if len(said) > 1 else 'is ' + said[0] + ' alone'}."


def _apart(table: pd.DataFrame) -> str:
    if table["edit"].nunique() < 2:
        return ""
    return " Methods that may add edges are compared among themselves only: a new edge can do more than a removal."


def _state(statements: Statements, setting: Setting) -> None:
    (effective,) = setting.columns_of(["PN-S"])
    edits = setting.columns_of(["#Perturb given success"])
    axes = [(EFFECTIVENESS, effective), *((EDITS, column) for column in edits), (SECONDS, TIME)]
    for axis, column in axes:
        about = {"axis": axis, "metric": column.name, "direction": column.direction}
        for method in setting.methods:
            values = method.column(column.name)
            # Units of one batch share its time evenly: equal times are one measurement.
            clusters = np.nan_to_num(values) if column is TIME else method.values.clusters
            labels = {**setting.labels, "edit": method.edit, **about, **method.labels()}
            statements.add(labels, values, clusters)


def _with_fronts(frame: pd.DataFrame) -> pd.DataFrame:
    """Adds ``front``; missing for effectiveness itself, and for controls."""
    import pandas as pd

    front = pd.Series(None, index=frame.index, dtype="boolean")
    for _, rows in by_setting(frame[frame["role"] == ""]):
        effect = rows[rows["axis"] == EFFECTIVENESS].set_index("explainer")["mean"]
        for axis in (EDITS, SECONDS):
            own = rows[rows["axis"] == axis]
            front[own.index] = unbeaten(own["mean"].to_numpy(), effect[own["explainer"]].to_numpy())
    return frame.assign(front=front)


def unbeaten(cost: FloatArray, effect: FloatArray) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """(n,) whether no other method has at most the cost and at least the effect, and one of them better. NaN: never."""
    at_least = (cost[None] <= cost[:, None]) & (effect[None] >= effect[:, None])
    better = at_least & ((cost[None] < cost[:, None]) | (effect[None] > effect[:, None]))
    return ~better.any(axis=1) & ~np.isnan(cost) & ~np.isnan(effect)
