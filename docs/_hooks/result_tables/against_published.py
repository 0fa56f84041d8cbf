"""What was measured here next to what papers print."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd

from result_tables.stored import shown, stored, with_intervals


def against_literature(dataset: str) -> str:
    """The quality of the recommenders, next to what others report, each also as a share of EASE's."""
    ours = stored("recommenders").query("dataset == @dataset")
    theirs = stored("literature")
    ease = ours.set_index("model")["HR@10"]["ease"]
    their_ease = theirs.set_index("model")["HR@10"]["ease"]
    ours = ours.assign(**{"of EASE": ours["HR@10"] / ease})
    theirs = theirs.assign(**{"of their EASE": theirs["HR@10"] / their_ease}).rename(
        columns={"HR@10": "reported HR@10", "NDCG@10": "reported NDCG@10"}
    )
    both = ours.merge(theirs.drop(columns=["Recall@10", "as"]), on="model", how="left")
    columns = ["model", "HR@10", "NDCG@10", "Recall@20", "of EASE"]
    reported = ["reported HR@10", "reported NDCG@10", "of their EASE", "source"]
    return shown(both.sort_values("NDCG@10", ascending=False)[columns + reported])


def against_paper(name: str, dataset: str, model: str, level: str, k: int, metrics: str) -> str:
    """The means of a stored study with half their intervals, each metric next to that of CFExpRec's tables.

    ``against_paper("name", dataset="ml-1m", model="mf", level="item", k=5, metrics="POS-P, NEG-P")``
    """
    chosen = "dataset == @dataset and model == @model and level == @level and k == @k"
    ours = stored(name).query(chosen)
    adds = ours["edit"] == "remove-or-add"
    ours = ours.assign(
        explainer=ours["explainer"].where(~adds, ours["explainer"] + "-add"), shown=with_intervals(ours)
    )
    tables = stored("replication-cfexprec").query("item in ['table-3', 'table-4', 'table-5']")
    numbers = tables.astype({"k": int}).query(chosen).drop_duplicates(["explainer", "metric"])
    printed = numbers.set_index(["explainer", "metric"])["printed"]
    rows = []
    for explainer, own in ours.groupby("explainer", sort=False):
        measured = own.set_index("metric")["shown"]
        row = {"explainer": with_role(own)}
        for metric in (metric.strip() for metric in metrics.split(",")):
            row[metric] = measured.get(f"{metric}@{k}", measured.get(metric, ""))
            named = f"{metric}@{k}" if metric in ("POS-P", "NEG-P", "PN-S", "PN-R") else metric
            row[f"paper: {metric}"] = printed.get((name_in_paper(explainer), named), float("nan"))
        rows.append(row)
    table = pd.DataFrame(rows).dropna(axis="columns", how="all")
    nothing = (table.drop(columns="explainer").fillna("") == "").all(axis=1)  # it has not this format
    return shown(table[~nothing])


def with_role(rows: pd.DataFrame) -> str:
    """The label of the rows of one explainer, with its role where the table has roles: ``random (baseline)``."""
    role = rows["role"].iloc[0] if "role" in rows else ""
    label = str(rows["explainer"].iloc[0])
    return f"{label} ({role})" if isinstance(role, str) and role else label


def name_in_paper(label: str) -> str:
    """Both variants of a method stand next to the numbers that CFExpRec prints for it: ``cf2-paper-add`` is ``cf2-add``."""
    return re.sub(r"-(paper|cfbench)(?=-add$|$)", "", label)


READINGS = {"study-network": "ours", "mlp": "cfbench's column types"}
"""The models of both readings of the columns: the published networks, and those trained on columns as cfbench reads them."""


def against_study(kind: str, group: str) -> str:
    """What CF-tabular prints next to both readings of the reproduction: ``coverage``, ``valid`` or ``realistic`` ranks,
    or the numbers of a figure, for example ``figure 5``. Coverage, which the paper draws, is the authors'."""
    all_rows = stored("replication-cf-tabular").query("group == @group")
    if kind == "coverage":
        wanted = {"valid": ("figure 6", "share"), "realistic": ("figure 7", "share")}
    elif kind in ("valid", "realistic"):
        item = {"valid": "table 4", "realistic": "table 5"}[kind]
        wanted = {metric: (item, metric) for metric in ("sparsity", "L2", "MADD", "MD")}
    else:
        measure = all_rows[all_rows["item"] == kind]["measure"].iloc[0]
        wanted = {measure: (kind, measure)}
    columns: dict[str, Any] = {}
    for name, (item, measure) in wanted.items():
        rows = all_rows[(all_rows["item"] == item) & (all_rows["measure"] == measure)]
        paper = rows.drop_duplicates("explainer").set_index("explainer")
        source = "printed" if paper["printed"].notna().any() else "authors"
        columns[f"{name}, {source}"] = paper[source]
        for model, reading in READINGS.items():
            columns[f"{name}, {reading}"] = rows[rows["model"] == model].set_index("explainer")["ours"]
    table = pd.DataFrame(columns).rename_axis("explainer").dropna(axis="columns", how="all")
    sorted_by = f"{next(iter(wanted))}, ours"
    return shown(table.sort_values(sorted_by, ascending=kind != "coverage").reset_index())


def claims_of_study() -> str:
    """The claims of table 6 of CF-tabular, with the places as printed and in both readings."""
    rows = stored("replication-cf-tabular").query("item == 'table 6'").fillna({"group": ""})
    keys = ["explainer", "measure", "group"]
    table = rows[rows["model"] == "study-network"][[*keys, "printed", "verdict"]]
    for model, reading in READINGS.items():
        own = rows[rows["model"] == model].rename(columns={"ours": reading})
        table = table.merge(own[[*keys, reading]], on=keys)
    for column in ("printed", *READINGS.values()):
        table[column] = [f"{place:g}" if place == place else "" for place in table[column]]
    table["verdict"] = table.pop("verdict")  # the last column
    return shown(
        table.rename(columns={"explainer": "algorithm", "measure": "among the best by", "group": "data"})
    )
