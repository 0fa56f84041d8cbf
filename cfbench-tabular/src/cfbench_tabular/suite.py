"""The tabular suite: expands a configuration to cells. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, TableLayout
from cfbench_core.specs import Capabilities, ComponentSpec, resolve
from cfbench_tabular.classifiers.adapting import is_raw
from cfbench_tabular.config import Protocol, TabularConfig
from cfbench_tabular.contracts import CONTRACTS
from cfbench_tabular.external import ExternalTable
from cfbench_tabular.grid import STAGES, DatasetPlan, Grid

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

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


class TabularSuite:
    """Counterfactual explanations of classifiers: data -> model -> units -> explanations -> scores."""

    config = TabularConfig
    contracts = CONTRACTS
    layout = TableLayout(by=("dataset", "model"), row="explainer", unit_columns=("row",))

    def cells(
        self,
        config: TabularConfig,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        metrics = _metrics(config, registry)
        external = ExternalTable(explanations) if explanations else None
        explainers = _external_explainers(external) if external else config.explainers
        cells = []
        for dataset in config.data:
            prepared = DatasetPlan(dataset, config, access)
            for classifier in config.classifiers:
                grid = Grid(config, prepared, classifier, metrics, external)
                cells += [grid.cell(explainer) for explainer in explainers]
        return cells

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """The capabilities of a class named by ``import:``, derived from its methods."""
        if kind == "classifier":
            return {"access": _access(implementation)}, {}
        if kind == "explainer":
            return {"columns": frozenset({"numeric", "categorical"})}, {}
        return {}, {}

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


def _access(classifier: type) -> frozenset[str]:
    """The access that a user's classifier gives to explainers.

    Raises:
        UserError: if it is an object in place of a class.
    """
    if not isinstance(classifier, type):
        raise UserError(
            f"this {type(classifier).__name__} is not a class: use "
            "{name: scikit-learn, factory: 'package.module:name', train: false}"
        )
    methods = {"gradients": "log_odds_gradient", "layers": "layers"}
    offered = {access for access, method in methods.items() if hasattr(classifier, method)}
    return frozenset({"scores"} | (set() if is_raw(classifier) else offered))


def _metrics(config: TabularConfig, registry: Registry) -> tuple[ConfiguredComponent, ...]:
    """The configured metrics; by default all installed ones whose protocol option is set."""
    if config.metrics is None:
        return tuple(m for m in _all_metrics(registry) if not _unset_option(m.spec, config.protocol))
    for metric in config.metrics:
        option = _unset_option(metric.spec, config.protocol)
        if option:
            default = getattr(Protocol(), option)
            raise UserError(
                f"metric {metric.label} needs protocol.{option}, which is {str(default).lower()} here"
            )
    return config.metrics


def _unset_option(metric: ComponentSpec, protocol: Protocol) -> str:
    """The protocol option that a metric requires, if it has its default value; else empty."""
    option = str(metric.details.get("protocol", ""))
    return option if option and getattr(protocol, option) == getattr(Protocol(), option) else ""


def _all_metrics(registry: Registry) -> tuple[ConfiguredComponent, ...]:
    """The main metrics first, then the others by name."""
    first = ["validity", "coverage", "sparsity", "l2", "realism", "madd", "mahalanobis"]
    names = sorted(
        registry.names("tabular", "metric"), key=lambda n: (first.index(n) if n in first else 99, n)
    )
    return tuple(_with_defaults(registry, name) for name in names)


def _with_defaults(registry: Registry, metric: str) -> ConfiguredComponent:
    component = registry.find("tabular", "metric", metric)
    options = resolve(component.spec.config)() if component.spec.config else None
    owner = f"{component.distribution} {component.distribution_version}"
    return ConfiguredComponent("metric", metric, component.spec, options, owner)


def _external_explainers(table: ExternalTable) -> tuple[ConfiguredComponent, ...]:
    """Placeholders for the explainers that a table of external explanations names."""
    spec = ComponentSpec(
        id="tabular/explainer/external",
        summary="External explanations",
        target=f"{STAGES}:import_explanations",
    )
    return tuple(ConfiguredComponent("explainer", name, spec) for name in table.explainers())


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
