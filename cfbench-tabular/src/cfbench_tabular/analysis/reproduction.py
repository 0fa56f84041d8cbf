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

The printed numbers are data of this package (``published/cf_tabular.csv``), next to those of the authors' own tables, which
have more decimals. Ours is compared with the printed number, and with the authors' where the paper prints none: RUC and
RMC in table 4, figures 6 and 7; the reason of the verdict says so. Places and leads, by which claims are decided, are
computed from the authors' ranks. The numbers are of 22 data sets; a run without the raw
data of ISOLET, SDD and Internet Advertisements has 19, so small differences say little. A run of these data sets that is not
of the published study (columns as cfbench reads them, its own splits and models) can be given in addition; it has the same
tables, except A1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_core.verdicts import CONFIRMED, MARGIN, REFUTED, UNDECIDED, count_verdicts
from cfbench_core.wording import count_of, join_words
from cfbench_tabular.analysis.headline_claims import HEADLINES, headline_rows
from cfbench_tabular.analysis.printed_numbers import (
    ALGORITHMS,
    KEYS,
    QUALITY,
    RANKED,
    SECONDS,
    measured,
    printed_numbers,
    published,
    run_on_all,
)
from cfbench_tabular.analysis.published_claims import BEST, ITEM, places
from cfbench_tabular.analysis.reproduction_forms import (
    compared_with,
    grid,
    latex_of,
    of_total,
    parts_of,
    text_of,
)
from cfbench_tabular.analysis.reproduction_verdicts import by_printed, verdict_of
from cfbench_tabular.analysis.run_data import Study, groups_of, place, studies, tidied
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
        """Columns: model, item (table 4, ...), group, dataset, measure, explainer, printed (as in the paper), authors (in
        their own tables), ours, difference (from the printed number, else from the authors'), printed_factuals, factuals,
        verdict, reason; of claims also verdict_printed (by the paper's numbers), and of those that are no places sentence
        and rule."""
        import pandas as pd

        printed = printed_numbers()
        tables = []
        for study in studies(runs):
            ours = pd.DataFrame(list(measured(study)), columns=[*KEYS, "ours", "factuals"])
            both = printed.merge(ours, on=list(KEYS), how="left")
            whole = {dataset.name for dataset in study.datasets} >= set(NAMES)
            claims = places(study, _exact(both), ALGORITHMS).assign(whole=whole)
            claims["compared"] = claims["printed"]
            own = pd.concat([both, claims], ignore_index=True)
            tables.append(own.assign(model=study.model, unranked=_unranked(study)))
        table = pd.concat(tables, ignore_index=True)
        again = table.duplicated([*KEYS, "ours"]) & (table["item"] == QUALITY) & table["ours"].notna()
        table = table[~again].reset_index(drop=True)  # two studies of the same networks
        table["difference"] = table["ours"] - table["compared"]
        own_networks = _published_models(runs)
        verdicts = [
            verdict_of(row, row["model"] in own_networks, self.config.margin)
            for row in table.to_dict("records")
        ]
        table["verdict"], table["reason"] = zip(*verdicts, strict=True)
        table["verdict_printed"] = [by_printed(row) for row in table.to_dict("records")]
        headlines = [
            headline_rows(_exact(rows[rows["item"] != ITEM])).assign(model=model)
            for model, rows in table.groupby("model", sort=False)
        ]
        columns = ["model", *KEYS, "printed", "authors", "ours", "difference", "printed_factuals", "factuals"]
        columns += ["verdict", "reason", "sentence", "rule", "verdict_printed"]
        return pd.concat([table, *headlines], ignore_index=True)[columns]

    def figures(self, table: pd.DataFrame) -> list[Figure]:
        from cfbench_core.analyses import Figure
        from cfbench_core.reports.charts import heat_map

        drawn = []
        for labels, own in groups_of(table, ("model",)):
            about = place(labels, table)
            for item, part, rows in parts_of(own):
                values, text = grid(rows)
                ranks = f", {part}" if item in RANKED else ""
                heading = f"{item.capitalize()} of CF-tabular, {WHAT[item]}{ranks}: {compared_with(item)}"
                svg = heat_map(
                    list(values.index),
                    list(values.columns),
                    values.to_numpy(dtype=float),
                    title=f"{heading}, {about}" if about else heading,
                    direction="lower" if item in (*RANKED, SECONDS) else "higher",
                    text=text.to_numpy().tolist(),
                )
                note = f"{part.capitalize()}."
                drawn.append(Figure(f"{heading}, {about}" if about else heading, svg, note, wide=True))
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
        return text_of(table)

    def latex(self, table: pd.DataFrame) -> str:
        return latex_of(table)


def _exact(numbers: pd.DataFrame) -> pd.DataFrame:
    """With the authors' numbers in place of the printed ones, which are rounded to one decimal: they have fewer ties."""
    return numbers.assign(printed=numbers["exact"])


def _published_models(runs: Sequence[Run]) -> set[str]:
    """The models of the published study: its networks, on its rows."""
    return {str(cell.labels["model"]) for run in runs if published(run) for cell in run.cells()}


def _unranked(study: Study) -> str:
    """Why the ten algorithms cannot be ranked; empty if they can."""
    absent = [name for name in ALGORITHMS if name not in run_on_all(study.datasets)]
    reason = "did not run on all data sets, and ranks among fewer than ten are not comparable"
    return f"{join_words(absent)} {reason}" if absent else ""


def _sentences(table: pd.DataFrame) -> Iterator[str]:
    """What the tables of one model say, in words."""
    total = of_total(table)
    known = total.dropna(subset=["ours"])
    for item, what in (("figure 6", "valid"), ("figure 7", "valid and realistic")):
        if len(rows := known[known["item"] == item]):
            absent = total.loc[(total["item"] == item) & total["ours"].isna(), "explainer"]
            without = f", without {join_words(list(absent))}" if len(absent) else ""
            yield (
                f"The share of factuals with a {what} counterfactual is {rows['authors'].mean():.0%} by the authors' "
                f"tables and {rows['ours'].mean():.0%} here, on average over {count_of(len(rows), 'algorithm')}{without}."
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
