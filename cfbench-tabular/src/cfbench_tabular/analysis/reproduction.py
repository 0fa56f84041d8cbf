"""The tables and figures of CF-tabular with the printed value next to ours.

- Tables 4 and 5: average ranks of the ten algorithms over all factuals, of valid and of valid and realistic counterfactuals
  (``rankings.py``). Other explainers of the run are not ranked with them. Ranks among fewer than ten are not comparable with
  ranks among ten, so they are missing unless all ten were run.
- Figure 4: the standard deviation of the time per explanation. CF-tabular's is that of processes which start Python, each
  alongside 49 others; ours is that of the explainer's call, divided equally among the factuals of a batch.
- Figure 5: the share of counterfactuals that a second call reproduces (``protocol.repeats``). CF-tabular calls an algorithm
  again with the same settings, here it gets another seed.
- Figures 6 and 7: the shares of factuals with a valid, and with a valid and realistic counterfactual.
- Table 6: its claims, as places among the ten algorithms (``published_claims.py``).
- Claims: those of the abstract, results and conclusion, by statistics (``headline_claims.py``).
- Table A1: area under the ROC curve and accuracy of the networks on the test rows.

Each number and each claim has a verdict (``cfbench_core.verdicts``). Ranks and shares of all factuals of the paper are
compared without an interval. If a run has fewer (other data sets, or fewer factuals of them), the interval is of all that
the missing ones could be: ranks between 1 and 10, shares between 0 and 1. A number is then confirmed or refuted only if
they could not change it, and else not comparable. Nor are times, numbers of another reading of the columns, and
reproduced counterfactuals (figure 5, claims about stability): the second call has another seed here, the same settings
in CF-tabular.

``cfbench advise RUN`` draws the trees of figures 8 (``--set by=strategy``) and 9.

The printed numbers are data of this package (``published/cf_tabular.csv``). They are of 22 data sets; a run without the raw
data of ISOLET, SDD and Internet Advertisements has 19, so small differences say little. A run of these data sets that is not
of the published study (columns as cfbench reads them, its own splits and models) can be given in addition; it has the same
tables, except A1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.reports.verdict_cells import LEGEND, MARKS, verdict_cell
from cfbench_core.specs import ComponentSpec
from cfbench_core.verdicts import (
    CONFIRMED,
    MARGIN,
    NOT_COMPARABLE,
    REFUTED,
    UNDECIDED,
    Interval,
    Verdict,
    claim_verdict,
    count_verdicts,
    number_verdict,
)
from cfbench_core.wording import count_of, join_words
from cfbench_tabular.analysis.headline_claims import HEADLINES, OTHER_SEED, headline_rows
from cfbench_tabular.analysis.printed_numbers import (
    ALGORITHMS,
    BY_GROUP,
    KEYS,
    QUALITY,
    RANKED,
    REPRODUCED,
    SECONDS,
    measured,
    printed_numbers,
    published,
    run_on_all,
)
from cfbench_tabular.analysis.published_claims import (
    BEST,
    BOUNDS,
    DECISIVE,
    ITEM,
    NEAR,
    NEAR_FACTUALS,
    STABILITY,
    TIES,
    places,
    with_missing,
)
from cfbench_tabular.analysis.published_claims import SECONDS as CLAIMED_TIME
from cfbench_tabular.analysis.run_data import TOTAL, Study, groups_of, place, studies, tidied
from cfbench_tabular.study import NAMES

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.analyses import Figure
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="tabular/analysis/reproduction",
    summary="The tables of CF-tabular: the printed value next to ours",
    target=f"{__name__}:Reproduction",
    config=f"{__name__}:Config",
    papers=("cftabular2021",),
)

WHAT = {
    "table 4": "average ranks, valid counterfactuals",
    "table 5": "average ranks, valid and realistic counterfactuals",
    "figure 4": "standard deviation of the time per explanation in seconds",
    "figure 5": "counterfactuals that a second call reproduces",
    "figure 6": "factuals with a valid counterfactual",
    "figure 7": "factuals with a valid and realistic counterfactual",
}
"""What each table and figure shows."""
HEADLINE_HEADS = ["claim", "here (printed)", "decided by", "verdict"]


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
        if not any(published(run) for run in runs):
            return "needs a run of the published study (protocol: paper)"
        return ""

    def table(self, runs: Sequence[Run]) -> pd.DataFrame:
        """Columns: model, item (table 4, ...), group, dataset, measure, explainer, printed, ours, difference,
        printed_factuals, factuals, verdict, reason; of claims also verdict_printed (by the printed numbers), and of those
        that are no places sentence and rule."""
        import pandas as pd

        printed = printed_numbers()
        tables = []
        for study in studies(runs):
            ours = pd.DataFrame(list(measured(study)), columns=[*KEYS, "ours", "factuals"])
            both = printed.merge(ours, on=list(KEYS), how="left")
            whole = {dataset.name for dataset in study.datasets} >= set(NAMES)
            claims = places(study, both, ALGORITHMS).assign(whole=whole)
            own = pd.concat([both, claims], ignore_index=True)
            tables.append(own.assign(model=study.model, unranked=_unranked(study)))
        table = pd.concat(tables, ignore_index=True)
        again = table.duplicated([*KEYS, "ours"]) & (table["item"] == QUALITY) & table["ours"].notna()
        table = table[~again].reset_index(drop=True)  # two studies of the same networks
        table["difference"] = table["ours"] - table["printed"]
        own_networks = _published_models(runs)
        verdicts = [
            _verdict(row, row["model"] in own_networks, self.config.margin)
            for row in table.to_dict("records")
        ]
        table["verdict"], table["reason"] = zip(*verdicts, strict=True)
        table["verdict_printed"] = [_by_printed(row) for row in table.to_dict("records")]
        headlines = [
            headline_rows(rows[rows["item"] != ITEM]).assign(model=model)
            for model, rows in table.groupby("model", sort=False)
        ]
        columns = ["model", *KEYS, "printed", "ours", "difference", "printed_factuals", "factuals"]
        columns += ["verdict", "reason", "sentence", "rule", "verdict_printed"]
        return pd.concat([table, *headlines], ignore_index=True)[columns]

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        drawn = []
        for labels, rows in groups_of(_shown(table), ("model", "item")):
            values, text = _grid(rows)
            if values.isna().all(axis=None):
                continue
            about = place({"model": labels["model"]}, table)
            item = str(labels["item"])
            heading = f"{item.capitalize()} of CF-tabular, {WHAT[item]}: ours (printed){', ' + about if about else ''}"
            better = "lower" if labels["item"] in (*RANKED, SECONDS) else "higher"
            svg = heat_map(
                list(values.index),
                list(values.columns),
                values.to_numpy(dtype=float),
                title=heading,
                direction=better,
                text=text.to_numpy().tolist(),
            )
            note = "By type of data." if labels["item"] in BY_GROUP else "All data sets together."
            drawn.append(Figure(heading, svg, note, wide=True))
        return [*drawn, *_claims_drawn(table)]

    def words(self, table: pd.DataFrame) -> str:
        sentences = []
        for labels, own in groups_of(table, ("model",)):
            about = place(labels, table)
            said = " ".join(_sentences(own))
            if said:
                sentences.append(f"{about}: {said}" if about else said)
        return " ".join(sentences)

    def text(self, table: pd.DataFrame) -> str:
        from tabulate import tabulate

        blocks = []
        for labels, own in groups_of(table, ("model",)):
            about = place(labels, table)
            where = f" · {about}" if about else ""
            for item, rows in groups_of(_shown(own).dropna(subset=["ours"]), ("item",)):
                text = _grid(rows)[1]
                what = "by type of data" if item["item"] in BY_GROUP else "all data sets"
                lines = tabulate(
                    text.reset_index().to_numpy().tolist(), ["", *text.columns], tablefmt="simple"
                )
                blocks.append(f"{item['item']}{where}, {what}: ours (printed)\n{lines}")
            if heads_and_lines := _quality_shown(own):
                lines = tabulate(heads_and_lines[1], heads_and_lines[0], tablefmt="simple")
                blocks.append(f"{QUALITY}{where}: ours (printed)\n{lines}")
            if claims := _claims_shown(own):
                head = ["algorithm", "claim: among the best", "data", "place (printed)", "verdict"]
                lines = tabulate(claims, head, tablefmt="simple")
                blocks.append(f"table 6{where}: places among the ten algorithms\n{lines}")
            if headlines := _headlines_shown(own):
                lines = tabulate(headlines, HEADLINE_HEADS, tablefmt="simple")
                blocks.append(f"claims{where}\n{lines}")
        return "\n\n".join([*blocks, LEGEND])

    def latex(self, table: pd.DataFrame) -> str:
        """Each table in the paper's form: algorithms in columns, measures by group in rows."""
        from cfbench_core.reports.latex import escape

        found: list[str] = []
        for labels, own in groups_of(tidied(table).dropna(subset=["ours"]), ("model",)):
            about = place(labels, table)
            found += _latex_of(own, f", {about}" if about else "")
        head = f"% \\usepackage{{booktabs}} \\usepackage{{graphicx}}\n% {escape(LEGEND)}\n\n"
        return head + "\n".join(found)


