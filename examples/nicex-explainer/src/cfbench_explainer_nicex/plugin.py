"""The hook of this distribution. The spec is read from the file of the explainer, without importing it."""

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return component_specs("cfbench_explainer_nicex", "explainer")
