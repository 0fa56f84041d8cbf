"""What this distribution brings: plain data, read by ``cfbench list`` without importing the explainer."""

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="recsys/explainer/lift",
            summary="Items that make the explained one likelier: P(target | item) / P(target)",
            target="cfbench_explainer_lift.lift:Lift",
            config="cfbench_explainer_lift.lift:Config",
            provides={
                "format": frozenset({"implicit", "explicit"}),
                "level": frozenset({"item", "list"}),
                "scope": frozenset({"user-vector", "user-only"}),
                "edit": frozenset({"remove"}),
            },
            needs={"recommender": {"access": frozenset({"scores"})}},
            paper="Brin et al. 1997",
            version="1",
        )
    ]
