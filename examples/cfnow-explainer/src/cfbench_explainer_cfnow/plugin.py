"""What this distribution brings: plain data, read by ``cfbench list`` without importing the explainer."""

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="tabular/explainer/cfnow",
            summary="Changes until the class flips, then back towards the row with a tabu list: the library cfnow",
            target="cfbench_explainer_cfnow.cfnow:Cfnow",
            config="cfbench_explainer_cfnow.cfnow:Config",
            provides={
                "columns": frozenset({"numeric", "categorical"}),
                "constraints": frozenset({"one-hot"}),
            },
            needs={"classifier": {"access": frozenset({"scores"})}},
            paper="de Oliveira et al. 2023",
            version="1",
        )
    ]
