"""cfbench: which counterfactual explainer should I trust, for this model, on this data?

Importing this module is cheap; what it offers is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cfbench_core.api import analyse, execute, prepare, run
    from cfbench_core.hooks import hookimpl
    from cfbench_core.registry import installed
    from cfbench_core.run_directory import Run
    from cfbench_core.specs import ComponentSpec
    from cfbench_core.tuning.search import tune
    from cfbench_core.used_components import cite

_HOME = {
    "ComponentSpec": "cfbench_core.specs",
    "Run": "cfbench_core.run_directory",
    "analyse": "cfbench_core.api",
    "cite": "cfbench_core.used_components",
    "execute": "cfbench_core.api",
    "hookimpl": "cfbench_core.hooks",
    "installed": "cfbench_core.registry",
    "prepare": "cfbench_core.api",
    "run": "cfbench_core.api",
    "tune": "cfbench_core.tuning.search",
}

__all__ = [
    "ComponentSpec",
    "Run",
    "analyse",
    "cite",
    "execute",
    "hookimpl",
    "installed",
    "prepare",
    "run",
    "tune",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
