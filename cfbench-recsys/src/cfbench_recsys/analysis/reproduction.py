"""``reproduction``: the tables and figures of a paper, the printed numbers next to ours, and its claims.

``paper`` names the paper. Every number gets a verdict by the rule of ``cfbench_core.verdicts``: *confirmed* where our
interval lies within a margin of the printed number, *refuted* where it lies outside, *undecided* across, *not
reproducible* where we have no number, *not comparable* where the data, K, or the machine is another one; the reason says
which. Every claim gets two: by the numbers that the paper prints, and by ours. Methods that exist as published and as
cfbench improves them have a row for each variant.

Another paper is a module with the functions of :class:`Paper`, listed in ``PAPERS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.analysis_tables import group_rows, with_empty_text
from cfbench_core.config import Help, Range
from cfbench_core.reports.verdict_cells import LEGEND, verdict_cell
from cfbench_core.specs import ComponentSpec
from cfbench_core.verdicts import (
    MARGIN,
    NOT_COMPARABLE,
    NOT_REPRODUCIBLE,
    UNDECIDED,
    Interval,
    Verdict,
    count_verdicts,
    number_verdict,
    too_few_equal,
)
from cfbench_recsys.analysis import published_cfexprec, published_consistency, published_fidelity
from cfbench_recsys.analysis.claim_statistics import SAME
from cfbench_recsys.analysis.published_claims import ONE_USER
from cfbench_recsys.analysis.published_tables import CLAIMS_DATA
from cfbench_recsys.analysis.shared import base

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="recsys/analysis/reproduction",
    summary="The tables and claims of a paper: the printed numbers next to ours",
    target=f"{__name__}:Reproduction",
    config=f"{__name__}:Config",
    papers=("cfexprec2026", "refinedfidelity2025", "consistency2025"),
)

CLAIMS = "claims"
OF_NO_TABLE = (CLAIMS, CLAIMS_DATA)
"""Items that are no table or figure of a paper."""
LABELS = (
    "run",
    "dataset",
    "model",
    "level",
    "format",
    "scope",
    "k",
    "rank",
    "metric",
    "explainer",
    "variant",
)
COLUMNS = (
    *(
        "item",
        "page",
        *LABELS,
        "printed",
        "printed_deviation",
        "ours",
        "ci_low",
        "ci_high",
        "difference",
        "n",
    ),
    *("verdict", "reason", "claim", "section", "sentence", "rule", "verdict_printed"),
)
_BLOCK = ("item", "run", "dataset", "model", "level", "k")
OF_PAPER = "the paper: "
"""Before the state of a cell for which the paper has no number, such as "not supported"."""
WIDE = 12
"""More metrics than this are shown in several blocks."""
_FAMILY = r"^(?P<family>curve-[^\[]+|[^@]+)"
_WORDS = ("run", "dataset", "model", "level", "format", "scope", "metric", "explainer", "variant")
_OF_CLAIMS = ("verdict", "reason", "claim", "section", "sentence", "rule", "verdict_printed")


@dataclass(frozen=True)
class Paper:
    """What a paper's module gives.

    Attributes:
        title: short name of the paper.
        items: what each table and figure shows, by its name ("table-3"), in the order of the paper.
        incompatibility: why these runs have nothing to compare, from plans alone; empty if they have.
        compare: a table with item, page, LABELS, printed, printed_deviation, deviation (by which a printed number is
            uncertain), ours, ci_low, ci_high, n, and reason (empty where both numbers can be compared); and rows of
            claims as ``published_claims.claim_rows`` gives them.
        notes: what to know before trusting it.
        in_full: whether tables are shown with what is printed of data that no run has.

    The second argument of the first two is whether data sets that are not of the paper count.
    """

    title: str
    items: Mapping[str, str]
    incompatibility: Callable[[Sequence[Run], bool], str]
    compare: Callable[[Sequence[Run], bool], tuple[pd.DataFrame, Iterable[Mapping[str, Any]]]]
    notes: Callable[[Sequence[Run]], Iterable[str]]
    in_full: bool = False


PAPERS: Mapping[str, Paper] = {
    "cfexprec": Paper(
        "CFExpRec",
        published_cfexprec.ITEMS,
        published_cfexprec.incompatibility,
        published_cfexprec.compare,
        published_cfexprec.notes,
    ),
    "refined-fidelity": Paper(
        "Refined fidelity",
        published_fidelity.ITEMS,
        published_fidelity.incompatibility,
        published_fidelity.compare,
        published_fidelity.notes,
    ),
    "beyond-top-1": Paper(
        "Consistency beyond top-1",
        published_consistency.ITEMS,
        published_consistency.incompatibility,
        published_consistency.compare,
        published_consistency.notes,
        in_full=True,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Config:
    paper: Annotated[
        Literal["cfexprec", "refined-fidelity", "beyond-top-1"], Help("whose numbers and claims")
    ] = "cfexprec"
    other_data: Annotated[bool, Help("also compare data sets that are not of the paper")] = False
    margin: Annotated[
        float, Range(above=0), Help("the share of a printed number by which ours may differ")
    ] = MARGIN


class Reproduction:
    def __init__(self, config: Config) -> None:
        self.config = config
        self.paper = PAPERS[config.paper]

    def incompatibility(self, runs: Sequence[Run]) -> str:
        return self.paper.incompatibility(runs, self.config.other_data)

    def notes(self, runs: Sequence[Run]) -> Sequence[str]:
        return [*self.paper.notes(runs)]

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: ``COLUMNS``; a row for each number of each table and figure, then one for each claim and variant."""
        import pandas as pd

        numbers, claims = self.paper.compare(runs, self.config.other_data)
        decided = pd.DataFrame([{"item": CLAIMS, **claim} for claim in claims])
        parts = [part for part in (_decided(numbers, self.config.margin), decided) if len(part)]
        table = pd.concat(parts, ignore_index=True).reindex(columns=list(COLUMNS))
        table["difference"] = table["ours"] - table["printed"]
        whole = ("k", "rank", "page", "n")
        return table.assign(**{name: pd.to_numeric(table[name]).astype("Int64") for name in whole})

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import Point, scatter_chart

        drawn = []
        known = _tidy(table).dropna(subset=["printed", "ours"])
        known = known[(known["item"] != CLAIMS) & (known["explainer"] != "")]
        known = known.assign(base=known["metric"].map(base))
        for labels, rows in group_rows(known, ("item", "dataset", "base")):
            title = f"{_name(labels['item'])} of {self.paper.title}, {labels['dataset']}: {labels['base']}"
            points = [
                Point(f"{_row_name(row)}, {row['level']} {row['k']}", row["printed"], row["ours"])
                for row in rows.to_dict("records")
            ]
            svg = scatter_chart(
                points,
                title=title,
                x_label="printed",
                y_label="ours",
                x_direction="",
                y_direction="",
                front=False,
            )
            drawn.append(Figure(title, svg, "Equal numbers lie on the diagonal."))
        return drawn

    def words(self, table: pd.DataFrame) -> str:
        """How many claims hold here and by the paper's own numbers, and how many numbers agree."""
        tidy = _tidy(table)
        sentences = []
        claims = tidy[tidy["item"] == CLAIMS]
        for labels, rows in group_rows(claims, ("variant",)):
            of = f" (variant {labels['variant']})" if labels["variant"] else ""
            sentences.append(f"Claims of {self.paper.title} here{of}: {count_verdicts(rows['verdict'])}.")
        once = claims.drop_duplicates("claim")
        if set(once["verdict_printed"]) - {NOT_COMPARABLE}:
            sentences.append(f"By its own printed numbers: {count_verdicts(once['verdict_printed'])}.")
        for labels, rows in group_rows(tidy[~tidy["item"].isin(OF_NO_TABLE)], ("item",)):
            sentences.append(f"{_name(labels['item'])}: {count_verdicts(rows['verdict'])}.")
        return " ".join(sentences)

    def text(self, table: pd.DataFrame) -> str:
        """The tables in the paper's form, and the claims."""
        from tabulate import tabulate

        return (
            "\n\n".join(
                f"{heading}\n{tabulate(lines, heads, tablefmt='simple', disable_numparse=True)}"
                for heading, heads, lines in self._blocks(table)
            )
            + f"\n\n{LEGEND}"
        )

    def latex(self, table: pd.DataFrame) -> str:
        from cfbench_core.reports.latex import escape, tabular

        found = [
            tabular(heads, lines, [False, *([True] * (len(heads) - 1))], heading)
            for heading, heads, lines in self._blocks(table)
        ]
        head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {escape(LEGEND)}\n\n"
        return head + "\n".join(found)

    def _blocks(self, table: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """Headings, heads of columns and lines of each block of each table."""
        tidy = _tidy(table)
        for labels, rows in group_rows(tidy[~tidy["item"].isin(OF_NO_TABLE)], _BLOCK):
            if not (self.paper.in_full or _attempted(rows)):
                continue  # data of the paper that no run has
            where = [str(labels[name]) for name in ("run", "dataset", "model") if labels[name]]
            where += [f"{labels['level']} level"] if labels["level"] else []
            where += [f"top {labels['k']}"] if labels["k"] else []
            what = self.paper.items.get(str(labels["item"]), "")
            heading = (
                f"{_name(labels['item'])} of {self.paper.title} ({what}): {' · '.join(where)}, ours (printed)"
            )
            yield from _blocks_of(heading, rows)
        if CLAIMS in set(tidy["item"]):
            yield f"Claims of {self.paper.title}", *_claim_lines(tidy[tidy["item"] == CLAIMS])


def _attempted(rows: pd.DataFrame) -> bool:
    """Whether a cell of a run belongs to these rows, be it one that failed."""
    return bool((rows["ours"].notna() | (rows["variant"] != "")).any())


def _decided(numbers: pd.DataFrame, margin: float = MARGIN) -> pd.DataFrame:
    """With the verdict on each number; sizes, which have no interval, may be all that there is."""
    needed = ("ci_low", "ci_high", "rounded_by", "users")
    numbers = numbers.reindex(columns=list(dict.fromkeys([*numbers.columns, *needed])))
    numbers["rounded_by"] = numbers["rounded_by"].fillna(0.0)
    rows = numbers.to_dict("records")
    verdicts = [_verdict(row, margin) for row in rows]
    reasons = [
        row["reason"] if row["reason"] else verdict.reason
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    return numbers.assign(verdict=[verdict.word for verdict in verdicts], reason=reasons)


def _verdict(row: Mapping[Any, Any], margin: float) -> Verdict:
    if np.isnan(row["ours"]):
        word = NOT_REPRODUCIBLE if not np.isnan(row["printed"]) else NOT_COMPARABLE
        return Verdict(word, row["reason"] or "not measured here")
    if row["reason"]:
        return Verdict(NOT_COMPARABLE, row["reason"])
    ours = Interval(row["ours"], row["ci_low"], row["ci_high"])
    if row["explainer"] == "":
        margin = 0.0  # a size: equal up to how it was rounded
    elif np.isnan(row["ci_low"]):
        return Verdict(UNDECIDED, ONE_USER)
    elif row["ci_high"] - row["ci_low"] <= SAME and (few := too_few_equal(row["users"], "users")):
        return Verdict(UNDECIDED, few)
    return number_verdict(
        row["printed"], ours, deviation=row["deviation"], margin=margin, rounded_by=row["rounded_by"]
    )


def _blocks_of(heading: str, rows: pd.DataFrame) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """One block, or one for each family of metrics ("curve-DEL-P[70%]" is of "curve-DEL-P") where they are many."""
    if rows["metric"].nunique() <= WIDE:
        yield heading, *_grid(rows)
        return
    families = rows.assign(family=rows["metric"].str.extract(_FAMILY)["family"])
    for labels, own in group_rows(families, ("family",)):
        family = str(labels["family"])
        shorter = own["metric"].str.removeprefix(family).str.strip("@[]")
        yield f"{heading}, {family}", *_grid(own.assign(metric=shorter.where(shorter != "", family)))


def _grid(rows: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Explainers down, metrics across; places of the item and scopes across where there are several."""
    names = ["metric", *(name for name in ("scope", "rank", "format") if rows[name].nunique() > 1)]
    heads = [
        ", ".join(filter(None, (_heading(name, row[name]) for name in names)))
        for row in rows.to_dict("records")
    ]
    lines = [_row_name(row) for row in rows.to_dict("records")]
    cells = {
        (line, head): _cell(row)
        for line, head, row in zip(lines, heads, rows.to_dict("records"), strict=True)
    }
    across = list(dict.fromkeys(heads))
    down = list(dict.fromkeys(lines))
    return ["", *across], [[line, *(cells.get((line, head), "") for head in across)] for line in down]


def _heading(name: str, value: str) -> str:
    return f"place {value}" if name == "rank" and value else value


def _row_name(row: Mapping[Any, Any]) -> str:
    return "-".join(filter(None, (row["explainer"], row["variant"]))) or "data"


def _cell(row: Mapping[Any, Any]) -> str:
    """ "0.31 ±0.02 (0.28 ±0.20, +0.03) ?", "timeout (0.28) ∅", "- (not supported)" of what the paper has no number of."""
    of_paper = str(row["reason"]).removeprefix(OF_PAPER)
    if of_paper != row["reason"]:
        ours = "-" if np.isnan(row["ours"]) else _number(row["ours"])
        return f"{ours} ({of_paper})"
    return verdict_cell(
        Interval(row["ours"], row["ci_low"], row["ci_high"]),
        row["printed"],
        row["verdict"],
        _number if row["explainer"] else _size,
        deviation=row["printed_deviation"],
        state=str(row["reason"]).partition(":")[0],
    )


def _number(value: float) -> str:
    """Four digits after the point, fewer of large numbers."""
    if value == round(value) and abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.4f}" if abs(value) < 10 else f"{value:,.2f}"


def _size(value: float) -> str:
    """A count of a data set without decimals, other sizes as any number."""
    return f"{value:,.0f}" if value == round(value) else _number(value)


def _claim_lines(claims: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    heads = ["claim", "variant", "decided by", "printed", "", "ours", "verdict"]
    lines = []
    for row in claims.to_dict("records"):
        ours = "" if np.isnan(row["ours"]) else f"{row['ours']:.3g}"
        if ours and not np.isnan(row["ci_low"]):
            ours += f" ({row['ci_low']:.3g} to {row['ci_high']:.3g})"
        printed = "" if np.isnan(row["printed"]) else f"{row['printed']:.3g}"
        words = [
            row["claim"],
            row["variant"],
            row["rule"],
            printed,
            row["verdict_printed"],
            ours,
            row["verdict"],
        ]
        lines.append(words)
    return heads, lines


def _name(item: Any) -> str:
    """ "Table 3" of "table-3"."""
    return str(item).replace("-", " ").capitalize()


def _tidy(table: pd.DataFrame) -> pd.DataFrame:
    """With text where a CSV file has nothing, and whole numbers as text."""
    table = with_empty_text(table, (*_WORDS, *_OF_CLAIMS))
    return table.assign(
        **{
            name: ["" if value != value else f"{value:.0f}" for value in table[name].astype(float)]
            for name in ("k", "rank")
        }
    )
