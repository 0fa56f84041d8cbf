"""The plugin: the specs that the component files declare, without importing these files."""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PACKAGE = "cfbench_explainers_gnn"


@hookimpl
def cfbench_recommenders() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "recommender")


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "explainer")
