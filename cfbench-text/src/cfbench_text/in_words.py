"""One explanation of a run as a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run


def worst_hallucination(run: Run) -> str:
    """A text of which most is not in the user's review, and how much; "" when there is none to tell.

    Of a control only where the run has nothing else.
    """
    if run.explanations.empty:
        return ""
    name = next((c.name for c in run.columns if c.name.startswith("hallucinated")), None)
    if name is None:
        return ""
    scores = run.scores[(run.scores["metric"] == name) & run.scores["value"].notna()]
    competitors = [cell.id for cell in run.cells() if not cell.role]
    judged = scores[scores["cell"].isin(competitors)] if competitors else scores
    if judged.empty:
        return ""
    worst = judged.sort_values("value", ascending=False, kind="stable").to_dict("records")[0]
    texts = run.explanations_of(worst["cell"])
    row = texts[texts["unit"] == worst["unit"]].to_dict("records")[0]
    return (
        f'{row["model"]} wrote to user {row["user"]} about item {row["item"]} of {row["dataset"]}: "{row["text"]}" '
        f"Of its statements {worst['value']:.0%} are not in the user's review."
    )
