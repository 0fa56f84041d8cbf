"""Every metric on one scale: random is 0, the best that is known is 1.

scaled = (mean - mean of random) / (mean of the best - mean of random), whichever direction is better. The best is the
best mean among all methods of the same setting, controls included, so 1 means "as good as anybody"; below 0 is worse
than random. The number is the share of the possible improvement that a method achieves, which a raw POS-P of 0.41
does not: where even the best gets to 0.40, that is nearly all.

Users are drawn with replacement, and each resample gives numerator and denominator together; which method is the best
is settled beforehand. Where random is missing, or no method differs from it, there is no scale: ``mean`` is missing
and ``reason`` says why. Where the best does not differ significantly from random (95%), ``mean`` is given without
an interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_core.statistics import LEVEL, align, resampled_means
from cfbench_recsys.analysis.shared import (
    FloatArray,
    Setting,
    better,
    by_setting,
    finished,
    labels_in,
    longest,
    mean_ci,
    means,
    normalized,
    place,
    refined,
    settings,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/normalized-gain",
    summary="Share of the possible improvement over random that each explainer achieves",
    target=f"{__name__}:NormalizedGain",
)

RANDOM = "random"
"""The explainer that is 0 on the scale."""
HINT = "no colour: as random; strongest: the best known; dashed: worse than random"


class Scale(NamedTuple):
    """One metric of a setting on the scale: arrays have a place for each method.

    ``best``: the place of the best method, -1 where there is no scale, and ``reason`` says why.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    value: FloatArray
    n: FloatArray
    best: int
    random: int
    reason: str

    @property
    def sound(self) -> bool:
        """Whether the best differs from random by more than chance."""
        return self.best >= 0 and not np.isnan(self.low[self.best])


def _wanted(cell: RunCell) -> bool:
    return any(column.direction for column in cell.columns)


class NormalizedGain:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        cells = finished(runs, _wanted)
        if not any(cell.labels.get("explainer") == RANDOM for cell in cells):
            return "needs the explainer random: it is 0 on the scale"
        return ""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric, direction, explainer, role, mean (scaled), ci_low, ci_high, n, value, random, best
        (means as measured), best_is (who that is), reason."""
        import pandas as pd

        rows = [row for setting in settings(runs, _wanted) for row in scaled_rows(setting)]
        return pd.DataFrame(rows)

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        table = normalized(table)
        known = table[table["ci_low"].notna() & table["metric"].map(refined).isna()]
        note = (
            "Left out: metrics by which the best does not differ significantly from random, and those with K_e, which "
            "have figures of "
            "their own (fidelity)."
        )
        order = {"": 0, "certified": 1, "reference": 2, "baseline": 3}
        drawn = []
        for labels, rows in by_setting(longest(known)):
            roles = dict(zip(rows["explainer"], rows["role"], strict=True))
            explainers = sorted(roles, key=lambda name: order.get(roles[name], 0))
            metrics = list(dict.fromkeys(rows["metric"]))
            matrix = rows.pivot(index="explainer", columns="metric", values="mean")
            values = matrix.reindex(index=explainers, columns=metrics).to_numpy()
            title = f"From random (0) to the best known (1): {place(labels, table)}"
            svg = heat_map(
                [f"{name} ({roles[name]})" if roles[name] else name for name in explainers],
                metrics,
                values,
                title=title,
                direction="higher",
                hint=HINT,
                text=[[f"{value:.2f}" if value == value else "–" for value in row] for row in values],
            )
            drawn.append(Figure(title, svg, note))
            note = ""
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        known = table[(table["role"] == "") & table["mean"].notna()]
        if known.empty:
            return ""
        tops = known.loc[
            known.groupby([*labels_in(known), "metric"], sort=False, dropna=False)["mean"].idxmax()
        ]
        row = tops.iloc[0].to_dict()
        near, far = float((tops["mean"] >= 0.95).mean()), float((tops["mean"] < 0.5).mean())
        return (
            f"By {row['metric']} ({place(row, table)}) {row['explainer']} is the best competitor, {mean_ci(row)} of the way "
            f"from random to the best known, {row['best_is']}. Over {len(tops)} metrics and settings the best competitor "
            f"goes 0.95 of the way or more in {near:.0%}, and less than half of it in {far:.0%}."
        )


def scaled_rows(setting: Setting) -> list[dict[str, Any]]:
    """A row for each metric with a direction and each method."""
    columns = [column for column in setting.columns if column.direction]
    rows = []
    for column, scale in zip(columns, scales(setting, columns), strict=True):
        for at, method in enumerate(setting.methods):
            rows.append(
                {
                    **setting.labels,
                    "metric": column.name,
                    "direction": column.direction,
                    **method.labels(),
                    "mean": scale.mean[at],
                    "ci_low": scale.low[at],
                    "ci_high": scale.high[at],
                    "n": int(scale.n[at]),
                    "value": scale.value[at],
                    "random": scale.value[scale.random] if scale.random >= 0 else np.nan,
                    "best": scale.value[scale.best] if scale.best >= 0 else np.nan,
                    "best_is": setting.methods[scale.best].name if scale.best >= 0 else "",
                    "reason": scale.reason,
                }
            )
    return rows


def scales(setting: Setting, columns: Sequence[Column]) -> list[Scale]:
    """The scale of each column, of the same resamples of users."""
    names = [method.name for method in setting.methods]
    random = names.index(RANDOM) if RANDOM in names else -1
    _, clusters, values = align([method.values for method in setting.methods], [c.name for c in columns])
    drawn = resampled_means(values.reshape(len(values), -1), clusters=clusters)
    drawn = drawn.reshape(len(drawn), *values.shape[1:])
    if len(np.unique(clusters)) < 2:
        drawn = np.full_like(drawn, np.nan)  # one user has no spread
    return [
        _scale(values[:, :, place], drawn[:, :, place], random, column.direction)
        for place, column in enumerate(columns)
    ]


def _scale(values: FloatArray, drawn: FloatArray, random: int, direction: str) -> Scale:
    """One column: ``values`` (units, methods), ``drawn`` (resamples, methods)."""
    value, n = means(values), (~np.isnan(values)).sum(axis=0)
    nothing = np.full(len(value), np.nan)
    best = better(value, direction)
    if random < 0 or np.isnan(value[random]):
        return Scale(nothing, nothing, nothing, value, n, best, random, "no result of random")
    width = value[best] - value[random]
    if width == 0:
        return Scale(nothing, nothing, nothing, value, n, best, random, "no explainer is better than random")
    low, high = _interval(drawn, best, random, float(np.sign(width)))
    reason = (
        "" if not np.isnan(low[best]) else "no interval: the best does not differ significantly from random"
    )
    return Scale((value - value[random]) / width + 0.0, low, high, value, n, best, random, reason)


def _interval(drawn: FloatArray, best: int, random: int, sign: float) -> tuple[FloatArray, FloatArray]:
    """Percentiles of the ratio; none where its denominator may well be of the other sign."""
    width = sign * (drawn[:, best] - drawn[:, random])
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    if np.isnan(width).any() or np.quantile(width, tails[0]) <= 0:
        nothing = np.full(drawn.shape[1], np.nan)
        return nothing, nothing
    sound = width > 0
    ratios = sign * (drawn[sound] - drawn[sound, random][:, None]) / width[sound, None] + 0.0
    low, high = np.quantile(ratios, tails, axis=0)  # NaN for a method of which a resample has no value
    return low, high
