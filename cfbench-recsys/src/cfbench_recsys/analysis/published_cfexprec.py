"""CFExpRec's tables as printed, its claims, and the same numbers of runs.

The data are ``published/cfexprec.csv`` and ``published/cfexprec_claims.csv``. Tables 2 to 6 are complete; figures 1 to 6
are drawings without numbers, and table 1 has none. Pages are those of the paper, the first being that of the abstract.
The text from which the tables were transcribed has no page breaks: pages were inferred from where tables interrupt it.
Table 6 does not say which C2Explainer was timed; it is taken for the one with additions, which has that name in table 5.
Some printed numbers contradict each other: of Yahoo, the two columns of table 2 with interactions per item and per user
are exchanged.

The printed "+-" is the standard deviation over explanations. That of the mean over 500 users, which is what a verdict
needs, is smaller: ``deviation`` of a number is half of the 95% interval that follows from it, with one explanation a user.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_core.plan import TIME, Column
from cfbench_recsys.analysis.claim_gaps import on_other_data
from cfbench_recsys.analysis.measured_means import (
    MeasuredMeans,
    best_measured,
    config_of,
    measure,
    of_the_same_users,
    one_at_a_time,
    split_label,
)
from cfbench_recsys.analysis.published_claims import claim_rows
from cfbench_recsys.analysis.published_tables import read_published
from cfbench_recsys.labels import ANY_BUDGET, NO_BUDGET

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run

WITH_IMPORTANCES = ("lime-rs", "shap", "accent", "lxr")
NATIVE = (*WITH_IMPORTANCES, "prince")
GRAPH = ("grease", "cf-gnnexplainer", "cf2", "clear", "unr-explainer", "c2explainer", "c2explainer-add")
EXPLAINERS = (*NATIVE, *GRAPH)
METRICS = ("POS-P", "NEG-P", "Gini", "PN-S", "PN-R", "#Perturb", TIME.name)
AT_RANKS = ("POS-P", "PN-S")
PROFILES = ("mf", "vae", "diffrec")
GRAPHS = ("lightgcn", "gformer", "simgcl")
KS = (3, 5)
SCOPE, OWN_SCOPE = "k-hop-3", "user-vector"
USERS = 500
DATASETS = ("amazon-fashion", "ml-1m", "yahoo-music")
STANDS_IN = "debian-all"
"""A data set of the size of Yahoo! Music, which needs a signed agreement."""
NOT_RUN = "not in these runs"
UNAVAILABLE = {"yahoo-music": "its data needs a signed agreement"}
COSTS = "table-6"
SIZES = "table-2"
KEYS = ("item", "dataset", "model", "explainer", "level", "format", "scope", "k", "metric")

ITEMS = {
    SIZES: "statistics of the data sets",
    "table-3": "importances, MF",
    "table-4": "edits, MF",
    "table-5": "edits, LightGCN",
    COSTS: "seconds for an explanation",
    "figure-1": "importances, recommenders of profiles",
    "figure-2": "edits, recommenders on graphs",
    "figure-3": "importances, by place of the item",
    "figure-4": "edits, by place of the item",
    "figure-5": "edits of lists, by scope",
    "figure-6": "edits of single items, by scope",
}
"""What each table and figure shows."""


def printed_numbers() -> pd.DataFrame:
    """Columns: KEYS, page, printed, printed_deviation, rounded_by, state; printed is NaN where a cell has no number."""
    table = read_published("cfexprec.csv")
    graph = table["model"] == "lightgcn"
    explicit = graph | (table["explainer"] == "prince") | (table["table"] == "4")
    formats = np.where(explicit, "explicit", np.where(table["model"] == "mf", "implicit", ""))
    scopes = np.where(graph, SCOPE, np.where(table["model"] == "mf", OWN_SCOPE, ""))
    return table.assign(item="table-" + table["table"], format=formats, scope=scopes).rename(
        columns={"deviation": "printed_deviation"}
    )[[*KEYS, "page", "printed", "printed_deviation", "rounded_by", "state"]]


def claims() -> pd.DataFrame:
    """Columns: claim, section, sentence, what ``published_claims.py`` needs to decide it, relation, threshold."""
    return read_published("cfexprec_claims.csv")


def printed_means() -> MeasuredMeans:
    """The printed numbers of explainers as means without resamples."""
    table = printed_numbers()
    table = table[(table["item"] != SIZES) & table["printed"].notna()]
    frame = table.assign(metric=table["metric"].str.partition("@")[0], rank="", run="", variant="")
    return MeasuredMeans(frame.reset_index(drop=True), frame["printed"].to_numpy(np.float64)[None, :])


def incompatibility(runs: Sequence[Run], other_data: bool) -> str:
    """Why there is nothing to compare; empty if there is. Reads plans only."""
    cells = [(run, cell) for run in runs if run.suite == "recsys" for cell in run.cells() if not cell.role]
    names = {
        split_label(str(cell.labels[run.layout.row]), cell.labels, EXPLAINERS)[0]
        for run, cell in cells
        if other_data or cell.labels.get("dataset") in (*DATASETS, STANDS_IN)
    }
    if names - {""}:
        return ""
    where = "" if other_data else f" on {', '.join((*DATASETS, STANDS_IN))} (other_data: true for any)"
    return f"needs an explainer of CFExpRec{where}"


def compare(runs: Sequence[Run], other_data: bool) -> tuple[pd.DataFrame, list[dict[str, Any]]]:
    """The numbers (see :func:`numbers`) and the claims (see ``published_claims.claim_rows``) on these runs.

    With ``other_data``, what the paper prints of data sets that no run has is left out, and if a run has another data set,
    claims about all of the paper's data are decided by any.
    """
    measured = measure(runs, EXPLAINERS, METRICS, AT_RANKS)
    of_runs = {str(cell.labels.get("dataset")) for run in runs for cell in run.cells()}
    shown = of_runs if other_data else {*DATASETS, STANDS_IN}
    if len(measured.frame):
        measured = measured.rows(measured.frame["dataset"].isin(shown).to_numpy())
    means, of_scopes = best_measured(measured), of_the_same_users(measured, "scope")
    table = numbers(runs, means, of_scopes)
    if len(table):
        table = table[table["dataset"].isin(shown)]
    decided = claims()
    of_all_data = decided["dataset"] == " ".join(DATASETS)
    if not shown <= {*DATASETS, STANDS_IN}:
        decided["dataset"] = decided["dataset"].mask(of_all_data, "")
    rows = claim_rows(decided, printed_means(), one_at_a_time(means), of_scopes)
    changed = set(decided["claim"][of_all_data & (decided["dataset"] == "")])
    return table, list(on_other_data(rows, changed, sorted(of_runs), DATASETS))


def numbers(runs: Sequence[Run], means: MeasuredMeans, of_scopes: MeasuredMeans) -> pd.DataFrame:
    """Our numbers next to the printed ones, a row for each table or figure that shows the number.

    Args:
        runs: what was measured.
        means: their means.
        of_scopes: means of the same users in several scopes, which figures 5 and 6 compare.

    Returns:
        columns KEYS, rank, run, variant, page, printed, printed_deviation, deviation, ours, ci_low, ci_high, n,
        reason: why the two are not comparable, or why ours is missing.
    """
    import pandas as pd

    of_figures = _shown(of_scopes, figures_of_scopes)
    ours = pd.DataFrame([*_sizes(runs), *_shown(means, items_of), *of_figures, *_failed(runs)])
    if ours.empty:
        return ours
    printed = printed_numbers()
    keys = [name for name in KEYS if name != "format"]
    both = ours.merge(printed.drop(columns="format"), on=keys, how="left")
    absent = _not_run(printed, ours, keys)
    table = pd.concat([both, absent], ignore_index=True)
    table["deviation"] = [_half_interval(row) for row in table.to_dict("records")]
    table["reason"] = [row["reason"] or _incomparable(row) for row in _with_text(table).to_dict("records")]
    order = [*ITEMS]
    return table.sort_values("item", key=lambda items: items.map(order.index), kind="stable")


def notes(runs: Sequence[Run]) -> Iterator[str]:
    """What to know before trusting the comparison."""
    for run in runs:
        protocol = config_of(run).get("protocol") or {}
        users = int(protocol.get("users", USERS))
        models = {str(cell.labels.get("model")) for cell in run.cells()}
        if users != USERS and models & {*PROFILES, *GRAPHS}:
            yield f"{run.directory.name} explains {users} users, the paper {USERS}."
    names = {str(cell.labels.get("dataset")) for run in runs for cell in run.cells()}
    if STANDS_IN in names:
        yield f"{STANDS_IN} stands for Yahoo! Music, whose data needs a signed agreement: like size, other numbers."
    yield (
        "A printed mean counts as uncertain by what its printed deviation over explanations means for 500 users. Seconds are"
        " of another machine; claims about them compare explainers on one machine."
    )


def _sizes(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """Table 2, of the data sets of these runs."""
    found = {name: data for run in runs for name, data in run.summaries("data").items()}
    for name, data in found.items():
        if not {"users", "items", "interactions"} <= data.keys():
            continue
        users, items, edges = (float(data[key]) for key in ("users", "items", "interactions"))
        sizes = {
            "users": users,
            "items": items,
            "interactions": edges,
            "interactions per item": edges / items,
            "interactions per user": edges / users,
            "sparsity": 100 * (1 - edges / (users * items)),
        }
        for metric, value in sizes.items():
            labels = dict.fromkeys((*KEYS, "rank", "run", "variant"), "")
            yield {**labels, "item": SIZES, "dataset": name, "metric": metric, "ours": value, "reason": ""}


def items_of(row: Mapping[Any, Any]) -> Iterator[str]:
    """The tables and figures that show a mean with these labels, other than those that compare scopes."""
    model, implicit = row["model"], row["format"] == "implicit"
    if row["metric"] == TIME.name:
        timed = implicit == (row["explainer"] in WITH_IMPORTANCES)
        own_scope = {"mf": OWN_SCOPE, "lightgcn": SCOPE}.get(model)
        if timed and row["k"] == "5" and row["scope"] == own_scope:
            yield COSTS
        return
    if row["rank"]:
        if row["metric"] == "POS-P" and implicit:
            yield "figure-3"
        elif row["metric"] == "PN-S" and not implicit and model in GRAPHS and row["scope"] == SCOPE:
            yield "figure-4"
        return
    if model in PROFILES and row["scope"] == OWN_SCOPE:
        if model == "mf":
            yield "table-3" if implicit else "table-4"
        if implicit and model != "mf":
            yield "figure-1"
    if model in GRAPHS and not implicit:
        if model == "lightgcn" and row["scope"] == SCOPE:
            yield "table-5"
        if model != "lightgcn" and row["scope"] == SCOPE:
            yield "figure-2"


def figures_of_scopes(row: Mapping[Any, Any]) -> Iterator[str]:
    """The figure that compares a mean with these labels in several scopes."""
    of_edits = row["model"] in GRAPHS and row["format"] != "implicit"
    if of_edits and row["metric"] != TIME.name and not row["rank"]:
        yield "figure-5" if row["level"] == "list" else "figure-6"


def _shown(
    means: MeasuredMeans, items: Callable[[Mapping[Any, Any]], Iterator[str]]
) -> Iterator[dict[str, Any]]:
    """The measured means that the paper shows, once for each of its tables and figures."""
    for labels in means.frame.to_dict("records"):
        row = {str(name): value for name, value in labels.items()}
        for item in items(row):
            plain = row["metric"] in (TIME.name, "Gini", "#Perturb")
            metric = row["metric"] if plain else f"{row['metric']}@{row['k']}"
            yield {**row, "item": item, "metric": metric, "ours": row["mean"], "reason": _limit(row)}


def _limit(row: Mapping[Any, Any]) -> str:
    """What the configuration of a run makes different from the paper."""
    if row["chosen_users"]:
        return "users of a file, not a draw"
    if row["metric"] == "#Perturb" and row["verified"]:
        return "edits of failures are not counted (postprocess.verify); the paper counts them"
    budget = row["max_edits"]
    if row["format"] == "explicit" and budget not in (ANY_BUDGET, NO_BUDGET):
        return f"at most {budget} edits; the paper has no limit"
    return ""


def _failed(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    """The cells of the paper's explainers that have no result, with their state."""
    for run in runs:
        for cell in run.cells():
            name, variant = split_label(str(cell.labels[run.layout.row]), cell.labels, EXPLAINERS)
            if cell.done or cell.role or not name:
                continue
            row = {
                name: str(cell.labels.get(name, ""))
                for name in ("dataset", "model", "level", "format", "scope", "k")
            }
            row |= {"explainer": name, "variant": variant, "rank": "", "run": ""}
            state = cell.status + (f": {cell.reason}" if cell.reason else "")
            for column in [*cell.columns, TIME]:
                yield from _missing(row, column, state)


