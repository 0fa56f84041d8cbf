"""What cfbench-explainers-gnn registers."""

from __future__ import annotations

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="recsys/explainer/cf-gnnexplainer",
            summary="Gradient descent on a soft mask of edges until the target leaves the list",
            target="cfbench_explainers_gnn.cf_gnnexplainer:CFGNNExplainer",
            config="cfbench_explainers_gnn.cf_gnnexplainer:Config",
            provides={
                "format": frozenset({"explicit"}),
                "level": frozenset({"item", "list"}),
                "scope": frozenset({"user-only", "indirect", "k-hop", "full"}),
                "edit": frozenset({"remove"}),
            },
            needs={"recommender": {"access": frozenset({"gradients"})}},
            paper="Lucic et al. 2022",
        )
    ]