def _published_models(runs: Sequence[Run]) -> set[str]:
    """The models of the published study: its networks, on its rows."""
    return {str(cell.labels["model"]) for run in runs if published(run) for cell in run.cells()}


def _unranked(study: Study) -> str:
    """Why the ten algorithms cannot be ranked; empty if they can."""
    absent = [name for name in ALGORITHMS if name not in run_on_all(study.datasets)]
    reason = "did not run on all data sets, and ranks among fewer than ten are not comparable"
    return f"{join_words(absent)} {reason}" if absent else ""


def _verdict(row: Mapping[Any, Any], same_networks: bool, margin: float) -> Verdict:
    """The verdict on a printed number, or on a claim of table 6."""
    if np.isnan(row["ours"]):
        found = number_verdict(0.0, Interval(np.nan))
        return Verdict(found.word, row["unranked"]) if row["item"] in RANKED and row["unranked"] else found
    if row["item"] == ITEM:
        return _verdict_of_claim(row)
    if row["item"] == SECONDS:
        return Verdict(NOT_COMPARABLE, "time of another machine")
    if not same_networks:
        return Verdict(NOT_COMPARABLE, "other networks, splits and readings of the columns")
    if row["item"] == REPRODUCED:
        return Verdict(NOT_COMPARABLE, OTHER_SEED)
    if row["item"] in WHAT and row["factuals"] < row["printed_factuals"]:
        return _verdict_of_some(row, margin)
    return number_verdict(row["printed"], Interval(row["ours"]), margin=margin, rounded_by=row["rounded_by"])


