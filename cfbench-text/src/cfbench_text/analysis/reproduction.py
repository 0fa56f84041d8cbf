"""``reproduction``: tables II to VII and figure 2 of Statement factuality, the printed value next to ours, and its claims.

A run with ``protocol.reference: paragraph`` is compared with tables II to VI and figure 2, one with ``reference: written``
with table VII. For a data set of the paper, the printed value is that of the data set. For another one there is no printed
value: the lowest and the highest of the five domains are shown instead, and there is no difference. What another model
measures than that of the paper (``published_measures.py``) is not comparable, nor are claims about it. A generator with a
variant is the generator of the paper; of two, ``-paper`` decides the claims. Figure 2 has no printed numbers. Metrics that
are one under a judge (``same_as``) stay in their tables, since each has a printed value of its own; a note names them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.analyses import Figure
from cfbench_core.config import Help, Range
from cfbench_core.reports.verdict_cells import LEGEND, MARKS, verdict_cell
from cfbench_core.specs import ComponentSpec
from cfbench_core.verdicts import MARGIN, count_verdicts
from cfbench_text.analysis.claim_rows import VALUES, claim_rows
from cfbench_text.analysis.number_texts import count_text, number_text
from cfbench_text.analysis.number_verdicts import STAND_IN, interval_of, intervals_of, with_verdicts
from cfbench_text.analysis.published_factuality import (
    DOMAINS,
    GENERATORS,
    OF_REVIEWS,
    UNNAMED,
    decisive_metrics,
    printed_numbers,
)
from cfbench_text.analysis.published_measures import other_extractor, stand_in
from cfbench_text.analysis.shared import (
    groups_of,
    judge_notes,
    repeated,
    repetition_notes,
    tidied,
    values_by_unit,
    written,
)

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run, RunCell

SPEC = ComponentSpec(
    id="text/analysis/reproduction",
    summary="The tables of Statement factuality: the printed value next to ours",
    target=f"{__name__}:Reproduction",
    config=f"{__name__}:Config",
    papers=("statementfactuality",),
)

STATISTICS, REVIEWS, FIGURE, CLAIMS = "II", "VII", "figure 2", "claims"
BINARY = "StEnt-bin"
OF_EXTRACTION = ("Avg/interaction", "Avg/user", "Avg/item", "Unique", "Total")
"""The rows of table II that count statements."""
ITEMS = {
    STATISTICS: "table-ii",
    "III": "table-iii",
    "IV": "table-iv",
    FIGURE: "figure-2",
    "V": "table-v",
    "VI": "table-vi",
    REVIEWS: "table-vii",
    CLAIMS: CLAIMS,
}
"""The tables and figures by the names that ``cfbench reproduce`` uses."""
COLUMNS = (
    *("item", "table", "dataset", "metric", "judge", "model", "generator", "printed", "printed_std"),
    *("printed_low", "printed_high", "ours", "std", "ci_low", "ci_high", "n", "difference", "same_as"),
    *("sentence", "rule", "verdict_printed", "verdict", "reason"),
)
_WORDS = (
    "dataset",
    "judge",
    "model",
    "generator",
    "same_as",
    "sentence",
    "rule",
    "verdict_printed",
    "verdict",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """How near a number must be to the printed one."""

    margin: Annotated[
        float, Range(above=0), Help("the share of a printed number by which ours may differ")
    ] = MARGIN


class Reproduction:
    def __init__(self, config: Config) -> None:
        self.config = config

    def incompatibility(self, runs: Sequence[Run]) -> str:
        if any(generator_of(cell) for _, cell in written(runs)):
            return ""
        return f"needs texts of a generator of the paper: {', '.join(GENERATORS)}"

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        """What is not comparable and why, which metrics are one here, and how reliable the judges are."""
        cells = written(runs)
        names = {str(cell.labels["dataset"]) for _, cell in cells}
        other = ", ".join(sorted(names - set(DOMAINS)))
        absent = [name for name in GENERATORS if name not in {generator_of(cell) for _, cell in cells}]
        judged = {judge for run in runs for column in run.columns if (judge := parts(column.name)[1])}
        found = [
            f"The paper names one number of {UNNAMED} without a direction; it is compared with P, and BARTScore with F."
        ]
        if other:
            found.append(
                f"Not comparable by value: {other} is not a data set of the paper; the range of its five is shown."
            )
        if absent:
            found.append(
                f"{', '.join(absent)} did not run: claims about the order of the six generators have no verdict."
            )
        if judged:
            found.append(
                f"Statements were judged by {', '.join(sorted(judged))}; in the paper by Llama-3.1-8B-Instruct (St2Exp) and "
                "DeBERTa-large-mnli (StEnt, StCoh), and extracted by a language model."
            )
        repetitions = [note for study in _studies(runs) for note in repetition_notes(study)]
        return [*found, *repetitions, *judge_notes(runs)]

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: ``COLUMNS``; one row for each number, and for each claim and judge."""
        import pandas as pd

        printed = printed_numbers()
        silent: dict[str, set[str]] = {}
        lines = [*_statistics(runs), *_measured(runs, printed, silent)]
        table = pd.DataFrame(
            lines, columns=["table", "dataset", "metric", "judge", "model", "generator", *_OURS]
        )
        table = _beside(table, printed)
        of_claims, theirs = (_of_claims(one) for one in (table, printed))
        decided = pd.DataFrame(list(claim_rows(of_claims, theirs, silent))).assign(table=CLAIMS)
        table = pd.concat([with_verdicts(table, self.config.margin), decided], ignore_index=True)
        table["item"] = table["table"].map(ITEMS)
        return table.reindex(columns=list(COLUMNS))

    def figures(self, table: pd.DataFrame) -> Sequence[Figure]:
        from cfbench_core.reports.charts import Bar, bar_chart, heat_map

        drawn, table = [], _tidy(table)
        numbers = table[~table["table"].isin([CLAIMS, STATISTICS])]
        for labels, rows in groups_of(numbers, ("table", "dataset")):
            title = f"{_heading(labels['table'])} of Statement factuality, {labels['dataset']}"
            if labels["table"] == FIGURE:
                bars = [
                    Bar(f"{row['metric']}, {row['model']}", row["ours"]) for row in rows.to_dict("records")
                ]
                svg = bar_chart(bars, title=title, x_label="mean", direction="higher")
                drawn.append(Figure(title, svg, "The paper draws this figure and prints no numbers."))
                continue
            text = _grid(rows)
            values = rows.assign(metric=_named(rows)).pivot(index="metric", columns="model", values="ours")
            values = values.loc[text.index, text.columns]
            svg = heat_map(
                list(text.index),
                list(text.columns),
                values.to_numpy(dtype=float),
                title=title,
                direction="higher",
                text=text.to_numpy().tolist(),
            )
            drawn.append(Figure(title, svg, "Ours (printed, or the range of the five domains).", wide=True))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        """How many claims hold here, by judge."""
        decided = _tidy(table)
        decided = decided[decided["table"] == CLAIMS]
        if decided.empty:
            return ""
        listed = count_verdicts(decided["verdict"])
        refuted = decided[decided["verdict_printed"] == "refuted"]["sentence"].drop_duplicates().tolist()
        sentence = f"Claims of the paper here: {listed}."
        if refuted:
            sentence += f" Refuted by the paper's own tables: {'; '.join(refuted)}."
        return sentence

    def text(self, table: pd.DataFrame) -> str:
        """The tables in the paper's form: generators across, ours and the printed value in a cell."""
        from tabulate import tabulate

        return (
            "\n\n".join(
                f"{heading}\n{tabulate(lines, heads, tablefmt='simple', disable_numparse=True)}"
                for heading, heads, lines in _blocks(table)
            )
            + f"\n\n{LEGEND}"
        )

    def latex(self, table: pd.DataFrame) -> str:
        from cfbench_core.reports.latex import escape, tabular

        found = [
            tabular(heads, lines, [False, *([True] * (len(heads) - 1))], heading)
            for heading, heads, lines in _blocks(table)
        ]
        head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {escape(LEGEND)}\n\n"
        return head + "\n".join(found)


