"""What is searched: a component of a configuration, its options, and how its suite judges it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.api import Prepared
from cfbench_core.config import ConfiguredComponent
from cfbench_core.hashing import digest
from cfbench_core.tuning.protocol import Tunable
from cfbench_core.tuning.space import Dimension


@dataclass(frozen=True)
class Search:
    """A search that was validated and has not begun; made by :func:`open_search`.

    Attributes:
        prepared: the configuration.
        field: the key of the configuration under which the component stands; ``place`` its place in a list there.
        reference: the component, as it was configured.
        tunable: how its suite judges it.
        space: what is searched.
        out: the configuration that comes of it; its trials are stored next to it.
        command: what to write down as the call.
    """

    prepared: Prepared
    field: str
    place: int | None
    reference: ConfiguredComponent
    tunable: Tunable
    space: tuple[Dimension, ...]
    out: Path
    command: str

    @property
    def component(self) -> str:
        """ "recommender/mf"."""
        return f"{self.reference.kind}/{self.reference.label}"

    @property
    def directory(self) -> Path:
        """The folder of the trials: ``tuned.trials`` for ``tuned.yaml``."""
        return self.out.with_suffix(".trials")

    @property
    def configured(self) -> dict[str, Any]:
        """What is searched, as it was configured."""
        return {dimension.name: option_of(self.reference, dimension.name) for dimension in self.space}

    @property
    def identity(self) -> dict[str, Any]:
        """All that determines the trials. Its keys are named to the user when a directory holds another search."""
        stages = self.tunable.plan(self.reference).stages
        return {
            "component": self.component,
            "metric": self.tunable.metric,
            "seed": self.prepared.config.seed,
            "space": {dimension.name: str(dimension) for dimension in self.space},
            "options": self.reference.parameters()["options"],
            "data, protocol or code": digest({role: stage.key for role, stage in stages.items()}),
        }


def option_of(reference: ConfiguredComponent, name: str) -> Any:
    """The value of an option; ``outer.inner`` is one of a nested configuration."""
    value = reference.options
    for key in name.split("."):
        value = getattr(value, key)
    return value
