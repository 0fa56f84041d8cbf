"""The hooks that a plugin implements. A plugin is a module named by an entry point of the group ``cfbench``.

Each hook returns specs, not classes; see :class:`cfbench_core.specs.ComponentSpec`.
"""

from __future__ import annotations

import pluggy

from cfbench_core.specs import ComponentSpec

ENTRY_POINT_GROUP = "cfbench"

hookspec = pluggy.HookspecMarker("cfbench")
hookimpl = pluggy.HookimplMarker("cfbench")


class Hooks:
    """Each hook is called once for each plugin, and all that is returned is put together."""

    @hookspec
    def cfbench_datasets(self) -> list[ComponentSpec]:  # type: ignore[empty-body]
        """Data sets."""

    @hookspec
    def cfbench_recommenders(self) -> list[ComponentSpec]:  # type: ignore[empty-body]
        """Recommenders: the models of the suite ``recsys``."""

    @hookspec
    def cfbench_explainers(self) -> list[ComponentSpec]:  # type: ignore[empty-body]
        """Explainers, of any suite."""

    @hookspec
    def cfbench_metrics(self) -> list[ComponentSpec]:  # type: ignore[empty-body]
        """Metrics, of any suite."""

    @hookspec
    def cfbench_components(self) -> list[ComponentSpec]:  # type: ignore[empty-body]
        """Whatever else a suite needs: the suite itself, classifiers, analyses, executors."""


KIND_OF_HOOK = {
    "cfbench_datasets": "dataset",
    "cfbench_recommenders": "recommender",
    "cfbench_explainers": "explainer",
    "cfbench_metrics": "metric",
    "cfbench_components": None,
}
"""The kind of component that a hook may return; None for any other kind."""
