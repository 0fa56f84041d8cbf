"""Pages made from the registry when the site is built: components, configuration, commands. Nothing of them is kept."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from tabulate import tabulate

from cfbench_core.config import fields_of
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.specs import resolve

KIND_TITLES = {
    "dataset": "Data sets",
    "recommender": "Recommenders",
    "classifier": "Classifiers",
    "explainer": "Explainers",
    "metric": "Metrics",
    "analysis": "Analyses",
    "executor": "Executors",
}


RESULTS = Path(__file__).parents[1] / "results"
SHOWN = ("POS-P@{k}", "NEG-P@{k}", "Floor@{k}", "PN-S@{k}", "#Perturb of successes@{k}", "Minimality@{k}")
CALL = re.compile(r"\{\{ study\(\"(?P<name>[\w-]+)\", level=\"(?P<level>\w+)\", k=(?P<k>\d+)\) \}\}")


TABLE = re.compile(
    r"\{\{ table\(\"(?P<name>[\w-]+)\"(, where=\"(?P<where>[^\"]+)\")?(, columns=\"(?P<columns>[^\"]+)\")?\) \}\}"
)
PAPER = re.compile(
    r"\{\{ beside_paper\(\"(?P<name>[\w-]+)\", dataset=\"(?P<dataset>[\w-]+)\", model=\"(?P<model>[\w-]+)\", "
    r"level=\"(?P<level>\w+)\", k=(?P<k>\d+), metrics=\"(?P<metrics>[^\"]+)\"\) \}\}"
)
PIVOT = re.compile(
    r"\{\{ pivot\(\"(?P<name>[\w-]+)\", where=\"(?P<where>[^\"]+)\", across=\"(?P<across>\w+)\"\) \}\}"
)
REFINED = re.compile(r"\{\{ refined\(\"(?P<name>[\w-]+)\"\) \}\}")
ACROSS = re.compile(
    r"\{\{ across\(\"(?P<name>[\w-]+)\", where=\"(?P<where>[^\"]+)\", rows=\"(?P<rows>\w+)\", "
    r"columns=\"(?P<columns>\w+)\", values=\"(?P<values>\w+)\"\) \}\}"
)
GROWTH = re.compile(
    r"\{\{ growth\(\"(?P<name>[\w-]+)\", small=\"(?P<small>[^\"]+)\", large=\"(?P<large>[^\"]+)\", "
    r"items=(?P<items>[\d.]+)\) \}\}"
)
BY_SET = re.compile(r"\{\{ by_set\(\"(?P<name>[\w-]+)\", metric=\"(?P<metric>[\w -]+)\"\) \}\}")
STUDY_003 = re.compile(r"\{\{ beside_study\(\"(?P<kind>\w+)\", group=\"(?P<group>\w+)\"\) \}\}")
BESIDE = re.compile(r"\{\{ beside_literature\(\"(?P<dataset>[\w-]+)\"\) \}\}")


def on_page_markdown(markdown: str, **_: object) -> str:
    """Puts tables of docs/results/ where a page asks for them.

    ``{{ study("name", level="item", k=5) }}``, ``{{ table("name", where="k == 5", columns="a, b") }}``,
    ``{{ beside_literature("ml-1m") }}``,
    ``{{ beside_paper("name", dataset="ml-1m", model="mf", level="item", k=5, metrics="POS-P, NEG-P") }}``.
    """
    markdown = CALL.sub(lambda call: study(call["name"], call["level"], int(call["k"])), markdown)
    markdown = TABLE.sub(lambda call: kept_table(call["name"], call["where"], call["columns"]), markdown)
    markdown = PAPER.sub(lambda call: beside_paper(**call.groupdict()), markdown)
    markdown = PIVOT.sub(lambda call: pivot(**call.groupdict()), markdown)
    markdown = BY_SET.sub(lambda call: by_set(**call.groupdict()), markdown)
    markdown = STUDY_003.sub(lambda call: beside_study(**call.groupdict()), markdown)
    markdown = ACROSS.sub(lambda call: across(**call.groupdict()), markdown)
    markdown = GROWTH.sub(lambda call: growth(**call.groupdict()), markdown)
    markdown = REFINED.sub(lambda call: refined(call["name"]), markdown)
    return BESIDE.sub(lambda call: beside_literature(call["dataset"]), markdown)


def kept_table(name: str, where: str | None, columns: str | None) -> str:
    """A kept table, or some of its rows and columns."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv")
    if where:
        kept = kept.query(where)
    if columns:
        kept = kept[[column.strip() for column in columns.split(",")]]
    return _shown(kept)


