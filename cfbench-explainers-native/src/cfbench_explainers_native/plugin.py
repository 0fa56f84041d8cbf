"""The hooks of cfbench-explainers-native: they return the specs that the component files declare, without importing them."""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PACKAGE = "cfbench_explainers_native"


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "explainer")
