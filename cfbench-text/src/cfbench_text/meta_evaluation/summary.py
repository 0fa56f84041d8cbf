"""The result of a meta-evaluation for people: a sentence for each label set, and a short table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cfbench_text.meta_evaluation.agreement import MEASURES
from cfbench_text.meta_evaluation.reliability import COLUMNS, LEVEL, MARK

if TYPE_CHECKING:
    import pandas as pd

QUESTION = "Do metrics and judges agree with people?"


def words_of(table: pd.DataFrame) -> str:
    """Of each label set: which texts count as right, and the metric with the highest AUC."""
    found = []
    for name, rows in table.groupby("labelset", sort=False):
        known = rows[rows["auc"].notna() & (rows["metric"] != "length")]
        if known.empty:
            continue
        best = known.sort_values("auc", ascending=False, kind="stable").to_dict("records")[0]
        within = "of one document" if best["within"] == "documents" else "of all texts"
        found.append(
            f"{name} ({best['n']:,} texts, {best['right']:.0%} right: {best['rule']}; {best['pairs']:,} pairs {within}):"
            f" {titled(best)} has the highest AUC, {interval(best, 'auc')}."
        )
    return "\n".join(found)


def text_of(table: pd.DataFrame) -> str:
    """A line for each metric of each label set."""
    heads = ["labelset", "metric", "AUC", "pairwise", "Kendall"]
    rows = [
        [
            row["labelset"],
            titled(row) + (f" {MARK}" if row["judge"] and not row["auc_low"] >= LEVEL else ""),
            *(interval(row, name) for name in MEASURES),
        ]
        for row in table.to_dict("records")
    ]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
    ]
    note = f"{MARK} rests on a judge, and its AUC is not shown to be at least {LEVEL} (lower end of the 95% interval)"
    return "\n".join([*lines, note] if any(MARK in line for line in lines) else lines)


def titled(row: Mapping[Any, Any]) -> str:
    """A metric with its judge, and others that order all texts equally."""
    names = ", ".join(filter(None, [row["metric"], row["also"]]))
    return f"{names} ({row['judge']})" if row["judge"] else names


def interval(row: Mapping[Any, Any], name: str) -> str:
    """ "0.71 [0.70, 0.73]"; a dash where the measure is undefined."""
    if not np.isfinite(row[name]):
        return "–"
    return f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"


def stored_rows(table: pd.DataFrame) -> Sequence[Mapping[str, str]]:
    """The rows by which judges are evaluated, for ``store_measurements``: sentences as statements, one row for each judge,
    without texts that it was trained on."""
    found = []
    counts = (table["judge"] != "") & (table["extractor"] == "sentences") & (table["seen"] == 0)
    for row in table[counts].to_dict("records"):
        names = [row["metric"], *filter(None, row["also"].split(", "))]
        for metric in {"StEnt-P", "St2Exp-P"} & set(names):
            stored = {**row, "metric": metric}
            numbers = {name: f"{row[name]:.4f}" for name in ("auc", "auc_low", "auc_high")}
            found.append({name: str(stored[name]) for name in (*COLUMNS, "commit")} | numbers)
    return found
