"""What cfbench-explainers-gnn registers."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PROVIDES = {
    "format": frozenset({"explicit"}),
    "level": frozenset({"item", "list"}),
    "scope": frozenset({"user-only", "indirect", "k-hop", "full"}),
    "edit": frozenset({"remove"}),
}
ADDING = {**PROVIDES, "edit": frozenset({"remove", "add"})}
GRADIENTS = {"recommender": {"access": frozenset({"gradients"})}}

TAKES_LONG = {"default": False}
"""Of what a first look goes without: it trains, or tries thousands of sets."""


def _explainer(name: str, summary: str, module: str, class_name: str, **more: object) -> ComponentSpec:
    return ComponentSpec(
        id=f"recsys/explainer/{name}",
        summary=summary,
        target=f"cfbench_explainers_gnn.{module}:{class_name}",
        config=f"cfbench_explainers_gnn.{module}:Config",
        **{"provides": PROVIDES, "needs": GRADIENTS, **more},  # type: ignore[arg-type]
    )


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        _explainer(
            "cf-gnnexplainer",
            "Gradient descent on a soft mask of edges until the target leaves the list",
            "cf_gnnexplainer",
            "CFGNNExplainer",
            paper="Lucic et al. 2022",
            presets="cfbench_explainers_gnn:presets/cf-gnnexplainer.yaml",
        ),
        _explainer(
            "cf2",
            "A small soft mask of edges whose removal flips the recommendation",
            "cf2",
            "CF2",
            paper="Tan et al. 2022",
            presets="cfbench_explainers_gnn:presets/cf2.yaml",
        ),
        _explainer(
            "c2explainer",
            "Descent on hard edits, removals and additions, by straight-through gradients",
            "c2explainer",
            "C2Explainer",
            provides=ADDING,
            paper="Ma 2025",
            presets="cfbench_explainers_gnn:presets/c2explainer.yaml",
        ),
        _explainer(
            "unr-explainer",
            "Tree search for a small subgraph whose removal replaces the list",
            "unr_explainer",
            "UNRExplainer",
            paper="Kang et al. 2024",
            presets="cfbench_explainers_gnn:presets/unr-explainer.yaml",
        ),
        _explainer(
            "clear",
            "A graph autoencoder, trained on other users, that says in one pass which edges to remove",
            "clear",
            "CLEAR",
            provides={**PROVIDES, "pretraining": frozenset({"yes"})},
            needs={"recommender": {"access": frozenset({"gradients", "embeddings"})}},
            details=TAKES_LONG,
            paper="Ma et al. 2022",
            presets="cfbench_explainers_gnn:presets/clear.yaml",
        ),
        _explainer(
            "random-edges",
            "Random edges of the scope until the target leaves the list",
            "random_edges",
            "RandomEdges",
            provides=ADDING,
            needs={"recommender": {"access": frozenset({"scores"})}},
            role="floor",
        ),
        _explainer(
            "gradient-greedy",
            "Again and again the edit with the steepest exact gradient, verified on the model",
            "gradient_greedy",
            "GradientGreedy",
            provides=ADDING,
            role="bound",
        ),
        _explainer(
            "exhaustive-edges",
            "The smallest set of edits in a small scope, by trying them all, and what that proves",
            "exhaustive_edges",
            "ExhaustiveEdges",
            provides=ADDING,
            needs={"recommender": {"access": frozenset({"scores"})}},
            details=TAKES_LONG,
            role="bound",
        ),
    ]
