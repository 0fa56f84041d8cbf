"""One explanation of a run as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from cfbench_core.run_directory import Run


def best_explanation(run: Run) -> str:
    """The realistic answer that changes fewest columns, the nearest of these; "" when there is none.

    Of a bound or a floor only where the run has nothing else.
    """
    if run.explanations.empty:
        return ""
    competitors = [cell.id for cell in run.cells() if not cell.role]
    judged = run.scores[run.scores["cell"].isin(competitors)] if competitors else run.scores
    scores = judged.pivot_table(index=["cell", "unit"], columns="metric", values="value", sort=False)
    judge = next((name for name in ("realistic", "coverage") if name in scores), None)
    if judge is None:
        return ""
    explanations = run.explanations[run.explanations["level"].isna()]
    if "answer" in explanations:  # of several answers the first, which is the explainer's best
        explanations = explanations[explanations["answer"] == 1]
    changed = explanations.groupby(["cell", "unit"], sort=False).size().rename("changed")
    found = scores[scores[judge] == 1].join(changed, how="inner")
    if found.empty:
        return ""
    order = ["changed", "L2"] if "L2" in found else ["changed"]
    cell, unit = found.sort_values(order, kind="stable").index[0]
    rows = explanations[(explanations["cell"] == cell) & (explanations["unit"] == unit)]
    return _sentence(rows)


def _sentence(rows: pd.DataFrame) -> str:
    """Of the changes of one answer: "row 57 of iris counts as ...; with ... instead of ... it would ..."."""
    first = rows.iloc[0]
    what = " and ".join(
        f"{column} {_short(value)} instead of {_short(original)}"
        for column, value, original in zip(rows["column"], rows["value"], rows["original"], strict=True)
    )
    return (
        f"row {first['row']} of {first['dataset']} counts as {first['factual_class']} for {first['model']}; "
        f"with {what} it would count as {first['wanted_class']} ({first['explainer']})"
    )


def _short(value: str) -> str:
    """A number with four digits; text as it is."""
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value
