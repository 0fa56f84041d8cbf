"""What this distribution brings: plain data, read by ``cfbench list`` without importing the explainer."""

from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return [
        ComponentSpec(
            id="tabular/explainer/dice-ml",
            summary="Random draws, genetic search, or training rows of the other class: the library dice-ml",
            target="cfbench_explainer_dice_ml.dice_ml:DiceML",
            config="cfbench_explainer_dice_ml.dice_ml:Config",
            provides={
                "columns": frozenset({"numeric", "categorical"}),
                "constraints": frozenset({"immutable", "ranges", "one-hot"}),
                "answers": frozenset({"several"}),
            },
            needs={"classifier": {"access": frozenset({"scores"})}},
            paper="Mothilal et al. 2020",
            version="1",
        )
    ]
