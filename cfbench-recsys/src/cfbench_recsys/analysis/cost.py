"""What does an explanation cost? (CFExpRec, section 4.6, table 6.)

- time per explanation: wall time of making one explanation, on average over the units (those of one batch share its time
  evenly, and count as one measurement for the interval). For edits derived from importances both count.
- model queries: profiles or graphs that the recommender scored for one explanation, on average; gradients count as
  the evaluation they come with. Unlike seconds they are the same on every machine.
- time of pre-training: once for each model, where an explainer learns before it explains.
- peak memory in bytes: the most resident memory of the process while explanations were made (for derived edits: while
  they were derived). It holds the model, the data and the libraries too.

Times are of the machine of the run (``environment.json``). A result from the cache has the time that it took when
it was computed. Each row also has the quality of the model: explaining an untrained one may be quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.model_quality import Quality
from cfbench_core.outcomes import DONE
from cfbench_core.plan import MODEL_QUERIES, TIME
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.analysis.shared import (
    OWN,
    Method,
    Setting,
    Statements,
    by_setting,
    finished,
    lines,
    longest,
    mean_ci,
    normalized,
    place,
    settings,
    style_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="recsys/analysis/cost",
    summary="Time, memory and model queries of explanations",
    target=f"{__name__}:Cost",
    papers=("cfexprec2026",),
)

SECONDS, PRETRAINING, MEMORY = "time per explanation", "time of pre-training", "peak memory in bytes"


def _wanted(cell: RunCell) -> bool:
    return True


class Cost:
    def __init__(self, config: None = None) -> None:
        """There are no options."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return "" if finished(runs, _wanted) else "no cell has ended well"

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: the labels, metric (time per explanation, model queries, time of pre-training, peak memory in bytes),
        direction, explainer, role, quality_metric, quality, quality_n, quality_ci_low, quality_ci_high, mean,
        ci_low, ci_high, n."""
        statements = Statements()
        task = {str(run.directory): _work(run) for run in runs}
        for setting in settings(runs, _wanted):
            for method in setting.methods:
                _state(statements, setting, method, task[str(method.run.directory)])
        return statements.frame()

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import dot_chart
        from cfbench_core.reports.charts.svg import duration

        table = normalized(table)
        of = _models(table)
        along = {name for name in ("dataset", "model", "scope") if name in table.columns}
        table = table.assign(of=of, at=of + _scopes(table)).drop(columns=list(along))
        places = style_numbers(table)
        drawn = []
        for labels, rows in by_setting(longest(table), "metric"):
            if labels["metric"] in (MEMORY, MODEL_QUERIES) or rows["mean"].isna().all():
                continue
            names = list(dict.fromkeys(rows["at"]))
            where = place({name: labels[name] for name in labels if name != "metric"}, table)
            title = f"{str(labels['metric']).capitalize()}{': ' + where if where else ''}"
            rows = rows.assign(x=rows["at"].map(names.index)).sort_values(["x", "mean"], kind="stable")
            svg = dot_chart(
                lines(rows, "x", places),
                names,
                title=title,
                label=str(labels["metric"]),
                direction="lower",
                log=True,
                number=duration,
            )
            drawn.append(Figure(title, svg, _note(rows), wide=len(names) > 1))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        table = normalized(table)
        selected = table[(table["role"] == "") & (table["metric"] == SECONDS) & table["mean"].notna()]
        groups = [(labels, rows) for labels, rows in by_setting(selected) if len(rows) > 1]
        if not groups:
            return ""
        labels, rows = max(
            groups, key=lambda group: group[1]["mean"].max() / max(group[1]["mean"].min(), 1e-12)
        )
        rows = rows.sort_values("mean")
        slow, quick = rows.iloc[-1], rows.iloc[0]
        return (
            f"The widest range is {slow['mean'] / max(quick['mean'], 1e-12):,.0f}-fold ({place(labels, table)}): "
            f"{quick['explainer']} takes {_ms(quick)}, {slow['explainer']} {_ms(slow)}.{_trained(table)}"
        )


def _work(run: Run) -> dict[str, list[Mapping[str, Any]]]:
    """The tasks of each stage as they ended last; runs of earlier versions do not say which stage."""
    latest = {line["key"]: line for line in run.outcomes if "stage" in line and line["status"] in DONE}
    found: dict[str, list[Mapping[str, Any]]] = {}
    for line in latest.values():
        found.setdefault(line["stage"], []).append(line)
    return found


def _state(
    statements: Statements, setting: Setting, method: Method, task: Mapping[str, list[Mapping[str, Any]]]
) -> None:
    labels = {**setting.labels, "direction": "lower", **method.labels(), **_quality(method)}
    seconds = method.column(TIME.name)
    # Units of one batch share its time evenly: equal times are one measurement.
    statements.add({**labels, "metric": SECONDS}, seconds, np.nan_to_num(seconds))
    for name, evaluations in method.details().items():
        if name == MODEL_QUERIES:
            statements.add({**labels, "metric": name}, evaluations, np.nan_to_num(seconds))
    for metric, number in _once(method, task):
        statements.add({**labels, "metric": metric}, np.array([number]), np.zeros(1))


def _once(method: Method, task: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[tuple[str, float]]:
    """What is no mean over units: one number for the cell."""
    entry = next(entry for entry in method.run.plan["cells"] if entry["cell"] == method.cell.id)
    trained = task.get(entry["stages"].get("explainer", ""), [])
    if trained:
        yield PRETRAINING, sum(float(line["elapsed_seconds"]) for line in trained)
    peaks = [int(line["peak_memory_bytes"]) for line in task.get(entry["stages"].get("explanations", ""), [])]
    if any(peaks):
        yield MEMORY, float(max(peaks))


def _quality(method: Method) -> dict[str, Any]:
    """The first metric of the model's quality."""
    labels = method.cell.labels
    known = method.run.quality_of(labels["dataset"], labels["model"])
    metric, first = next(iter(known.items()), ("", Quality(np.nan)))
    return {
        "quality_metric": metric,
        "quality": first.value,
        "quality_n": np.nan if first.n is None else first.n,
        "quality_ci_low": first.ci_low,
        "quality_ci_high": first.ci_high,
    }


