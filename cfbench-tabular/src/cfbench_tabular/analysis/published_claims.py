"""The claims of table 6 of CF-tabular, as places among the ten algorithms.

"High coverage", "low distance", "high sparsity", "high stability" and "low time" are read as: among the best four of the
ten, by the average rank of the measure (tables 4 and 5), the share of reproduced counterfactuals, or the mean time. By the
printed ranks this is true of all 24 claims about ranks; it was fixed before our ranks were looked at. Algorithms that tie
share the mean of their places, and a claim that depends on how they are counted is undecided. "Similar performance as
ALIBIC" and "medium coverage" are left out.

The claims are about 22 data sets. Where a run has fewer factuals than the paper, a place counts only if it is among the best
four, or not, whatever the ranks of the missing factuals are; else it is not comparable. Stability is not comparable: in
the paper the second call has the same settings, here it has another seed.

Two algorithms whose ranks differ on fewer than six factuals are a near tie, whichever has the better average rank: by a
two-sided sign test, five factuals that all favour one are not significant (2 / 2^5 = 0.06; of six, 0.03). A claim that
depends on the order of near ties is undecided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import TIME
from cfbench_tabular.analysis.printed_numbers import differing
from cfbench_tabular.analysis.run_data import REALISTIC, VALID, Study

if TYPE_CHECKING:
    import pandas as pd

ITEM = "table 6"
BEST = 4
RANKS = {VALID: "table 4", REALISTIC: "table 5"}
STABILITY, SECONDS = "stability", "time"
SAME = 1e-9
TIES, BOUNDS = ("tie_best", "tie_worst"), ("bound_best", "bound_worst")
"""The best and the worst place by how ties are counted, and for any ranks of the factuals that were not measured."""
DECISIVE = 6
"""The fewest factuals with different ranks that can order two algorithms: a two-sided sign test at 95%."""
NEAR, NEAR_FACTUALS = ("near_best", "near_worst"), "near_factuals"
"""The best and the worst place by the order of near ties, and the most factuals on which one of these differs."""


def claims() -> pd.DataFrame:
    """Columns: explainer, criterion (valid, realistic, or empty), group, measure."""
    import pandas as pd

    file = resources.files("cfbench_tabular.published") / "cf_tabular_claims.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened, keep_default_na=False)


def places(study: Study, numbers: pd.DataFrame, algorithms: Sequence[str]) -> pd.DataFrame:
    """The claims with the places of the algorithm as printed and here.

    Args:
        numbers: rows with item, group, measure, explainer, printed and ours.

    Returns:
        columns item, group, dataset, measure, explainer, printed, ours, and the best and the worst place that are
        possible: by how ties are counted (``TIES``), for any ranks of missing factuals (``BOUNDS``), and by the order of
        near ties (``NEAR``); NaN where a place is unknown.
    """
    import pandas as pd

    nowhere = dict.fromkeys((*TIES, *BOUNDS, *NEAR, NEAR_FACTUALS, "printed_factuals", "factuals"), np.nan)

    means = {STABILITY: _means(study, STABILITY, algorithms), SECONDS: _means(study, TIME.name, algorithms)}
    rows: list[dict[str, Any]] = []
    for claim in claims().to_dict("records"):
        measure, printed = claim["measure"], np.nan
        if claim["criterion"]:
            own = numbers[
                (numbers["item"] == RANKS[claim["criterion"]])
                & (numbers["group"] == claim["group"])
                & (numbers["measure"] == measure)
            ].set_index("explainer")
            printed = _place(own["printed"].to_dict(), claim["explainer"], len(algorithms))
            if len(own["ours"].dropna()) == len(algorithms):
                item, group = RANKS[claim["criterion"]], claim["group"]
                own = own.assign(differs=differing(study, item, group, measure, claim["explainer"]))
            placed = of_ranks(own, claim["explainer"], len(algorithms))
            measure = f"{measure}, {claim['criterion']}"
        else:
            sign = -1.0 if measure == STABILITY else 1.0
            found = {name: sign * value for name, value in means[measure].items()}
            placed = of_means(found, claim["explainer"], len(algorithms))
        rows.append(
            {
                **nowhere,
                "item": ITEM,
                "group": claim["group"],
                "dataset": "",
                "measure": measure,
                "explainer": claim["explainer"],
                "printed": printed,
                **placed,
            }
        )
    return pd.DataFrame(rows)


def _means(study: Study, metric: str, algorithms: Sequence[str]) -> dict[str, float]:
    """The mean over data sets of the means over factuals, of the algorithms that have values on all of them."""
    found = {}
    for name in algorithms:
        methods = [dataset.methods.get(name) for dataset in study.datasets]
        values = [method.values for method in methods if method is not None and method.values is not None]
        if len(values) < len(methods):
            continue
        known = [one.column(metric) for one in values if metric in one.metrics]
        means = [float(np.nanmean(column)) for column in known if not np.isnan(column).all()]
        if len(means) == len(methods):
            found[name] = float(np.mean(means))
    return found


def of_ranks(own: pd.DataFrame, name: str, count: int) -> dict[str, float]:
    """The place by average ranks, with both bounds; the ranks of missing factuals are anything between 1 and ``count``.

    Args:
        own: of one table, group and measure; index explainer, columns ours, factuals, printed_factuals, and differs: on how
            many factuals its rank is another than that of ``name`` (without this column there are no near ties).
        name: the algorithm.
        count: of algorithms.
    """
    values = {str(algorithm): float(ours) for algorithm, ours in own["ours"].items()}
    found = of_means(values, name, count)
    if "differs" in own and not np.isnan(found["ours"]):
        found |= _by_near_ties(values, own["differs"].to_dict(), name)
    measured, whole = own["factuals"].max(), own["printed_factuals"].max()
    if np.isnan(found["ours"]) or not whole >= measured:
        return found
    low, high = (
        {one: with_missing(rank, measured, whole, end) for one, rank in values.items()} for end in (1, count)
    )
    others = [one for one in values if one != name]
    best = 1.0 + sum(high[one] < low[name] - SAME for one in others)
    worst = 1.0 + sum(low[one] < high[name] + SAME for one in others)
    bounds = dict(zip(BOUNDS, (best, worst), strict=True)) if whole > measured else {}
    return {**found, **bounds, "factuals": measured, "printed_factuals": whole}


def _by_near_ties(values: Mapping[str, float], differs: Mapping[Any, int], name: str) -> dict[str, float]:
    """The best and the worst place if near ties may have either order; nothing without near ties."""
    near = [one for one in values if one != name and differs[one] < DECISIVE]
    if not near:
        return {}
    others = [one for one in values if one != name and one not in near]
    best = 1.0 + sum(values[one] < values[name] - SAME for one in others)
    worst = 1.0 + len(near) + sum(values[one] <= values[name] + SAME for one in others)
    most = float(max(differs[one] for one in near))
    return {**dict(zip(NEAR, (best, worst), strict=True)), NEAR_FACTUALS: most}


def of_means(values: Mapping[str, float], name: str, count: int) -> dict[str, float]:
    """The place by values of which smaller is better, and its bounds by how ties are counted."""
    place = _place(values, name, count)
    if np.isnan(place):
        return {"ours": place}
    best = 1.0 + sum(value < values[name] - SAME for value in values.values())
    worst = float(sum(value <= values[name] + SAME for value in values.values()))
    return {"ours": place, **dict(zip(TIES, (best, worst), strict=True))}


def with_missing(mean: float, measured: float, whole: float, value: float) -> float:
    """The mean over ``whole`` factuals, if those that were not measured have this value."""
    return float((mean * measured + value * (whole - measured)) / whole)


def _place(values: Mapping[str, float], name: str, count: int) -> float:
    """1 for the smallest of ``count`` values, the mean of their places for those that tie; NaN unless all are known."""
    known = {one: value for one, value in values.items() if not np.isnan(value)}
    if len(known) < count or name not in known:
        return float("nan")
    better = sum(value < known[name] - SAME for value in known.values())
    level = sum(abs(value - known[name]) <= SAME for value in known.values())
    return better + (1.0 + level) / 2
