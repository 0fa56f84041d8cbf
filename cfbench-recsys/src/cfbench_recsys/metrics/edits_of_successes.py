"""#Perturb of the successes: how many edges an answer edits when it works.

Ours: equation 7 of paper 000 over the units whose answer displaces something; missing (NaN) for the others.
Unlike the paper's convention (``edits.py``) an explainer gains nothing by not answering; it is a mean over
other units for every explainer, so read it beside the success rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cfbench_core.plan import Column

if TYPE_CHECKING:
    from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
    from cfbench_recsys.observations import ExplicitObservations


def edits_of_successes(edges: IntArray, succeeded: BoolArray) -> FloatArray:
    """(B,) number of edited edges, NaN where nothing is displaced."""
    import numpy as np

    return np.where(succeeded, edges.astype(float), np.nan)


class EditsOfSuccesses:
    def __init__(self, config: None = None) -> None:
        """Nothing to set."""

    def columns(self, k: int, level: Literal["item", "list"]) -> tuple[Column, ...]:
        question = "How many edges does an answer edit when it works?"
        return (Column(f"#Perturb of successes@{k}", "lower", None, question),)

    def compute(self, seen: ExplicitObservations) -> dict[str, FloatArray]:
        return {f"#Perturb of successes@{seen.k}": edits_of_successes(seen.edges, seen.succeeded)}
