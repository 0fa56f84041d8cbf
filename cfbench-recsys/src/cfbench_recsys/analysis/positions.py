"""Does the place of the explained item matter? (CFExpRec, section 4.4, figures 3 and 4.)

Item-level metrics by the rank of the item in its list, implicit and explicit. The paper expects that items further
down are easier to displace, for they have less of a lead. This is tested in pairs: the item in the last
place of a user's list less the one in the first, with an interval over users; for each explainer, and for the mean
of the competitors (``explainer`` "mean of all").

A row is the mean at ``rank``; where ``against`` names another rank (the first), the mean difference of the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Distinct, Help
from cfbench_core.specs import ComponentSpec
from cfbench_core.wording import count_of
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Method,
    Statements,
    base,
    by_setting,
    clear,
    finished,
    has_metric,
    line_figures,
    longest,
    mean_ci,
    normalized,
    place,
    settings,
    style_numbers,
    unit_ranks,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/positions",
    summary="Effect of the explained item's position in the list",
    target=f"{__name__}:Positions",
    config=f"{__name__}:Config",
    papers=("cfexprec2026",),
)

ALL = "mean of all"
EASIER = {"POS-P": -1, "PN-S": 1}
"""The sign of a difference that means: the item in the last place is easier to displace."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper, with the size of the answers."""

    metrics: Annotated[tuple[str, ...], Distinct(), Help("compared, by their names before the @")] = (
        "POS-P",
        "PN-S",
        "NEG-P",
        "#Perturb given success",
    )


class Positions:
    def __init__(self, config: Config) -> None:
        self.config = config

    def _wanted(self, cell: RunCell) -> bool:
        several = int(cell.labels.get("k", 1)) > 1
        return several and cell.labels.get("level") == "item" and has_metric(*self.config.metrics)(cell)

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if finished(runs, self._wanted):
            return ""
        return f"needs the item level, lists of two or more, and one of {', '.join(self.config.metrics)}"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric, direction, explainer, role, rank, against, mean, ci_low, ci_high,
        n."""
        statements = Statements()
        ranks = {str(run.directory): unit_ranks(run) for run in runs}
        for setting in settings(runs, self._wanted):
            placed = [
                _Placed(method, ranks[str(method.run.directory)].get(method.cell.id))
                for method in setting.methods
            ]
            for column in setting.columns_of(self.config.metrics):
                common = {**setting.labels, "metric": column.name, "direction": column.direction}
                _state(statements, placed, column.name, common)
        frame = statements.frame()
        return frame.assign(against=frame["against"].astype("Int64"))

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = normalized(table)
        at_ranks = table[table["against"] == ""]
        note = "Vertical lines are 95% intervals, over users."
        groups = list(by_setting(longest(at_ranks), "metric"))
        first = {metric: at for at, metric in reversed(list(enumerate(at_ranks["metric"].map(base))))}
        groups.sort(key=lambda group: first[base(group[0]["metric"])])
        return line_figures(
            groups, table, style_numbers(at_ranks), "rank", "place of the item in the list", note
        )

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        pooled = table[(table["explainer"] == ALL)].to_dict("records")
        selected = [row for row in pooled if base(row["metric"]) in EASIER]
        if not selected:
            return ""
        clearly = [row for row in selected if clear(row)]
        easier = [row for row in clearly if _towards(row) > 0]
        harder = [row for row in clearly if _towards(row) < 0]
        rest = len(selected) - len(clearly)
        text = (
            f"The item in the last place is easier to displace than the one in the first in {len(easier)} of "
            f"{count_of(len(selected), 'comparison')}"
        )
        text += f", harder in {len(harder)}" if harder else ""
        text += f"; in {rest} it could be chance." if rest else "."
        most = max(clearly or selected, key=lambda row: abs(row["mean"]))
        return (
            f"{text} Most for {most['metric']} ({place(most, table)}): in the last place it is {_more(most)}, on average "
            "over the explainers."
        )


def _more(row: Any) -> str:
    """ "lower by 0.2 (0.1 to 0.3)" of a difference of -0.2."""
    if row["mean"] < 0:
        turned = {"mean": -row["mean"], "ci_low": -row["ci_high"], "ci_high": -row["ci_low"]}
        return f"lower by {mean_ci(turned)}"
    return f"higher by {mean_ci(row)}"


def _towards(row: Any) -> float:
    return float(row["mean"]) * EASIER[base(row["metric"])]


class _Placed:
    """Units of a method by user and rank of the item."""

    def __init__(self, method: Method, ranks: pd.Series[float] | None) -> None:
        self.method = method
        self.users, self._row = np.unique(method.values.clusters, return_inverse=True)
        found = None if ranks is None else ranks.loc[method.values.units]
        self._column = np.zeros(0, int) if found is None else found.to_numpy(dtype=np.int64) - 1

    def by_rank(self, metric: str) -> FloatArray:
        """(users, ranks); NaN where a user has no item, or it has no value. Without ranks (0, 0)."""
        if not len(self._column):
            return np.empty((0, 0))
        table = np.full((len(self.users), int(self._column.max()) + 1), np.nan)
        table[self._row, self._column] = self.method.column(metric)
        return table


def _state(statements: Statements, placed: Sequence[_Placed], metric: str, common: dict[str, Any]) -> None:
    """Means at each rank of each method, then the differences, then those of the mean of all."""
    differences, last = [], 0
    for own in placed:
        users, table = own.users, own.by_rank(metric)
        if not table.size:
            continue
        labels = {**common, **own.method.labels()}
        for column in range(table.shape[1]):
            statements.add({**labels, "rank": column + 1, "against": None}, table[:, column], users)
        difference = table[:, -1] - table[:, 0]
        statements.add({**labels, "rank": table.shape[1], "against": 1}, difference, users)
        last = max(last, table.shape[1])
        if own.method.competes:
            differences.append(dict(zip(users, difference, strict=True)))
    if len(differences) > 1:
        _state_mean(
            statements, differences, {**common, "explainer": ALL, "role": "mean", "rank": last, "against": 1}
        )


def _state_mean(
    statements: Statements, differences: Sequence[dict[Any, float]], labels: dict[str, Any]
) -> None:
    """The mean over explainers, of the users for whom all have a value: the same explainers for every user."""
    import pandas as pd

    together = pd.DataFrame(differences).dropna(axis=1)
    statements.add(labels, together.mean(axis=0).to_numpy(), together.columns.to_numpy())
