"""Effect of the part of the graph that may be edited (CFExpRec, section 4.5, figures 5 and 6.)

Explicit metrics of a graph recommender where a run has several scopes: the user's own edges, those on indirect paths,
those within k hops, all. The same lists are explained in every scope, so each narrower scope is compared with the
widest on the same units: rows where ``against`` names the widest are ``scope`` less ``against``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Distinct, Help
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import align
from cfbench_core.wording import count_of
from cfbench_recsys.analysis.shared import (
    Method,
    Statements,
    base,
    by_setting,
    clear,
    differ_in,
    finished,
    has_metric,
    line_figures,
    longest,
    mean_ci,
    normalized,
    settings,
    style_numbers,
)
from cfbench_recsys.scope_labels import parse_scope, scope_kind

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/scopes",
    summary="Effect of the part of the graph that may be edited",
    target=f"{__name__}:Scopes",
    config=f"{__name__}:Config",
    papers=("cfexprec2026",),
)

SCOPES = ("user-only", "indirect", "k-hop", "full")
"""The narrowest first."""


def _width(scope: str) -> tuple[int, int]:
    """Narrower scopes have smaller values: the kind of the scope, then the levels of k-hop."""
    kind, hops = parse_scope(scope)
    return SCOPES.index(kind), hops


@dataclass(frozen=True, kw_only=True)
class Config:
    """As in the paper, with the size of the answers."""

    metrics: Annotated[tuple[str, ...], Distinct(), Help("compared, by their names before the @")] = (
        "PN-S",
        "PN-R",
        "#Perturb given success",
    )


class Scopes:
    def __init__(self, config: Config) -> None:
        self.config = config

    def _wanted(self, cell: RunCell) -> bool:
        return scope_kind(str(cell.labels.get("scope"))) in SCOPES and has_metric(*self.config.metrics)(cell)

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if any(differ_in("scope", (cell.labels for cell in finished([run], self._wanted))) for run in runs):
            return ""
        return "needs explicit answers of one explainer in several scopes (protocol.scope) of a graph recommender"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric, direction, explainer, role, scope, against, mean, ci_low, ci_high, n."""
        statements = Statements()
        for setting in settings(runs, self._wanted, apart=("scope",)):
            for column in setting.columns_of(self.config.metrics):
                common = {**setting.labels, "metric": column.name, "direction": column.direction}
                for name in dict.fromkeys(method.name for method in setting.methods):
                    own = [method for method in setting.methods if method.name == name]
                    _state(statements, own, column.name, common)
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        table = normalized(table).rename(columns={"scope": "within"})  # here no label of the setting
        plain = table[table["against"] == ""]
        places = style_numbers(plain)
        names = sorted(plain["within"].unique(), key=_width)
        plain = plain.assign(at=plain["within"].map(names.index)).sort_values("at", kind="stable")
        note = "Each explainer answers for the same lists in every scope. Vertical lines are 95% intervals."
        groups = by_setting(longest(plain), "metric")
        return line_figures(groups, table, places, "at", "edges that may be edited", note, names)

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        narrower = table[(table["against"] != "") & (table["role"] == "")]
        selected = narrower[narrower["metric"].map(base).isin(["PN-S", "PN-R"])].to_dict("records")
        if not selected:
            return ""
        clearly = [row for row in selected if clear(row)]
        worse = sum(row["mean"] < 0 for row in clearly)
        most = max(clearly or selected, key=lambda row: abs(row["mean"]))
        rest = len(selected) - len(clearly)
        return (
            f"Of {count_of(len(selected), 'comparison')} of a narrower scope with the widest, {worse} displace less, "
            f"{len(clearly) - worse} displace more, and {rest} could be chance. Largest: {most['metric']} of "
            f"{most['explainer']} in the {most['scope']} scope minus that in the {most['against']} one is {mean_ci(most)}."
        )


def _state(statements: Statements, methods: Sequence[Method], metric: str, common: dict[str, Any]) -> None:
    """One explainer in all its scopes: means, and each narrower scope less the widest."""
    ordered = sorted(methods, key=lambda method: _width(str(method.cell.labels["scope"])))
    scopes = [str(method.cell.labels["scope"]) for method in ordered]
    if len(scopes) < 2:
        return
    for scope, method in zip(scopes, ordered, strict=True):
        labels = {**common, **method.labels(), "scope": scope, "against": ""}
        statements.add(labels, method.column(metric), method.values.clusters)
    _, clusters, values = align([method.values for method in ordered], [metric])
    for scope, method, column in zip(scopes[:-1], ordered[:-1], values[:, :, 0].T, strict=False):
        labels = {**common, **method.labels(), "scope": scope, "against": scopes[-1]}
        statements.add(labels, column - values[:, -1, 0], clusters)