def _by_printed(row: Mapping[Any, Any]) -> str:
    """The verdict on a claim of table 6 by the printed ranks; nothing where there are none."""
    claimed = row["item"] == ITEM and not np.isnan(row["printed"])
    return claim_verdict(Interval(row["printed"]), "<=", BEST).word if claimed else ""


def _verdict_of_some(row: Mapping[Any, Any], margin: float) -> Verdict:
    """Of a rank or a share of some of the paper's factuals: decided if no value of the others could change it."""
    ends = (1, len(ALGORITHMS)) if row["item"] in RANKED else (0, 1)
    low, high = (with_missing(row["ours"], row["factuals"], row["printed_factuals"], end) for end in ends)
    ours = Interval(row["ours"], low, high)
    found = number_verdict(row["printed"], ours, margin=margin, rounded_by=row["rounded_by"])
    if found.word == UNDECIDED:
        return Verdict(NOT_COMPARABLE, f"measured on {_part(row)}")
    return Verdict(found.word, f"{found.reason}, whatever the rest of {_part(row)}")


def _verdict_of_claim(row: Mapping[Any, Any]) -> Verdict:
    """Of a place among the ten, of all data sets or of those at hand."""
    ours = Interval(row["ours"])
    if row["measure"] == STABILITY:
        return Verdict(NOT_COMPARABLE, OTHER_SEED)
    if row["measure"] == CLAIMED_TIME and not row["whole"]:
        return Verdict(NOT_COMPARABLE, "a mean time over some of the 22 data sets")
    bounds = [Interval(row[name]) for name in BOUNDS if not np.isnan(row[name])]
    if len({claim_verdict(bound, "<=", BEST).word for bound in bounds}) > 1:
        return Verdict(NOT_COMPARABLE, f"place on {_part(row)}")
    readings = [Interval(row[name]) for name in TIES if not np.isnan(row[name])]
    found = claim_verdict(ours, "<=", BEST, readings=readings)
    near = [row[name] for name in NEAR if not np.isnan(row[name])]
    if found.word != UNDECIDED and len({one <= BEST for one in near}) > 1:
        best, worst = near
        return Verdict(
            UNDECIDED,
            f"near tie: {best:g} to {worst:g} against <= {BEST}, by algorithms whose ranks differ on {row[NEAR_FACTUALS]:g} "
            f"of {row['factuals']:,.0f} factuals or fewer ({DECISIVE} decide)",
        )
    return found


