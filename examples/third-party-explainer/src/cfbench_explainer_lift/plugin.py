"""The hook of this distribution: it returns the specs that the files of the package declare, without importing them."""

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return component_specs("cfbench_explainer_lift", "explainer")
