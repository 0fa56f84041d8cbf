"""What an explainer of recommenders must offer, and the contracts of all kinds of the suite.

This module imports neither NumPy nor torch at run time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from cfbench_core.contracts import Contract
from cfbench_recsys.contracts import (
    Dataset,
    DifferentiableGraphRecommender,
    DifferentiableProfileRecommender,
    EmbeddingRecommender,
    GraphRecommender,
    LinearRecommender,
    Metric,
    ProfileRecommender,
    Recommender,
    State,
)

if TYPE_CHECKING:
    from cfbench_recsys.edits import Edits, FloatArray
    from cfbench_recsys.targets import Answer, Context, Targets


class ImplicitExplainer(Protocol):
    """Assigns an importance to each interaction of the user. Declares ``format: implicit``."""

    def importances(self, targets: Targets, context: Context, /) -> FloatArray:
        """(B, H) float64, aligned with ``targets.history``; higher is more important. Values at padding are ignored."""


class ExplicitExplainer(Protocol):
    """Names the interactions to edit. Declares ``format: explicit``."""

    def counterfactuals(self, targets: Targets, context: Context, /) -> Edits | Answer:
        """B edits, one for each target. An edit without edges means that there is no counterfactual."""


Explainer = ImplicitExplainer | ExplicitExplainer
"""An explainer gives importances, or edits, or both."""


class PretrainedExplainer(Protocol):
    """Is trained before it explains. Declares ``pretraining: yes``; the training is a stage of its own."""

    def prepare(self, context: Context, /) -> State:
        """What was learned, as named arrays. It is passed back as ``context.state``."""


_ALL_POINTS = {"format": {"implicit", "explicit"}, "level": {"item", "list"}}

CONTRACTS: Mapping[str, Contract] = {
    "dataset": Contract(protocol=Dataset),
    "recommender": Contract(
        protocol=Recommender,
        any_of=(ProfileRecommender, GraphRecommender),
        provides={"access": {"scores"}},
        implied={
            "score_profiles": {"scope": {"user-vector"}},
            "score_edits": {"scope": {"user-only", "indirect", "k-hop", "full"}},
            "weights": {"access": {"weights"}},
            "score_dense": {"access": {"gradients"}},
            "score_weighted": {"access": {"gradients"}},
            "item_embeddings": {"access": {"embeddings"}},
        },
        optional=(
            LinearRecommender,
            DifferentiableProfileRecommender,
            DifferentiableGraphRecommender,
            EmbeddingRecommender,
        ),
    ),
    "explainer": Contract(
        any_of=(ImplicitExplainer, ExplicitExplainer),
        provides={"level": {"item", "list"}, "scope": {"user-vector", "user-only"}},
        implied={
            "importances": {"format": {"implicit"}},
            "counterfactuals": {"format": {"explicit"}},
            "prepare": {"pretraining": {"yes"}},
        },
    ),
    "metric": Contract(
        protocol=Metric,
        provides=_ALL_POINTS,
        needs={"explainer": {"format": {"implicit", "explicit"}}},
    ),
}
"""By kind; a class that is named with ``import:`` has the capabilities that are given here."""