def beside_literature(dataset: str) -> str:
    """The quality of the recommenders, beside what others report, each also as a share of EASE's."""
    import pandas as pd

    ours = pd.read_csv(RESULTS / "recommenders.csv").query("dataset == @dataset")
    theirs = pd.read_csv(RESULTS / "literature.csv")
    ease = ours.set_index("model")["HR@10"]["ease"]
    their_ease = theirs.set_index("model")["HR@10"]["ease"]
    ours = ours.assign(**{"of EASE": ours["HR@10"] / ease})
    theirs = theirs.assign(**{"of their EASE": theirs["HR@10"] / their_ease}).rename(
        columns={"HR@10": "reported HR@10", "NDCG@10": "reported NDCG@10"}
    )
    both = ours.merge(theirs.drop(columns=["Recall@10", "as"]), on="model", how="left")
    columns = ["model", "HR@10", "NDCG@10", "Recall@20", "of EASE"]
    reported = ["reported HR@10", "reported NDCG@10", "of their EASE", "source"]
    return _shown(both.sort_values("NDCG@10", ascending=False)[columns + reported])


def beside_paper(name: str, dataset: str, model: str, level: str, k: str, metrics: str) -> str:
    """The means of a kept study with half their intervals, each metric beside that of paper 000's tables."""
    import pandas as pd

    asked = "dataset == @dataset and model == @model and level == @level and k == @k"
    k = int(k)  # type: ignore[assignment]
    ours = pd.read_csv(RESULTS / f"{name}.csv").query(asked)
    adds = ours["edit"] == "remove-or-add"
    ours = ours.assign(explainer=ours["explainer"].where(~adds, ours["explainer"] + "-add"))
    theirs = pd.read_csv(RESULTS / "paper-000.csv").query(asked)
    printed = theirs.set_index(["explainer", "metric"])["mean"]
    rows = []
    for explainer, own in ours.groupby("explainer", sort=False):
        means = own.set_index("metric")
        row = {"explainer": explainer}
        for metric in (metric.strip() for metric in metrics.split(",")):
            found = next((means.loc[name] for name in (f"{metric}@{k}", metric) if name in means.index), None)
            row[metric] = "" if found is None else f"{found['mean']:.3f} ±{found['interval']:.3f}"
            row[f"paper: {metric}"] = printed.get((explainer, f"{metric}@{k}"), float("nan"))
        rows.append(row)
    table = pd.DataFrame(rows).dropna(axis="columns", how="all")
    nothing = (table.drop(columns="explainer").fillna("") == "").all(axis=1)  # it has not this format
    return _shown(table[~nothing])


def pivot(name: str, where: str, across: str) -> str:
    """Some rows of a kept study with half their intervals, an explainer a line, a column for each ``across``."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv").query(where)
    kept["shown"] = [
        f"{mean:.3f} ±{half:.3f}" for mean, half in zip(kept["mean"], kept["interval"], strict=True)
    ]
    table = kept.pivot_table(index="explainer", columns=across, values="shown", aggfunc="first", sort=False)
    return _shown(table.reset_index())


def by_set(name: str, metric: str) -> str:
    """One metric of a kept tabular study, an explainer a line, a column for each data set; and how many answered."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv")
    kept = kept[kept["metric"] == metric]
    table = kept.pivot_table(index="explainer", columns="dataset", values="mean", sort=False)
    if metric == "time":
        shown = table.map(lambda mean: "" if pd.isna(mean) else f"{1000 * mean:.2g} ms")
    else:
        shown = table.map(lambda mean: "" if pd.isna(mean) else f"{mean:.3f}")
    return _shown(shown.reset_index())


