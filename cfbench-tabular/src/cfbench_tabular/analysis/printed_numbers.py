"""The numbers of CF-tabular as printed, and the same numbers of our runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.statistics import friedman
from cfbench_core.verdicts import rounding
from cfbench_tabular.analysis.grouped_rates import values_of_all
from cfbench_tabular.analysis.rankings import ranked
from cfbench_tabular.analysis.run_data import CRITERIA, REALISTIC, VALID, DataSet, FloatArray, Study

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

ALGORITHMS = (
    "alibic",
    "alibic-nograd",
    "cadex",
    "dice",
    "growing-spheres",
    "lore",
    "mace",
    "ml-explain",
    "sedc",
    "synas",
)
"""The ten algorithms of the paper."""

RANKED = {"table 4": VALID, "table 5": REALISTIC}
SHARES = {"figure 6": VALID, "figure 7": REALISTIC}
SECONDS, REPRODUCED = "figure 4", "figure 5"
BY_GROUP = (SECONDS, REPRODUCED)
"""Printed for some groups of data sets only."""
QUALITY = "table A1"
MEASURES = ("coverage", "sparsity", "L2", "MADD", "MD")
"""The columns of tables 4 and 5."""
UNPRINTED = ("RUC", "RMC")
"""Further measures of the authors' own tables, which the paper does not print; there, the rows of table 5 repeat those of
table 4."""
CONFIG = "config.yaml"
KEYS = ("item", "group", "dataset", "measure", "explainer")


def printed_numbers() -> pd.DataFrame:
    """Columns: item, group, dataset, measure, explainer, printed, authors, compared, exact, printed_factuals, rounded_by.

    ``printed``: as the paper prints it; NaN where it prints none. ``authors``: of the authors' own tables, with more
    decimals; NaN where these have none. ``compared``, what ours is compared with: the printed one, else the authors'.
    ``exact``, of which claims compute places and leads: the authors' one, else the printed one. ``rounded_by``: of compared.
    """
    import pandas as pd

    file = resources.files("cfbench_tabular.published") / "cf_tabular.csv"
    with file.open(encoding="utf-8") as opened:
        table = pd.read_csv(opened, dtype=str, keep_default_na=False)
    is_printed = table["printed"] != ""
    compared = table["printed"].where(is_printed, table["authors"])
    same_form = compared.map(rounding).groupby([table["item"], is_printed])
    numbers = {name: pd.to_numeric(table[name]) for name in ("printed", "authors")}
    return table.assign(
        **numbers,
        compared=compared.astype(float),
        exact=numbers["authors"].fillna(numbers["printed"]),
        printed_factuals=table["factuals"].astype(int),
        rounded_by=same_form.transform(lambda own: own[own > 0].min()),
    )[[*KEYS, "printed", "authors", "compared", "exact", "printed_factuals", "rounded_by"]]


def published(run: Run) -> bool:
    if run.suite != "tabular" or not (run.directory / CONFIG).is_file():
        return False
    protocol = run.config.get("protocol") or {}
    study = protocol if isinstance(protocol, str) else protocol.get("study")
    return bool(study == "paper")


def run_on_all(datasets: Sequence[DataSet]) -> list[str]:
    """The algorithms of the paper that were run on all of these data sets."""
    return [name for name in ALGORITHMS if all(name in dataset.methods for dataset in datasets)]


def measured(study: Study) -> Iterator[tuple[Any, ...]]:
    """Rows of KEYS, our value, and the number of factuals."""
    for dataset in study.datasets:
        if not published(dataset.run):
            continue  # another network, on another split
        for measure, value in (dataset.model.get("quality") or {}).items():
            if measure in ("AUC", "accuracy"):
                yield QUALITY, "", dataset.name, measure, "", value, np.nan
    for group, datasets in study.groups(same_as_total=True):  # printed for each type of data
        names = run_on_all(datasets)
        for item, criterion in SHARES.items():
            judge = CRITERIA[criterion]
            for name in names:
                hits = _joined([dataset.values([name], (judge,))[1][:, :, 0] for dataset in datasets])
                if len(hits):
                    share = float(np.nan_to_num(hits).mean())
                    yield item, group, "", "share", name, share, len(hits)
        yield from _times_and_stability(group, datasets, names)
        if len(names) == len(ALGORITHMS):
            yield from _ranks(study, group, datasets)


def _times_and_stability(
    group: str, datasets: Sequence[DataSet], names: Sequence[str]
) -> Iterator[tuple[Any, ...]]:
    """The standard deviation of the time per explanation, and the share that a second call reproduces."""
    times, same = values_of_all(datasets, TIME.name), values_of_all(datasets, "stability")
    for name in names:
        known = times[name][~np.isnan(times[name])]
        if len(known) > 1:
            yield SECONDS, group, "", "std of seconds", name, float(known.std(ddof=1)), len(known)
        known = same[name][~np.isnan(same[name])]
        if len(known):
            yield REPRODUCED, group, "", "reproduced", name, float(known.mean()), len(known)


def _ranks(study: Study, group: str, datasets: Sequence[DataSet]) -> Iterator[tuple[Any, ...]]:
    for item in RANKED:
        for measure in (*MEASURES, *UNPRINTED) if item == "table 4" else MEASURES:
            found = _ranked(study, datasets, item, measure)
            if len(found) > 1:
                for name, rank in zip(ALGORITHMS, friedman(found, "lower").average_ranks, strict=True):
                    yield item, group, "", measure, name, float(rank), len(found)


def _ranked(study: Study, datasets: Sequence[DataSet], item: str, measure: str) -> FloatArray:
    """(factuals, algorithms) ranks of a table and measure; no rows if it was not measured."""
    columns, judge = study.columns(), CRITERIA[RANKED[item]]
    column = judge if measure == "coverage" else measure
    if judge not in columns or column not in columns:
        return _joined([])
    better = columns[column].direction
    return _joined([ranked(dataset, ALGORITHMS, column, judge, better) for dataset in datasets])


def differing(study: Study, item: str, group: str, measure: str, name: str) -> dict[str, int]:
    """On how many factuals each algorithm has another rank than ``name``; all ten must have run on the group."""
    ranks_of_each = _ranked(study, study.group(group), item, measure)
    own = ranks_of_each[:, ALGORITHMS.index(name)]
    counts = (ranks_of_each != own[:, None]).sum(axis=0)
    return dict(zip(ALGORITHMS, map(int, counts), strict=True))


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    """(factuals, explainers) of several data sets, leaving out those without values."""
    known = [part for part in parts if len(part)]
    return np.concatenate(known) if known else np.empty((0, 1))
