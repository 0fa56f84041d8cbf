"""A suite on the shared life cycle: what it declares of itself, with the plan that follows from it.

A suite declares its configuration and table layout, the kind of its models, its steps (``stages.py``), the axes of its
protocol and the parameters of its stages. Everything has a default, so a small suite overrides little. Importing a suite
imports neither torch nor pandas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config.component import ConfiguredComponent, with_defaults
from cfbench_core.data_files import DataAccess
from cfbench_core.lifecycle.external import TABLE_FORM, ExternalTable
from cfbench_core.lifecycle.study import PreparedDataset, PreparedModel, ProtocolPoint, Study, source_of
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.specs import ComponentSpec, lacking
from cfbench_core.stages import UNITS, Stage
from cfbench_core.suites import Experiment

if TYPE_CHECKING:
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

STAGES = "cfbench_core.lifecycle.stages"
EXTERNAL = f"{STAGES}:import_explanations"
SELECT_ROWS = "cfbench_core.lifecycle.external_rows:select_rows"


class LifecycleSuite:
    """The base class of a suite. Subclasses set the attributes and override what differs from the defaults."""

    name: ClassVar[str]
    config: ClassVar[type[Experiment]]
    layout: ClassVar[TableLayout]
    steps: ClassVar[Mapping[str, str]]
    """The suite's functions by step, ``"package.module:name"``; see ``stages.py``."""

    model_kind: ClassVar[str] = "model"
    models_key: ClassVar[str] = "models"
    """The configuration key that lists the models."""

    models_explain: ClassVar[bool] = False
    """Whether models explain themselves, as generators of texts do. A cell then has no other explainer, external
    explanations take the place of a model, and no stage but the explanations reads one."""

    external_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a table of external explanations must have."""

    external_form: ClassVar[str] = TABLE_FORM
    """What such a table is, for messages."""

    external_target: ClassVar[str] = SELECT_ROWS
    """The stage that selects the rows of a table of external explanations for a cell."""

    # The grid

    def cells(
        self,
        config: Any,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        """The grid. With ``explanations``, a table of external explanations, the cells score that."""
        external = None if explanations is None else self.external_table(explanations)
        study = Study(config, registry, access or DataAccess(), self.metrics(config, registry), external)
        explainers = () if self.models_explain else self.explainers(study)
        return [
            self.cell(study, model, explainer, point)
            for dataset in config.data
            for data in [self.prepared(study, dataset)]
            for component in self.model_components(study)
            for model in self.models(study, data, component)
            for point in self.points(config, model)
            for explainer in ([model.component] if self.models_explain else explainers)
        ]

    def cell(
        self, study: Study, model: PreparedModel, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> Cell:
        """One cell, or the reason why it is skipped."""
        labels = self.labels(model, explainer, point)
        fitting = [metric for metric in study.metrics if self.fits(metric, point)]
        skipped = model.data.skipped or model.skipped or self.obstacle(study, model, point)
        if not skipped and study.external is not None and self.is_external(explainer):
            skipped = study.external.lacks(labels)
        elif not skipped:
            skipped = self.incompatibility(study, model, explainer, point)
        if not skipped and not fitting:
            skipped = f"no metric fits {' '.join(str(value) for value in point.values())}".rstrip()
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        entries = [entry for metric in fitting for entry in self.metric_entries(study, metric, point)]
        stages = self.cell_stages(study, model, explainer, point, [parameters for parameters, _ in entries])
        columns = tuple(column for _, shown in entries for column in shown)
        return Cell(labels, columns, stages, role=explainer.spec.role)

    def cell_stages(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        point: ProtocolPoint,
        metrics: Sequence[Mapping[str, Any]],
    ) -> dict[str, Stage]:
        """The stages of a cell by role: those of its model, "units", "explanations", "scores" and others."""
        known = {**self.observable(model), UNITS: self.units(study, model, point)}
        explained = (
            self.external_stages(study, model, explainer, point, known)
            if self.is_external(explainer)
            else self.explained(study, model, explainer, point, {**model.stages, **known})
        )
        further = self.scored_inputs(study, explainer, known, explained)
        scores = self.stage(
            "scores",
            f"scores of {self.about(model, explainer)}",
            "score",
            {
                "metrics": list(metrics),
                "unit_columns": list(self.layout.unit_columns),
                **self.chunk_parameters(study, point),
            },
            {**known, "explanations": explained["explanations"], **further},
            ("load_data", "restore", "open_chunk", "from_rows", "observe"),
            study.config.seed,
            model.data.name,
            chunked=True,
        )
        return {**model.stages, **known, **explained, **further, "scores": scores}

    def stage(
        self,
        kind: str,
        label: str,
        target: str,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Stage],
        steps: Sequence[str],
        seed: int,
        dataset: str,
        chunked: bool = False,
    ) -> Stage:
        """A stage of the suite; a ``target`` without a module is one of ``cfbench_core.lifecycle.stages``."""
        target = target if ":" in target else f"{STAGES}:{target}"
        chosen = {name: self.steps[name] for name in steps}
        return Stage(kind, label, target, parameters, inputs, seed, chunked, chosen, dataset)

    def metrics(self, config: Any, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        """The metrics of a configuration; where it names none, all that are installed for the suite."""
        return self.named_metrics(config, registry, registry.by_default(self.name, "metric"))

    def named_metrics(
        self, config: Any, registry: Registry, names: Sequence[str]
    ) -> tuple[ConfiguredComponent, ...]:
        """The metrics of a configuration; where it has none, those with these names."""
        if config.metrics is not None:
            chosen: tuple[ConfiguredComponent, ...] = config.metrics
            return chosen
        return tuple(with_defaults(registry.find(self.name, "metric", name)) for name in names)

    def model_components(self, study: Study) -> Sequence[ConfiguredComponent]:
        """The models of the configuration; the authors of external explanations where models explain themselves."""
        if study.external is not None and self.models_explain:
            names = study.external.authors("model")
            return [self.external_component(self.model_kind, name) for name in names]
        chosen: Sequence[ConfiguredComponent] = getattr(study.config, self.models_key)
        return chosen

    def explainers(self, study: Study) -> Sequence[ConfiguredComponent]:
        """Those of the configuration, or the authors of external explanations."""
        if study.external is not None:
            names = study.external.authors("explainer")
            return [self.external_component("explainer", name) for name in names]
        chosen: Sequence[ConfiguredComponent] = study.config.explainers
        return chosen

    def points(self, config: Any, model: PreparedModel) -> Iterator[ProtocolPoint]:
        """Every choice of the protocol for a model; one, without axes, by default."""
        yield {}

    def labels(
        self, model: PreparedModel, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> dict[str, str | int]:
        """What distinguishes a cell from others: columns of every table."""
        own = {} if self.models_explain else {"explainer": explainer.label}
        return {"dataset": model.data.dataset.label, "model": model.label, **own, **point}

    def about(self, model: PreparedModel, explainer: ConfiguredComponent) -> str:
        """ "lime-rs for mf on ml-1m": for the labels of stages."""
        return model.about if self.models_explain else f"{explainer.label} for {model.about}"

    def incompatibility(
        self, study: Study, model: PreparedModel, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> str:
        """Why an explainer cannot work here, without its name; "" when it can."""
        gap = lacking(explainer.needs.get(self.model_kind, {}), model.component.spec.provides)
        if gap:
            return f"needs {gap}, which {model.label} does not offer"
        gap = lacking(model.data.dataset.spec.needs.get("explainer", {}), explainer.spec.provides)
        return f"{model.data.dataset.label} needs {gap}, which it does not offer" if gap else ""

    def obstacle(self, study: Study, model: PreparedModel, point: ProtocolPoint) -> str:
        """Why nothing can explain a model at a protocol point, external explanations included; "" when it can."""
        return ""

    def fits(self, metric: ConfiguredComponent, point: ProtocolPoint) -> bool:
        """Whether a metric applies at a protocol point."""
        return True

    def metric_entries(
        self, study: Study, metric: ConfiguredComponent, point: ProtocolPoint
    ) -> list[tuple[Mapping[str, Any], Sequence[Column]]]:
        """A metric as the scoring stage's parameters, with the columns that it fills."""
        columns = tuple(metric.create().columns(point))
        names = {column.name: column.name for column in columns}
        return [({"metric": metric.parameters(), "columns": names}, columns)]

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        """What determines how a dataset is prepared, besides the dataset: the split, for example."""
        return {}

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """A dataset with the stages that read and prepare it."""
        return PreparedDataset(dataset, {"data": self.read(study, dataset, study.config.seed)})

    def read(self, study: Study, dataset: ConfiguredComponent, seed: int) -> Stage:
        """The stage that reads a dataset; ``seed`` 0 where it draws nothing, so that runs of other seeds share it."""
        parameters = {
            "dataset": dataset.parameters(),
            **source_of(dataset, study.access),
            **self.data_parameters(study, dataset),
        }
        return self.stage(
            "data", dataset.label, "read_data", parameters, {}, ("read_data",), seed, dataset.spec.name
        )

    def model_parameters(self, study: Study, component: ConfiguredComponent) -> Mapping[str, Any]:
        """What determines a fitted model, besides its component and the data."""
        return {"threads": study.config.threads}

    def models(
        self, study: Study, data: PreparedDataset, component: ConfiguredComponent
    ) -> Sequence[PreparedModel]:
        """A component of the configuration as models: one by default, more for example at checkpoints."""
        model = PreparedModel(data, component, component.label, data.stages)
        if data.skipped or self.is_external(component):
            return [model]
        fitted = self.fitted(study, model, {"model": component.parameters()})
        return [PreparedModel(data, component, component.label, {**data.stages, "model": fitted})]

    def fitted(self, study: Study, model: PreparedModel, parameters: Mapping[str, Any]) -> Stage:
        """The stage that fits a model."""
        return self.stage(
            "model",
            model.about,
            "fit_model",
            {**parameters, **self.model_parameters(study, model.component)},
            model.data.stages,
            ("load_data", "fit"),
            study.config.seed,
            model.data.name,
        )

    def observable(self, model: PreparedModel) -> Mapping[str, Stage]:
        """What all stages after the model may read, by role: the data, and the model unless it explains itself."""
        return model.data.stages if self.models_explain else model.stages

    def chunk_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        """Parameters of all stages that open a chunk: the protocol point, and what else ``open_chunk`` needs."""
        return dict(point)

    def unit_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        """What determines which units are explained; of the point only the axes that matter for that."""
        return dict(point)

    def unit_key(self, point: ProtocolPoint) -> tuple[str, ...]:
        """Columns of ``units.parquet`` that define a unit: external explanations may give these in place of ``unit``."""
        return self.layout.unit_columns

    def units(self, study: Study, model: PreparedModel, point: ProtocolPoint) -> Stage:
        """The stage that lists what is explained."""
        return self.stage(
            "units",
            f"units of {model.data.dataset.label if self.models_explain else model.about}",
            "choose_units",
            self.unit_parameters(study, point),
            self.observable(model),
            ("load_data", "restore", "choose_units"),
            study.config.seed,
            model.data.name,
        )

    def explanation_parameters(
        self, study: Study, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> Mapping[str, Any]:
        """What determines explanations, besides the explainer and the protocol point."""
        return {"threads": study.config.threads}

    def explained(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        point: ProtocolPoint,
        known: Mapping[str, Stage],
    ) -> dict[str, Stage]:
        """The stages that end in "explanations", with "explainer" where it is pre-trained."""
        parameters = {} if self.models_explain else {"explainer": explainer.parameters()}
        parameters |= self.chunk_parameters(study, point)
        own = {**parameters, **self.explanation_parameters(study, explainer, point)}
        prepared = self.pretrained(study, model, explainer, parameters, known)
        explanations = self.explanation_stage(
            study, model, explainer, "explain", own, {**known, **prepared}, ("explain", "to_rows")
        )
        return {**prepared, "explanations": explanations}

    def pretrained(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        parameters: Mapping[str, Any],
        known: Mapping[str, Stage],
    ) -> dict[str, Stage]:
        """The stage that pre-trains an explainer, in the role "explainer"; none for one that learns nothing."""
        if "pretraining" not in explainer.spec.provides:
            return {}
        stage = self.stage(
            "explainer",
            f"{explainer.label} trained for {model.about}",
            "prepare_explainer",
            {**parameters, "threads": study.config.threads},
            known,
            ("load_data", "restore", "prepare"),
            study.config.seed,
            model.data.name,
        )
        return {"explainer": stage}

    def explanation_stage(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        target: str,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Stage],
        steps: Sequence[str],
    ) -> Stage:
        """A chunked stage of kind "explanations"."""
        return self.stage(
            "explanations",
            self.about(model, explainer),
            target,
            parameters,
            inputs,
            ("load_data", "restore", "open_chunk", *steps, *self._optional("describe")),
            study.config.seed,
            model.data.name,
            chunked=True,
        )

    def external_stages(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        point: ProtocolPoint,
        known: Mapping[str, Stage],
    ) -> dict[str, Stage]:
        """External explanations: the rows of the table for this cell, checked at once, then chunk by chunk."""
        assert study.external is not None
        parameters = {
            "file": str(study.external.path.resolve()),
            "digest": study.external.digest,
            "labels": self.labels(model, explainer, point),
            "unit_key": list(self.unit_key(point)),
            **point,
        }
        external = self.stage(
            "external",
            f"external explanations of {self.about(model, explainer)}",
            self.external_target,
            parameters,
            known,
            ("load_data", *self._optional("read_file")),
            0,
            model.data.name,
        )
        inputs, steps = {**known, "external": external}, ("from_rows", "to_rows")
        explanations = self.explanation_stage(
            study, model, explainer, "import_explanations", self.chunk_parameters(study, point), inputs, steps
        )
        return {"external": external, "explanations": explanations}

    def scored_inputs(
        self,
        study: Study,
        explainer: ConfiguredComponent,
        known: Mapping[str, Stage],
        explained: Mapping[str, Stage],
    ) -> Mapping[str, Stage]:
        """Further inputs of the scoring stage, by role: stages between the explanations and the scores."""
        return {}

    def external_table(self, path: Path) -> ExternalTable:
        """The table of ``cfbench evaluate``."""
        known = dict.fromkeys((*self.layout.by, self.layout.row))
        return ExternalTable(path, tuple(known), self.external_columns, self.external_form)

    def external_component(self, kind: str, name: str) -> ConfiguredComponent:
        """Stands for the author of external explanations."""
        id = f"{self.name}/{kind}/external"
        return ConfiguredComponent(kind, name, ComponentSpec(id=id, summary="external", target=EXTERNAL))

    def _optional(self, *steps: str) -> list[str]:
        """Those of the steps that the suite has."""
        return [step for step in steps if step in self.steps]

    def is_external(self, component: ConfiguredComponent) -> bool:
        """Whether a component stands for the author of external explanations."""
        return component.spec.target == EXTERNAL

    # Documents and descriptions

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """The configuration of ``cfbench run`` without one: a dataset, a model, and all explainers of the default."""
        kinds = {"data": "dataset", self.models_key: self.model_kind}
        first = {key: registry.by_default(self.name, kind)[:1] for key, kind in kinds.items()}
        compared = (self.models_key, self.model_kind) if self.models_explain else ("explainers", "explainer")
        return {"suite": self.name, **first, compared[0]: registry.by_default(self.name, compared[1])}

    def example_document(self, registry: Registry) -> str:
        """The configuration of ``cfbench init``."""
        import yaml

        document = yaml.safe_dump(dict(self.default_document(registry)), sort_keys=False)
        return f"# Check it with 'cfbench plan', run it with 'cfbench run'.\n{document}"

    def describe_data(self, config: Any, summaries: Mapping[str, Any]) -> str:
        """A few words on the datasets, for the head line."""
        return ", ".join(dataset.label for dataset in config.data)

    def verbalize(self, run: Run) -> str:
        """One explanation of the run as a sentence; "" when there is none."""
        return ""
