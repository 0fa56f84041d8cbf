"""The claims of table 6 of CF-tabular, as places among the ten algorithms.

"High coverage", "low distance", "high sparsity", "high stability" and "low time" are read as: among the best four of the
ten, by the average rank of the measure (tables 4 and 5), the share of reproduced counterfactuals, or the mean time. By the
printed ranks this is true of all 24 claims about ranks; it was fixed before our ranks were looked at. The place is one plus
the number of algorithms that are strictly better, so that algorithms that tie share the better place. "Similar performance
as ALIBIC" and "medium coverage" are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.run_directory import TIME
from cfbench_tabular.analysis.run_data import REALISTIC, VALID, Study

if TYPE_CHECKING:
    import pandas as pd

ITEM = "table 6"
BEST = 4
RANKS = {VALID: "table 4", REALISTIC: "table 5"}
STABILITY, SECONDS = "stability", "time"
SAME = 1e-9


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
        columns item, group, dataset, measure, explainer, printed, ours; a place is NaN where it is unknown.
    """
    import pandas as pd

    means = {STABILITY: _means(study, STABILITY, algorithms), SECONDS: _means(study, TIME.name, algorithms)}
    rows: list[dict[str, Any]] = []
    for claim in claims().to_dict("records"):
        measure, printed, ours = claim["measure"], np.nan, np.nan
        if claim["criterion"]:
            own = numbers[
                (numbers["item"] == RANKS[claim["criterion"]])
                & (numbers["group"] == claim["group"])
                & (numbers["measure"] == measure)
            ].set_index("explainer")
            printed = _place(own["printed"].to_dict(), claim["explainer"], len(algorithms))
            ours = _place(own["ours"].to_dict(), claim["explainer"], len(algorithms))
            measure = f"{measure}, {claim['criterion']}"
        else:
            sign = -1.0 if measure == STABILITY else 1.0
            found = {name: sign * value for name, value in means[measure].items()}
            ours = _place(found, claim["explainer"], len(algorithms))
        rows.append(
            {
                "item": ITEM,
                "group": claim["group"],
                "dataset": "",
                "measure": measure,
                "explainer": claim["explainer"],
                "printed": printed,
                "ours": ours,
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


def _place(values: Mapping[str, float], name: str, count: int) -> float:
    """1 for the smallest of ``count`` values; NaN unless all are known."""
    known = {one: value for one, value in values.items() if not np.isnan(value)}
    if len(known) < count or name not in known:
        return float("nan")
    return 1.0 + sum(value < known[name] - SAME for value in known.values())
