"""What cfbench-text registers: the specs that its components declare in their own files.

Importing this module imports neither NumPy nor torch; see :mod:`cfbench_core.component_specs`.
"""

from __future__ import annotations

from cfbench_core.component_specs import component_specs
from cfbench_core.hooks import hookimpl
from cfbench_core.specs import ComponentSpec

PACKAGE = "cfbench_text"


@hookimpl
def cfbench_components() -> list[ComponentSpec]:
    return component_specs(
        PACKAGE, "suite", "extractor", "generator", "judge", "labelset", "analysis", "replication", "viewer"
    )


@hookimpl
def cfbench_datasets() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "dataset")


@hookimpl
def cfbench_metrics() -> list[ComponentSpec]:
    return component_specs(PACKAGE, "metric")
