"""What a suite's plan is made of: a study, its prepared datasets and models, and its cells, as plain data."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cfbench_core.config.component import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.devices.choice import device_of, resolved_device, with_device
from cfbench_core.lifecycle.external import ExternalTable
from cfbench_core.lifecycle.steps import OPTIONAL_STEPS
from cfbench_core.stages import DATA, Stage, models_of

if TYPE_CHECKING:
    from cfbench_core.registry import Registry

STAGES = "cfbench_core.lifecycle.stages"

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

    def with_stage(self, fitted: Stage) -> PreparedModel:
        """The model with the stage that fits it."""
        return replace(self, stages={**self.stages, "model": fitted})


@dataclass(frozen=True)
class Study:
    """What is planned: a decoded configuration with what it is planned against.

    Attributes:
        config: an instance of the suite's configuration.
        registry: what is installed. access: where datasets are looked for.
        steps: the functions of the suite by step, ``"package.module:name"``.
        metrics: those of the configuration, or the suite's choice.
        external: the table of external explanations that is scored in place of explaining; None otherwise.
    """

    config: Any
    registry: Registry
    access: DataAccess
    steps: Mapping[str, str]
    metrics: tuple[ConfiguredComponent, ...]
    external: ExternalTable | None = None

    def stage(
        self,
        kind: str,
        label: str,
        target: str,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Stage],
        steps: Sequence[str] = (),
        *,
        dataset: str = "",
        draws: bool = True,
        chunked: bool = False,
    ) -> Stage:
        """A stage of the study; see :class:`Stage`.

        Args:
            target: its function; one of ``cfbench_core.lifecycle.stages`` when it names no module.
            steps: the functions of the suite that it calls, by name; optional ones only where the suite has them.
            dataset: names the random streams; that of the inputs by default.
            draws: whether it draws random numbers. Runs with other seeds share a stage that does not.
        """
        target = target if ":" in target else f"{STAGES}:{target}"
        chosen = {n: self.steps[n] for n in steps if n in self.steps or n not in OPTIONAL_STEPS}
        dataset = dataset or next(iter(inputs.values())).dataset
        seed = self.config.seed if draws else 0
        parameters = with_device(parameters, self.device)
        device = device_of(parameters, models_of(inputs), self.config.deterministic)
        return Stage(kind, label, target, parameters, inputs, seed, chunked, chosen, dataset, device)

    @functools.cached_property
    def device(self) -> str:
        """The class of device that ``device: auto`` of a component means, "cpu" or "cuda"."""
        return resolved_device(self.config)

    def read(
        self, dataset: ConfiguredComponent, parameters: Mapping[str, Any] | None = None, draws: bool = True
    ) -> Stage:
        """The stage that reads a dataset; ``parameters``: what determines the result besides the dataset."""
        given = {"dataset": dataset.parameters(), **source_of(dataset, self.access), **(parameters or {})}
        name = dataset.spec.name
        return self.stage(
            DATA, dataset.label, "read_data", given, {}, ("read_data",), dataset=name, draws=draws
        )


@dataclass(frozen=True)
class Setting:
    """A model at a point of the protocol: what is explained, whoever explains it."""

    study: Study
    model: PreparedModel
    point: ProtocolPoint

    @property
    def config(self) -> Any:
        """The configuration of the study."""
        return self.study.config


@dataclass(frozen=True)
class PlannedCell(Setting):
    """A setting with the explainer, from which a cell is planned."""

    explainer: ConfiguredComponent


def source_of(dataset: ConfiguredComponent, access: DataAccess) -> Mapping[str, Any]:
    """The files in which a dataset was found, as a parameter; nothing for one that needs no files."""
    component = dataset.create()
    if not hasattr(component, "find"):
        return {}
    return {"source": component.find(access).parameters()}
