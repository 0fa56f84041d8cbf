"""Table 1 and figure 1 of Consistency beyond top-1, and the same numbers of runs; its claims are in another module.

Table 1 (MF, the first three items) is of Yahoo! Music, whose data needs a signed agreement: where no run has these data,
its numbers are rows without ours, and ours of other data are not comparable with them. Figure 1 (VAE, MovieLens 1M) prints
no numbers. The claims are decided by the analysis ``consistency``, of the explainers as published and as cfbench improves
them, each on its own (``published_consistency_claims.py``). What decides them and is in neither the table nor the figure
are rows of the item ``claims-data``: means over all seeds, and agreements of rankings, of each seed and of all together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_recsys.analysis.consistency import SPEARMAN, Config, Consistency
from cfbench_recsys.analysis.consistency_rows import ALL, ALL_USERS, LEVEL_MEAN, MATCHED, TOP_1
from cfbench_recsys.analysis.measured_means import split_label
from cfbench_recsys.analysis.published_consistency_claims import (
    DATASETS,
    EXPLAINERS,
    VARIANTS,
    claim_rows,
)
from cfbench_recsys.analysis.published_consistency_statistics import (
    METRICS,
    OF_FIGURE,
    OF_TABLE,
    Measured,
    printed_levels,
    printed_metrics,
    printed_numbers,
    seeds_together,
)
from cfbench_recsys.analysis.published_tables import CLAIMS_DATA

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

ITEMS = {
    "table-1": "MF, the first three items",
    "figure-1": "VAE, POS-P@5 over levels of quality, for the first 1, 2, 3 and 5 items",
}
"""What the table and the figure show."""
KEYS = ("item", "dataset", "model", "checkpoint", "top", "metric", "explainer")
NOT_RUN = "not run: the data of Yahoo! Music need a signed agreement"
REASONS = {
    "table-1": "the paper prints this table of Yahoo! Music only",
    "figure-1": "the paper draws this figure without numbers",
    CLAIMS_DATA: "decides claims; the paper prints no such number",
}
"""Why a number of ours compares with none of the paper."""


def incompatibility(runs: Sequence[Run], other_data: bool) -> str:
    """Why there is nothing to compare; empty if there is. Reads plans only."""
    analysis = Consistency(Config(metrics=METRICS, controls=()))
    usable = [run for run in runs if other_data or _of_paper(run)]
    return (
        analysis.incompatibility(usable)
        if usable
        else f"needs one of {', '.join(DATASETS)} (or other_data: true)"
    )


def compare(runs: Sequence[Run], other_data: bool) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The numbers of the table and the figure, those behind the claims, and the claims, on these runs."""
    usable = [run for run in runs if other_data or _of_paper(run)]
    found = {variant: measured(usable, variant) for variant in VARIANTS}
    found = {variant: parts for variant, parts in found.items() if parts}
    return _numbers(found), list(claim_rows(found))


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """What to know before trusting the comparison."""
    yield (
        "Table 1 is of Yahoo! Music, whose data needs a signed agreement: its numbers are not comparable with those of "
        "other data."
    )
    yield "POS-P and NEG-P average each user's own steps; the description of the metric has the departures from the formula."
    yield (
        "Rankings by means of few users agree less than those of many, whatever the metric; intervals over users do not "
        "cover this."
    )


def measured(runs: Sequence[Run], variant: str) -> list[Measured]:
    """What the runs of one variant of the explainers have, of each data set and model."""
    import pandas as pd

    own = [run for run in runs if _variant(run) == variant]
    analysis = Consistency(Config(metrics=METRICS, controls=()))
    if not own or analysis.incompatibility(own):
        return []
    found = []
    for comparison in analysis.comparisons(own):
        rows = pd.DataFrame(comparison.rows())
        names = rows["explainer"].astype(str).str.removesuffix(f"-{variant}")
        found.append(Measured(comparison, rows.assign(explainer=names), variant))
    return found


