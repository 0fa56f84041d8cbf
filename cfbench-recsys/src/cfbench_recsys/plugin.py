"""The hooks of cfbench-recsys: they return the specs that the component files declare, without importing them."""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PACKAGE = "cfbench_recsys"


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "suite", "analysis", "replication", "viewer")


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "dataset")


@hookimpl
def cfbench_recommenders() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "recommender")


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "metric")