def _part(row: Mapping[Any, Any]) -> str:
    return f"{row['factuals']:,.0f} of {row['printed_factuals']:,.0f} factuals"


def _sentences(table: pd.DataFrame) -> Iterator[str]:
    """What the tables of one model say, in words."""
    total = _of_total(table)
    known = total.dropna(subset=["ours"])
    for item, what in (("figure 6", "valid"), ("figure 7", "valid and realistic")):
        if len(rows := known[known["item"] == item]):
            absent = total.loc[(total["item"] == item) & total["ours"].isna(), "explainer"]
            without = f", without {join_words(list(absent))}" if len(absent) else ""
            yield (
                f"The share of factuals with a {what} counterfactual is {rows['printed'].mean():.0%} as printed and "
                f"{rows['ours'].mean():.0%} here, on average over {count_of(len(rows), 'algorithm')}{without}."
            )
    for item in RANKED:
        if len(rows := known[known["item"] == item]):
            near = int((rows["difference"].abs() <= 1).sum())
            yield f"{item.capitalize()}: {near} of {len(rows)} ranks differ by one or less."
        elif len(missing := total[total["item"] == item]):
            yield f"{item.capitalize()} is missing: {missing['reason'].iloc[0]}."
    if len(held := table[table["item"] == ITEM].dropna(subset=["ours"])):
        yield f"Table 6, claims (among the best {BEST} of the ten algorithms): {count_verdicts(held['verdict'])}."
    if len(held := table[table["item"] == HEADLINES].dropna(subset=["ours"])):
        yield f"Claims of abstract, results and conclusion: {count_verdicts(held['verdict'])}."
    decided = known[known["verdict"].isin([CONFIRMED, REFUTED, UNDECIDED])]
    for name, rows in decided.groupby("item", sort=False):
        yield f"{str(name).capitalize()}, numbers: {count_verdicts(rows['verdict'])}."
    quality = tidied(table)
    if len(rows := quality[quality["item"] == QUALITY].dropna(subset=["ours"])):
        near = int((rows["difference"].abs() <= 0.0051).sum())
        yield f"Table A1: {near} of {len(rows)} numbers equal the printed ones to two decimals."


def _latex_of(table: pd.DataFrame, about: str) -> Iterator[str]:
    """The tables of one model."""
    from cfbench_core.reports.latex import tabular

    for labels, rows in groups_of(table[~table["item"].isin([QUALITY, ITEM, HEADLINES])], ("item",)):
        names = [name for name in ALGORITHMS if name in set(rows["explainer"])]
        lines = []
        for group, own in groups_of(rows, ("group", "measure")):
            cells = {row["explainer"]: row for row in own.to_dict("records")}
            shown = [_both(cells.get(name)) for name in names]
            lines.append([str(group["group"]), str(group["measure"]), *shown])
        caption = f"CF-tabular, {labels['item']}{about}: ours (printed)."
        yield tabular(["data", "measure", *names], lines, [False, False, *([True] * len(names))], caption)
    if claims := _claims_shown(table):
        heads = ["algorithm", "among the best", "data", "place (printed)", "verdict"]
        caption = f"CF-tabular, table 6{about}: places among the ten algorithms."
        yield tabular(heads, claims, [False, False, False, True, False], caption)
    if headlines := _headlines_shown(table):
        yield tabular(HEADLINE_HEADS, headlines, [False, True, False, False], f"CF-tabular, claims{about}.")
    if heads_and_lines := _quality_shown(table):
        caption = f"CF-tabular, {QUALITY}{about}: ours (printed)."
        yield tabular(*heads_and_lines, [False, True, True], caption)