_OURS = ["ours", "std", "ci_low", "ci_high", "n", "same_as", STAND_IN, VALUES]


def generator_of(cell: RunCell) -> str:
    """The generator of the paper; "" for another one, and for controls."""
    name = str(cell.labels["model"]).removesuffix("-paper").removesuffix("-cfbench")
    return name if not cell.role and name in GENERATORS else ""


def parts(metric: str) -> tuple[str, str]:
    """ "StEnt-P (nli)" as ("StEnt-P", "nli"); the judge is "" for a metric without one."""
    name, _, judge = metric.partition(" (")
    return name, judge.removesuffix(")")


def of_reviews(run: Run) -> bool:
    """Whether texts were compared with reviews as written."""
    protocol = run.config.get("protocol") or {}
    return not isinstance(protocol, str) and protocol.get("reference") == "written"


def _studies(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs on explanations and those on reviews, whose cells have equal names."""
    return [[run for run in runs if of_reviews(run) == reviews] for reviews in (False, True)]


def _statistics(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Table II, of the data sets of these runs."""
    for run in [run for run in runs if not of_reviews(run)] or runs:  # both are of the same reviews
        known = run.summaries("statements")
        for name, data in run.summaries("data").items():
            statements = dict(known.get(f"statements of {name}") or known.get(name) or {})
            for metric, value in sizes(data, statements).items():
                other = other_extractor(run.config) if metric in OF_EXTRACTION else ""
                yield {
                    "table": STATISTICS,
                    "dataset": name,
                    "metric": metric,
                    "ours": value,
                    STAND_IN: other,
                }


def sizes(data: Any, statements: Any) -> dict[str, float]:
    """The rows of table II that are known. Interactions include those left out since their item is not in training."""
    rows = {part: data[part] for part in ("train", "validation", "test") if part in data}
    unseen = sum(data.get(f"excluded from {part}, not in training", 0) for part in ("validation", "test"))
    found = {
        "Users": data.get("users"),
        "Items": data.get("items"),
        "Interactions": sum(rows.values()) + unseen,
        **{part.capitalize(): count for part, count in rows.items()},
    }
    total = statements.get("statements")
    if total is not None:
        per = {"interaction": sum(rows.values()), "user": data.get("users"), "item": data.get("items")}
        found |= {f"Avg/{what}": total / count for what, count in per.items() if count}
        found |= {"Unique": statements.get("distinct"), "Total": total}
    return {name: float(value) for name, value in found.items() if value is not None}


def _measured(
    runs: Sequence[Run], printed: pd.DataFrame, silent: dict[str, set[str]]
) -> Iterator[dict[str, Any]]:
    """Means over the test rows of each generator of the paper and metric of its tables. Those without a value are added
    to ``silent``, by the metric's name in the claims."""
    decisive = decisive_metrics()
    known = printed[~printed["table"].isin([STATISTICS, REVIEWS])]
    place = dict(zip(known["metric"], known["table"], strict=True))
    found = (
        (run, cell, same)
        for study in _studies(runs)
        for same in [repeated(study)]
        for run, cell in written(study)
    )
    for run, cell, same in found:
        generator = generator_of(cell)
        if not generator:
            continue
        tables = {column.name: _table_of(run, column.name, place) for column in cell.columns}
        scores = values_by_unit(run, cell.id, [name for name, table in tables.items() if table])
        intervals = intervals_of(scores)
        for name, table in tables.items():
            metric, judge = parts(name)
            if not table:
                continue
            values = scores[name].dropna() if name in scores else None
            if values is None or values.empty:
                silent.setdefault(metric + (OF_REVIEWS if table == REVIEWS else ""), set()).add(generator)
                continue
            yield {
                "table": table,
                "dataset": str(cell.labels["dataset"]),
                "metric": metric,
                "judge": judge,
                "model": str(cell.labels["model"]),
                "generator": generator,
                "ours": float(values.mean()),
                "std": float(values.std(ddof=1)),
                "ci_low": intervals[name][0],
                "ci_high": intervals[name][1],
                "n": len(values),
                STAND_IN: stand_in(run.config, metric, judge),
                VALUES: values if metric in decisive else None,
                "same_as": same.get((str(cell.labels["dataset"]), name), ""),
            }


def _table_of(run: Run, name: str, place: Mapping[str, str]) -> str:
    """The table of the paper that has a metric; "" if none has it. ``place``: of the metrics of tables III to VI."""
    metric = parts(name)[0]
    table = FIGURE if metric.startswith(BINARY) else place.get(metric, "")
    if of_reviews(run):
        return REVIEWS if table == "VI" else ""
    return table


def _of_claims(table: pd.DataFrame) -> pd.DataFrame:
    """The means that claims are about; those of table VII under names of their own."""
    means = table[table["table"] != STATISTICS]
    reviews = means["table"] == REVIEWS
    return means.assign(metric=means["metric"].where(~reviews, means["metric"] + OF_REVIEWS))


def _beside(table: pd.DataFrame, printed: pd.DataFrame) -> pd.DataFrame:
    """With the printed value of the data set, or else the range of the five domains."""
    keys = ["table", "metric", "generator"]
    # Columns without a value are of numbers, into which pandas does not fill texts.
    texts = {
        name: table[name].astype(object).where(table[name].notna(), "") for name in ("generator", "judge")
    }
    table = table.assign(**texts)
    known = printed.rename(columns={"model": "generator"})
    of_domains = known.groupby(keys)["printed"].agg(["min", "max"]).reset_index()
    of_domains.columns = [*keys, "printed_low", "printed_high"]
    values = known[["dataset", *keys, "printed", "printed_std", "rounded_by"]]
    found = table.merge(values, on=["dataset", *keys], how="left").merge(of_domains, on=keys, how="left")
    ours = found["dataset"].isin(DOMAINS)
    found[["printed_low", "printed_high"]] = found[["printed_low", "printed_high"]].mask(ours)
    order = [STATISTICS, "III", "IV", FIGURE, "V", "VI", REVIEWS]
    found["difference"] = found["ours"] - found["printed"]
    return found.sort_values("table", key=lambda one: one.map(order.index), kind="stable")


def _blocks(table: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Headings, heads of columns and lines of the tables."""
    table = _tidy(table)
    known = table[table["table"] != CLAIMS]
    for labels, rows in groups_of(known, ("table", "dataset")):
        heading = f"{_heading(labels['table'])}, {labels['dataset']}: ours (printed)"
        if labels["table"] == STATISTICS:
            lines = [[row["metric"], _cell(row)] for row in rows.to_dict("records")]
            yield heading, ["", str(labels["dataset"])], lines
            continue
        text = _grid(rows)
        lines = [[str(name), *map(str, row)] for name, row in zip(text.index, text.to_numpy(), strict=True)]
        yield heading, ["", *map(str, text.columns)], lines
    decided = table[table["table"] == CLAIMS]
    if len(decided):
        heads = ["claim", "judge", "decided by", "printed", "", "ours", "verdict"]
        lines = [
            [
                row["metric"],
                row["judge"],
                row["rule"],
                number_text(row["printed"]),
                row["verdict_printed"],
                _with_interval(row),
                row["verdict"],
            ]
            for row in decided.to_dict("records")
        ]
        yield "Claims of Statement factuality", heads, lines


def _heading(table: str) -> str:
    return "Figure 2" if table == FIGURE else f"Table {table}"


def _named(rows: pd.DataFrame) -> pd.Series:
    """The metric with its judge."""
    judged = rows["judge"] != ""
    return rows["metric"].where(~judged, rows["metric"] + " (" + rows["judge"] + ")")


def _grid(rows: pd.DataFrame) -> pd.DataFrame:
    """Metrics down, generators across."""
    shown = rows.assign(text=[_cell(row) for row in rows.to_dict("records")], metric=_named(rows))
    text = shown.pivot(index="metric", columns="model", values="text").fillna("")
    return text.loc[list(dict.fromkeys(shown["metric"])), list(dict.fromkeys(shown["model"]))]


def _cell(row: Any) -> str:
    """ "0.12 ±0.02 (0.10 ±0.18, +0.02) ✓", or with the range of the five domains "(0.04 to 0.21) –"."""
    number = count_text if row["table"] == STATISTICS else number_text
    ours, printed = interval_of(row), row["printed"]
    if np.isnan(printed) and not np.isnan(row["printed_low"]):
        of_domains = f"{number(row['printed_low'])} to {number(row['printed_high'])}"
        shown = verdict_cell(ours, np.nan, row["verdict"], number)
        return f"{shown} ({of_domains}) {MARKS.get(row['verdict'], '')}".rstrip()
    return verdict_cell(ours, printed, row["verdict"], number, deviation=row["printed_std"])


def _with_interval(row: Any) -> str:
    """ "0.12 (0.10 to 0.15)" of a claim's statistic."""
    low, high = row.get("ci_low", np.nan), row.get("ci_high", np.nan)
    interval = "" if np.isnan(low) or np.isnan(high) else f" ({number_text(low)} to {number_text(high)})"
    return number_text(row["ours"]) + interval


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """With empty words where a CSV file has nothing."""
    table = tidied(table)
    return table.assign(
        **{name: table[name].astype(object).where(table[name].notna(), "") for name in _WORDS}
    )
