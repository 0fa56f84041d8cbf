"""What was measured here: kept tables as they are, or an explainer a line."""

from __future__ import annotations

import json

from tabulate import tabulate

from kept_tables.kept import RESULTS, kept, shown, with_intervals

STUDY_METRICS = (
    "POS-P@{k}", "NEG-P@{k}", "Empty-profile POS-P@{k}", "PN-S@{k}", "#Perturb given success@{k}", "Minimality@{k}"
)  # fmt: skip
REFINED_METRICS = ("DEL-raw-all@1", "DEL-raw-all@5", "INS-raw-all@1", "INS-raw-all@5", "POS@5,5", "CDCG@5")


def table(name: str, where: str | None = None, columns: str | None = None) -> str:
    """A kept table, or some of its rows and columns: ``table("name", where="k == 5", columns="a, b")``."""
    rows = kept(name)
    if where:
        rows = rows.query(where)
    if columns:
        rows = rows[[column.strip() for column in columns.split(",")]]
    return shown(rows)


def study(name: str, level: str, k: int) -> str:
    """The means of a kept study, one table for each data set and model: ``study("name", level="item", k=5)``."""
    rows = kept(name)
    rows = rows[(rows["level"] == level) & (rows["k"] == k)]
    parts = []
    for (dataset, model), of_model in rows.groupby(["dataset", "model"], sort=False):
        means = of_model.pivot_table(index="explainer", columns="metric", values="mean", sort=False)
        columns = [column.format(k=k) for column in STUDY_METRICS if column.format(k=k) in means]
        table = means[columns].round(3).reset_index()
        told = tabulate(table.values.tolist(), [*table.columns], tablefmt="github")
        parts += [f"**{dataset}, {model}**", "", told, ""]
    return "\n".join(parts)


def pivot(name: str, where: str, across: str) -> str:
    """Some rows of a kept study with half their intervals, an explainer a line, a column for each ``across``."""
    rows = kept(name).query(where)
    rows = rows.assign(shown=with_intervals(rows))
    table = rows.pivot_table(index="explainer", columns=across, values="shown", aggfunc="first", sort=False)
    return shown(table.reset_index())


def by_set(name: str, metric: str) -> str:
    """One metric of a kept tabular study, an explainer a line, a column for each data set."""
    rows = kept(name)
    rows = rows[rows["metric"] == metric]
    means = rows.pivot_table(index="explainer", columns="dataset", values="mean", sort=False)
    told = (lambda mean: f"{1000 * mean:.2g} ms") if metric == "time" else "{:.3f}".format
    return shown(means.map(told, na_action="ignore").reset_index())


def across(name: str, where: str, rows: str, columns: str | list[str], values: str) -> str:
    """One number of a kept benchmark: a line for each of ``rows``, a column for each of ``columns``."""
    table = kept(name).query(where).pivot_table(index=rows, columns=columns, values=values, sort=False)
    if isinstance(columns, list):
        table.columns = [", ".join(map(str, labels)) for labels in table.columns]
    return shown(table.map(lambda number: f"{number:.3g}").reset_index())


def quality(name: str, metric: str) -> str:
    """What the models of a kept study reached on held-out data, in words: "nrt 1.07, cer 0.97"."""
    told = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["quality"]
    return ", ".join(f"{one['model']} {one['value']:.3f}" for one in told if one["metric"] == metric)


def growth(name: str, small: str, large: str, items: float) -> str:
    """How often the numbers of one part of a kept benchmark go into those of another, an explainer a line.

    ``items``: how often the items of the small data set go into those of the large one.
    """
    rows = kept(name).set_index(["explainer", "format"])
    before, after = rows.query(small), rows.query(large)
    numbers = ["ms", "evaluations", "sets"]
    times = after[numbers] / before[numbers].where(before[numbers] > 0)
    times["item scores"] = times["evaluations"] * items
    titles = {
        "ms": "time",
        "evaluations": "model queries",
        "item scores": "item scores",
        "sets": "sets on sums",
    }
    in_both = [place for place in after.index if place in before.index]
    table = times.loc[in_both, list(titles)].rename(columns=titles)
    told = table.map("{:.3g}".format, na_action="ignore").reset_index()
    return shown(told.assign(ms=after["ms"].reindex(table.index).to_numpy()))


def refined(name: str) -> str:
    """Metrics of paper 001 in a kept study, explainers by INS at the greatest length."""
    rows = kept(name)
    rows = rows.assign(shown=with_intervals(rows))
    table = rows.pivot_table(index="explainer", columns="metric", values="shown", aggfunc="first")
    order = rows[rows["metric"] == "INS-raw-all@5"].sort_values("mean", ascending=False)["explainer"]
    return shown(table.loc[order, [metric for metric in REFINED_METRICS if metric in table]].reset_index())


def paper_table(name: str, table: str) -> str:
    """One table of a kept analysis ``paper-tables`` in the paper's form: generators across, mean ± deviation."""
    rows = kept(name)
    rows = rows[rows["table"] == table]
    told = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(rows["mean"], rows["std"], strict=True)]
    wide = rows.assign(told=told).pivot_table(
        index="metric", columns="model", values="told", aggfunc="first", sort=False
    )
    return shown(wide.reset_index())