def _of_paper(run: Run) -> bool:
    return any(cell.labels.get("dataset") in DATASETS for cell in run.cells())


def _variant(run: Run) -> str:
    """The variant of a run's explainers."""
    names = [
        split_label(str(cell.labels.get("explainer", "")), cell.labels, EXPLAINERS) for cell in run.cells()
    ]
    return "paper" if any(variant == "paper" for _, variant in names) else "cfbench"


def _numbers(found: Mapping[str, Sequence[Measured]]) -> pd.DataFrame:
    """Ours, next to the printed numbers of the same data; then the printed ones that have none of ours."""
    import pandas as pd

    parts = [table for measured in found.values() for part in measured for table in _of_part(part)]
    if not parts:
        return pd.DataFrame()
    ours = pd.concat(parts, ignore_index=True)
    both = ours.merge(printed_numbers(), on=[*KEYS], how="left")
    shared = both["printed"].notna() & (both["item"] == "table-1")
    both["reason"] = both["item"].map(REASONS).where(~shared, "")
    printed = printed_numbers().merge(ours[[*KEYS]].drop_duplicates(), on=[*KEYS], how="left", indicator=True)
    absent = printed[printed["_merge"] == "left_only"].drop(columns="_merge")
    absent = absent.assign(run="", variant="", reason=NOT_RUN)
    table = pd.concat([both, absent], ignore_index=True)
    order = [*ITEMS, CLAIMS_DATA]
    table = table.sort_values("item", key=lambda items: items.map(order.index), kind="stable")
    at_level = np.where(table["checkpoint"] == "", "", "@" + table["checkpoint"])
    nothing = dict.fromkeys(("printed_deviation", "deviation"), np.nan)
    return table.assign(model=table["model"] + at_level, k=table["top"], rank="", scope="", **nothing)


def _of_part(part: Measured) -> Iterator[pd.DataFrame]:
    """Means of all seeds together, and agreements of rankings of each seed as well."""
    together = seeds_together(part.rows)
    means = together[(together["statistic"] == LEVEL_MEAN) & (together["sample"] == ALL_USERS)]
    means = means[means["top"].isin(OF_FIGURE)]
    yield _shown(means, part.variant, _items_of(means), means["metric"], "")
    rhos = part.rows[(part.rows["statistic"] == SPEARMAN) & (part.rows["metric"] != ALL)]
    plain = rhos[(rhos["against"] == "") & (rhos["sample"] == ALL_USERS) & rhos["top"].isin(OF_FIGURE)]
    gains = rhos[(rhos["against"] == TOP_1) & (rhos["top"] == max(OF_FIGURE))]
    for words, rows in (
        ("rho of ", plain),
        ("gain of rho of ", gains[gains["sample"] == ALL_USERS]),
        ("size-matched gain of rho of ", gains[gains["sample"] == MATCHED]),
    ):
        of_seeds = np.where(rows["n_seeds"] > 1, "seeds ", "seed ") + rows["seeds"].astype(str)
        if len(rows):
            yield _shown(rows, part.variant, CLAIMS_DATA, words + rows["metric"], of_seeds)


def _items_of(means: pd.DataFrame) -> Any:
    """The table or figure of the paper that shows each mean; what none does is behind claims."""
    printed = means["checkpoint"].isin(printed_levels()) & means["metric"].isin(printed_metrics())
    of_table = printed & (means["model"] == "mf") & (means["top"] == OF_TABLE)
    of_figure = (means["model"] == "vae") & (means["metric"] == f"{METRICS[0]}@5")
    return np.select([of_table, of_figure], [*ITEMS], CLAIMS_DATA)


def _shown(rows: pd.DataFrame, variant: str, item: Any, metric: Any, run: Any) -> pd.DataFrame:
    rows = rows.assign(item=item, metric=metric, run=run, variant=variant)
    rows = rows.assign(ours=rows["mean"], top=rows["top"].astype(int).astype(str))
    return rows[[*KEYS, "run", "variant", "ours", "ci_low", "ci_high", "n"]]
