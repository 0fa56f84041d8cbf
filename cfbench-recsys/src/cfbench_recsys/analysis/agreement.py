"""Shared answers: how often do two explainers name the same edits?

For each pair of explainers of a setting, over the units that both answer,

- identical answers: the share of units for which both make the same set of edits;
- overlap: the mean Jaccard index |A and B| / |A or B| of the two sets.

An edit is an edge with what is done to it (removed or added). Explainers whose answers are identical nearly everywhere
are one method under two names, whatever their descriptions say; a high agreement with a baseline means that what makes
a method different from the baseline has little effect. Units that one of the two leaves unanswered do not count, so a
pair has its own ``n``: agreement on few units, the easy ones, is weaker evidence than the same agreement on all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cfbench_core.analysis_tables import count_of
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Method,
    Setting,
    Statements,
    by_setting,
    differ_in,
    finished,
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
    id="recsys/analysis/agreement",
    summary="How often explainers give the same answers",
    target=f"{__name__}:Agreement",
)

IDENTICAL, OVERLAP = "identical answers", "overlap"
MOSTLY = 0.5
"""Pairs that agree on more than this share of their units are counted in the summary."""

Answers = Mapping[str, frozenset[tuple[str, str, str]]]
"""Of each answered unit the edits: user, item, and what is done."""


def _wanted(cell: RunCell) -> bool:
    return cell.labels.get("format") == "explicit"


class Agreement:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if any(differ_in("explainer", (cell.labels for cell in finished([run], _wanted))) for run in runs):
            return ""
        return "needs explicit answers of two explainers"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """A row for each pair and number; the columns are the labels, metric (identical answers, overlap), explainer,
        role, other (the second of the pair), mean, ci_low, ci_high, n (units that both answer)."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            _state(statements, setting)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        table = normalized(table)
        note = "Share of the units answered by both for which the two name the same edits."
        drawn: list[Figure] = []
        for labels, rows in by_setting(longest(table[table["metric"] == IDENTICAL])):
            names = list(dict.fromkeys([*rows["explainer"], *rows["other"]]))
            known = {(row["explainer"], row["other"]): row["mean"] for row in rows.to_dict("records")}
            values = [
                [known.get((one, other), known.get((other, one), np.nan)) for other in names] for one in names
            ]
            title = f"Identical answers: {place(labels, table)}"
            svg = heat_map(names, names, values, title=title, hint="stronger: more answers in common")
            drawn.append(Figure(title, svg, "" if drawn else note))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        pairs = table[(table["metric"] == IDENTICAL) & table["mean"].notna()]
        if pairs.empty:
            return ""
        most = max(pairs.to_dict("records"), key=lambda row: float(row["mean"]))
        often = int((pairs["mean"] > MOSTLY).sum())
        return (
            f"Of {count_of(len(pairs), 'pair')} of explainers, {often} give identical answers for more than half of "
            f"the units that both answer. The largest share is that of {most['explainer']} and {most['other']} "
            f"({place(most, table)}): {mean_ci(most)} of {count_of(int(most['n']), 'unit')}."
        )


def _state(statements: Statements, setting: Setting) -> None:
    answers = {method.name: _answers(method) for method in setting.methods}
    for one, other in combinations(setting.methods, 2):
        units = [str(unit) for unit in one.values.units]
        overlap = overlaps(units, answers[one.name], answers[other.name])
        identical = np.where(np.isnan(overlap), np.nan, overlap == 1.0)
        for metric, numbers in ((IDENTICAL, identical), (OVERLAP, overlap)):
            labels = {**setting.labels, "metric": metric, **one.labels(), "other": other.name}
            statements.add(labels, numbers, one.values.clusters)


def overlaps(units: Sequence[str], first: Answers, second: Answers) -> FloatArray:
    """(units,) Jaccard index of two explainers' edits; NaN where one of them has no answer."""
    return np.array(
        [
            len(first[unit] & second[unit]) / len(first[unit] | second[unit])
            if unit in first and unit in second
            else np.nan
            for unit in units
        ]
    )


def _answers(method: Method) -> Answers:
    """What a method answered, by unit."""
    rows = method.run.explanations_of(method.cell.id)
    edits = zip(
        rows["edge_user"].astype(str), rows["edge_item"].astype(str), rows["op"].astype(str), strict=True
    )
    found: dict[str, set[tuple[str, str, str]]] = {}
    for unit, edit in zip(rows["unit"].astype(str), edits, strict=True):
        found.setdefault(unit, set()).add(edit)
    return {unit: frozenset(own) for unit, own in found.items()}
