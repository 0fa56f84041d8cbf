"""What was measured here: stored tables as they are, or an explainer a line."""

from __future__ import annotations

import json
import math

from tabulate import tabulate

from result_tables.stored import RESULTS, shown, stored, with_intervals

STUDY_METRICS = (
    "POS-P@{k}", "NEG-P@{k}", "Empty-profile POS-P@{k}", "PN-S@{k}", "#Perturb given success@{k}", "Minimality@{k}"
)  # fmt: skip
REFINED_METRICS = ("DEL-raw-all@1", "DEL-raw-all@5", "INS-raw-all@1", "INS-raw-all@5", "POS@5,5", "CDCG@5")


def table(name: str, where: str | None = None, columns: str | None = None) -> str:
    """A stored table, or some of its rows and columns: ``table("name", where="k == 5", columns="a, b")``."""
    rows = stored(name)
    if where:
        rows = rows.query(where)
    if columns:
        rows = rows[[column.strip() for column in columns.split(",")]]
    return shown(rows)


def study(name: str, level: str, k: int) -> str:
    """The means of a stored study, one table for each data set and model: ``study("name", level="item", k=5)``."""
    rows = stored(name)
    rows = rows[(rows["level"] == level) & (rows["k"] == k)]
    parts = []
    for (dataset, model), of_model in rows.groupby(["dataset", "model"], sort=False):
        means = of_model.pivot_table(index="explainer", columns="metric", values="mean", sort=False)
        columns = [column.format(k=k) for column in STUDY_METRICS if column.format(k=k) in means]
        table = means[columns].round(3).reset_index()
        texts = tabulate(table.values.tolist(), [*table.columns], tablefmt="github")
        parts += [f"**{dataset}, {model}**", "", texts, ""]
    return "\n".join(parts)


def pivot(name: str, where: str, across: str) -> str:
    """Some rows of a stored study with half their intervals, an explainer a line, a column for each ``across``."""
    rows = stored(name).query(where)
    rows = rows.assign(shown=with_intervals(rows))
    table = rows.pivot_table(index="explainer", columns=across, values="shown", aggfunc="first", sort=False)
    return shown(table.reset_index())


def identical(name: str, where: str) -> str:
    """Shares of identical answers of a stored study, an explainer a line and a column; empty: no unit answered by both."""
    rows = stored(name).query(where)
    names = list(dict.fromkeys([*rows["explainer"], *rows["other"]]))
    known = {(row.explainer, row.other): row.identical for row in rows.itertuples()}
    lines = [
        [one, *(_share(known.get((one, other), known.get((other, one)))) for other in names[:-1])]
        for one in names[1:]
    ]
    return tabulate(lines, ["", *names[:-1]], tablefmt="github")


def _share(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else f"{value:.2f}"


def by_set(name: str, metric: str) -> str:
    """One metric of a stored tabular study, an explainer a line, a column for each data set."""
    rows = stored(name)
    rows = rows[rows["metric"] == metric]
    means = rows.pivot_table(index="explainer", columns="dataset", values="mean", sort=False)
    texts = (lambda mean: f"{1000 * mean:.2g} ms") if metric == "time" else "{:.3f}".format
    return shown(means.map(texts, na_action="ignore").reset_index())


def across(name: str, where: str, rows: str, columns: str | list[str], values: str) -> str:
    """One number of a stored benchmark: a line for each of ``rows``, a column for each of ``columns``."""
    table = stored(name).query(where).pivot_table(index=rows, columns=columns, values=values, sort=False)
    if isinstance(columns, list):
        table.columns = [", ".join(map(str, labels)) for labels in table.columns]
    return shown(table.map(lambda number: f"{number:.3g}").reset_index())


def quality(name: str, metric: str) -> str:
    """What the models of a stored study reached on held-out data, in words: "nrt 1.07, cer 0.97"."""
    texts = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["quality"]
    return ", ".join(f"{one['model']} {one['value']:.3f}" for one in texts if one["metric"] == metric)


def growth(name: str, small: str, large: str, items: float) -> str:
    """How often the numbers of one part of a stored benchmark go into those of another, an explainer a line.

    ``items``: how often the items of the small data set go into those of the large one.
    """
    rows = stored(name).set_index(["explainer", "format"])
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
    texts = table.map("{:.3g}".format, na_action="ignore").reset_index()
    return shown(texts.assign(ms=after["ms"].reindex(table.index).to_numpy()))


def refined(name: str) -> str:
    """Metrics of Refined fidelity in a stored study, explainers by INS at the greatest length."""
    rows = stored(name)
    rows = rows.assign(shown=with_intervals(rows))
    table = rows.pivot_table(index="explainer", columns="metric", values="shown", aggfunc="first")
    order = rows[rows["metric"] == "INS-raw-all@5"].sort_values("mean", ascending=False)["explainer"]
    return shown(table.loc[order, [metric for metric in REFINED_METRICS if metric in table]].reset_index())


def paper_table(name: str, table: str) -> str:
    """One table of a stored analysis ``paper-tables`` in the paper's form: generators across, mean ± deviation."""
    rows = stored(name)
    rows = rows[rows["table"] == table]
    texts = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(rows["mean"], rows["std"], strict=True)]
    wide = rows.assign(texts=texts).pivot_table(
        index="metric", columns="model", values="texts", aggfunc="first", sort=False
    )
    return shown(wide.reset_index())
