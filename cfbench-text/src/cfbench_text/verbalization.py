"""One explanation of a run as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run


def worst_hallucination(run: Run) -> str:
    """The text with the largest hallucinated share, as a sentence; "" if there is none.

    Controls are considered only if the run has no competitors.
    """
    name = next((c.name for c in run.columns if c.name.startswith("hallucinated")), None)
    if name is None:
        return ""
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
        f"Of its statements {worst['value']:.0%} are not in the user's review."
    )