def _quality_shown(table: pd.DataFrame) -> tuple[list[str], list[list[str]]] | None:
    """Heads and lines of the data sets of table A1 that were measured; None if none was."""
    quality = table[(table["item"] == QUALITY) & table["ours"].notna()]
    if quality.empty:
        return None
    text = _grid(quality, rows_by="dataset")[1]
    lines = [[str(name), *map(str, row)] for name, row in zip(text.index, text.to_numpy(), strict=True)]
    return ["data set", *map(str, text.columns)], lines


def _with_text(table: pd.DataFrame) -> pd.DataFrame:
    """The table with empty strings where a CSV file has missing text."""
    texts = {name: table[name].astype(object).fillna("") for name in ("group", "explainer", "dataset")}
    return table.assign(**texts)


def _of_total(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of all data sets together."""
    tidy = _with_text(table)
    return tidy[(tidy["group"] == TOTAL) & (tidy["item"] != ITEM)]


def _shown(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of all data sets together, and those by type of data where the paper prints these."""
    tidy = _with_text(table)
    return tidy[((tidy["group"] == TOTAL) & (tidy["item"] != ITEM)) | tidy["item"].isin(BY_GROUP)]


def _claims_drawn(table: pd.DataFrame) -> Iterator[Figure]:
    """The places of table 6 for each model."""
    from cfbench_core.analyses import Figure
    from cfbench_core.reports.charts import heat_map

    known = table[table["item"] == ITEM].dropna(subset=["ours"])
    for labels, rows in groups_of(known, ("model",)):
        about = place(labels, table)
        heading = f"Table 6 of CF-tabular: places among the ten algorithms{': ' + about if about else ''}"
        names = [
            f"{row['explainer']}: {row['measure']}, {row['group']} data" for row in rows.to_dict("records")
        ]
        values = rows[["printed", "ours"]].to_numpy(dtype=float)
        text = [["" if np.isnan(value) else f"{value:g}" for value in row] for row in values]
        svg = heat_map(names, ["printed", "ours"], values, title=heading, direction="lower", text=text)
        yield Figure(heading, svg, f"A claim holds if the algorithm is among the best {BEST}.", wide=True)


def _claims_shown(table: pd.DataFrame) -> list[list[str]]:
    """The claims of table 6 with a place here: algorithm, measure, group, place (printed), and verdict."""
    rows = table[table["item"] == ITEM].dropna(subset=["ours"])
    return [
        [
            row["explainer"],
            row["measure"],
            row["group"],
            f"{row['ours']:g}" + ("" if np.isnan(row["printed"]) else f" ({row['printed']:g})"),
            row["verdict"],
        ]
        for row in rows.to_dict("records")
    ]


def _headlines_shown(table: pd.DataFrame) -> list[list[str]]:
    """The other claims that were measured: sentence, statistic (printed), what decides, and verdict."""
    rows = table[table["item"] == HEADLINES].dropna(subset=["ours"])
    return [
        [row["sentence"], f"{row['ours']:.3g} ({row['printed']:.3g})", row["rule"], row["verdict"]]
        for row in rows.to_dict("records")
    ]


def _grid(rows: pd.DataFrame, rows_by: str = "explainer") -> tuple[pd.DataFrame, pd.DataFrame]:
    """Our numbers, explainers by measures, and the text with the printed numbers."""
    item = rows["item"].iloc[0]
    shown = rows.assign(text=[_both(row) for row in rows.to_dict("records")])
    columns = "group" if item in BY_GROUP else "measure"
    order = list(dict.fromkeys(rows[columns]))
    values = shown.pivot(index=rows_by, columns=columns, values="ours")[order]
    return values, shown.pivot(index=rows_by, columns=columns, values="text")[order].fillna("")


def _both(row: Mapping[Any, Any] | None) -> str:
    """ "3.2 (4.1, -0.9) ✗"; an empty text where we have no number. Neither ranks nor shares have an interval."""
    if row is None or np.isnan(row["ours"]):
        return ""
    if row["item"] == SECONDS:
        return f"{row['ours']:.2g} ({row['printed']:.2f}) {MARKS[row['verdict']]}"
    digits = 1 if row["item"] in RANKED else 2
    return verdict_cell(Interval(row["ours"]), row["printed"], row["verdict"], f"{{:.{digits}f}}".format)
