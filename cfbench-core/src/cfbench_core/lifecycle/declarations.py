"""What a suite declares of itself. Everything has a default, so a small suite overrides little.

See ``suite.py`` for the base class of suites. Importing this imports neither torch nor pandas.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config.component import ConfiguredComponent, with_defaults
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import NUMBERS, TABLE_FORM, ExternalTable
from cfbench_core.lifecycle.study import STAGES, PlannedCell, PreparedModel, ProtocolPoint, Setting, Study
from cfbench_core.plan import Column, TableLayout
from cfbench_core.specs import ComponentSpec, lacking
from cfbench_core.stages import Stage
from cfbench_core.suites import Experiment

if TYPE_CHECKING:
    from cfbench_core.registry import Registry

EXTERNAL = f"{STAGES}:import_explanations"
SELECT_ROWS = "cfbench_core.lifecycle.external_rows:select_rows"


class Declarations:
    """The attributes and hooks of a suite, without its grid and its stages."""

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

    main_metrics: ClassVar[tuple[str, ...]] = ()
    """The first columns of a table; those of other metrics follow."""

    external_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a table of external explanations must have."""

    external_numbers: ClassVar[tuple[str, ...]] = ()
    """Columns of such a table that hold numbers, or nothing."""

    external_words: ClassVar[Mapping[str, Collection[str]]] = {}
    """The words that may stand in columns of such a table."""

    external_form: ClassVar[str] = TABLE_FORM
    """What such a table is, for messages."""

    external_target: ClassVar[str] = SELECT_ROWS
    """The stage that selects the rows of a table of external explanations for a cell."""

    # The grid

    def steps_of(self, config: Any) -> Mapping[str, str]:
        """The steps under a configuration."""
        return self.steps

    def check(self, study: Study) -> None:
        """Raises UserError for a configuration that can be decoded, but not planned."""

    def metrics(self, config: Any, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        """The metrics of a configuration; where it names none, those of the default that it allows.

        Raises:
            UserError: when the configuration names a metric that it does not allow.
        """
        if config.metrics is None:
            names = self.default_metrics(registry)
            found = [with_defaults(registry.find(self.name, "metric", name)) for name in names]
            return tuple(metric for metric in found if not self.metric_needs(config, metric))
        for metric in config.metrics:
            if needed := self.metric_needs(config, metric):
                raise UserError(f"metric {metric.label} needs {needed}")
        chosen: tuple[ConfiguredComponent, ...] = config.metrics
        return chosen

    def default_metrics(self, registry: Registry) -> Sequence[str]:
        """The metrics of a configuration that names none: all that are installed for the suite."""
        places = {name: place for place, name in enumerate(self.main_metrics)}
        found = registry.by_default(self.name, "metric")
        return sorted(found, key=lambda name: places.get(name, len(places)))

    def metric_needs(self, config: Any, metric: ConfiguredComponent) -> str:
        """What a metric needs and the configuration lacks; "" when it lacks nothing."""
        return ""

    def fits(self, setting: Setting, metric: ConfiguredComponent) -> bool:
        """Whether a metric applies in a setting."""
        return True

    def metric_entries(
        self, setting: Setting, metric: ConfiguredComponent
    ) -> list[tuple[Mapping[str, Any], Sequence[Column]]]:
        """A metric as the scoring stage's parameters, with the columns that it fills."""
        columns = tuple(metric.create().columns(setting.point))
        names = {column.name: column.name for column in columns}
        return [({"metric": metric.parameters(), "columns": names}, columns)]

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

    def labels(self, cell: PlannedCell) -> dict[str, str | int]:
        """What distinguishes a cell from others: columns of every table."""
        own = {} if self.models_explain else {"explainer": cell.explainer.label}
        model = cell.model
        return {"dataset": model.data.dataset.label, "model": model.label, **own, **cell.point}

    def about(self, cell: PlannedCell) -> str:
        """ "lime-rs for mf on ml-1m": for the labels of stages."""
        return cell.model.about if self.models_explain else f"{cell.explainer.label} for {cell.model.about}"

    def incompatibility(self, cell: PlannedCell) -> str:
        """Why an explainer cannot work here, without its name; "" when it can."""
        model, explainer = cell.model, cell.explainer
        gap = lacking(explainer.needs.get(self.model_kind, {}), model.component.spec.provides)
        if gap:
            return f"needs {gap}, which {model.label} does not offer"
        gap = lacking(model.data.dataset.spec.needs.get("explainer", {}), explainer.spec.provides)
        return f"{model.data.dataset.label} needs {gap}, which it does not offer" if gap else ""

    def obstacle(self, setting: Setting) -> str:
        """Why nothing can explain a model at a protocol point, external explanations included; "" when it can."""
        return ""

    def remark(self, cell: PlannedCell) -> str:
        """What to know about the results of a cell that is run; "" for nothing."""
        return ""

    # Parameters of stages

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        """What determines how a dataset is prepared, besides the dataset: the split, for example."""
        return {}

    def observable(self, model: PreparedModel) -> Mapping[str, Stage]:
        """What all stages after the model may read, by role: the data, and the model unless it explains itself."""
        return model.data.stages if self.models_explain else model.stages

    def chunk_parameters(self, setting: Setting) -> Mapping[str, Any]:
        """Parameters of all stages that open a chunk: the protocol point, and what else ``open_chunk`` needs."""
        return dict(setting.point)

    def unit_parameters(self, setting: Setting) -> Mapping[str, Any]:
        """What determines which units are explained; of the point only the axes that matter for that."""
        return dict(setting.point)

    def unit_key(self, setting: Setting) -> tuple[str, ...]:
        """Columns of ``units.parquet`` that define a unit: external explanations may give these in place of ``unit``."""
        return self.layout.unit_columns

    def explanation_parameters(self, cell: PlannedCell) -> Mapping[str, Any]:
        """What determines explanations, besides the explainer, the threads and the protocol point."""
        return {}

    def pretraining_inputs(self, cell: PlannedCell, known: Mapping[str, Stage]) -> Mapping[str, Stage]:
        """What the stage that pre-trains an explainer reads, by role: of the ``known`` stages all, units included.

        Cells with the same inputs share what was learned, so a suite whose explainers learn nothing from the units of a
        cell leaves them out.
        """
        return known

    def explained_inputs(self, cell: PlannedCell) -> Mapping[str, Stage]:
        """Further inputs of the stage that explains, by role: for an explainer that needs more than the model."""
        return {}

    def explainer_as_queried(self, cell: PlannedCell) -> ConfiguredComponent:
        """The explainer of a cell without options that are for the suite alone: rows that differ in these share answers."""
        return cell.explainer

    def derived_from(self, cell: PlannedCell) -> ProtocolPoint | None:
        """The protocol point whose answers become those of this cell (step ``derive``); None where they are its own."""
        return None

    def scored_inputs(self, cell: PlannedCell, stages: Mapping[str, Stage]) -> Mapping[str, Stage]:
        """Further inputs of the scoring stage, by role, made of the cell's other stages."""
        return {}

    # External explanations

    def external_table(self, path: Path) -> ExternalTable:
        """The table of ``cfbench evaluate``."""
        known = dict.fromkeys((*self.layout.by, self.layout.row))
        values = {**self.external_words, **dict.fromkeys(self.external_numbers, NUMBERS)}
        return ExternalTable(path, tuple(known), self.external_columns, self.external_form, values)

    def external_component(self, kind: str, name: str) -> ConfiguredComponent:
        """Stands for the author of external explanations."""
        id = f"{self.name}/{kind}/external"
        return ConfiguredComponent(kind, name, ComponentSpec(id=id, summary="external", target=EXTERNAL))

    def is_external(self, component: ConfiguredComponent) -> bool:
        """Whether a component stands for the author of external explanations."""
        return component.spec.target == EXTERNAL
