"""The tables of Statement factuality (Kabongo and Guigue 2025) with the printed value next to ours.

- Table II: sizes of the data sets and numbers of statements.
- Tables III to VI and figure 2: means over the test rows, by generator. Table VII: the same similarities of generators
  that learn to write reviews, from runs with ``protocol.reference: written``.
- The claims of the paper, each with a verdict (``published_claims.py``).

The printed numbers are data of this package (``published/statement_factuality.csv``) for five domains of Amazon 2014: toys,
clothes, beauty, sports, cellphones. A run of another data set has next to it the mean of the printed numbers over the five
(``printed_of``), which is not a number of the same texts; its differences are left out. The printed verdicts are of
Llama-3.1-8B and DeBERTa-large-mnli; those of another judge (``judge``) measure something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_text.analysis.published_claims import CONFIRMED, NOT_RUN, REFUTED, claims, verdict
from cfbench_text.analysis.shared import groups_of, judge_notes, listed, records, tidied, values_of, written

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/analysis/reproduction",
    summary="The tables of Statement factuality: the printed value next to ours",
    target=f"{__name__}:Reproduction",
    papers=("statementfactuality",),
)

GENERATORS = ("nrt", "att2seq", "cer", "peter", "pepler", "xrec")
STATISTICS, SIMILARITY, REVIEWS, BINARY, CLAIMS = "table II", "table VI", "table VII", "figure 2", "claims"
ALL_FIVE = "mean of five"
COLUMNS = (
    "dataset",
    "item",
    "metric",
    "judge",
    "model",
    "printed",
    "printed_of",
    "ours",
    "std",
    "n",
    "verdict",
)


class Reproduction:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def incompatibility(self, runs: Sequence[Run]) -> str:
        named = {generator_of(str(cell.labels["model"])) for _, cell in written(runs)}
        return "" if named - {""} else f"needs texts of the paper's generators: {', '.join(GENERATORS)}"

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        found = list(judge_notes(runs))
        others = {str(cell.labels["dataset"]) for _, cell in written(runs)} - set(
            printed_numbers()["dataset"]
        )
        if others:
            found.append(
                f"The paper has no numbers of {listed(sorted(others))}: printed are the means of its five data sets, of "
                "other texts."
            )
        return found

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: dataset, item, metric, judge, model, printed, printed_of (the data set), ours, std, n, difference,
        verdict (of claims)."""
        import pandas as pd

        ours = pd.DataFrame(
            [*_statistics(runs), *_means(runs)],
            columns=["dataset", "item", "metric", "judge", "model", "ours", "std", "n"],
        )
        both = _next_to_printed(ours)
        table = pd.concat([both, pd.DataFrame(list(_claims(both)), columns=list(COLUMNS))], ignore_index=True)
        same = table["printed_of"] == table["dataset"]
        table["difference"] = (table["ours"] - table["printed"]).where(same)
        return table[[*COLUMNS[:-1], "difference", "verdict"]]

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        drawn = []
        for labels, rows in groups_of(_of_generators(tidied(table)), ("item", "dataset", "judge")):
            values, text = _grid(rows)
            heading = _heading(labels)
            svg = heat_map(
                list(values.index),
                list(values.columns),
                values.to_numpy(dtype=float),
                title=heading,
                direction="neither",
                text=text.to_numpy().tolist(),
            )
            drawn.append(Figure(heading, svg, f"Printed: {rows['printed_of'].iloc[0]}.", wide=True))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        sentences = []
        for labels, rows in groups_of(tidied(table)[table["item"] == CLAIMS], ("dataset", "judge")):
            counts = [int((rows["verdict"] == name).sum()) for name in (CONFIRMED, REFUTED, NOT_RUN)]
            judge = f" by {labels['judge']}" if labels["judge"] else ""
            sentences.append(
                f"Of the paper's {len(rows)} claims, {counts[0]} hold on {labels['dataset']}{judge}, {counts[1]} do "
                f"not, and {counts[2]} cannot be decided by this run."
            )
        return " ".join(sentences)

    def text(self, table: pd.DataFrame) -> str:
        from tabulate import tabulate

        blocks = []
        for heading, heads, lines in _blocks(tidied(table)):
            blocks.append(f"{heading}\n{tabulate(lines, heads, tablefmt='simple', disable_numparse=True)}")
        return "\n\n".join(blocks)

    def latex(self, table: pd.DataFrame) -> str:
        """Each table in the paper's form: metrics in rows, generators in columns."""
        from cfbench_core.reports.latex import tabular

        found = [
            tabular(heads, lines, [False, *([True] * (len(heads) - 1))], f"Statement factuality, {heading}")
            for heading, heads, lines in _blocks(tidied(table))
        ]
        return "% \\usepackage{booktabs} \\usepackage{graphicx}\n\n" + "\n".join(found)