def _models(table: pd.DataFrame) -> pd.Series[str]:
    """Data set and model of each row; the data set only where there are several."""
    names = [name for name in ("dataset", "model") if name == "model" or table[name].nunique() > 1]
    return table[names].astype(str).agg(" · ".join, axis=1)


def _scopes(table: pd.DataFrame) -> pd.Series[str] | str:
    """ " · full" behind a model, nothing where it is the user's own edges."""
    if "scope" not in table.columns:
        return ""
    scope = table["scope"].astype(str)
    return (" · " + scope).where(~scope.isin(OWN), "")


def _note(rows: pd.DataFrame) -> str:
    """The quality of the models, each once."""
    known = rows[rows["quality"].notna()].drop_duplicates("of")
    if known.empty:
        return ""
    qualities = [f"{row['of']} {_quality_text(row)}" for row in known.to_dict("records")]
    return f"{known['quality_metric'].iloc[0]} of the models: {'; '.join(qualities)}."


def _quality_text(row: Mapping[Any, Any]) -> str:
    """ "0.490 (0.446 to 0.534), n = 502"."""
    names = {"value": "quality", "n": "quality_n", "ci_low": "quality_ci_low", "ci_high": "quality_ci_high"}
    quality = Quality.of({name: row[column] for name, column in names.items()})
    return quality.text() + ("" if quality.n is None else f", n = {quality.n:,}")


def _ms(row: pd.Series[Any]) -> str:
    thousand = {name: 1000 * row[name] for name in ("mean", "ci_low", "ci_high")}
    return f"{mean_ci(thousand)} ms"


def _trained(table: pd.DataFrame) -> str:
    trained = table[table["metric"] == PRETRAINING]
    if trained.empty:
        return ""
    most = trained.iloc[int(trained["mean"].argmax())]
    return f" Pre-training comes on top: up to {most['mean']:.3g} s for {most['explainer']}, once for each model."
