"""Fidelity against the length of the explanation (Refined fidelity, figure 1, right column).

POS@K_r,K_e, CDCG@K_e, INS@K_e and DEL@K_e for each K_e, a line for each explainer. The paper's third finding is that
the best explainer changes with K_e ("its advantage appears only for K_e >= 3"): here the explainer that is best with the
shortest explanation is compared with the one that is best with the longest, at every length and on the same items.

A row of the table is the mean of ``explainer``; where ``against`` names another, the mean difference of the two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import align
from cfbench_core.wording import count_of
from cfbench_recsys.analysis.shared import (
    Setting,
    Statements,
    better,
    by_setting,
    clear,
    finished,
    line_figures,
    longest,
    mean_ci,
    means,
    normalized,
    place,
    refined,
    settings,
    style_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/fidelity",
    summary="Faithfulness by the length of the explanation",
    target=f"{__name__}:Fidelity",
    papers=("refinedfidelity2025",),
)


class _Length(NamedTuple):
    """A column that belongs to a length of the explanation."""

    metric: str
    k_e: int
    column: Column


def _lengths(columns: Sequence[Column]) -> list[_Length]:
    found = [(refined(column.name), column) for column in columns]
    return [_Length(*name, column) for name, column in found if name is not None]


def _wanted(cell: RunCell) -> bool:
    return len({length.k_e for length in _lengths(cell.columns)}) > 1


class Fidelity:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if finished(runs, _wanted):
            return ""
        return "needs a metric of Refined fidelity (pos-at, cdcg, ins, del) at several lengths of the explanation"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric ("POS@5"), direction, explainer, role, against, k_e, mean, ci_low, ci_high, n."""
        statements = Statements()
        for setting in settings(runs, _wanted):
            lengths = _lengths(setting.columns)
            for metric in dict.fromkeys(length.metric for length in lengths):
                own = sorted((length for length in lengths if length.metric == metric), key=lambda n: n.k_e)
                _state(statements, setting, own)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = normalized(table)
        plain = table[table["against"] == ""]
        note = "Vertical lines are 95% intervals. Controls are grey."
        groups = by_setting(longest(plain), "metric")
        return line_figures(
            groups, table, style_numbers(plain), "k_e", "interactions in the explanation, K_e", note
        )

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        compared = [(labels, rows) for labels, rows in by_setting(table[table["role"] == ""], "metric")]
        compared = [(labels, rows) for labels, rows in compared if rows["explainer"].nunique() > 1]
        if not compared:
            return ""
        changes = []
        for labels, rows in compared:
            ends = rows[rows["against"] != ""].to_dict("records")
            if ends and clear(ends[0]) and clear(ends[-1]):
                changes.append((labels, ends[0], ends[-1]))
        if not changes:
            name, times = Counter(_leader(rows) for _, rows in compared).most_common(1)[0]
            return (
                f"The best explainer with the shortest explanation is also best, or tied, with the longest: "
                f"no significant change of the leader in {count_of(len(compared), 'comparison')}. "
                f"Most often that is {name} (with the longest in {times})."
            )
        labels, first, last = changes[0]
        return (
            f"The best explainer depends on the length of the explanation in {len(changes)} of "
            f"{count_of(len(compared), 'comparison')}. "
            f"By {labels['metric']} ({place(labels, table)}) {first['explainer']} leads at K_e = {first['k_e']} and "
            f"{first['against']} at K_e = {last['k_e']}: the difference of the two is {mean_ci(first)}, "
            f"then {mean_ci(last)}."
        )


def _leader(rows: pd.DataFrame) -> str:
    """Who has the best mean with the longest explanation."""
    ends = rows[(rows["against"] == "") & (rows["k_e"] == rows["k_e"].max())]
    return str(ends["explainer"].iloc[better(ends["mean"].to_numpy(), ends["direction"].iloc[0])])


def _state(statements: Statements, setting: Setting, lengths: Sequence[_Length]) -> None:
    """One metric of a setting, at all its lengths, and the best with the shortest against the best with the longest."""
    direction = lengths[0].column.direction
    common = {**setting.labels, "metric": lengths[0].metric, "direction": direction}
    for method in setting.methods:
        for length in lengths:
            labels = {**common, **method.labels(), "against": "", "k_e": length.k_e}
            statements.add(labels, method.column(length.column.name), method.values.clusters)
    competitors = [method for method in setting.methods if method.competes]
    if not competitors:
        return
    names = [length.column.name for length in lengths]
    _, clusters, values = align([method.values for method in competitors], names)
    first, last = (better(means(values[:, :, end]), direction) for end in (0, -1))
    if first == last:
        return
    for at, length in enumerate(lengths):
        labels = {
            **common,
            **competitors[first].labels(),
            "against": competitors[last].name,
            "k_e": length.k_e,
        }
        statements.add(labels, values[:, first, at] - values[:, last, at], clusters)
