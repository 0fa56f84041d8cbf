"""A suite on the shared life cycle: what it declares of itself, with the plan that follows from it.

A suite declares its configuration and table layout, the kind of its models, its steps (``stages.py``), the axes of its
protocol and the parameters of its stages. Everything has a default, so a small suite overrides little. Importing a suite
imports neither torch nor pandas.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

from cfbench_core.config.component import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.cell_stages import cell_stages, model_stage
from cfbench_core.lifecycle.declarations import Declarations
from cfbench_core.lifecycle.study import PlannedCell, PreparedDataset, PreparedModel, Study
from cfbench_core.plan import Cell
from cfbench_core.specs import resolve

if TYPE_CHECKING:
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run


class LifecycleSuite(Declarations):
    """The base class of a suite. Subclasses set the attributes and override what differs from the defaults."""

    defaults: ClassVar[Mapping[str, Any]] = {}
    """What the configuration of ``cfbench run`` without one has in place of, or besides, its first dataset, its first
    model and all explainers."""

    default_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    """Options of explainers in the default study and in the example, by the explainer's name."""

    example: ClassVar[str] = ""
    """The commented configuration of ``cfbench init``, with ``<explainers>`` where those of the default are listed."""

    verbalization: ClassVar[str] = ""
    """The function that writes one explanation of a run as a sentence, ``"package.module:name"``."""

    # The grid

    def study(
        self,
        config: Any,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Study:
        """A configuration with what it is planned against."""
        external = None if explanations is None else self.external_table(explanations)
        access, steps = access or DataAccess(), self.steps_of(config)
        return Study(config, registry, access, steps, self.metrics(config, registry), external)

    def cells(
        self,
        config: Any,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        """The grid. With ``explanations``, a table of external explanations, the cells score that."""
        study = self.study(config, registry, access, explanations)
        self.check(study)
        explainers = () if self.models_explain else self.explainers(study)
        return [
            self.cell(
                PlannedCell(study, model, point, explainer.used_for(data.name, model.component.spec.name))
            )
            for dataset in config.data
            for data in [self.prepared(study, dataset)]
            for component in self.model_components(study)
            for model in self.models(study, data, component.used_for(data.name))
            for point in self.points(config, model)
            for explainer in ([model.component] if self.models_explain else explainers)
        ]

    def cell(self, planned: PlannedCell) -> Cell:
        """One cell, or the reason why it is skipped."""
        study, model, explainer = planned.study, planned.model, planned.explainer
        labels = self.labels(planned)
        fitting = [metric for metric in study.metrics if self.fits(planned, metric)]
        skipped = model.data.skipped or model.skipped or self.obstacle(planned)
        if not skipped and study.external is not None and self.is_external(explainer):
            skipped = study.external.lacks(labels)
        elif not skipped:
            skipped = self.incompatibility(planned)
        if not skipped and not fitting:
            skipped = f"no metric fits {' '.join(str(value) for value in planned.point.values())}".rstrip()
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        entries = [entry for metric in fitting for entry in self.metric_entries(planned, metric)]
        stages = cell_stages(self, planned, [parameters for parameters, _ in entries])
        columns = tuple(column for _, shown in entries for column in shown)
        return Cell(labels, columns, stages, role=explainer.spec.role, remark=self.remark(planned))

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """A dataset with the stages that read and prepare it."""
        data = study.read(dataset, self.data_parameters(study, dataset))
        return PreparedDataset(dataset, {"data": data})

    def models(
        self, study: Study, data: PreparedDataset, component: ConfiguredComponent
    ) -> Sequence[PreparedModel]:
        """A component of the configuration as models: one by default, more for example at checkpoints."""
        model = PreparedModel(data, component, component.label, data.stages)
        if data.skipped or self.is_external(component):
            return [model]
        return [model.with_stage(model_stage(study, model))]

    # Documents and descriptions

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """The configuration of ``cfbench run`` without one: a dataset, a model, and all explainers of the default."""
        kinds = {"data": "dataset", self.models_key: self.model_kind}
        first = {key: registry.by_default(self.name, kind)[:1] for key, kind in kinds.items()}
        compared = (self.models_key, self.model_kind) if self.models_explain else ("explainers", "explainer")
        found = {
            compared[0]: [self._with_options(name) for name in registry.by_default(self.name, compared[1])]
        }
        return {"suite": self.name, **first, **found, **self.defaults}

    def example_document(self, registry: Registry) -> str:
        """The configuration of ``cfbench init``."""
        if self.example:
            found = [self._with_options(name) for name in registry.by_default(self.name, "explainer")]
            listed = yaml.safe_dump(found, default_flow_style=True, width=math.inf, sort_keys=False)
            return self.example.replace("<explainers>", listed.strip()[1:-1])
        document = yaml.safe_dump(dict(self.default_document(registry)), sort_keys=False)
        return f"# Check it with 'cfbench plan', run it with 'cfbench run'.\n{document}"

    def _with_options(self, name: str) -> str | dict[str, Any]:
        """The entry of an explainer in a configuration."""
        return {"name": name, **self.default_options[name]} if name in self.default_options else name

    def describe_data(self, config: Any, summaries: Mapping[str, Any]) -> str:
        """A few words on the datasets, for the head line: each with the ``size`` in its summary, where it has one."""
        found = [
            (one.label, summaries[one.label].get("size")) for one in config.data if one.label in summaries
        ]
        return ", ".join(label if size is None else f"{label} ({size})" for label, size in found)

    def verbalize(self, run: Run) -> str:
        """One explanation of the run as a sentence; "" when there is none."""
        return str(resolve(self.verbalization)(run)) if self.verbalization else ""
