"""The stages and cells of one data set and one classifier. Imports neither pandas nor scikit-learn."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Cell, Column
from cfbench_core.specs import lacking
from cfbench_core.stages import UNITS, Stage
from cfbench_tabular.config import Protocol, TabularConfig
from cfbench_tabular.contracts import Dataset, FileDataset, Metric
from cfbench_tabular.external import ExternalTable
from cfbench_tabular.study import NAMES as STUDY_NAMES
from cfbench_tabular.study import StudyFiles, find_study

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess

STAGES = "cfbench_tabular.stages"
STUDY_STAGES = "cfbench_tabular.study_stages"
REPEATED, SECOND_MODEL = "repeated explanations", "second model"
"""Roles of the stages that ``protocol.repeats`` computes with another seed."""

VERSION = "4"  # of the stages; raise it whenever their results change


class DatasetPlan:
    """The stage that reads a data set, and the published files of CF-tabular for it.

    Attributes:
        stage: None if the data set is skipped.
        skipped: the reason for skipping the data set; empty if it runs.
        study: the published files, in ``protocol: paper``.
    """

    def __init__(
        self, dataset: ConfiguredComponent, config: TabularConfig, access: DataAccess | None
    ) -> None:
        self.dataset = dataset
        self.study, self.skipped = _study_of(dataset, config.protocol, access)
        self.stage: Stage | None = None
        if self.skipped:
            return
        protocol = config.protocol
        if self.study is not None and hasattr(dataset.options, "path"):
            dataset = dataset.with_options({"path": str(self.study.rows.resolve())})
        parameters: dict[str, Any] = {"version": VERSION, "dataset": dataset.parameters()}
        if self.study is None:
            target, seed = f"{STAGES}:read_data", config.seed
            parameters |= {"validation": protocol.validation, "test": protocol.test}
        else:
            target, seed = f"{STUDY_STAGES}:read_study", 0
            parameters["study"] = self.study.parameters()
        parameters |= source_of(dataset, access)
        self.stage = Stage(kind="data", label=dataset.label, target=target, parameters=parameters, seed=seed)

    def classifier(self, classifier: ConfiguredComponent) -> tuple[ConfiguredComponent, str]:
        """The classifier, with the published weights if its spec requests them, and a reason to skip it or ""."""
        if classifier.spec.details.get("weights") != "study" or classifier.options.weights is not None:
            return classifier, ""
        if self.study is None:
            return (
                classifier,
                f"{classifier.label} needs 'protocol: paper', whose encoding it was trained with",
            )
        if not self.study.network.is_file():
            return classifier, f"{self.study.folder} has no models/{self.study.network.name}"
        return classifier.with_options({"weights": str(self.study.network.resolve())}), ""


class Grid:
    """The cells of one data set and one classifier."""

    def __init__(
        self,
        config: TabularConfig,
        prepared: DatasetPlan,
        classifier: ConfiguredComponent,
        metrics: Sequence[ConfiguredComponent],
        external: ExternalTable | None,
    ) -> None:
        self.config = config
        self.dataset = prepared.dataset
        self.classifier, without_weights = prepared.classifier(classifier)
        self.metrics = metrics
        self.external = external
        self.about = f"{classifier.label} on {self.dataset.label}"
        self.skipped = prepared.skipped or without_weights
        self.known: dict[str, Stage] = {}
        if prepared.stage is None or self.skipped:
            return
        model = Stage(
            kind="model",
            label=self.about,
            target=f"{STAGES}:fit_model",
            parameters={
                "version": VERSION,
                "classifier": self.classifier.parameters(),
                **_factory(self.classifier),
                "threads": config.threads,
            },
            inputs={"data": prepared.stage},
            seed=config.seed,
        )
        parameters: dict[str, Any] = {"version": VERSION, "factuals": config.protocol.factuals}
        if prepared.study is not None:
            parameters["study"] = prepared.study.parameters()
        units = Stage(
            kind="units",
            label=f"rows of {self.about}",
            target=f"{STUDY_STAGES}:choose_study_units" if prepared.study else f"{STAGES}:choose_units",
            parameters=parameters,
            inputs={"data": prepared.stage, "model": model},
            seed=config.seed,
        )
        self.known = {"data": prepared.stage, "model": model, UNITS: units}

    def cell(self, explainer: ConfiguredComponent) -> Cell:
        labels = self.labels(explainer.label)
        skipped = self.incompatibility(explainer)
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        columns: list[Column] = [column for metric in self.metrics for column in created(metric).columns({})]
        explained = self.imported(explainer) if self.external else self.explained(explainer)
        repeated: dict[str, Stage] = {}
        if self.config.protocol.repeats:
            repeated = {SECOND_MODEL: self.with_another_seed(self.known["model"])}
            if not self.external:
                repeated[REPEATED] = self.with_another_seed(explained)
        scores = Stage(
            kind="scores",
            label=f"scores of {explainer.label} for {self.about}",
            target=f"{STAGES}:score",
            parameters={"version": VERSION, "metrics": [m.parameters() for m in self.metrics]},
            inputs={**self.known, "explanations": explained, **repeated},
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
        """The same stage on the same inputs with another random seed."""
        return replace(stage, label=f"{stage.label}, repeated", seed=stage.seed + 1)

    def labels(self, explainer: str) -> dict[str, str | int]:
        return {"dataset": self.dataset.label, "model": self.classifier.label, "explainer": explainer}

    def incompatibility(self, explainer: ConfiguredComponent) -> str:
        """Why an explainer cannot explain this classifier on this data set; empty if it can."""
        if self.skipped:
            return self.skipped
        if self.external is not None:
            return self.external.lacks(self.labels(explainer.label))
        gap = lacking(explainer.needs.get("classifier", {}), self.classifier.spec.provides)
        if gap:
            return f"{explainer.label} needs {gap}, which {self.classifier.label} does not offer"
        gap = lacking(self.dataset.spec.needs.get("explainer", {}), explainer.spec.provides)
        return f"{self.dataset.label} needs {gap}, which {explainer.label} does not handle" if gap else ""

    def explained(self, explainer: ConfiguredComponent) -> Stage:
        several = "several" in explainer.spec.provides.get("counterfactuals", frozenset())
        parameters = {
            "explainer": explainer.parameters(),
            "threads": self.config.threads,
            "counterfactuals_per_instance": self.config.protocol.counterfactuals_per_instance
            if several
            else 1,
            "seconds": self.config.protocol.seconds,
        }
        return self.explanation_stage(explainer, "explain", parameters)

    def imported(self, explainer: ConfiguredComponent) -> Stage:
        """External explanations: the rows of the file with the labels of this cell."""
        assert self.external is not None
        parameters = {
            "file": str(self.external.path.resolve()),
            "digest": self.external.digest,
            "labels": self.labels(explainer.label),
        }
        return self.explanation_stage(explainer, "import_explanations", parameters)

    def explanation_stage(
        self, explainer: ConfiguredComponent, function: str, parameters: Mapping[str, Any]
    ) -> Stage:
        return Stage(
            kind="explanations",
            label=f"{explainer.label} for {self.about}",
            target=f"{STAGES}:{function}",
            parameters={"version": VERSION, **parameters},
            inputs=self.known,
            seed=self.config.seed,
            chunked=True,
        )


def _factory(classifier: ConfiguredComponent) -> Mapping[str, str]:
    """The digest of the module that an option ``factory`` names, so that editing it invalidates fitted models."""
    factory = getattr(classifier.options, "factory", None)
    if factory is None:
        return {}
    try:
        found = importlib.util.find_spec(factory.partition(":")[0])
    except (ImportError, ValueError):  # reported when the model is created
        return {}
    file = found.origin if found is not None else None
    return {"factory": file_digest(Path(file))} if file and Path(file).is_file() else {}


def source_of(dataset: ConfiguredComponent, access: DataAccess | None) -> Mapping[str, Any]:
    """The located files of a data set, as a stage parameter; empty for a data set without files."""
    from cfbench_core.data_files import DataAccess

    component: Dataset | FileDataset = dataset.create()
    if not hasattr(component, "find"):
        return {}
    return {"source": component.find(access or DataAccess()).parameters()}


def created(metric: ConfiguredComponent) -> Metric:
    """A new instance of a metric.

    Raises:
        UserError: if it lacks a method of the contract.
    """
    made: Metric = metric.create()
    missing = [name for name in ("columns", "compute") if not callable(getattr(made, name, None))]
    if missing:
        raise UserError(f"metric {metric.label} has no method {', '.join(missing)}")
    return made


def _study_of(
    dataset: ConfiguredComponent, protocol: Protocol, access: DataAccess | None
) -> tuple[StudyFiles | None, str]:
    """The published files of a data set in ``protocol: paper``, and the reason to skip the data set or ""."""
    if protocol.study is None:
        return None, ""
    name = STUDY_NAMES.get(dataset.spec.name)
    if name is None or not dataset.distribution:
        return None, f"{dataset.label} is not one of the 22 data sets of CF-tabular"
    if getattr(dataset.options, "target", None) is not None:
        return None, "protocol: paper predicts the majority class: remove the option 'target'"
    files = StudyFiles(find_study(access, protocol.folder), name)
    return files, files.lacking()
