"""Two runs side by side: what changed in the configuration, and which differences are more than chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from cfbench_core.plan import TIME
from cfbench_core.reports.table_data import outcome_words
from cfbench_core.run_directory import Run, RunCell
from cfbench_core.statistics import FloatArray, UnitValues, align, bootstrap_interval

Verdict = Literal["better", "worse", "different", "no significant difference", "identical"]


@dataclass(frozen=True)
class Change:
    """A setting that differs; None where it is not set."""

    name: str
    first: str | None
    second: str | None


@dataclass(frozen=True)
class Difference:
    """One metric of one cell in both runs.

    ``difference`` is second - first with its 95% interval; ``verdict`` says what that means for the second. ``paired``: over
    the ``n`` units that both runs have, whose means are shown. Where they have none in common (another seed explains
    other units), the means are those of all units of each run, and ``n`` is the number of the run that has fewer.
    """

    cell: str
    metric: str
    direction: str
    first: float
    second: float
    difference: float
    ci_low: float
    ci_high: float
    n: int
    verdict: Verdict
    paired: bool = True


@dataclass(frozen=True)
class Comparison:
    """Two runs: ``first`` and ``second`` are their names.

    Attributes:
        differences: of the cells that have results in both.
        outcomes: cells in both that ended differently, or not well in either.
        only_first, only_second: cells that one run alone has.
        config, environment: what differs in ``config.yaml`` and ``environment.json``.
    """

    first: str
    second: str
    differences: tuple[Difference, ...]
    outcomes: tuple[Change, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    config: tuple[Change, ...]
    environment: tuple[Change, ...]

    @property
    def changed(self) -> list[Difference]:
        """The differences that are more than chance."""
        return [d for d in self.differences if d.verdict in ("better", "worse", "different")]

    def render(self, format: Literal["table", "markdown"] = "table") -> str:
        """The comparison for a terminal or in Markdown."""
        return _render(self, format)


def compare(first: Run, second: Run) -> Comparison:
    """Compares two runs cell by cell, on the units that both have, or by their means where they have none in common. Times
    are of different moments, perhaps machines.

    Raises:
        UserError: if a run directory cannot be read.
    """
    in_first = {cell.id: cell for cell in first.cells()}
    in_second = {cell.id: cell for cell in second.cells()}
    both = [(cell, in_second[id]) for id, cell in in_first.items() if id in in_second]
    return Comparison(
        str(first.directory),
        str(second.directory),
        tuple(
            difference
            for cell, _ in both
            if cell.id in first.unit_values and cell.id in second.unit_values
            for difference in _differences(cell, first.unit_values[cell.id], second.unit_values[cell.id])
        ),
        tuple(Change(a.id, _ended(a), _ended(b)) for a, b in both if _ended(a) != _ended(b) or a.problem),
        tuple(id for id in in_first if id not in in_second),
        tuple(id for id in in_second if id not in in_first),
        tuple(_changes(first.config, second.config)),
        tuple(_changes(first.environment, second.environment, names=lambda value: value)),
    )


def _ended(cell: RunCell) -> str:
    status = "ok" if cell.done else outcome_words(cell.status)
    return f"{status}: {cell.reason}" if cell.reason else status


def _differences(cell: RunCell, first: UnitValues, second: UnitValues) -> Iterator[Difference]:
    directions = {column.name: column.direction for column in (*cell.columns, TIME)}
    metrics = [metric for metric in first.metrics if metric in second.metrics]
    _, clusters, values = align([first, second], metrics)
    values = np.where(np.isnan(values).any(axis=1, keepdims=True), np.nan, values)  # in both, or in neither
    there = ~np.isnan(values).all(axis=(1, 2))
    values, clusters = values[there], clusters[there]
    changes = values[:, 1] - values[:, 0]
    low, high = bootstrap_interval(changes, clusters=clusters)
    for place, metric in enumerate(metrics):
        if np.isnan(first.column(metric)).all() or np.isnan(second.column(metric)).all():
            continue  # one has no result at all: that is an outcome, not a difference
        common = changes[~np.isnan(changes[:, place]), place]
        if not len(common):
            yield _of_means(cell, metric, directions.get(metric, ""), first, second)
            continue
        before, after = (_mean(values[:, run, place]) for run in (0, 1))
        direction = directions.get(metric, "")
        bounds = (float(low[place]), float(high[place]))
        if metric == TIME.name:
            bounds = _time_interval(values[:, 0, place], values[:, 1, place])
        verdict = _verdict(common, bounds, direction)
        yield Difference(
            cell.id, metric, direction, before, after, _mean(common), *bounds, len(common), verdict
        )


def _time_interval(before: FloatArray, after: FloatArray) -> tuple[float, float]:
    """The interval of the mean change. Units explained in one batch share its time: of either run, that is one measurement.

    So units belong together that share a time in one of the runs, or are linked by others that do.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    measured = ~np.isnan(before - after)
    times = [np.unique(run[measured], return_inverse=True) for run in (before, after)]
    (_, first), (_, second) = times
    n = len(times[0][0])
    size = n + len(times[1][0])
    links = coo_array((np.ones(len(first)), (first, second + n)), shape=(size, size))
    _, together = connected_components(links, directed=False)
    low, high = bootstrap_interval((after - before)[measured], clusters=together[first])
    return float(low), float(high)