def beside_study(kind: str, group: str) -> str:
    """What paper 003 prints beside what its algorithms give here: ``coverage``, ``valid`` ranks, ``realistic`` ranks."""
    import pandas as pd

    printed = pd.read_csv(RESULTS / "paper-003.csv").query("group == @group")
    columns: dict[str, Any] = {}
    if kind == "coverage":
        ours = pd.read_csv(RESULTS / "tabular-coverage.csv").query("group == @group")
        for answers in ("valid", "realistic"):
            theirs = printed.query("answers == @answers and what == 'share of factuals'")
            columns[answers] = ours.query("answers == @answers").set_index("explainer")["mean"]
            columns[f"{answers}, printed"] = theirs.set_index("explainer")["value"]
    else:
        ours = pd.read_csv(RESULTS / "tabular-ten-rankings.csv").query("group == @group and answers == @kind")
        for metric in ("sparsity", "L2", "MADD", "MD"):
            mine = ours[ours["metric"] == metric]
            theirs = printed[(printed["answers"] == kind) & (printed["what"] == f"rank by {metric}")]
            columns[metric] = mine.set_index("explainer")["rank"]
            columns[f"{metric}, printed"] = theirs.set_index("explainer")["value"]
    table = pd.DataFrame(columns).rename_axis("explainer")
    return _shown(table.sort_values(next(iter(columns)), ascending=kind != "coverage").reset_index())


def across(name: str, where: str, rows: str, columns: str, values: str) -> str:
    """One number of a kept benchmark: a line for each of ``rows``, a column for each of ``columns``."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv").query(where)
    table = kept.pivot_table(index=rows, columns=columns, values=values, sort=False)
    return _shown(table.map(lambda number: f"{number:.3g}").reset_index())


def growth(name: str, small: str, large: str, items: str) -> str:
    """How often the numbers of one part of a kept benchmark go into those of another, an explainer a line.

    ``items``: how often the items of the small data set go into those of the large one.
    """
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv").set_index(["explainer", "format"])
    before, after = kept.query(small), kept.query(large)
    numbers = ["ms", "evaluations", "sets"]
    times = after[numbers] / before[numbers].where(before[numbers] > 0)
    times["item scores"] = times["evaluations"] * float(items)
    shown = {
        "ms": "time",
        "evaluations": "model evaluations",
        "item scores": "item scores",
        "sets": "sets on sums",
    }
    table = times.loc[[place for place in after.index if place in before.index], list(shown)].rename(
        columns=shown
    )
    told = table.map(lambda ratio: "" if pd.isna(ratio) else f"{ratio:.3g}").reset_index()
    return _shown(told.assign(ms=after["ms"].reindex(table.index).to_numpy()))


def refined(name: str) -> str:
    """Metrics of paper 001 in a kept study, explainers by INS at the greatest length."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv")
    shown = ["DEL-raw-all@1", "DEL-raw-all@5", "INS-raw-all@1", "INS-raw-all@5", "POS@5,5", "CDCG@5"]
    kept["shown"] = [
        f"{mean:.3f} ±{half:.3f}" for mean, half in zip(kept["mean"], kept["interval"], strict=True)
    ]
    table = kept.pivot_table(index="explainer", columns="metric", values="shown", aggfunc="first")
    order = kept[kept["metric"] == "INS-raw-all@5"].sort_values("mean", ascending=False)["explainer"]
    return _shown(table.loc[order, [name for name in shown if name in table]].reset_index())


