"""One explanation of a run as a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cfbench_tabular.table import FILLED_IN

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


MOST = 6
"""Maximum number of changes of a counterfactual in a sentence."""


def best_explanation(run: Run) -> str:
    """The feasible counterfactual with the fewest changed columns, and of these the nearest; "" if there is none.

    Of several counterfactuals of a row, the explainer's first is compared, and all are listed.
    Controls (certified, reference, baseline) are used only if the run has no other explainers.
    """
    if run.explanations.empty:
        return ""
    controls = [cell.id for cell in run.cells() if cell.role]
    competing = run.scores[~run.scores["cell"].isin(controls)]
    competing = run.scores if competing.empty else competing
    scores = competing.pivot_table(index=["cell", "unit"], columns="metric", values="value", sort=False)
    criterion = next((name for name in ("feasible", "realistic", "validity") if name in scores), None)
    if criterion is None:
        return ""
    explanations = run.explanations[run.explanations["level"].isna()]
    compared = explanations
    if "counterfactual" in explanations:
        compared = explanations[explanations["counterfactual"] == 1]
    changed = compared.groupby(["cell", "unit"], sort=False).size().rename("changed")
    found = scores[scores[criterion] == 1].join(changed, how="inner")
    if found.empty:
        return ""
    order = ["changed", "L2"] if "L2" in found else ["changed"]
    cell, unit = found.sort_values(order, kind="stable").index[0]
    rows = explanations[(explanations["cell"] == cell) & (explanations["unit"] == unit)]
    data = run.summaries("data").get(str(rows.iloc[0]["dataset"]), {})
    return _sentence(rows, data, _imputed(run.scores, cell, unit))


def _imputed(scores: pd.DataFrame, cell: str, unit: str) -> Mapping[str, str]:
    """The filled-in values of a row, by column."""
    if "imputed" not in scores:
        return {}
    own = scores["imputed"][(scores["cell"] == cell) & (scores["unit"] == unit)].dropna()
    found: dict[str, str] = json.loads(own.iloc[0]) if len(own) else {}
    return found


def _sentence(rows: pd.DataFrame, data: Mapping[str, Any], imputed: Mapping[str, str]) -> str:
    """The changes of a row's counterfactuals: "row 57 of iris counts as ...; with ... instead of ... it would ..."."""
    types = data.get("types", {})
    first = rows.iloc[0]
    row = f"row {first['row']} of {first['dataset']}{_filled_in(imputed, data)}"
    several = "counterfactual" in rows and rows["counterfactual"].nunique() > 1
    sets = [part for _, part in rows.groupby("counterfactual")] if several else [rows]
    ways = ", or with ".join(_changes(part, types) for part in sets)
    if data.get("decision_threshold") is not None:
        return _of_probability(row, first, data, f"{ways}{',' if several else ''}")
    if data.get("predicts"):
        wanted = str(first["wanted_class"])
        would = f"would not be {wanted[4:]}" if wanted.startswith("not ") else f"would be {wanted}"
        return (
            f"{row}: the {data['predicts']} that {first['model']} predicts is "
            f"{first['factual_class']}; with {ways}{',' if several else ''} it {would} "
            f"({first['explainer']})."
        )
    return (
        f"{row} counts as {first['factual_class']} for {first['model']}; "
        f"with {ways}{',' if several else ''} it would count as {first['wanted_class']} ({first['explainer']})."
    )


def _filled_in(imputed: Mapping[str, str], data: Mapping[str, Any]) -> str:
    """The values of a row that were missing: " (income 41,000 EUR filled in with the median)"; "" if there are none."""
    types, methods = data.get("types", {}), data.get("imputed_by", {})
    by_method: dict[str, list[str]] = {}
    for column, value in list(imputed.items())[:MOST]:
        shown, _ = _shown(value, value, types.get(column, {}))
        by_method.setdefault(methods.get(column, ""), []).append(f"{column} {shown}")
    parts = [
        f"{_listed(values)} filled in with {FILLED_IN[method]}" if method else f"{_listed(values)} filled in"
        for method, values in by_method.items()
    ]
    if len(imputed) > MOST:
        parts.append(f"{len(imputed) - MOST} other values filled in")
    return f" ({'; '.join(parts)})" if parts else ""


def _of_probability(row: str, first: pd.Series[Any], data: Mapping[str, Any], ways: str) -> str:
    """The sentence where the target class has to exceed a probability: "the probability of yes is at most 90% ..."."""
    share, target = f"{100 * data['decision_threshold']:g}%", str(data["classes"][1])
    outcome = f"that the {data['predicts']} is {target}" if data.get("predicts") else f"of {target}"
    sides = (f"at most {share}", f"above {share}")
    rises = str(first["wanted_class"]).endswith(sides[1])
    before, after = sides if rises else sides[::-1]
    model, explainer = first["model"], first["explainer"]
    if not str(first["factual_class"]).endswith(sides):  # from one class to another
        return (
            f"{row} counts as {first['factual_class']} for {model}; with {ways.rstrip(',')}, the probability {outcome} "
            f"would be {after} ({explainer})."
        )
    return (
        f"{row}: the probability {outcome}, as {model} predicts it, is {before}; with {ways} it would be {after} "
        f"({explainer})."
    )


def _changes(rows: pd.DataFrame, types: Mapping[str, Mapping[str, Any]]) -> str:
    """The changes of one counterfactual: "age 41 instead of 30 and job clerk instead of a filled-in cook"."""
    what = []
    filled = rows["imputed"] if "imputed" in rows else [False] * len(rows)
    for column, value, original, own in zip(
        rows["column"], rows["value"], rows["original"], filled, strict=True
    ):
        after, before = _shown(value, original, types.get(column, {}))
        what.append(f"{column} {after} instead of {'a filled-in ' if own else ''}{before}")
    if len(what) > MOST:
        what[MOST - 1 :] = [f"{len(what) - MOST + 1} other changes"]
    return _listed(what)


def _listed(parts: Sequence[str]) -> str:
    """Enumerated: "a, b and c"."""
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _shown(value: str, original: str, kind: Mapping[str, Any]) -> tuple[str, str]:
    """Two values with their unit: numbers of a column with a step exactly, others shortened; text unchanged."""
    if kind.get("format", "number") != "number":
        return value, original
    if kind.get("step") is None:
        after, before = _short(value, original)
    else:
        after, before = _exact(value), _exact(original)
    unit = f" {kind['unit']}" if kind.get("unit") else ""
    return f"{after}{unit}", f"{before}{unit}"


def _exact(value: str) -> str:
    """A number with all its decimals; from ten thousand on with commas."""
    decimals = len(value.partition(".")[2])
    number = float(value)
    return f"{number:,.{decimals}f}" if abs(number) >= 1e4 else value


def _short(value: str, original: str) -> tuple[str, str]:
    """Two numbers with four significant digits, or more if they would be equal; text unchanged."""
    try:
        numbers = float(value), float(original)
    except ValueError:
        return value, original
    for digits in range(4, 17):
        after, before = (_formatted(number, digits) for number in numbers)
        if after != before:
            break
    return after, before


def _formatted(number: float, digits: int) -> str:
    """A number with the given significant digits; large integers in full, never as 4.7e+04."""
    rounded = float(f"{number:.{digits}g}")
    return (
        f"{rounded:,.0f}"
        if 1e4 <= abs(rounded) < 1e12 and rounded == int(rounded)
        else f"{rounded:.{digits}g}"
    )