def _missing(row: Mapping[str, Any], column: Column, state: str) -> Iterator[dict[str, Any]]:
    base = column.name.partition("@")[0]
    if base in METRICS:
        for item in items_of({**row, "metric": base}):
            yield {**row, "item": item, "metric": column.name, "reason": state}


def _not_run(printed: pd.DataFrame, ours: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """What the paper prints in the tables of these runs, and no cell of them is."""
    same = printed[printed["item"].isin(ours["item"]) & (printed["item"] != SIZES)]
    known = same.merge(ours[keys].drop_duplicates(), on=keys, how="left", indicator=True)
    absent = known[known["_merge"] == "left_only"].drop(columns="_merge")
    reasons = [
        f"the paper: {row['state']}" if row["state"] else UNAVAILABLE.get(row["dataset"], NOT_RUN)
        for row in absent.to_dict("records")
    ]
    return absent.assign(rank="", run="", variant="", reason=reasons)


def _incomparable(row: Mapping[Any, Any]) -> str:
    """Why a number of ours compares with none of the paper; empty if it does."""
    if row["state"]:
        return f"the paper: {row['state']}"
    if row["printed"] == "" or np.isnan(float(row["printed"])):
        if row["item"].startswith("figure"):
            return "the paper draws this figure without numbers"
        if row["k"] and int(row["k"]) not in KS:
            return f"the paper has no lists of {row['k']}"
        return f"the paper prints no such number of {row['dataset']}"
    if row["item"] == COSTS:
        return "another machine"
    return ""


def _half_interval(row: Mapping[Any, Any]) -> float:
    """Half of the 95% interval of a printed mean over ``USERS`` users; NaN for a number without a deviation."""
    return 1.96 * float(row["printed_deviation"]) / math.sqrt(USERS)


def _with_text(table: pd.DataFrame) -> pd.DataFrame:
    names = ("state", "reason", "k", "rank")
    return table.assign(**{name: table[name].astype(object).where(table[name].notna(), "") for name in names})