def _shown(table: Any) -> str:
    rows = table.astype(object).where(table.notna(), "")
    return tabulate(rows.values.tolist(), [*table.columns], tablefmt="github", floatfmt=".3f")


def study(name: str, level: str, k: int) -> str:
    """The means of a kept study, one table for each data set and model, an explainer a line."""
    import pandas as pd

    kept = pd.read_csv(RESULTS / f"{name}.csv")
    kept = kept[(kept["level"] == level) & (kept["k"] == k)]
    parts = []
    for (dataset, model), rows in kept.groupby(["dataset", "model"], sort=False):
        table = rows.pivot_table(index="explainer", columns="metric", values="mean", sort=False)
        columns = [column.format(k=k) for column in SHOWN if column.format(k=k) in table]
        shown = table[columns].round(3).reset_index()
        parts += [
            f"**{dataset}, {model}**",
            "",
            tabulate(shown.values.tolist(), [*shown.columns], tablefmt="github"),
            "",
        ]
    return "\n".join(parts)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs calls this once the files of docs/ are known."""
    registry = installed()
    problems = registry.problems()
    if problems:
        raise RuntimeError("the registry has problems: " + "; ".join(problems))
    pages = {
        "reference/components.md": components_page(registry),
        "reference/configuration.md": configuration_page(registry),
        "reference/commands.md": commands_page(),
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def components_page(registry: Registry) -> str:
    """A table for each suite and kind."""
    parts = ["# Components", "", "Everything that the distributions of this project register.", ""]
    for suite in sorted({component.spec.suite for component in registry.components()}):
        parts += [f"## `{suite}`", ""]
        for kind, title in KIND_TITLES.items():
            found = registry.components(kind, suite)
            if found:
                parts += [f"### {title} of {suite}", "", table(found), ""]
    return "\n".join(parts)


def table(components: list[Component]) -> str:
    rows = [
        {
            "name": f"`{c.spec.name}`" + (f" ({c.spec.role})" if c.spec.role else ""),
            "what": c.spec.summary,
            "provides": axes(c.spec.provides),
            "needs": "; ".join(f"{kind}: {axes(values)}" for kind, values in c.spec.needs.items()),
            "paper": c.spec.paper or "",
            "from": f"`{c.distribution}`",
        }
        for c in components
    ]
    kept = [key for key in rows[0] if any(row[key] for row in rows)]
    return tabulate([[row[key] for key in kept] for row in rows], headers=kept, tablefmt="github")


def axes(capabilities: object) -> str:
    assert hasattr(capabilities, "items")
    return "; ".join(f"{axis} {', '.join(sorted(values))}" for axis, values in capabilities.items())


def configuration_page(registry: Registry) -> str:
    """The keys of each suite and of each component that has any."""
    parts = [
        "# Configuration",
        "",
        "One YAML document. `cfbench describe NAME` shows the same on the command line.",
        "",
    ]
    for component in registry.components("suite"):
        suite = resolve(component.spec.target)
        parts += [f"## Suite `{component.spec.name}`", "", keys(suite.config), ""]
        for inner in registry.components(suite=component.spec.name):
            if inner.spec.config:
                parts += [
                    f"### `{inner.spec.name}` ({inner.spec.kind})",
                    "",
                    keys(resolve(inner.spec.config)),
                    "",
                ]
    return "\n".join(parts)


def keys(config: type) -> str:
    rows = [(f"`{f.name}`", f.type, f.range, f"`{f.default}`", f.help) for f in fields_of(config)]
    return tabulate(rows, headers=("key", "type", "range", "default", "what"), tablefmt="github")


def commands_page() -> str:
    """``--help`` of every command."""
    from cfbench_core.cli.root import cli

    parts = ["# Commands", ""]
    context = click.Context(cli, info_name="cfbench")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        help_text = command.get_help(click.Context(command, info_name=name, parent=context))
        parts += [f"## cfbench {name}", "", "```text", help_text, "```", ""]
    return "\n".join(parts)
