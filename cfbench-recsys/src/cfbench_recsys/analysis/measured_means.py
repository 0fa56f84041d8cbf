"""The means of runs by cell, metric and place of the item, with the means of resampled users.

A claim of a paper is decided by a statistic of many means. Its interval needs these means as they would be with other
users, all with the same draw: of each data set the users are drawn with replacement, and every mean is computed anew. The
users of one batch share its time, so for times the batches are drawn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.plan import TIME
from cfbench_core.statistics.bootstrap import resampled_means
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Method,
    Setting,
    Statements,
    base,
    settings,
    unit_ranks,
)
from cfbench_recsys.edits import IntArray
from cfbench_recsys.labels import ANY_BUDGET, NO_BUDGET

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

LABELS = ("run", "dataset", "model", "scope", "level", "format", "k", "rank", "metric", "explainer")
"""What a mean is of.

``run`` is the seed where runs have several, ``rank`` is empty for all places of the list together, and ``metric`` is
without its "@".
"""
VARIANTS = ("paper", "cfbench")
RESAMPLES = 1000
_ADD = "remove-or-add"


@dataclass(frozen=True)
class MeasuredMeans:
    """Means with their labels.

    Attributes:
        frame: a row for each mean: LABELS as text, variant, sample (a number for each set of users that a cell explains),
            and what else is known of it.
        values: (1 + resamples, rows) the means, then those of each draw of users.
        unsupported: explainers with a level and a format (empty: any) that they cannot explain.
    """

    frame: pd.DataFrame
    values: FloatArray
    unsupported: frozenset[tuple[str, str, str]] = frozenset()

    def rows(self, chosen: NDArray[Any]) -> MeasuredMeans:
        """Some of the means: (rows,) whether each is chosen."""
        return MeasuredMeans(
            self.frame[chosen].reset_index(drop=True), self.values[:, chosen], self.unsupported
        )

    def of_variant(self, variant: str) -> MeasuredMeans:
        """The means of one variant of each explainer, or of the explainer where it has no such variant."""
        if self.frame.empty:
            return self
        fitting = self.frame[self.frame["variant"].isin([variant, ""])]
        fitting = fitting.sort_values("variant", ascending=False, kind="stable").drop_duplicates([*LABELS])
        return self.rows(self.frame.index.isin(fitting.index))


@dataclass
class _Columns:
    """Values of units to be resampled together: those of one data set, its times apart from its other metrics.

    ``users``: of each unit the user, or for times the first user of its batch.
    """

    rows: list[int] = field(default_factory=list)
    users: list[Any] = field(default_factory=list)
    values: list[FloatArray] = field(default_factory=list)

    def resampled(self) -> FloatArray:
        """(resamples, columns)."""
        names = np.unique(np.concatenate(self.users))
        codes = [np.searchsorted(names, users) for users in self.users]
        places = [_place_within(code) for code in codes]
        width = max(int(place.max(initial=0)) + 1 for place in places)
        table = np.full((len(names) * width, len(self.values)), np.nan)
        for column, (code, place, values) in enumerate(zip(codes, places, self.values, strict=True)):
            table[code * width + place, column] = values
        return resampled_means(table, RESAMPLES, clusters=np.repeat(np.arange(len(names)), width))


def measure(
    runs: Sequence[Run],
    explainers: Collection[str],
    metrics: Collection[str],
    at_ranks: Collection[str],
    sample: Collection[Any] | None = None,
) -> MeasuredMeans:
    """The means of these explainers and metrics, of every run; :func:`best_measured` chooses among those of the same.

    Args:
        explainers: as :func:`split_label` names them.
        metrics: by their whole names, or by their names before the "@" for those at the run's K.
        at_ranks: metrics of single items that are averaged by the place of the item as well.
        sample: the users that count; None for all.
    """
    import pandas as pd

    statements, together = Statements(), dict[tuple[str, bool], _Columns]()
    ranks = {str(run.directory): unit_ranks(run) for run in runs}
    samples: dict[tuple[str, ...], int] = {}
    count = 0
    for setting in settings(runs, lambda cell: not cell.role):
        for method in setting.methods:
            name, variant = split_label(method.name, method.cell.labels, explainers)
            if not name:
                continue
            labels = {**_labels(setting, method), "explainer": name, "variant": variant}
            explained = tuple(np.unique(method.values.clusters.astype(str)))
            labels["sample"] = samples.setdefault(explained, len(samples))
            of_units = ranks[str(method.run.directory)].get(method.cell.id)
            for row, clusters, users, values in _means(method, metrics, at_ranks, of_units):
                if sample is not None:
                    counted = np.isin(users, list(sample))
                    clusters, users, values = clusters[counted], users[counted], values[counted]
                if np.isnan(values).all():
                    continue
                timed = row["metric"] == TIME.name
                if timed:
                    users = _batches(users, values)
                known = len(np.unique(users[~np.isnan(values)]))
                statements.add({**labels, **row, "users": known}, values, clusters)
                columns = together.setdefault((str(labels["dataset"]), timed), _Columns())
                columns.rows.append(count)
                columns.users.append(users)
                columns.values.append(values)
                count += 1
    if not count:
        return MeasuredMeans(pd.DataFrame(columns=[*LABELS, "variant"]), np.empty((1, 0)))
    frame = _by_seed(statements.frame())
    values = np.full((1 + RESAMPLES, count), np.nan)
    values[0] = frame["mean"]
    for columns in together.values():
        values[1:, columns.rows] = columns.resampled()
    return MeasuredMeans(frame, values, _unsupported(runs, explainers))


def _unsupported(runs: Sequence[Run], explainers: Collection[str]) -> frozenset[tuple[str, str, str]]:
    """The explainers, levels and formats, empty for any, of which every cell is skipped, whatever it is of."""
    found: dict[tuple[str, str, str], set[str]] = {}
    for run in runs:
        for cell in run.cells():
            name = split_label(str(cell.labels.get(run.layout.row, "")), cell.labels, explainers)[0]
            level, form = (str(cell.labels.get(label, "")) for label in ("level", "format"))
            for key in ((name, level, form), (name, level, "")):
                found.setdefault(key, set()).add(cell.status)
    return frozenset(key for key, states in found.items() if states == {"skipped"})


def split_label(label: str, labels: Mapping[str, Any], explainers: Collection[str]) -> tuple[str, str]:
    """("cf2", "paper") of "cf2-paper", ("cf2", "") of "cf2"; ("", "") of an explainer that is not among these.

    An explainer that may add edges has a name with "-add".
    """
    name, variant = label, ""
    for ending in VARIANTS:
        if label.endswith(f"-{ending}"):
            name, variant = label.removesuffix(f"-{ending}"), ending
    if labels.get("edit") == _ADD:
        name += "-add"
    return (name, variant) if name in explainers else ("", "")


def config_of(run: Run) -> Mapping[str, Any]:
    """The configuration of a run; empty where it was not stored."""
    return run.config if (run.directory / "config.yaml").is_file() else {}


def _labels(setting: Setting, method: Method) -> dict[str, Any]:
    protocol = config_of(method.run).get("protocol") or {}
    verify = (protocol.get("postprocess") or {}).get("verify", True)
    labels = setting.labels
    return {
        **{name: str(labels.get(name, "")) for name in LABELS if name not in ("rank", "metric")},
        "max_edits": str(labels.get("max_edits", ANY_BUDGET)),
        "verified": bool(verify),
        "chosen_users": bool(protocol.get("users_file")),
        "seed": str(config_of(method.run).get("seed", "")),
        "chunk": config_of(method.run).get("chunk") or np.inf,
    }


def _means(
    method: Method, metrics: Collection[str], at_ranks: Collection[str], ranks: pd.Series[float] | None
) -> Iterator[tuple[dict[str, str], Any, Any, FloatArray]]:
    """Labels, clusters of the interval, users and values (units,) of each mean of a cell."""
    users = method.values.clusters
    for name in method.values.metrics:
        metric = name if name in metrics else base(name)
        if metric not in metrics or name not in (metric, f"{metric}@{method.cell.labels.get('k')}"):
            continue
        values = method.column(name)
        # Units of one batch share its time evenly: equal times are one measurement.
        clusters = np.nan_to_num(values) if name == TIME.name else users
        yield {"metric": metric, "rank": ""}, clusters, users, values
        if ranks is None or metric not in at_ranks or method.cell.labels.get("level") != "item":
            continue
        places = ranks.loc[method.values.units].to_numpy(dtype=np.int64)
        for place in np.unique(places):
            here = places == place
            yield {"metric": metric, "rank": str(place)}, users[here], users[here], values[here]


def _batches(users: NDArray[Any], seconds: FloatArray) -> NDArray[Any]:
    """For each unit the first user of its batch: that of the units with the same time."""
    _, first, batch = np.unique(seconds, return_index=True, return_inverse=True, equal_nan=False)
    return users[first][batch]


def _by_seed(frame: pd.DataFrame) -> pd.DataFrame:
    """The label ``run`` as the seed of the run, and empty if all have the same seed."""
    return frame.assign(run="seed " + frame["seed"] if frame["seed"].nunique() > 1 else "")


def of_the_same_users(means: MeasuredMeans, contrast: str) -> MeasuredMeans:
    """The means of each setting for several values of the label ``contrast``, all of the same users.

    Of several samples of users that which has the most values of the label, then that of the most units.
    """
    frame = means.frame
    if frame.empty:
        return means
    setting = [name for name in (*LABELS, "variant") if name != contrast]
    of_samples = frame.groupby([*setting, "sample"], sort=False)
    values, units = of_samples[contrast].transform("nunique"), of_samples["n"].transform("sum")
    ordered = frame.assign(values=-values, units=-units)[values > 1]
    ordered = ordered.sort_values(["values", "units"], kind="stable")
    chosen = ordered.drop_duplicates(setting).set_index([*setting, "sample"]).index
    rows = frame.set_index([*setting, "sample"]).index
    return best_measured(means.rows(rows.isin(chosen)))


def best_measured(means: MeasuredMeans) -> MeasuredMeans:
    """Of means of the same: that with the largest budget of edits, and that of the most units.

    Of times only those of the runs with the fewest users in a task: users that are explained together share the time.
    """
    if means.frame.empty:
        return means
    budgets = means.frame["max_edits"].replace({ANY_BUDGET: "inf", NO_BUDGET: "inf"}).astype(float)
    timed = means.frame["metric"] == TIME.name
    fewest = means.frame["chunk"].where(timed).min()
    ordered = means.frame.assign(budget=-budgets, units=-means.frame["n"])
    ordered = ordered[~timed | (means.frame["chunk"] == fewest)]
    ordered = ordered.sort_values(["budget", "units"], kind="stable")
    best = ordered.drop_duplicates([*LABELS, "variant"])
    return means.rows(means.frame.index.isin(best.index))


def one_at_a_time(means: MeasuredMeans) -> MeasuredMeans:
    """Means without the times of users that were explained together: their order can be another one."""
    if means.frame.empty:
        return means
    shared = (means.frame["metric"] == TIME.name) & (means.frame["chunk"] > 1)
    return means.rows(~shared.to_numpy())


def _place_within(codes: IntArray) -> IntArray:
    """0, 1, 2, ... for the units of each user, in their order."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    lengths = np.diff(np.append(starts, len(ordered)))
    places = np.empty(len(codes), dtype=np.int64)
    places[order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
    return places
