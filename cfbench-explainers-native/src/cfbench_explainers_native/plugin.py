"""What this distribution brings: plain data, see ``cfbench_core.specs``."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PROVIDES = {
    "format": frozenset({"implicit", "explicit"}),
    "level": frozenset({"item", "list"}),
    "scope": frozenset({"user-vector", "user-only"}),
    "edit": frozenset({"remove"}),
}
SCORES = {"recommender": {"access": frozenset({"scores"})}}
WEIGHTS = {"recommender": {"access": frozenset({"scores", "weights"})}}
EMBEDDINGS = {"recommender": {"access": frozenset({"scores", "embeddings"})}}
GRADIENTS = {"recommender": {"access": frozenset({"scores", "gradients"})}}


def _explainer(name: str, summary: str, module: str, class_name: str, **more: object) -> ComponentSpec:
    return ComponentSpec(
        id=f"recsys/explainer/{name}",
        summary=summary,
        target=f"cfbench_explainers_native.{module}:{class_name}",
        config=f"cfbench_explainers_native.{module}:Config",
        **{"provides": PROVIDES, "needs": SCORES, **more},  # type: ignore[arg-type]
    )


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        _explainer(
            "random",
            "Interactions in random order: what every explainer must beat",
            "random",
            "Random",
            role="floor",
        ),
        _explainer(
            "popularity",
            "The user's most popular items first, whatever is explained",
            "popularity",
            "Popularity",
            role="floor",
        ),
        _explainer(
            "exact-contribution",
            "Optimal ordering for recommenders with a linear logit",
            "exact_contribution",
            "ExactContribution",
            provides={**PROVIDES, "scope": frozenset({"user-vector"})},
            needs=WEIGHTS,
            role="bound",
        ),
        _explainer(
            "leave-one-out",
            "How far the logit falls when one interaction is removed",
            "leave_one_out",
            "LeaveOneOut",
            role="bound",
        ),
        _explainer(
            "greedy",
            "Forward search with the real model, one interaction at a time",
            "greedy",
            "Greedy",
            role="bound",
        ),
        _explainer(
            "beam",
            "Forward search with the real model that keeps several sets at each step",
            "beam",
            "Beam",
            provides={**PROVIDES, "format": frozenset({"explicit"})},
            role="bound",
        ),
        _explainer(
            "exhaustive",
            "The smallest counterfactual up to a size, with a certificate",
            "exhaustive",
            "Exhaustive",
            provides={**PROVIDES, "format": frozenset({"explicit"})},
            role="bound",
        ),
        _explainer(
            "smallest",
            "The smallest counterfactual of any size, proven, where the logit is linear",
            "smallest",
            "Smallest",
            provides={
                **PROVIDES,
                "format": frozenset({"explicit"}),
                "level": frozenset({"item"}),
                "scope": frozenset({"user-vector"}),
            },
            needs=WEIGHTS,
            role="bound",
            version="2",  # rivals that need many removals alone take part
        ),
        _explainer(
            "greedy-edits",
            "Forward search with the real model over removals and additions",
            "greedy_edits",
            "GreedyEdits",
            provides={**PROVIDES, "format": frozenset({"explicit"}), "edit": frozenset({"add"})},
            role="bound",
        ),
        _explainer("cosine", "Cosine similarity of items by their users", "cosine", "Cosine"),
        _explainer("jaccard", "Jaccard similarity of items by their users", "jaccard", "Jaccard"),
        _explainer(
            "lime-rs",
            "A weighted linear surrogate on random parts of the history",
            "lime_rs",
            "LimeRS",
            presets="cfbench_explainers_native:presets/lime-rs.yaml",
            paper="Nóbrega & Marinho 2019",
        ),
        _explainer(
            "lxr",
            "A network trained on other users to mask what carries a recommendation",
            "lxr",
            "LXR",
            provides={
                **PROVIDES,
                "scope": frozenset({"user-vector"}),
                "pretraining": frozenset({"yes"}),
            },
            needs=GRADIENTS,
            details={"default": False},  # it trains for every recommender: too long for a first look
            paper="Barkan et al. 2024",
            presets="cfbench_explainers_native:presets/lxr.yaml",
        ),
        _explainer(
            "shap",
            "Shapley values of the interactions, exact where that is affordable",
            "shap",
            "Shap",
            paper="Lundberg & Lee 2017",
        ),
        _explainer(
            "prince",
            "The fewest interactions without which random walks prefer another item",
            "prince",
            "Prince",
            provides={**PROVIDES, "format": frozenset({"explicit"}), "level": frozenset({"item"})},
            paper="Ghazimatin et al. 2020",
            presets="cfbench_explainers_native:presets/prince.yaml",
        ),
        _explainer(
            "accent",
            "Removes what holds an item above those just below the list",
            "accent",
            "Accent",
            presets="cfbench_explainers_native:presets/accent.yaml",
            paper="Tran et al. 2021",
        ),
        _explainer(
            "grease",
            "Search on a surrogate graph network for the edges that keep an item in the list",
            "grease",
            "Grease",
            provides={
                **PROVIDES,
                "format": frozenset({"explicit"}),
                "scope": frozenset({"user-only", "indirect", "k-hop", "full"}),
            },
            needs=EMBEDDINGS,
            paper="Chen et al. 2022",
            presets="cfbench_explainers_native:presets/grease.yaml",
        ),
    ]
