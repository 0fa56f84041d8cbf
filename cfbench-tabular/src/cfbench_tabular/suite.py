"""The tabular suite on the shared life cycle. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.contracts import Contract
from cfbench_core.errors import UserError
from cfbench_core.hashing import digest
from cfbench_core.lifecycle.external import TABLE_FORM
from cfbench_core.lifecycle.study import PreparedDataset, PreparedModel, ProtocolPoint, Study
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import TableLayout
from cfbench_core.specs import Capabilities, ComponentSpec
from cfbench_core.stages import Stage
from cfbench_tabular.classifiers.adapting import is_raw
from cfbench_tabular.config import Protocol, TabularConfig
from cfbench_tabular.contracts import CONTRACTS
from cfbench_tabular.steps import REPEATED, SECOND_MODEL
from cfbench_tabular.study import NAMES as STUDY_NAMES
from cfbench_tabular.study import StudyFiles, find_study

if TYPE_CHECKING:
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

STEPS = "cfbench_tabular.steps"

MAIN_METRICS = ("validity", "coverage", "sparsity", "l2", "realism", "madd", "mahalanobis")
"""The first columns of a table; the others follow by name."""

SPEC = ComponentSpec(
    id="tabular/suite/tabular",
    summary="Counterfactual explanations of classifiers on tabular data",
    target=f"{__name__}:TabularSuite",
    details={
        "conformance": "cfbench_tabular.testing:checks",
        "plugin_templates": "cfbench_tabular:templates/plugin",
        "commands": {"advise": "cfbench_tabular.advise:command"},
    },
)


class TabularSuite(LifecycleSuite):
    """Counterfactual explanations of classifiers: data -> model -> units -> explanations -> scores."""

    name = "tabular"
    config = TabularConfig
    contracts: ClassVar[Mapping[str, Contract]] = CONTRACTS
    layout = TableLayout(by=("dataset", "model"), row="explainer", unit_columns=("row",))
    steps: ClassVar[Mapping[str, str]] = {
        "read_data": f"{STEPS}.data:read_data",
        "load_data": f"{STEPS}.data:load_data",
        "fit": f"{STEPS}.fitting:fit",
        "restore": f"{STEPS}.fitting:restore",
        "choose_units": f"{STEPS}.units:choose_units",
        "open_chunk": f"{STEPS}.chunks:open_chunk",
        "describe": f"{STEPS}.chunks:describe",
        "explain": f"{STEPS}.explaining:explain",
        "to_rows": f"{STEPS}.answers:to_rows",
        "from_rows": f"{STEPS}.answers:from_rows",
        "read_file": f"{STEPS}.answers:read_file",
        "observe": f"{STEPS}.scoring:observe",
    }
    model_kind = "classifier"
    models_key = "classifiers"
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

    def metrics(self, config: TabularConfig, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        """The configured metrics; by default all installed ones whose protocol option is set, the main ones first."""
        for metric in config.metrics or ():
            option = _unset_option(metric.spec, config.protocol)
            if option:
                default = str(getattr(Protocol(), option)).lower()
                raise UserError(f"metric {metric.label} needs protocol.{option}, which is {default} here")
        order = {name: place for place, name in enumerate(MAIN_METRICS)}
        names = sorted(
            registry.names("tabular", "metric"), key=lambda name: (order.get(name, len(order)), name)
        )
        specs = {name: registry.find("tabular", "metric", name).spec for name in names}
        return self.named_metrics(
            config, registry, [name for name in names if not _unset_option(specs[name], config.protocol)]
        )

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """A data set with a split of its own, or in ``protocol: paper`` with the published one."""
        if study.config.protocol.study is None:
            return super().prepared(study, dataset)
        files, skipped = _published(study, dataset)
        if files is None or skipped:
            return PreparedDataset(dataset, skipped=skipped)
        found = dataset
        if hasattr(dataset.options, "path"):
            found = dataset.with_options({"path": str(files.rows.resolve())})
        stage = self.read(study, found, seed=0)
        stage = replace(
            stage,
            parameters={**stage.parameters, "study": files.parameters()},
            steps={"read_data": f"{STEPS}.published:read_data"},
        )
        return PreparedDataset(dataset, {"data": stage})

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        """The split, and the digest of the schema in this package by which a data set is read."""
        from importlib import resources

        protocol = study.config.protocol
        split = {"validation": protocol.validation, "test": protocol.test} if protocol.study is None else {}
        schema = resources.files("cfbench_tabular.datasets") / "schemas" / f"{dataset.spec.name}.yaml"
        return {**split, **({"schema": digest(schema.read_text("utf-8"))} if schema.is_file() else {})}

    def models(
        self, study: Study, data: PreparedDataset, component: ConfiguredComponent
    ) -> Sequence[PreparedModel]:
        """The classifier, with the published weights if its spec requests them."""
        wants_weights = component.spec.details.get("weights") == "study" and component.options.weights is None
        if data.skipped or not wants_weights:
            return super().models(study, data, component)
        published = data.stages["data"].parameters.get("study")
        if published is None:
            skipped = f"{component.label} needs 'protocol: paper', whose encoding it was trained with"
            return [PreparedModel(data, component, component.label, skipped=skipped)]
        files = StudyFiles.of(published)
        if not files.network.is_file():
            skipped = f"{files.folder} has no models/{files.network.name}"
            return [PreparedModel(data, component, component.label, skipped=skipped)]
        return super().models(study, data, component.with_options({"weights": str(files.network.resolve())}))

    def unit_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        return {"factuals": study.config.protocol.factuals}

    def units(self, study: Study, model: PreparedModel, point: ProtocolPoint) -> Stage:
        """The stage that chooses the rows, or in ``protocol: paper`` looks up the published ones."""
        stage, published = super().units(study, model, point), model.stages["data"].parameters.get("study")
        if published is None:
            return stage
        steps = {**stage.steps, "choose_units": f"{STEPS}.published:choose_units"}
        return replace(stage, parameters={**stage.parameters, "study": published}, steps=steps)

    def explanation_parameters(
        self, study: Study, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> Mapping[str, Any]:
        several = "several" in explainer.spec.provides.get("counterfactuals", frozenset())
        protocol = study.config.protocol
        return {
            "threads": study.config.threads,
            "counterfactuals_per_instance": protocol.counterfactuals_per_instance if several else 1,
            "seconds": protocol.seconds,
        }

    def scored_inputs(
        self,
        study: Study,
        explainer: ConfiguredComponent,
        known: Mapping[str, Stage],
        explained: Mapping[str, Stage],
    ) -> Mapping[str, Stage]:
        """What ``protocol.repeats`` adds: a second model, and the explanations of a second call."""
        if not study.config.protocol.repeats:
            return {}
        repeated = {SECOND_MODEL: _with_another_seed(known["model"])}
        if study.external is None:
            repeated[REPEATED] = _with_another_seed(explained["explanations"])
        return repeated

    # Documents and descriptions

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        return {
            "suite": "tabular",
            "seed": 0,
            "data": ["iris", "wine", "breast-cancer", "balance-scale", "tic-tac-toe"],
            "classifiers": ["mlp"],
            "explainers": registry.by_default("tabular", "explainer"),
            "protocol": {"factuals": 20},
        }

    def example_document(self, registry: Registry) -> str:
        return EXAMPLE_DOCUMENT.format(explainers=", ".join(self.default_document(registry)["explainers"]))

    def csv_document(self, file: Path, class_column: str | None, registry: Registry) -> str:
        """A configuration with a schema of a CSV file, drafted by looking at it: ``cfbench init --csv``."""
        from cfbench_tabular.config_from_csv import csv_document, default_explainers

        return csv_document(file, class_column, default_explainers(registry.names("tabular", "explainer")))

    def describe_data(self, config: TabularConfig, summaries: Mapping[str, Any]) -> str:
        found = [
            (dataset.label, summaries[dataset.label]) for dataset in config.data if dataset.label in summaries
        ]
        return ", ".join(f"{label} ({s['rows']:,} rows, {s['columns']} columns)" for label, s in found)

    def verbalize(self, run: Run) -> str:
        from cfbench_tabular.verbalization import best_explanation

        return best_explanation(run)


def _unset_option(metric: ComponentSpec, protocol: Protocol) -> str:
    """The protocol option that a metric requires, if it has its default value; else empty."""
    option = str(metric.details.get("protocol", ""))
    return option if option and getattr(protocol, option) == getattr(Protocol(), option) else ""


def _published(study: Study, dataset: ConfiguredComponent) -> tuple[StudyFiles | None, str]:
    """The published files of a data set, and the reason to skip the data set or ""."""
    name = STUDY_NAMES.get(dataset.spec.name)
    if name is None or not dataset.distribution:
        return None, f"{dataset.label} is not one of the 22 data sets of CF-tabular"
    if getattr(dataset.options, "target", None) is not None:
        return None, "protocol: paper predicts the majority class: remove the option 'target'"
    files = StudyFiles(find_study(study.access, study.config.protocol.folder), name)
    return files, files.lacking()


def _with_another_seed(stage: Stage) -> Stage:
    """The same stage on the same inputs with another random seed."""
    return replace(stage, label=f"{stage.label}, repeated", seed=stage.seed + 1)


EXAMPLE_DOCUMENT = """\
# A study of tabular counterfactuals. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: tabular
seed: 0
data:                                  # 'cfbench list datasets'
  - iris
  - {{name: wine, target: class_0}}      # this class against the rest; without 'target' the majority
  - breast-cancer
classifiers:                           # 'cfbench list classifiers'; options: 'cfbench describe mlp'
  - {{name: mlp, hidden: 16}}            # hidden: grid is the search of CF-tabular; weights: FILE loads a network
  - random-forest
explainers: [{explainers}]
protocol:
  validation: 0.2
  test: 0.2
  factuals: 20                         # explained rows per predicted class, test rows first
# protocol: paper                      # the published splits, factuals and networks (study-network) of CF-tabular
metrics: [validity, sparsity, l2, realism]
limits: {{seconds: 1800, memory_gb: 8}}  # of each task
"""
