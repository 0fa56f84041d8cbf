"""Does the standing of an explainer depend on the recommender? (CFExpRec, section 4.3, in place of figures 1 and 2.)

The paper draws radar charts of raw metrics; their axes are not comparable from model to model (a POS-P of 0.4 is good
for a model with a strong bias, and bad for another), and the area depends on the order of the axes. Here a matrix for
each metric has an explainer in each row and a recommender in each column, coloured by the scaled score (random is 0,
the best known is 1 for each recommender; ``scaled.py``), with the mean in the cell. A column without colour is one in
which the best does not differ significantly from random: the differences in it are chance.

Whether a standing depends on the recommender is measured by reversals: two explainers of which one is better for one
recommender and the other for another, both beyond chance (95% paired intervals over users, not corrected for their
number). Two lists that differ in rank only by chance are no reversal. Baselines take part; references and certified
explainers do not.

Rows without ``against`` are means. A reversal has two rows: ``explainer`` less ``against`` for ``model``, and for
another; ``other`` names the other model. The columns of user profiles and of a graph restricted to the user's own edges
stand side by side (``edges`` "own"): what may be edited is the same. Levels of quality of one model
("mf@25%") are not recommenders of their own: see the analysis ``consistency``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Distinct, Help
from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import align, bootstrap_interval, ranks
from cfbench_core.wording import count_of, join_words
from cfbench_recsys.analysis.normalized_gain import HINT, scales
from cfbench_recsys.analysis.shared import (
    NUMBERS,
    OWN,
    STRONG,
    Setting,
    by_setting,
    differ_in,
    finished,
    has_metric,
    is_checkpoint,
    longest,
    mean_ci,
    means,
    normalized,
    place,
    settings,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/recommenders",
    summary="Explainers whose rank depends on the recommender",
    target=f"{__name__}:Recommenders",
    config=f"{__name__}:Config",
    papers=("cfexprec2026",),
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """The metrics of CFExpRec."""

    metrics: Annotated[tuple[str, ...], Distinct(), Help("compared, by their names before the @")] = (
        "POS-P",
        "NEG-P",
        "PN-S",
        "PN-R",
        "#Perturb given success",
    )


class Recommenders:
    def __init__(self, config: Config) -> None:
        self.config = config

    def _wanted(self, cell: RunCell) -> bool:
        return has_metric(*self.config.metrics)(cell) and not is_checkpoint(str(cell.labels.get("model")))

    def incompatibility(self, runs: Sequence[Run]) -> str:
        cells = [{**cell.labels, "scope": edges(cell.labels)} for cell in finished(runs, self._wanted)]
        if differ_in("model", cells) and differ_in("explainer", cells):
            return ""
        return "needs two explainers or more that ran for two recommenders or more"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, edges, metric, direction, explainer, role, model, against, other, mean, ci_low, ci_high,
        n, scaled, place (among competitors and baselines of the model; equal ones share it)."""
        import pandas as pd

        together: dict[tuple[Any, ...], list[Setting]] = {}
        for setting in settings(runs, self._wanted):
            common = {**setting.labels, "edges": edges(setting.labels)}
            common = {name: value for name, value in common.items() if name not in ("model", "scope")}
            together.setdefault(tuple(common.items()), []).append(setting)
        rows: list[dict[str, Any]] = []
        for labels, of_models in together.items():
            explainers = {method.name for setting in of_models for method in setting.methods}
            if len({setting.labels["model"] for setting in of_models}) > 1 and len(explainers) > 1:
                rows += _rows(dict(labels), of_models, self.config.metrics)
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        table = normalized(table).rename(columns={"model": "recommender"})  # here no label of the setting
        plain = table[table["against"] == ""]
        note = (
            "In the cells: the mean. Colours are on a scale of each column, and there are none where the best does "
            "not differ significantly from random."
        )
        order = {"": 0, "certified": 1, "reference": 2, "baseline": 3}
        drawn = []
        for labels, rows in by_setting(longest(plain), "edges", "metric"):
            roles = dict(zip(rows["explainer"], rows["role"], strict=True))
            names = sorted(roles, key=lambda name: order.get(roles[name], 0))
            models = list(dict.fromkeys(rows["recommender"]))
            scaled, mean = (
                rows.pivot(index="explainer", columns="recommender", values=column)
                .reindex(index=names, columns=models)
                .to_numpy(dtype=np.float64)
                for column in ("scaled", "mean")
            )
            where = place(labels, table) if len(table) else ""
            title = f"{labels['metric']}: {where}"
            svg = heat_map(
                [f"{name} ({roles[name]})" if roles[name] else name for name in names],
                models,
                scaled,
                title=title,
                direction="higher",
                hint=HINT,
                text=[[f"{value:.3g}" if value == value else "–" for value in row] for row in mean],
            )
            drawn.append(Figure(title, svg, note))
            note = ""
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        if table.empty:
            return ""
        pairs = _pairs(table[(table["against"] == "") & ~table["role"].isin(STRONG)])
        reversals = table[table["against"] != ""].to_dict("records")
        if not reversals:
            compared = count_of(pairs, "pair")
            return f"No significant reversal of two explainers between two recommenders, of {compared}."
        often = Counter(row[who] for row in reversals[::2] for who in ("explainer", "against")).most_common(3)
        first, second = max(zip(reversals[::2], reversals[1::2], strict=True), key=_clearness)
        where = place({name: first[name] for name in first if name != "model"}, table)
        return (
            f"Of {pairs} pairs of explainers {len(reversals) // 2} are reversed significantly between two recommenders; "
            f"most often {join_words([f'{name} ({times})' for name, times in often])}. Clearest: "
            f"by {first['metric']} ({where}) {first['explainer']} minus {first['against']} is {mean_ci(first)} for "
            f"{first['model']}, and {mean_ci(second)} for "
            f"{second['model']}."
        )


