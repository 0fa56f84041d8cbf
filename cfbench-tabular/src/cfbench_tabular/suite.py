"""The tabular suite: from a configuration to cells, as data. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, OfKind, Range, Reference
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.specs import Capabilities, ComponentSpec, lacking, resolve
from cfbench_core.stages import UNITS, Stage
from cfbench_core.suites import Experiment

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

STAGES = "cfbench_tabular.stages"
AGAIN, SECOND_MODEL = "explanations again", "second model"
"""Roles of what is done once more, with another seed."""

VERSION = "2"  # of the stages; raise it when what they compute changes


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How a data set is divided and which rows are explained. Defaults: those of the study (paper 003)."""

    validation: Annotated[
        float, Range(minimum=0, below=1), Help("share of each class, to choose models with")
    ] = 0.2
    test: Annotated[float, Range(above=0, below=1), Help("share of each class, to judge models with")] = 0.2
    factuals: Annotated[
        int, Range(minimum=1), Help("explained rows per predicted class at most, test rows first")
    ] = 100
    answers: Annotated[
        int, Range(minimum=1), Help("counterfactuals of each row, where an explainer gives several")
    ] = 1
    seconds: Annotated[
        float | None,
        Range(above=0),
        Help("for each row, of explainers that search; then nothing repeats exactly"),
    ] = None
    again: Annotated[
        bool,
        Help("train and ask once more with another seed, for stability and retraining; takes twice as long"),
    ] = False

    def __post_init__(self) -> None:
        if self.validation + self.test >= 1:
            raise ValueError("validation and test must leave rows to train on: their sum must be below 1")


@dataclass(frozen=True, kw_only=True)
class TabularConfig(Experiment):
    """The configuration of a tabular study."""

    data: Annotated[tuple[Reference, ...], OfKind("dataset"), Help("data sets")]
    classifiers: Annotated[tuple[Reference, ...], OfKind("classifier"), Help("what is explained")]
    explainers: Annotated[tuple[Reference, ...], OfKind("explainer"), Help("what explains")]
    protocol: Protocol = field(default_factory=Protocol)
    metrics: Annotated[
        tuple[Reference, ...] | None, OfKind("metric"), Help("none: all that are installed")
    ] = None