def printed_numbers() -> pd.DataFrame:
    """Columns: item, dataset, metric, model, printed, deviation."""
    import pandas as pd

    file = resources.files("cfbench_text.published") / "statement_factuality.csv"
    with file.open(encoding="utf-8") as opened:
        return pd.read_csv(opened, keep_default_na=False, na_values={"deviation": [""]})


def generator_of(label: str) -> str:
    """The paper's generator that a label stands for: ``nrt`` of ``nrt-paper``; "" for another model."""
    name = re.sub(r"-(paper|cfbench)$", "", label)
    return name if name in GENERATORS else ""


def _statistics(runs: Sequence[Run]) -> Iterator[tuple[Any, ...]]:
    """Table II: what the data and statement stages counted."""
    for run in runs:
        if run.suite != "text":
            continue
        statements = run.summaries("statements")
        for dataset, summary in run.summaries("data").items():
            sizes = {name: summary.get(name) for name in ("users", "items", "train", "validation", "test")}
            parts = [sizes[name] for name in ("train", "validation", "test")]
            if None not in parts:
                sizes["interactions"] = sum(int(part or 0) for part in parts)
            total = statements.get(f"statements of {dataset}", {}).get("statements")
            sizes["statements"] = total
            for name, of in (("interaction", "interactions"), ("user", "users"), ("item", "items")):
                if total is not None and sizes.get(of):
                    sizes[f"statements per {name}"] = total / sizes[of]
            for metric, value in sizes.items():
                if value is not None:
                    yield dataset, STATISTICS, metric, "", "", float(value), np.nan, np.nan


def _means(runs: Sequence[Run]) -> Iterator[tuple[Any, ...]]:
    """The means of every metric that the paper has, by generator."""
    items = printed_numbers().drop_duplicates("metric").set_index("metric")["item"].to_dict()
    for run, cell in written(runs):
        model = generator_of(str(cell.labels["model"]))
        for name, values in values_of(run, cell.id).items() if model else ():
            metric, _, judge = name.removesuffix(")").partition(" (")
            item = BINARY if metric.startswith("StEnt-bin-") else items.get(metric)
            if item == SIMILARITY and _learns_reviews(run):
                item = REVIEWS
            known = values[~np.isnan(values)]
            if item is not None and len(known):
                std = float(known.std(ddof=1)) if len(known) > 1 else np.nan
                dataset, label = str(cell.labels["dataset"]), str(cell.labels["model"])
                yield dataset, item, metric, judge, label, float(known.mean()), std, len(known)


def _learns_reviews(run: Run) -> bool:
    """Whether generators of the run learn to write the review itself."""
    if not (run.directory / "config.yaml").is_file():
        return False
    protocol = run.config.get("protocol") or {}
    return isinstance(protocol, dict) and protocol.get("reference") == "written"


def _next_to_printed(ours: pd.DataFrame) -> pd.DataFrame:
    """The printed number of the same data set, or the mean of the five, next to each of ours."""
    printed = printed_numbers()
    of_five = printed.groupby(["item", "metric", "model"])["printed"].mean()
    own = printed.set_index(["item", "metric", "model", "dataset"])["printed"]
    numbers, origins = [], []
    for row in records(ours):
        key = (row["item"], row["metric"], generator_of(row["model"]))
        known = (*key, row["dataset"]) in own.index
        averaged = key in of_five.index and not (row["item"] == STATISTICS and " per " not in row["metric"])
        numbers.append(own[(*key, row["dataset"])] if known else of_five[key] if averaged else np.nan)
        origins.append(row["dataset"] if known else ALL_FIVE if averaged else "")
    return ours.assign(printed=numbers, printed_of=origins, verdict="")[list(COLUMNS)]


