"""What a suite's plan is made of: a study, its prepared datasets and its models, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cfbench_core.config.component import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.external import ExternalTable
from cfbench_core.stages import Stage

if TYPE_CHECKING:
    from cfbench_core.registry import Registry

ProtocolPoint = Mapping[str, str | int]
"""One choice of the protocol, by axis: ``{"level": "item", "k": 5}``. Empty where a suite has no axes."""


@dataclass(frozen=True)
class PreparedDataset:
    """A dataset as the cells of a study see it.

    Attributes:
        dataset: the component.
        stages: what every later stage reads, by role; "data" at least. Empty when skipped.
        skipped: why nothing can be run on it.
    """

    dataset: ConfiguredComponent
    stages: Mapping[str, Stage] = field(default_factory=dict)
    skipped: str = ""

    @property
    def name(self) -> str:
        """Names the random streams."""
        return self.dataset.spec.name


@dataclass(frozen=True)
class PreparedModel:
    """A model as it is explained: a component of the configuration, fitted on one dataset.

    Attributes:
        data: the dataset. component: the model. label: its name in tables.
        stages: those of the dataset, and "model".
        skipped: why it cannot be explained.
    """

    data: PreparedDataset
    component: ConfiguredComponent
    label: str
    stages: Mapping[str, Stage] = field(default_factory=dict)
    skipped: str = ""

    @property
    def about(self) -> str:
        """ "mf on ml-1m"."""
        return f"{self.label} on {self.data.dataset.label}"


@dataclass(frozen=True)
class Study:
    """What is planned: a decoded configuration with what it is planned against.

    Attributes:
        config: an instance of the suite's configuration.
        registry: what is installed. access: where datasets are looked for.
        metrics: those of the configuration, or the suite's choice.
        external: the table of external explanations that is scored in place of explaining; None otherwise.
    """

    config: Any
    registry: Registry
    access: DataAccess
    metrics: tuple[ConfiguredComponent, ...]
    external: ExternalTable | None = None


def source_of(dataset: ConfiguredComponent, access: DataAccess) -> Mapping[str, Any]:
    """The files in which a dataset was found, as a parameter; nothing for one that needs no files."""
    component = dataset.create()
    if not hasattr(component, "find"):
        return {}
    return {"source": component.find(access).parameters()}