class TabularSuite:
    """data -> model -> units -> explanations -> scores, for every pair that can work."""

    config = TabularConfig
    layout = TableLayout(by=("dataset", "model"), row="explainer", unit_columns=("row",))

    def cells(
        self,
        config: TabularConfig,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        metrics = _metrics(config, registry)
        explainers = _external(explanations) if explanations else config.explainers
        cells = []
        for dataset in config.data:
            source = _source(dataset, access)
            for classifier in config.classifiers:
                grid = _Grid(config, dataset, source, classifier, metrics, explanations)
                cells += [grid.cell(explainer) for explainer in explainers]
        return cells

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """What a class named by ``import:`` can do, told from the methods it has."""
        needed = {
            "dataset": ("load",),
            "classifier": ("fit", "predict_proba", "state", "load_state"),
            "explainer": ("counterfactuals",),
            "metric": ("score", "columns"),
        }.get(kind, ())
        missing = [name for name in needed if not hasattr(implementation, name)]
        if missing:
            raise UserError(f"{implementation.__name__} has no {', '.join(missing)}: a {kind} needs it")
        if kind == "classifier":
            methods = {"gradients": "log_odds_gradient", "layers": "layers"}
            offered = {access for access, method in methods.items() if hasattr(implementation, method)}
            return {"access": frozenset({"scores"} | offered)}, {}
        if kind == "explainer":
            return {"columns": frozenset({"numeric", "categorical"})}, {}
        return {}, {}

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        return {
            "suite": "tabular",
            "seed": 0,
            "data": ["iris", "wine", "breast-cancer"],
            "classifiers": ["mlp", "logistic-regression"],
            "explainers": registry.names("tabular", "explainer"),
        }

    def example_document(self, registry: Registry) -> str:
        return EXAMPLE_DOCUMENT.format(explainers=", ".join(registry.names("tabular", "explainer")))

    def describe_data(self, config: TabularConfig, summaries: Mapping[str, Any]) -> str:
        known = [
            (dataset.label, summaries[dataset.label]) for dataset in config.data if dataset.label in summaries
        ]
        return ", ".join(f"{label} ({s['rows']:,} rows, {s['columns']} columns)" for label, s in known)

    def in_words(self, run: Run) -> str:
        from cfbench_tabular.sentences import best_explanation

        return best_explanation(run)


class _Grid:
    """The cells of one data set and one classifier."""

    def __init__(
        self,
        config: TabularConfig,
        dataset: Reference,
        source: Mapping[str, Any],
        classifier: Reference,
        metrics: Sequence[Reference],
        explanations: Path | None,
    ) -> None:
        self.config = config
        self.dataset = dataset
        self.classifier = classifier
        self.metrics = metrics
        self.explanations = explanations
        self.about = f"{classifier.label} on {dataset.label}"
        protocol = config.protocol
        data = Stage(
            kind="data",
            label=dataset.label,
            target=f"{STAGES}:read_data",
            parameters={
                "version": VERSION,
                "dataset": dataset.parameters(),
                **source,
                "validation": protocol.validation,
                "test": protocol.test,
            },
            seed=config.seed,
        )
        model = Stage(
            kind="model",
            label=self.about,
            target=f"{STAGES}:fit_model",
            parameters={"version": VERSION, "classifier": classifier.parameters(), "threads": config.threads},
            inputs={"data": data},
            seed=config.seed,
        )
        units = Stage(
            kind="units",
            label=f"rows of {self.about}",
            target=f"{STAGES}:choose_units",
            parameters={"version": VERSION, "factuals": protocol.factuals},
            inputs={"data": data, "model": model},
            seed=config.seed,
        )
        self.known = {"data": data, "model": model, UNITS: units}

    def cell(self, explainer: Reference) -> Cell:
        labels = self.labels(explainer)
        skipped = self.why_not(explainer.spec, explainer.label)
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        columns: list[Column] = [
            column for metric in self.metrics for column in resolve(metric.spec.target).columns
        ]
        explained = self.imported(explainer) if self.explanations else self.explained(explainer)
        again: dict[str, Stage] = {}
        if self.config.protocol.again:
            again = {SECOND_MODEL: self.with_another_seed(self.known["model"])}
            if not self.explanations:
                again[AGAIN] = self.with_another_seed(explained)
        scores = Stage(
            kind="scores",
            label=f"scores of {explainer.label} for {self.about}",
            target=f"{STAGES}:score",
            parameters={"version": VERSION, "metrics": [m.parameters() for m in self.metrics]},
            inputs={**self.known, "explanations": explained, **again},
            seed=self.config.seed,
            chunked=True,
        )
        return Cell(
            labels,
            columns,
            {**self.known, "explanations": explained, "scores": scores},
            role=explainer.spec.role,
        )

    def with_another_seed(self, stage: Stage) -> Stage:
        """The same work on the same inputs, with other random numbers."""
        return replace(stage, label=f"{stage.label}, again", seed=stage.seed + 1)

    def labels(self, explainer: Reference) -> dict[str, str | int]:
        return {"dataset": self.dataset.label, "model": self.classifier.label, "explainer": explainer.label}

    def why_not(self, explainer: ComponentSpec, name: str) -> str:
        """Why an explainer cannot work here; empty when it can."""
        if self.explanations is not None:
            return ""
        gap = lacking(explainer.needs.get("classifier", {}), self.classifier.spec.provides)
        if gap:
            return f"{name} needs {gap}, which {self.classifier.label} does not offer"
        gap = lacking(self.dataset.spec.needs.get("explainer", {}), explainer.provides)
        return f"{self.dataset.label} needs {gap}, which {name} does not handle" if gap else ""

    def explained(self, explainer: Reference) -> Stage:
        several = "several" in explainer.spec.provides.get("answers", frozenset())
        parameters = {
            "explainer": explainer.parameters(),
            "threads": self.config.threads,
            "answers": self.config.protocol.answers if several else 1,
            "seconds": self.config.protocol.seconds,
        }
        return self.explanation_stage(explainer, "explain", parameters)

    def imported(self, explainer: Reference) -> Stage:
        """Explanations made elsewhere: the rows of the file that bear this cell's labels."""
        assert self.explanations is not None
        parameters = {
            "file": str(self.explanations.resolve()),
            "digest": file_digest(self.explanations),
            "labels": self.labels(explainer),
        }
        return self.explanation_stage(explainer, "import_explanations", parameters)

    def explanation_stage(self, explainer: Reference, function: str, parameters: Mapping[str, Any]) -> Stage:
        return Stage(
            kind="explanations",
            label=f"{explainer.label} for {self.about}",
            target=f"{STAGES}:{function}",
            parameters={"version": VERSION, **parameters},
            inputs=self.known,
            seed=self.config.seed,
            chunked=True,
        )


def _metrics(config: TabularConfig, registry: Registry) -> tuple[Reference, ...]:
    """Those that the configuration names, else all that are installed and have something to look at."""
    if config.metrics is None:
        return tuple(m for m in _all_metrics(registry) if not _lacking(m.spec, config.protocol))
    for metric in config.metrics:
        option = _lacking(metric.spec, config.protocol)
        if option:
            default = getattr(Protocol(), option)
            raise UserError(
                f"metric {metric.label} needs protocol.{option}, which is {str(default).lower()} here"
            )
    return config.metrics


def _lacking(metric: ComponentSpec, protocol: Protocol) -> str:
    """The option of the protocol that a metric lives on, where that is off; else empty."""
    option = str(metric.details.get("protocol", ""))
    return option if option and getattr(protocol, option) == getattr(Protocol(), option) else ""


def _source(dataset: Reference, access: DataAccess | None) -> Mapping[str, Any]:
    """The files that a data set was found in, as a parameter; nothing for one that needs no files."""
    from cfbench_core.data_files import DataAccess

    component = dataset.create()
    if not hasattr(component, "find"):
        return {}
    return {"source": component.find(access or DataAccess()).parameters()}


def _all_metrics(registry: Registry) -> tuple[Reference, ...]:
    """In the order in which people read them, then others by name."""
    first = ["coverage", "sparsity", "l2", "madd", "mahalanobis", "realism"]
    names = sorted(
        registry.names("tabular", "metric"), key=lambda n: (first.index(n) if n in first else 99, n)
    )
    return tuple(_with_defaults(registry, name) for name in names)


def _with_defaults(registry: Registry, metric: str) -> Reference:
    component = registry.find("tabular", "metric", metric)
    options = resolve(component.spec.config)() if component.spec.config else None
    owner = f"{component.distribution} {component.distribution_version}"
    return Reference("metric", metric, component.spec, options, owner)


def _external(path: Path) -> tuple[Reference, ...]:
    """Stand for who made the explanations in a file: one for each name in its column explainer, if any."""
    from cfbench_tabular.tables import explainers_in

    spec = ComponentSpec(
        id="tabular/explainer/external",
        summary="explanations made elsewhere",
        target=f"{STAGES}:import_explanations",
    )
    return tuple(Reference("explainer", name, spec) for name in explainers_in(path) or [path.stem])


EXAMPLE_DOCUMENT = """\
# A study of counterfactual rows. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: tabular
seed: 0
data:                                  # 'cfbench list datasets'
  - iris
  - {{name: wine, target: class_0}}      # this class against the rest; without 'target' the majority
  - breast-cancer
classifiers:                           # 'cfbench list classifiers'; options: 'cfbench describe mlp'
  - {{name: mlp, hidden: 16}}            # or weights: W1, b1, W2, b2 in a .npz or .safetensors file
  - logistic-regression
explainers: [{explainers}]
protocol:
  validation: 0.2
  test: 0.2
  factuals: 100                        # explained rows per predicted class, test rows first
metrics: [coverage, sparsity, l2, realism]
limits: {{seconds: 1800, memory_gb: 8}}  # of each piece of work
"""
