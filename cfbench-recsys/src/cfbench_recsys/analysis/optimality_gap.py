"""How near do the answers that work come to the smallest one that is known?

For each unit the smallest successful answer among all methods of the setting, controls included, and for each method
over its own successes

- gap: its number of edits less that of the smallest known;
- reaches the smallest: the share of its successes whose gap is 0;
- success: the share of units that it has a success for, without which the other two mislead: who answers only where
  one edit suffices has no gap.

What counts as the smallest is fair to what is compared: an answer that displaces at least as much of the list (at
item level all that work do), and, for a method that only removes edges, an answer that only removes. "Known" depends
on who took part: the gap is a lower limit of the true one.

Where a search reports up to which size nothing does better than its own answer (``none_up_to`` among its details), a
fourth number says how much of this is more than "known", for methods that only remove:

- proven smallest: the share of its successes that cannot be had with fewer removals, proven by one of the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import align
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Setting,
    Statements,
    by_setting,
    coordinates,
    differ_in,
    finished,
    has_metric,
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
    id="recsys/analysis/optimality-gap",
    summary="Distance of answers to the smallest known counterfactual",
    target=f"{__name__}:OptimalityGap",
)

EDITS, DISPLACED = "#Perturb given success", "PN-S"
GAP, REACHED, SUCCESS = "gap", "reaches the smallest", "success"
PROVEN, NONE_UP_TO = "proven smallest", "none_up_to"
_DIRECTIONS = {GAP: "lower", REACHED: "higher", SUCCESS: "higher", PROVEN: "higher"}


def _wanted(cell: RunCell) -> bool:
    return has_metric(EDITS)(cell) and has_metric(DISPLACED)(cell)


class OptimalityGap:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if any(differ_in("explainer", (cell.labels for cell in finished([run], _wanted))) for run in runs):
            return ""
        return "needs the metrics pn-s and num-edits-given-success of two explainers' explicit answers"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric (gap, reaches the smallest, success, proven smallest), direction, explainer,
        role, mean, ci_low, ci_high, n."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            if len(setting.methods) > 1:  # a single method is always the best
                _state(statements, setting)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import Point, scatter_chart

        table = normalized(table)
        note = (
            "Left is near the smallest known answer, up is more units with a successful answer. The stairs join the "
            "competitors that no other beats on both. Lines are 95% intervals."
        )
        drawn = []
        for labels, rows in by_setting(longest(table)):
            found = {(row["explainer"], row["metric"]): row for row in rows.to_dict("records")}
            points = [
                Point(
                    str(name),
                    **coordinates(found[name, GAP], "x"),
                    **coordinates(found[name, SUCCESS], "y"),
                    role=found[name, GAP]["role"],
                )
                for name in dict.fromkeys(rows["explainer"])
            ]
            title = f"Edits beyond the smallest known: {place(labels, table)}"
            svg = scatter_chart(
                points,
                title=title,
                x_label="edits beyond the smallest known",
                y_label="share of units with a successful answer",
                x_direction="lower",
                y_direction="higher",
            )
            drawn.append(Figure(title, svg, note))
            note = ""
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        own = table[(table["role"] == "") & table["mean"].notna()]
        if own.empty:
            return ""
        labels, rows = next(iter(by_setting(own)))
        by_metric = {str(metric): part.set_index("explainer") for metric, part in rows.groupby("metric")}
        if GAP not in by_metric:
            return ""
        gaps = by_metric[GAP].sort_values("mean")
        name = str(gaps.index[0])
        best, reached = gaps.iloc[0], by_metric[REACHED].loc[name]
        text = (
            f"The competitor whose successes come nearest to the smallest known answer ({place(labels, table)}) is "
            f"{name}: {mean_ci(best)} edits too many, none in {reached['mean']:.0%} of them; it succeeds for "
            f"{float(by_metric[SUCCESS]['mean'][name]):.0%} of the units."
        )
        if len(gaps) > 1:
            text += f" Farthest: {gaps.index.tolist()[-1]}, {mean_ci(gaps.iloc[-1])}."
        return text


def _state(statements: Statements, setting: Setting) -> None:
    edits, displaced = setting.columns_of([EDITS, DISPLACED])
    units, clusters, values = align(
        [method.values for method in setting.methods], [edits.name, displaced.name]
    )
    size, much = values[:, :, 0], values[:, :, 1]
    only_removes = np.array([method.edit == "remove" for method in setting.methods])
    gaps = size - smallest_known(size, much, only_removes)
    reached = np.where(np.isnan(gaps), np.nan, gaps == 0)
    success = np.where(np.isnan(much), np.nan, ~np.isnan(size))
    numbers_of = {GAP: gaps, REACHED: reached, SUCCESS: success}
    proofs = _proofs(setting, only_removes, units)
    if proofs is not None:
        proven = proven_smallest(size, much, proofs).astype(np.float64)
        numbers_of[PROVEN] = np.where(np.isnan(size) | ~only_removes, np.nan, proven)
    for at, method in enumerate(setting.methods):
        for metric, numbers in numbers_of.items():
            labels = {**setting.labels, "metric": metric, "direction": _DIRECTIONS[metric], **method.labels()}
            statements.add(labels, numbers[:, at], clusters)


def smallest_known(size: FloatArray, displaced: FloatArray, only_removes: np.ndarray[Any, Any]) -> FloatArray:
    """(units, methods): the fewest edits with which anybody displaces as much as the method does, in its own way.

    Args:
        size: (units, methods) number of edits, NaN where the answer fails.
        displaced: (units, methods) how much of the list it displaces.
        only_removes: (methods,) whether a method only removes edges; others may be compared with all.
    """
    found = np.full(size.shape, np.nan)
    for at in range(size.shape[1]):
        fair = displaced >= displaced[:, [at]] - 1e-9
        fair &= only_removes | ~only_removes[at]
        found[:, at] = np.where(fair & ~np.isnan(size), size, np.inf).min(axis=1)
    return np.where(np.isnan(size), np.nan, found)


def _proofs(setting: Setting, only_removes: np.ndarray[Any, Any], units: Any) -> FloatArray | None:
    """(units, methods) ``none_up_to`` of the methods that only remove, NaN where it is not reported; None if no
    method reports it."""
    found = np.full((len(units), len(setting.methods)), np.nan)
    for at, method in enumerate(setting.methods):
        told_of = method.details() if only_removes[at] else {}
        if NONE_UP_TO in told_of:
            by_unit = dict(zip(method.values.units, told_of[NONE_UP_TO], strict=True))
            found[:, at] = [by_unit.get(unit, np.nan) for unit in units]
    return None if np.isnan(found).all() else found


def proven_smallest(size: FloatArray, displaced: FloatArray, none_up_to: FloatArray) -> np.ndarray[Any, Any]:
    """(units, methods): whether fewer removals cannot displace as much, by the proof of some method.

    A method that reports none_up_to = s states: no set of at most s removals displaces more than my answer, nor as much
    with fewer removals than it has.

    Args:
        size, displaced: as for :func:`smallest_known`.
        none_up_to: (units, methods), NaN where a method reports nothing.
    """
    proven = np.zeros(size.shape, dtype=np.bool_)
    for prover in range(size.shape[1]):
        its_size = size[:, [prover]]
        its_much = np.where(np.isnan(its_size), 0.0, displaced[:, [prover]])
        more = displaced > its_much + 1e-9
        as_small = (displaced >= its_much - 1e-9) & (size <= its_size)
        proven |= (size - 1 <= none_up_to[:, [prover]]) & (more | as_small)
    return proven
