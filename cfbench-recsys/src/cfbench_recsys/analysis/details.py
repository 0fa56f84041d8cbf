"""Numbers that the methods report about their own answers

A method may report more than edits: up to which size no smaller answer exists, how faithful its surrogate is, whether its
own idea of success was met (``Answer.details``). Each number is averaged over the units for which it was reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cfbench_core.plan import MODEL_QUERIES
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis.shared import (
    Statements,
    by_setting,
    finished,
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
    id="recsys/analysis/details",
    summary="Numbers that the methods report about their own answers",
    target=f"{__name__}:Details",
)


def _wanted(cell: RunCell) -> bool:
    return True


class Details:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        told_of = {name for run in runs for name in run.details["name"].unique()}
        return "" if finished(runs, _wanted) and told_of - {MODEL_QUERIES} else "no method reports details"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric (the name of the detail), explainer, role, mean, ci_low, ci_high, n."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            for method in setting.methods:
                for name, numbers in method.details().items():
                    if name != MODEL_QUERIES:
                        labels = {**setting.labels, "metric": name, **method.labels()}
                        statements.add(labels, numbers, method.values.clusters)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        """None: the numbers have nothing to do with each other."""
        return []

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        known = table[table["mean"].notna()]
        if known.empty:
            return ""
        labels, rows = next(iter(by_setting(known)))
        said = [f"{row['explainer']}: {row['metric']} {mean_ci(row)}" for _, row in rows.iterrows()]
        return f"On average ({place(labels, table)}) {'; '.join(said)}."
