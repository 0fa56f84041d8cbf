"""One explanation of a run as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_core.plan import Column
    from cfbench_core.run_directory import Run


def worst_hallucination(run: Run) -> str:
    """The text with the largest hallucinated share, as a sentence with the judge and its reliability; "" if there is none.

    Controls are considered only if the run has no competitors.
    """
    column = next((c for c in run.columns if c.name.startswith("hallucinated")), None)
    if column is None:
        return ""
    name = column.name
    scores = run.rows("scores.parquet", metric=[name])
    scores = scores[scores["value"].notna()]
    competitors = [cell.id for cell in run.cells() if not cell.role]
    judged = scores[scores["cell"].isin(competitors)] if competitors else scores
    if judged.empty:
        return ""
    worst = judged.sort_values("value", ascending=False, kind="stable").to_dict("records")[0]
    wanted = {"cell": [worst["cell"]], "unit": [worst["unit"]]}
    row = run.rows("explanations.parquet", **wanted).to_dict("records")[0]
    return (
        f'{row["model"]} wrote to user {row["user"]} about item {row["item"]} of {row["dataset"]}: "{row["text"]}" '
        f"For {worst['value']:.0%} of its statements {_finding(column)}."
    )


def _finding(column: Column) -> str:
    """What the judge found, never as a fact, and how reliable the judge is."""
    judge = column.name.partition("(")[2].rstrip(")")
    who = f"judge {judge}" if judge else "the judge"
    warning = "not to be taken for a fact: " if column.doubtful else ""
    note = f" ({warning}{column.note})" if column.note else ""
    return f"{who} finds no support in the user's review{note}"