def _of_means(
    cell: RunCell, metric: str, direction: str, first: UnitValues, second: UnitValues
) -> Difference:
    """The difference of the means of two samples without a unit in common."""
    values = [run.column(metric) for run in (first, second)]
    before, after = map(_mean, values)
    intervals = [
        bootstrap_interval(own, clusters=own if metric == TIME.name else run.clusters)
        for own, run in zip(values, (first, second), strict=True)
    ]
    (low_before, high_before), (low_after, high_after) = (
        (float(low), float(high)) for low, high in intervals
    )
    bounds = independent_interval(before, low_before, high_before, after, low_after, high_after)
    n = min(int((~np.isnan(own)).sum()) for own in values)
    verdict = _by_interval(bounds, direction)
    return Difference(
        cell.id, metric, direction, before, after, after - before, *bounds, n, verdict, paired=False
    )


def independent_interval(
    first: float, first_low: float, first_high: float, second: float, second_low: float, second_high: float
) -> tuple[float, float]:
    """The interval of ``second - first`` from those of two independent estimates.

    Source: Zou & Donner 2008, "Construction of confidence limits about effect measures" (MOVER), equation 4.
    """
    difference = second - first
    low = difference - math.hypot(second - second_low, first_high - first)
    return low, difference + math.hypot(second_high - second, first - first_low)


def _mean(values: FloatArray) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else math.nan


def _verdict(changes: FloatArray, bounds: tuple[float, float], direction: str) -> Verdict:
    return _by_interval(bounds, direction) if changes.any() else "identical"


def _by_interval(bounds: tuple[float, float], direction: str) -> Verdict:
    low, high = bounds
    if not (low > 0 or high < 0):
        return "no significant difference"
    if not direction:
        return "different"
    return "better" if (low > 0) == (direction == "higher") else "worse"


def _changes(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    prefix: str = "",
    names: Callable[[Any], Any] | None = None,
) -> Iterator[Change]:
    """Leaves of nested settings that differ, by their dotted names; ``names`` of a list, by default those of components."""
    names = names or _by_name
    for key in dict.fromkeys([*first, *second]):
        a, b = names(first.get(key)), names(second.get(key))
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from _changes(a, b, f"{prefix}{key}.", names)
        elif a != b or (key in first) != (key in second):
            yield Change(f"{prefix}{key}", _shown(a, key in first), _shown(b, key in second))


