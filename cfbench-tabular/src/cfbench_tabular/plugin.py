"""The hooks of cfbench-tabular. The specs are read from the files of the components, without importing them."""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PACKAGE = "cfbench_tabular"


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "suite", "classifier", "analysis", "replication", "viewer")


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "dataset")


@hookimpl
def cfbench_explainers() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "explainer")


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "metric")
