"""The steps that a suite brings, see ``stages.py``."""

from __future__ import annotations

REQUIRED_STEPS = (
    "read_data",
    "load_data",
    "fit",
    "choose_units",
    "open_chunk",
    "explain",
    "to_rows",
    "from_rows",
    "observe",
)
"""Steps of every suite that have no default."""

OPTIONAL_STEPS = ("describe", "read_file")
"""Steps that a stage calls only where the suite has them."""


def steps_in(module: str, *further: str) -> dict[str, str]:
    """The steps of a suite whose functions stand in one module, under the names of the steps.

    ``further``: steps that a suite has besides those that it must have ("prepare", "derive", "read_file").
    """
    restored = {"restore": "cfbench_core.lifecycle.models:restored"}
    return {**restored, **{step: f"{module}:{step}" for step in (*REQUIRED_STEPS, *further)}}


def steps_by_module(package: str, **modules: str) -> dict[str, str]:
    """The steps of a suite that stand in several modules of a package.

    ``modules``: for each, the names of its functions that are steps: ``fitting="fit restore"``. A suite without
    "restore" has the usual one.
    """
    named = {step: module for module, steps in modules.items() for step in steps.split()}
    restored = {"restore": "cfbench_core.lifecycle.models:restored"}
    return {**restored, **{step: f"{package}.{module}:{step}" for step, module in named.items()}}