def _by_name(value: Any) -> Any:
    """A list of components as a mapping by label or name; what is none, or names one twice, as it is."""
    if not isinstance(value, list):
        return value
    options = [{"name": one} if isinstance(one, str) else one for one in value]
    if not all(isinstance(one, Mapping) and "name" in one for one in options):
        return value
    named = {str(one.get("label") or one["name"]): one for one in options}
    return named if len(named) == len(value) else value


def _shown(value: Any, there: bool) -> str | None:
    if not there:
        return None
    import json

    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


# As text


def _render(comparison: Comparison, format: Literal["table", "markdown"]) -> str:
    heading = "## {}" if format == "markdown" else "{}"
    parts = [f"first:  {comparison.first}", f"second: {comparison.second}", ""]
    if format == "markdown":
        parts = [f"- first: `{comparison.first}`", f"- second: `{comparison.second}`", ""]

    def section(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
        from tabulate import tabulate

        if lines:
            style = "pipe" if format == "markdown" else "plain"
            escaped = [
                [cell.replace("|", "\\|") if format == "markdown" else cell for cell in line]
                for line in lines
            ]
            body = tabulate(escaped, heads, tablefmt=style, disable_numparse=True)
            parts.extend([heading.format(title), "", body, ""])

    section("Configuration", ["key", "first", "second"], [_setting(c) for c in comparison.config])
    section("Environment", ["key", "first", "second"], [_setting(c) for c in comparison.environment])
    section("Outcomes", ["cell", "first", "second"], [_change(c) for c in comparison.outcomes])
    section("Only in the first", ["cell"], [[cell] for cell in comparison.only_first])
    section("Only in the second", ["cell"], [[cell] for cell in comparison.only_second])
    heads = ["cell", "metric", "first", "second", "difference (95% interval)", "units", "the second is"]
    shown = [d for d in comparison.differences if d.paired and d.verdict != "identical"]
    section("Differences, over the units in common", heads, [_line(d) for d in shown])
    others = [d for d in comparison.differences if not d.paired]
    section("Differences of means; the runs explain different units", heads, [_line(d) for d in others])
    return "\n".join([*parts, _conclusion(comparison)]) + "\n"


WIDEST = 60
"""Characters of a setting in a table; ``--format json`` has all of them."""


def _setting(change: Change) -> list[str]:
    return [value if len(value) <= WIDEST else f"{value[: WIDEST - 1]}…" for value in _change(change)]


def _change(change: Change) -> list[str]:
    return [change.name, *("(not set)" if v is None else v for v in (change.first, change.second))]


def _line(d: Difference) -> list[str]:
    arrow = {"higher": " ↑", "lower": " ↓"}.get(d.direction, "")
    change = "" if math.isnan(d.difference) else f"{d.difference:+.4g}"
    if not math.isnan(d.ci_low):
        change += f" ({d.ci_low:+.4g} to {d.ci_high:+.4g})"
    means = ["" if math.isnan(value) else f"{value:.4g}" for value in (d.first, d.second)]
    return [d.cell, f"{d.metric}{arrow}", *means, change, f"{d.n:,}", d.verdict]


def _conclusion(comparison: Comparison) -> str:
    scores = [d for d in comparison.differences if d.metric != TIME.name]
    if not scores:
        return "The runs have no results in common."
    counts = {
        verdict: sum(1 for d in scores if d.verdict == verdict) for verdict in {d.verdict for d in scores}
    }
    if counts.get("identical") == len(scores):
        return f"All {len(scores)} scores that both runs have are identical, unit by unit."
    order = ("identical", "no significant difference", "better", "worse", "different")
    words = ", ".join(f"{counts[verdict]} {verdict}" for verdict in order if verdict in counts)
    unpaired = sum(1 for d in scores if not d.paired)
    units = f" {unpaired} are compared by means, as the runs have no units in common." if unpaired else ""
    return f"Of {len(scores)} scores in both runs, the second's are: {words}.{units} Intervals are not corrected."
