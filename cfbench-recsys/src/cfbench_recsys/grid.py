"""The grid of a recommender experiment: every choice of the protocol for every model and explainer, as stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Cell
from cfbench_core.specs import Capabilities, ComponentSpec, lacking
from cfbench_core.stages import UNITS, Stage
from cfbench_recsys.config import Protocol, RecsysConfig
from cfbench_recsys.external import ExternalTable

STAGES = "cfbench_recsys.stages"
FIT_MODEL = f"{STAGES}.fitting:fit_model"
FIT_CHECKPOINTS = f"{STAGES}.fitting:fit_checkpoints"
TAKE_CHECKPOINT = f"{STAGES}.fitting:take_checkpoint"
VERSION = "4"  # of the stages; raise it when what they compute changes


@dataclass(frozen=True)
class ProtocolPoint:
    """One choice of the protocol: how a list is explained."""

    level: str
    format: str
    scope: str
    edit: str
    k: int


def split_stage(dataset: ConfiguredComponent, config: RecsysConfig, access: DataAccess) -> Stage:
    """Reads a data set and divides it. Its key holds the fingerprint of the file that was found."""
    source = dataset.create().find(access)
    data = Stage(
        kind="data",
        label=dataset.label,
        target=f"{STAGES}.data:read_data",
        parameters={"version": VERSION, "dataset": dataset.parameters(), "source": source.parameters()},
    )
    return Stage(
        kind="split",
        label=f"{dataset.label} split {config.split.kind}",
        target=f"{STAGES}.data:split_data",
        parameters={"version": VERSION, "split": vars(config.split)},
        inputs={"data": data},
        seed=config.seed,
    )


def protocol_points(protocol: Protocol, recommender: Capabilities) -> Iterator[ProtocolPoint]:
    """Every choice of the protocol, for a recommender: a graph has scopes, a profile is its own scope."""
    on_graph = "graph" in recommender.get("scope", frozenset()) or "full" in recommender.get(
        "scope", frozenset()
    )
    for level in protocol.level:
        for format in protocol.format:
            for edit in protocol.edits if format == "explicit" else ("remove",):
                for scope in protocol.scope if on_graph else ("user-vector",):
                    for k in protocol.k:
                        yield ProtocolPoint(level, format, scope, edit, k)


@dataclass(frozen=True)
class Model:
    """A recommender as it is explained: fitted, or as it was at one checkpoint of its training."""

    label: str
    recommender: ConfiguredComponent
    stage: Stage


def models_of(
    recommender: ConfiguredComponent, dataset: ConfiguredComponent, split: Stage, config: RecsysConfig
) -> Sequence[Model]:
    """One model, or one for each checkpoint of the protocol where the recommender has checkpoints.

    A recommender in closed form, or with weights from a file, has none: it is explained as it is.
    """
    parameters = {"version": VERSION, "threads": config.threads, "recommender": recommender.parameters()}
    on = f"on {dataset.label}"
    names = config.protocol.checkpoints.names
    given = getattr(recommender.options, "weights", None) is not None

    def stage(label: str, target: str, more: Mapping[str, Any], inputs: Mapping[str, Stage]) -> Stage:
        return Stage("model", f"{label} {on}", target, {**parameters, **more}, inputs, config.seed)

    if not names or given or "checkpoints" not in recommender.spec.provides:
        fitted = stage(recommender.label, FIT_MODEL, {}, {"split": split})
        return [Model(recommender.label, recommender, fitted)]
    training = stage(recommender.label, FIT_CHECKPOINTS, {"checkpoints": names}, {"split": split})
    return [
        Model(
            label := f"{recommender.label}@{name}",
            recommender,
            stage(label, TAKE_CHECKPOINT, {"checkpoint": name}, {"split": split, "training": training}),
        )
        for name in names
    ]


class Grid:
    """The cells of one data set and one recommender."""

    def __init__(
        self,
        config: RecsysConfig,
        dataset: ConfiguredComponent,
        model: Model,
        split: Stage,
        metrics: Sequence[ConfiguredComponent],
        external: ExternalTable | None,
    ) -> None:
        self.config = config
        self.dataset = dataset
        self.recommender = model.recommender
        self.model = model
        self.metrics = metrics
        self.external = external
        self.split = split
        self.on = f"on {dataset.label}"
        self.common = {"version": VERSION, "threads": config.threads}

    def cell(self, explainer: ConfiguredComponent, point: ProtocolPoint) -> Cell:
        labels = self.labels(explainer, point)
        fitting = [metric for metric in self.metrics if _fits(metric.spec, point)]
        skipped = self.incompatibility(explainer, point) or (
            "" if fitting else f"no metric fits {point.format} answers"
        )
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        created = [metric.create() for metric in fitting]
        columns = tuple(column for metric in created for column in metric.columns(vars(point)))
        return Cell(labels, columns, self.stages(explainer, point, fitting), role=explainer.spec.role)

    def labels(self, explainer: ConfiguredComponent, point: ProtocolPoint) -> dict[str, str | int]:
        """The labels that identify a cell: columns of every table."""
        return {
            "dataset": self.dataset.label,
            "model": self.model.label,
            "explainer": explainer.label,
            "level": point.level,
            "format": point.format,
            "scope": point.scope,
            "edit": point.edit,
            "k": point.k,
        }

    def incompatibility(self, explainer: ConfiguredComponent, point: ProtocolPoint) -> str:
        """Why an explainer and a corner of the protocol do not go together, without its name; empty when they do."""
        provides, needs = explainer.spec.provides, explainer.needs
        if self.config.split.kind == "per-user" and point.scope != "user-vector":
            return f"{self.model.label} is a graph recommender: users outside its graph (per-user split) have no place"
        if self.external is not None:
            return self.external.lacks(self.labels(explainer, point))
        formats = provides.get("format", frozenset())
        derivable = point.format == "explicit" and self.config.protocol.postprocess.derive != "none"
        if point.format not in formats and not (derivable and "implicit" in formats):
            return f"no {point.format} format"
        if point.level not in provides.get("level", frozenset()):
            return f"no {point.level} level"
        if point.scope not in provides.get("scope", frozenset()):
            return f"no {point.scope} scope"
        edits = provides.get("edit", frozenset({"remove"}))
        if point.edit == "remove-or-add" and "add" not in edits:
            return "never adds an interaction"
        if point.edit == "remove" and "remove" not in edits:
            return "adds interactions, which 'protocol.edits' leaves out here"
        gap = lacking(needs.get("recommender", {}), self.recommender.spec.provides)
        return f"needs {gap}, which {self.model.label} does not offer" if gap else ""

    def stages(
        self, explainer: ConfiguredComponent, point: ProtocolPoint, metrics: Sequence[ConfiguredComponent]
    ) -> dict[str, Stage]:
        units = self.units(point)
        known = {"split": self.split, "model": self.model.stage, UNITS: units}
        explanations = self.explained(explainer, point, known)
        scores = Stage(
            kind="scores",
            label=f"scores of {explainer.label} for {self.model.label} {self.on}",
            target=f"{STAGES}.scoring:score_{point.format}",
            parameters={**self.common, "metrics": [m.parameters() for m in metrics], **vars(point)},
            inputs={**known, "explanations": explanations},
            seed=self.config.seed,
            chunked=True,
        )
        return {
            "data": self.split.inputs["data"],
            "model": self.model.stage,
            "units": units,
            **_pretraining(explanations),
            "explanations": explanations,
            "scores": scores,
        }

    def units(self, point: ProtocolPoint) -> Stage:
        protocol = self.config.protocol
        chosen: dict[str, Any] = {"users": protocol.users}
        if protocol.users_file is not None:
            chosen = {"users_file": protocol.users_file, "digest": file_digest(Path(protocol.users_file))}
        return Stage(
            kind="units",
            label=f"lists of {self.model.label} {self.on}",
            target=f"{STAGES}.units:choose_units",
            parameters={**self.common, "level": point.level, "k": point.k, **chosen},
            inputs={"split": self.split, "model": self.model.stage},
            seed=self.config.seed,
        )

    def explained(
        self, explainer: ConfiguredComponent, point: ProtocolPoint, known: Mapping[str, Stage]
    ) -> Stage:
        """The stage that produces explanations of the requested format."""
        if self.external is not None:
            return self.stage(
                "import_explanations",
                explainer,
                {
                    "file": str(self.external.path.resolve()),
                    "digest": self.external.digest,
                    "labels": self.labels(explainer, point),
                    **vars(point),
                },
                known,
            )
        inputs = dict(known)
        if "pretraining" in explainer.spec.provides:
            inputs["explainer"] = self.prepared(explainer, point, known)
        place = {"level": point.level, "scope": point.scope, "edit": point.edit, "k": point.k}
        base = {"explainer": explainer.parameters(), **place}
        postprocess = vars(self.config.protocol.postprocess)
        native = hasattr(explainer.implementation(), "counterfactuals")
        if point.format == "explicit" and native:
            return self.stage("explain_explicit", explainer, {**base, "postprocess": postprocess}, inputs)
        importances = self.stage("explain_implicit", explainer, base, inputs)
        if point.format == "implicit":
            return importances
        return self.stage(
            "derive_explicit",
            explainer,
            {"postprocess": postprocess, **place},
            {**known, "importances": importances},
        )

    def prepared(
        self, explainer: ConfiguredComponent, point: ProtocolPoint, known: Mapping[str, Stage]
    ) -> Stage:
        return Stage(
            kind="explainer",
            label=f"{explainer.label} learns about {self.model.label} {self.on}",
            target=f"{STAGES}.explaining:prepare_explainer",
            parameters={
                **self.common,
                "explainer": explainer.parameters(),
                "level": point.level,
                "scope": point.scope,
                "edit": point.edit,
                "k": point.k,
            },
            inputs=known,
            seed=self.config.seed,
        )

    def stage(
        self,
        function: str,
        explainer: ConfiguredComponent,
        parameters: Mapping[str, Any],
        inputs: Mapping[str, Stage],
    ) -> Stage:
        return Stage(
            kind="explanations",
            label=f"{explainer.label} for {self.model.label} {self.on}",
            target=f"{STAGES}.explaining:{function}",
            parameters={**self.common, **parameters},
            inputs=inputs,
            seed=self.config.seed,
            chunked=True,
        )


def _pretraining(explanations: Stage) -> dict[str, Stage]:
    """The stage that prepared the explainer, if it is pre-trained: named, so that its cost can be reported."""
    of = explanations.inputs.get("importances", explanations)
    return {role: stage for role, stage in of.inputs.items() if role == "explainer"}


def _fits(metric: ComponentSpec, point: ProtocolPoint) -> bool:
    formats = metric.needs.get("explainer", {}).get("format", frozenset())
    return point.format in formats and point.level in metric.provides.get("level", frozenset())