def _pairs(compared: pd.DataFrame) -> int:
    """How many pairs of explainers were compared, over all metrics and pairs of recommenders; not two baselines."""
    count = 0
    for _, rows in by_setting(compared.drop(columns="model"), "edges", "metric"):
        models = [set(own["explainer"]) for _, own in compared.loc[rows.index].groupby("model")]
        baselines = set(rows.loc[rows["role"] == "baseline", "explainer"])
        for one, other in itertools.combinations(models, 2):
            both, idle = len(one & other), len(one & other & baselines)
            count += (both * (both - 1) - idle * (idle - 1)) // 2
    return count


def _clearness(pair: tuple[Mapping[Any, Any], Mapping[Any, Any]]) -> float:
    """How far from chance the less clear of two differences is."""
    return float(min(abs(row["mean"]) / max(row["ci_high"] - row["ci_low"], 1e-12) for row in pair))


def edges(labels: Any) -> str:
    """ "own" where what may be edited are the user's own interactions, else the scope."""
    scope = str(labels.get("scope", OWN[0]))
    return "own" if scope in OWN else scope


def _rows(
    common: dict[str, Any], of_models: Sequence[Setting], metrics: Sequence[str]
) -> Iterator[dict[str, Any]]:
    columns = {c.name: c for setting in of_models for c in setting.columns_of(metrics) if c.direction}
    found = [
        _Model(setting, column)
        for column in columns.values()
        for setting in of_models
        if column in setting.columns
    ]
    for column in columns.values():
        of_column = [model for model in found if model.column is column]
        labels = {**common, "metric": column.name, "direction": column.direction}
        for model in of_column:
            yield from ({**labels, **row} for row in model.means())
        for one, other in itertools.combinations(of_column, 2):
            yield from ({**labels, **row} for row in _reversals(one, other))


class _Model:
    """One metric for one recommender: every explainer's mean, and every difference of two."""

    def __init__(self, setting: Setting, column: Column) -> None:
        self.setting = setting
        self.column = column
        self.name = setting.labels["model"]
        _, self.clusters, values = align([m.values for m in setting.methods], [column.name])
        self.values = values[:, :, 0]
        self.compared = [m.name for m in setting.methods if m.role not in STRONG]
        rows = [setting.methods.index(m) for m in setting.methods if m.role not in STRONG]
        self.pairs = list(itertools.combinations(self.compared, 2))
        self.differences = np.array(
            [self.values[:, a] - self.values[:, b] for a, b in itertools.combinations(rows, 2)]
        ).T.reshape(len(self.values), len(self.pairs))
        self.low, self.high = bootstrap_interval(self.differences, clusters=self.clusters)

    def means(self) -> Iterator[dict[str, Any]]:
        low, high = bootstrap_interval(self.values, clusters=self.clusters)
        mean = means(self.values)
        (scale,) = scales(self.setting, [self.column])
        places = self._places(mean)
        for at, method in enumerate(self.setting.methods):
            yield {
                **method.labels(),
                "model": self.name,
                "against": "",
                "other": "",
                **dict(zip(NUMBERS, (mean[at], low[at], high[at], int(scale.n[at])), strict=True)),
                "scaled": scale.mean[at] if scale.sound else np.nan,
                "place": places.get(method.name, np.nan),
            }

    def _places(self, mean: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, float]:
        costs = mean if self.column.direction == "lower" else -mean
        known = [
            m.name in self.compared and not np.isnan(c)
            for m, c in zip(self.setting.methods, costs, strict=True)
        ]
        names = [method.name for method, there in zip(self.setting.methods, known, strict=True) if there]
        return dict(zip(names, ranks(costs[None, known], "lower")[0], strict=True))

    def roles(self, pair: tuple[str, str]) -> list[str]:
        roles = {method.name: method.role for method in self.setting.methods}
        return [roles[name] for name in pair]

    def row(self, pair: tuple[str, str], other: _Model) -> dict[str, Any]:
        at = self.pairs.index(pair)
        own = self.differences[:, at]
        numbers = (float(np.nanmean(own)), self.low[at], self.high[at], int((~np.isnan(own)).sum()))
        return {
            "explainer": pair[0],
            "role": self.roles(pair)[0],
            "model": self.name,
            "against": pair[1],
            "other": other.name,
            **dict(zip(NUMBERS, numbers, strict=True)),
        }


def _reversals(one: _Model, other: _Model) -> Iterator[dict[str, Any]]:
    """Two rows for each pair of which one explainer is better for ``one`` and the other for ``other``."""
    for pair in one.pairs:
        if pair not in other.pairs:
            continue
        a, b = one.pairs.index(pair), other.pairs.index(pair)
        if all(role == "baseline" for role in one.roles(pair)):
            continue
        up_down = one.low[a] > 0 and other.high[b] < 0
        down_up = one.high[a] < 0 and other.low[b] > 0
        if up_down or down_up:
            yield one.row(pair, other)
            yield other.row(pair, one)
