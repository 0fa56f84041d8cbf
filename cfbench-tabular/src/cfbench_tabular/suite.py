"""The tabular suite on the shared life cycle. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.contracts import Contract
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.external import TABLE_FORM
from cfbench_core.lifecycle.steps import steps_by_module
from cfbench_core.lifecycle.study import PlannedCell, PreparedDataset, PreparedModel, Setting, Study
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import TableLayout
from cfbench_core.specs import Capabilities, ComponentSpec
from cfbench_core.stages import Stage
from cfbench_tabular.classifiers.adapting import is_raw
from cfbench_tabular.config import Protocol, TabularConfig
from cfbench_tabular.config_templates import DEFAULT_DOCUMENT, EXAMPLE_DOCUMENT
from cfbench_tabular.contracts import CONTRACTS
from cfbench_tabular.datasets import schema_digest
from cfbench_tabular.steps import REPEATED, RETRAINED, UNSEEN
from cfbench_tabular.study import published_files, published_network
from cfbench_tabular.study_factuals import FACTUALS, in_place_of

if TYPE_CHECKING:
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

STEPS = "cfbench_tabular.steps"

RETRAINED_MODELS = "retrained"
"""In the details of a component that needs models that are trained again: ``{"models": "retrained"}``."""

SPEC = ComponentSpec(
    id="tabular/suite/tabular",
    summary="Counterfactual explanations of classifiers on tabular data",
    target=f"{__name__}:TabularSuite",
    details={
        "conformance": "cfbench_tabular.testing:checks",
        "commands": {"advise": "cfbench_tabular.advise:command"},
    },
)


class TabularSuite(LifecycleSuite):
    """Counterfactual explanations of classifiers: data -> model -> units -> explanations -> scores."""

    name = "tabular"
    config = TabularConfig
    contracts: ClassVar[Mapping[str, Contract]] = CONTRACTS
    layout = TableLayout(
        by=("dataset", "model"),
        row="explainer",
        unit_columns=("row", "imputed"),
        primary=("MADD", "L2", "feasible"),
    )
    steps: ClassVar[Mapping[str, str]] = steps_by_module(
        STEPS,
        data="read_data load_data",
        fitting="fit restore",
        units="choose_units",
        chunks="open_chunk describe",
        explaining="explain",
        answers="to_rows from_rows read_file",
        scoring="observe",
    )
    model_kind = "classifier"
    models_key = "classifiers"
    main_metrics = ("feasibility", "validity", "coverage", "sparsity", "l2", "realism", "madd", "mahalanobis")
    defaults = DEFAULT_DOCUMENT
    default_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {"optimum": {"objective": "madd"}}
    """The certified row is then the best possible in the primary metric."""
    example = EXAMPLE_DOCUMENT
    verbalization = "cfbench_tabular.verbalization:best_explanation"
    external_form = f"{TABLE_FORM}, or complete counterfactual rows"

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """The capabilities of a class named by ``import:``, derived from its methods."""
        contract = self.contracts[kind]
        if kind == "classifier" and not isinstance(implementation, type):
            raise UserError(
                f"this {type(implementation).__name__} is not a class: use "
                "{name: scikit-learn, factory: 'package.module:name', train: false}"
            )
        if kind == "classifier" and is_raw(implementation):  # gradients are those of encoded rows
            return contract.provides, contract.needs
        return contract.capabilities(implementation), contract.needs

    # The grid

    def steps_of(self, config: TabularConfig) -> Mapping[str, str]:
        """In ``protocol: paper`` the published split and factuals are taken."""
        if config.protocol.study is None:
            return self.steps
        return {**self.steps, **{step: f"{STEPS}.published:{step}" for step in ("read_data", "choose_units")}}

    def metric_needs(self, config: TabularConfig, metric: ConfiguredComponent) -> str:
        """The protocol options of which a metric requires one, if all have their default values."""
        options = str(metric.spec.details.get("protocol", "")).split()
        if not options or any(
            getattr(config.protocol, name) != getattr(Protocol(), name) for name in options
        ):
            return ""
        first = options[0]
        return f"protocol.{first}, which is {str(getattr(Protocol(), first)).lower()} here"

    def fits(self, setting: Setting, metric: ConfiguredComponent) -> bool:
        """A metric of retrained models needs a model that can be trained again, and most need the rows of the data set."""
        if _without_rows(setting) and not metric.spec.details.get("factuals suffice"):
            return False
        return metric.spec.details.get("models") != RETRAINED_MODELS or not _given(setting.model.component)

    def incompatibility(self, cell: PlannedCell) -> str:
        if _needs_retrained(cell.explainer) and _given(cell.model.component):
            return f"needs a model that can be trained again, but the weights of {cell.model.label} are given"
        return super().incompatibility(cell)

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """A data set with a split of its own, or in ``protocol: paper`` with the published one."""
        if study.config.protocol.study is None:
            return super().prepared(study, dataset)
        rows = study.external is None  # counterfactuals from elsewhere can be scored without them
        files = published_files(dataset, study.access, study.config.protocol.folder, rows)
        if isinstance(files, str):
            return PreparedDataset(dataset, skipped=files)
        parameters = {**self.data_parameters(study, dataset), "study": files.parameters()}
        reading = files.reading(dataset) if files.rows.is_file() else in_place_of(dataset, files)
        return PreparedDataset(dataset, {"data": study.read(reading, parameters, draws=False)})

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        """The split, and the digest of the schema in this package by which a data set is read."""
        protocol = study.config.protocol
        schema = schema_digest(dataset.spec.name)
        return {
            "validation": protocol.validation,
            "test": protocol.test,
            "decision_threshold": protocol.decision_threshold,
            "schema": schema,
        }

    def models(
        self, study: Study, data: PreparedDataset, component: ConfiguredComponent
    ) -> Sequence[PreparedModel]:
        """The classifier, with the published weights if its spec requests them."""
        factual_class = getattr(data.dataset.options, "factual_class", None)
        learns_all = not component.distribution or getattr(component.options, "classes", None) == "all"
        if factual_class is not None and not learns_all:
            reason = f"factual_class: {factual_class} needs a model of all classes: {{classes: all}}"
            return [PreparedModel(data, component, component.label, skipped=reason)]
        wants_weights = component.spec.details.get("weights") == "study" and component.options.weights is None
        if data.skipped or not wants_weights:
            return super().models(study, data, component)
        file = published_network(component.label, data.stages["data"].parameters.get("study"))
        if isinstance(file, str):
            return [PreparedModel(data, component, component.label, skipped=file)]
        return super().models(study, data, component.with_options({"weights": str(file.resolve())}))

    def remark(self, cell: PlannedCell) -> str:
        """Explainers that give one counterfactual where the protocol requests several."""
        if _without_rows(cell):
            return "the rows of the data set are missing: only the metrics that need nothing but the factuals"
        requested = cell.config.protocol.counterfactuals_per_instance
        if requested == 1 or _gives_several(cell) or self.is_external(cell.explainer):
            return ""
        return f"gives one counterfactual per row, not {requested} (protocol.counterfactuals_per_instance)"

    # Parameters of stages

    def unit_parameters(self, setting: Setting) -> Mapping[str, Any]:
        published = setting.model.stages["data"].parameters.get("study")
        return {"factuals": setting.config.protocol.factuals, "study": published}

    def unit_key(self, setting: Setting) -> tuple[str, ...]:
        return ("row",)

    def explanation_parameters(self, cell: PlannedCell) -> Mapping[str, Any]:
        protocol = cell.config.protocol
        per_instance = protocol.counterfactuals_per_instance if _gives_several(cell) else 1
        in_search = "explainer" if _respects_constraints(cell) else "search"
        return {
            "counterfactuals_per_instance": per_instance,
            "seconds": protocol.seconds,
            "constraints": in_search if protocol.in_search else "check",
        }

    def explained_inputs(self, cell: PlannedCell) -> Mapping[str, Stage]:
        """Models that are trained again, for an explainer that needs them."""
        if not _needs_retrained(cell.explainer):
            return {}
        options = cell.explainer.options
        return {RETRAINED: _retrained(cell, options.models, options.changes, "explain")}

    def scored_inputs(self, cell: PlannedCell, stages: Mapping[str, Stage]) -> Mapping[str, Stage]:
        """What ``protocol.repeats`` and ``retrained_models`` add: other models, and the explanations of a second call."""
        protocol, added = cell.config.protocol, {}
        measured = any(metric.spec.details.get("models") == RETRAINED_MODELS for metric in cell.study.metrics)
        if protocol.retrainings and measured and not _given(cell.model.component):
            count, changes = protocol.retrainings
            added[UNSEEN] = _retrained(cell, count, changes, "score")
        if protocol.repeats and cell.study.external is None:
            added[REPEATED] = _with_another_seed(stages["explanations"])
        return added

    # Runs

    def left_out(self, run: Run, unit: str) -> str:
        """Why a row of the file is not in the table; "" if it is there, or the data is not in the cache any more."""
        from cfbench_tabular.view import left_out

        return left_out(run, unit)

    # Documents

    def csv_document(
        self, file: Path, class_column: str | None, registry: Registry, encoding: str | None = None
    ) -> str:
        """A configuration with a schema of a CSV file, drafted by looking at it: ``cfbench init --csv``."""
        from cfbench_tabular.config_from_csv import csv_document, default_explainers

        explainers = default_explainers(registry.names("tabular", "explainer"))
        return csv_document(file, class_column, explainers, encoding)


def _without_rows(setting: Setting) -> bool:
    """Whether only the published factuals of the data set are there."""
    stages = setting.model.data.stages
    return "data" in stages and stages["data"].parameters["dataset"]["component"] == FACTUALS.id


def _gives_several(cell: PlannedCell) -> bool:
    return "several" in cell.explainer.spec.provides.get("counterfactuals", frozenset())


def _respects_constraints(cell: PlannedCell) -> bool:
    """Whether the explainer itself respects constraints between columns; rows of the others are repaired."""
    return "between-columns" in cell.explainer.spec.provides.get("constraints", frozenset())


def _needs_retrained(explainer: ConfiguredComponent) -> bool:
    return bool(explainer.spec.details.get("models") == RETRAINED_MODELS)


def _given(classifier: ConfiguredComponent) -> bool:
    """Whether a classifier is not trained here: its weights are given, or it is a user's own without ``fit``."""
    options = classifier.options
    if getattr(options, "weights", None) is not None or not getattr(options, "train", True):
        return True
    return not hasattr(classifier.implementation(), "fit")


def _retrained(cell: PlannedCell, count: int, changes: Sequence[str], purpose: str) -> Stage:
    """The stage that trains the model of a cell again, several times; ``purpose`` names its random streams."""
    model, study = cell.model, cell.study
    parameters = {
        "model": model.component.parameters(),
        "threads": cell.config.threads,
        "count": count,
        "changes": sorted(changes),
        "purpose": purpose,
    }
    return study.stage(
        "retrained",
        f"{model.about}, trained {count} {'time' if count == 1 else 'times'} again",
        "cfbench_tabular.steps.retraining:fit_again",
        parameters,
        model.data.stages,
        ("load_data",),
    )


def _with_another_seed(stage: Stage) -> Stage:
    """The same stage on the same inputs with another random seed."""
    return replace(stage, label=f"{stage.label}, repeated", seed=stage.seed + 1)