def _claims(numbers: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """The claims for each data set and judge: the share of the printed data sets that satisfy one, and our verdict.

    A claim about a metric without judge (BERTScore) stands once, with no judge. Of two rows for one generator the variant as
    published counts.
    """
    printed = printed_numbers()
    five = list(dict.fromkeys(printed["dataset"]))
    for dataset, own in ((labels["dataset"], rows) for labels, rows in groups_of(numbers, ("dataset",))):
        for claim in records(claims()):
            theirs = [
                verdict(claim, _by_generator(printed[printed["dataset"] == name], claim)) for name in five
            ]
            decided = [said == CONFIRMED for said in theirs if said != NOT_RUN]
            share = float(np.mean(decided)) if decided else np.nan
            rows = own[(own["item"] == claim["items"]) & (own["metric"] == claim["metric"])]
            for judge in list(dict.fromkeys(rows["judge"])) or [""]:
                said = verdict(claim, _by_generator(own[own["judge"] == judge], claim))
                yield (
                    dataset,
                    CLAIMS,
                    claim["claim"],
                    judge,
                    "",
                    share,
                    ALL_FIVE,
                    np.nan,
                    np.nan,
                    np.nan,
                    said,
                )


def _by_generator(numbers: pd.DataFrame, claim: dict[str, Any]) -> Any:
    """``means`` of :func:`verdict`."""
    column = "ours" if "ours" in numbers else "printed"
    of_item = numbers[numbers["item"] == claim["items"]]

    def means(metric: str) -> dict[str, float]:
        rows = of_item[of_item["metric"] == metric].sort_values(
            "model", key=lambda names: names.str.endswith("-paper")
        )
        return {generator_of(str(row["model"])): float(row[column]) for row in records(rows)}

    return means


def _of_generators(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["item"].isin([STATISTICS, CLAIMS])]


def _heading(labels: dict[str, Any]) -> str:
    judge = f", judge {labels['judge']}" if labels.get("judge") else ""
    item = str(labels["item"])
    return f"{item[0].upper()}{item[1:]}, {labels['dataset']}{judge}: ours (printed)"


def _grid(rows: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Our means, metrics by generators, and the text with the printed ones."""
    order = list(dict.fromkeys(rows["metric"]))
    shown = rows.assign(text=[_both(row) for row in records(rows)])
    columns = list(dict.fromkeys(rows["model"]))
    values = shown.pivot(index="metric", columns="model", values="ours").loc[order, columns]
    return values, shown.pivot(index="metric", columns="model", values="text").loc[order, columns].fillna("")


def _size(number: float) -> str:
    if np.isnan(number):
        return ""
    return f"{number:,.0f}" if number == round(number) else f"{number:,.2f}"


def _both(row: dict[str, Any]) -> str:
    """ "0.1234±0.0500 (0.2331)"."""
    deviation = "" if np.isnan(row["std"]) else f"±{row['std']:.4f}"
    printed = "" if np.isnan(row["printed"]) else f" ({row['printed']:.4f})"
    return f"{row['ours']:.4f}{deviation}{printed}"


def _blocks(table: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Heading, column heads and lines of each table."""
    for labels, rows in groups_of(table[table["item"] == STATISTICS], ("dataset",)):
        lines = [[row["metric"], _size(row["ours"]), _size(row["printed"])] for row in records(rows)]
        yield f"Table II, {labels['dataset']}", ["", "ours", f"printed ({rows['printed_of'].max()})"], lines
    for labels, rows in groups_of(_of_generators(table), ("item", "dataset", "judge")):
        text = _grid(rows)[1]
        lines = text.reset_index().to_numpy().tolist()
        yield _heading(labels), ["", *map(str, text.columns)], lines
    for labels, rows in groups_of(table[table["item"] == CLAIMS], ("dataset",)):
        lines = [
            [
                row["metric"],
                row["judge"],
                "" if np.isnan(row["printed"]) else f"{row['printed']:.0%}",
                row["verdict"],
            ]
            for row in records(rows)
        ]
        heads = ["claim", "judge", "printed", "here"]
        yield (
            f"Claims, {labels['dataset']}, and the share of the printed data sets on which they hold",
            heads,
            lines,
        )
