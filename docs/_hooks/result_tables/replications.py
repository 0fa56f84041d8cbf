"""Replications of papers: claims and numbers with their verdicts, from the stored table of ``cfbench reproduce``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from cfbench_core.registry import Registry
from cfbench_core.specs import resolve
from cfbench_core.verdicts import CONFIRMED, REFUTED, VERDICTS, count_verdicts
from result_tables.stored import shown, stored

OF_CLAIMS = ("claims", "table 6")
"""The items that are claims; the others are numbers."""
DATA = "claims-data"
"""The item of the numbers behind claims that no table of a paper shows."""
_APART = ("variant", "judge", "model")
"""What distinguishes several decisions on one claim."""
_LONG = 40
"""More letters of missing explainers and data sets than this are left to the stored table."""
_SHOWN = {
    "paper": "as published",
    "cfbench": "as cfbench improves it",
    "study-network": "with CF-tabular's networks",
    "mlp": "with columns as cfbench reads them",
}
"""Headings of the decisions on one claim."""


def problems(registry: Registry) -> list[str]:
    """Tables and figures that ``cfbench reproduce`` calls stored without rows in the stored table, and the converse."""
    found = []
    for component in registry.components("replication"):
        replication = resolve(component.spec.target)(None)
        if not replication.stored:
            continue
        stored_items = set(stored(replication.stored)[replication.column])
        for item in replication.items:
            has_rows = bool(stored_items & set(item.rows or (item.name,)))
            if has_rows != bool(item.stored):
                state = "has rows" if has_rows else "has no rows"
                found.append(
                    f"{component.spec.id}: {item.name} {state} in {replication.stored}.csv, stored={item.stored!r}"
                )
    return found


def claims_of_paper(name: str) -> str:
    """Each claim with its verdicts, and what decides it: ``claims_of_paper("replication-beyond-top-1")``."""
    table = stored(name)
    rows = table[table["item"].isin(OF_CLAIMS)]
    several = [column for column in _APART if column in rows and rows[column].dropna().nunique() > 1]
    lines = []
    for row in rows.to_dict("records"):
        line = {"claim": _claim(row)}
        line |= {column: _text(row.get(column)) for column in several}
        line |= {"verdict": row["verdict"] + _why(row), "here": _interval(row)}
        line |= {"printed": _number(row["printed"]), "by its numbers": _text(row.get("verdict_printed"))}
        line |= {"decided by": _text(row.get("rule")) or "place among the ten, at most 4"}
        lines.append(line)
    found = pd.DataFrame(lines)
    return shown(found.loc[:, (found != "").any()])


def verdicts_on_claims(name: str) -> str:
    """One line for each claim, with the verdict by the printed numbers and those here side by side."""
    table = stored(name)
    rows = table[table["item"].isin(OF_CLAIMS)]
    apart = next((column for column in _APART if column in rows and rows[column].nunique() > 1), "")
    lines: dict[str, dict[str, str]] = {}
    for row in rows.to_dict("records"):
        line = lines.setdefault(_claim(row), {"claim": _claim(row)})
        line["by its numbers"] = _text(row.get("verdict_printed")).replace("not comparable", "")
        line[_SHOWN.get(_text(row.get(apart)), "here")] = row["verdict"] + _why(row)
    found = pd.DataFrame([*lines.values()])
    return shown(found.loc[:, (found != "").any()])


def verdicts_of_paper(name: str) -> str:
    """How many numbers and claims have which verdict, by table and figure."""
    table = stored(name)
    table = table[table["item"] != DATA]
    counts = pd.crosstab(table["item"], table["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    counts = counts.loc[list(dict.fromkeys(table["item"])), (counts != 0).any()]
    return shown(counts.rename_axis(None, axis=1).reset_index())


def numbers_of_paper(name: str, where: str, rows: str, columns: str) -> str:
    """Some numbers in the paper's form, "ours (printed)": ``numbers_of_paper("name", where=..., ...)``."""
    chosen = stored(name).query(where).dropna(subset=["ours"])
    chosen = chosen.assign(text=[_both(row) for row in chosen.to_dict("records")])
    down, across = rows.split(", "), columns.split(", ")
    filled = chosen.assign(**{column: chosen[column].map(_label) for column in (*down, *across)})
    wide = filled.pivot_table(index=down, columns=across, values="text", aggfunc="first", sort=False).fillna(
        ""
    )
    wide.columns = [
        " ".join(filter(None, name)) if isinstance(name, tuple) else name for name in wide.columns
    ]
    return shown(wide.reset_index())


def counted_claims(name: str, of: str = "") -> str:
    """ "7 confirmed, 4 refuted": of the claims of a paper, or of one variant, in a sentence."""
    table = stored(name)
    rows = table[table["item"].isin(OF_CLAIMS)]
    if of:
        column, value = of.split("=")
        rows = rows[rows[column] == value]
    return count_verdicts(rows["verdict"])


def _why(row: Mapping[Any, Any]) -> str:
    """ " (tied)", " (without grease, clear)": why a claim has no other verdict, in a word or two; else nothing."""
    reason = _text(row.get("reason"))
    if row["verdict"] in (CONFIRMED, REFUTED):
        return ""
    if "tie" in reason.partition(":")[0].split() or reason.startswith("tied"):
        return " (tied)"
    missing = reason.partition("; without ")[2]
    return f" (without {missing})" if 0 < len(missing) <= _LONG else ""


def _claim(row: Mapping[Any, Any]) -> str:
    if _text(row.get("sentence")):
        return str(row["sentence"])
    group = _text(row.get("group"))
    return f"{row['explainer']} is among the best by {row['measure']}" + (f", {group} data" if group else "")


def _interval(row: Mapping[Any, Any]) -> str:
    low, high = row.get("ci_low", math.nan), row.get("ci_high", math.nan)
    if any(isinstance(end, str) or math.isnan(end) for end in (low, high)):
        return _number(row["ours"])
    return f"{_number(row['ours'])} ({_number(low)} to {_number(high)})"


def _both(row: Mapping[Any, Any]) -> str:
    printed = _number(row["printed"])
    return f"{_number(row['ours'])} ({printed})" if printed else _number(row["ours"])


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _label(value: Any) -> str:
    """A number of items is read as a decimal where other rows have none."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else _text(value)


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else str(value)
