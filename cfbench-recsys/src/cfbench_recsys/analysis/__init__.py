"""The analyses of the recommender suite, as plain data; each has a file of its own in this folder."""

from __future__ import annotations

from cfbench_core.specs import ComponentSpec
from cfbench_recsys.metrics import PAPER_000, PAPER_001, PAPER_002


def _spec(
    name: str, summary: str, target: str, paper: str | None = None, options: bool = False
) -> ComponentSpec:
    """``target``: the module in this folder and the class; ``options``: it has some, the class ``Config`` there."""
    module = f"{__name__}.{target.partition(':')[0]}"
    return ComponentSpec(
        id=f"recsys/analysis/{name}",
        summary=summary,
        target=f"{__name__}.{target}",
        config=f"{module}:Config" if options else None,
        paper=paper,
    )


ANALYSES: list[ComponentSpec] = [
    _spec(
        "normalized-gain",
        "How much of what there is to win does each explainer win?",
        "normalized_gain:NormalizedGain",
    ),
    _spec(
        "trade-off", "What does effectiveness cost, in edits and in time?", "trade_off:TradeOff", PAPER_000
    ),
    _spec(
        "optimality-gap",
        "How near do answers come to the smallest that is known?",
        "optimality_gap:OptimalityGap",
    ),
    _spec(
        "fidelity",
        "Who is most faithful, by the length of the explanation?",
        "fidelity:Fidelity",
        PAPER_001,
    ),
    _spec(
        "positions",
        "Does the place of the explained item in the list matter?",
        "positions:Positions",
        PAPER_000,
        options=True,
    ),
    _spec(
        "recommenders",
        "Whose standing depends on the recommender?",
        "recommenders:Recommenders",
        PAPER_000,
        options=True,
    ),
    _spec(
        "scopes",
        "How much of the graph must an explainer be free to edit?",
        "scopes:Scopes",
        PAPER_000,
        options=True,
    ),
    _spec("details", "What do the methods know about their own answers?", "details:Details"),
    _spec("cost", "How long does an explanation take?", "cost:Cost", PAPER_000),
    _spec(
        "consistency",
        "Do explainers keep their ranking when the recommender gets better?",
        "consistency:Consistency",
        PAPER_002,
        options=True,
    ),
]
