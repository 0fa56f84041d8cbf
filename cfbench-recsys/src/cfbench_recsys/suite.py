"""The recommender suite on the shared life cycle. Imports neither torch nor pandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.hashing import file_digest
from cfbench_core.lifecycle.study import PreparedDataset, PreparedModel, ProtocolPoint, Study
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Stage
from cfbench_core.tuning import Tunable
from cfbench_recsys.config import RecsysConfig
from cfbench_recsys.config_templates import DEFAULT_DOCUMENT, EXAMPLE_DOCUMENT
from cfbench_recsys.explainer_contracts import CONTRACTS
from cfbench_recsys.labels import LABEL_FORMATS
from cfbench_recsys.metrics import DEFAULT_METRICS

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

STEPS = "cfbench_recsys.steps"

SPEC = ComponentSpec(
    id="recsys/suite/recsys",
    summary="Why was this recommended? Interactions to remove or add, for one item or a whole list",
    target=f"{__name__}:RecsysSuite",
    details={
        "conformance": "cfbench_recsys.testing:checks",
        "plugin_templates": "cfbench_recsys:templates/plugin",
        "axes": {
            "format": ("implicit", "explicit"),
            "level": ("item", "list"),
            "scope": ("user-vector", "user-only", "indirect", "k-hop", "full"),
            "edit": ("remove", "add"),
            "access": ("scores", "weights", "gradients", "embeddings", "training"),
            "checkpoints": ("yes",),
            "pretraining": ("yes",),
        },
    },
)


class RecsysSuite(LifecycleSuite):
    """Eleven explainers of recommenders and their controls: items and lists, importances and edits."""

    name = "recsys"
    config = RecsysConfig
    contracts = CONTRACTS
    layout = TableLayout(
        by=("dataset", "model", "level", "k", "format", "edit", "scope"),
        row="explainer",
        cluster="user",
        unit_columns=("user", "item", "rank"),
        label_formats=LABEL_FORMATS,
    )
    steps: ClassVar[Mapping[str, str]] = {
        "read_data": f"{STEPS}.reading:read_data",
        "load_data": f"{STEPS}.data:load_data",
        "fit": f"{STEPS}.fitting:fit",
        "restore": f"{STEPS}.fitting:restore",
        "choose_units": f"{STEPS}.units:choose_units",
        "open_chunk": f"{STEPS}.chunks:open_chunk",
        "prepare": f"{STEPS}.explaining:prepare",
        "explain": f"{STEPS}.explaining:explain",
        "derive": f"{STEPS}.explaining:derive",
        "to_rows": f"{STEPS}.answers:to_rows",
        "from_rows": f"{STEPS}.answers:from_rows",
        "from_rows_of_source": f"{STEPS}.answers:importances_from_rows",
        "read_file": f"{STEPS}.answers:read_file",
        "observe": f"{STEPS}.scoring:observe",
    }
    model_kind = "recommender"
    models_key = "recommenders"
    external_columns = ("edge_user", "edge_item", "op")

    # The grid

    def metrics(self, config: RecsysConfig, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        return self.named_metrics(config, registry, DEFAULT_METRICS)

    def points(self, config: RecsysConfig, model: PreparedModel) -> Iterator[ProtocolPoint]:
        """Every choice of the protocol: a graph has scopes, a profile is its own scope."""
        protocol = config.protocol
        scopes = model.component.spec.provides.get("scope", frozenset())
        on_graph = bool(scopes & {"graph", "full"})
        for level in protocol.level:
            for format in protocol.format:
                for edit in protocol.edits if format == "explicit" else ("remove",):
                    for scope in protocol.scope if on_graph else ("user-vector",):
                        for k in protocol.k:
                            yield {"level": level, "format": format, "scope": scope, "edit": edit, "k": k}

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """The data as they are, whatever the seed, and their split."""
        data = self.read(study, dataset, seed=0)
        kind = study.config.split.kind
        split = self.stage(
            "split",
            f"{dataset.label} split {kind}",
            f"{STEPS}.data:split_data",
            {"split": vars(study.config.split)},
            {"data": data},
            (),
            study.config.seed,
            dataset.spec.name,
        )
        return PreparedDataset(dataset, {"data": data, "split": split})

    def models(
        self, study: Study, data: PreparedDataset, component: ConfiguredComponent
    ) -> Sequence[PreparedModel]:
        """One model, or one for each checkpoint of the protocol where the recommender has checkpoints.

        A recommender in closed form, or with weights from a file, has none: it is explained as it is.
        """
        names = study.config.protocol.checkpoints.names
        given = getattr(component.options, "weights", None) is not None
        if not names or given or "checkpoints" not in component.spec.provides:
            return super().models(study, data, component)
        label = f"{component.label} on {data.dataset.label}"
        parameters = {"model": component.parameters(), **self.model_parameters(study, component)}
        seed, inputs = study.config.seed, data.stages
        training = Stage(
            "training",
            label,
            f"{STEPS}.fitting:fit_checkpoints",
            {**parameters, "checkpoints": names},
            inputs,
            seed,
            dataset=data.name,
        )

        def checkpoint(name: str) -> PreparedModel:
            stage = Stage(
                "model",
                f"{component.label}@{name} on {data.dataset.label}",
                f"{STEPS}.fitting:take_checkpoint",
                {**parameters, "checkpoint": name},
                {**inputs, "training": training},
                seed,
                dataset=data.name,
            )
            return PreparedModel(data, component, f"{component.label}@{name}", {**inputs, "model": stage})

        return [checkpoint(name) for name in names]

    def incompatibility(
        self, study: Study, model: PreparedModel, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> str:
        provides, protocol = explainer.spec.provides, study.config.protocol
        formats = provides.get("format", frozenset())
        derivable = point["format"] == "explicit" and protocol.postprocess.derive != "none"
        if point["format"] not in formats and not (derivable and "implicit" in formats):
            return f"no {point['format']} format"
        for axis in ("level", "scope"):
            if point[axis] not in provides.get(axis, frozenset()):
                return f"no {point[axis]} {axis}"
        edits = provides.get("edit", frozenset({"remove"}))
        if point["edit"] == "remove-or-add" and "add" not in edits:
            return "never adds an interaction"
        if point["edit"] == "remove" and "remove" not in edits:
            return "adds interactions, which 'protocol.edits' leaves out here"
        return super().incompatibility(study, model, explainer, point)

    def obstacle(self, study: Study, model: PreparedModel, point: ProtocolPoint) -> str:
        if study.config.split.kind == "per-user" and point["scope"] != "user-vector":
            return f"{model.label} is a graph recommender: users outside its graph (per-user split) have no place"
        return ""

    def fits(self, metric: ConfiguredComponent, point: ProtocolPoint) -> bool:
        formats = metric.spec.needs.get("explainer", {}).get("format", frozenset({point["format"]}))
        levels = metric.spec.provides.get("level", frozenset({point["level"]}))
        return point["format"] in formats and point["level"] in levels

    # Parameters of stages

    def unit_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        protocol = study.config.protocol
        chosen: dict[str, Any] = {"users": protocol.users}
        if protocol.users_file is not None:
            chosen = {"users_file": protocol.users_file, "digest": file_digest(Path(protocol.users_file))}
        return {"threads": study.config.threads, "level": point["level"], "k": point["k"], **chosen}

    def unit_key(self, point: ProtocolPoint) -> tuple[str, ...]:
        return ("user", "item") if point["level"] == "item" else ("user",)

    def explained(
        self,
        study: Study,
        model: PreparedModel,
        explainer: ConfiguredComponent,
        point: ProtocolPoint,
        known: Mapping[str, Stage],
    ) -> dict[str, Stage]:
        """Explanations of the wanted format: the explainer's own, or edits derived from its importances."""
        own = {**point, "explainer": explainer.parameters(), "threads": study.config.threads}
        postprocess = {"postprocess": vars(study.config.protocol.postprocess)}
        trained = {name: value for name, value in own.items() if name != "format"}
        prepared = self.pretrained(study, model, explainer, trained, known)
        inputs, steps = {**known, **prepared}, ("explain", "to_rows")
        if point["format"] == "explicit" and hasattr(explainer.implementation(), "counterfactuals"):
            edits = self.explanation_stage(
                study, model, explainer, "explain", {**own, **postprocess}, inputs, steps
            )
            return {**prepared, "explanations": edits}
        implicit = {**own, "format": "implicit"}
        importances = self.explanation_stage(study, model, explainer, "explain", implicit, inputs, steps)
        if point["format"] == "implicit":
            return {**prepared, "explanations": importances}
        edits = self.explanation_stage(
            study,
            model,
            explainer,
            "derive",
            {**point, **postprocess, "threads": study.config.threads},
            {**known, "source": importances},
            ("derive", "from_rows_of_source", "to_rows"),
        )
        return {**prepared, "explanations": edits}

    # Documents and descriptions

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        return {**DEFAULT_DOCUMENT, "explainers": registry.by_default("recsys", "explainer")}

    def example_document(self, registry: Registry) -> str:
        names = registry.names("recsys", "explainer") or ["lime-rs"]
        return EXAMPLE_DOCUMENT.format(explainers=", ".join(names))

    def tunable(
        self,
        config: RecsysConfig,
        registry: Registry,
        access: DataAccess,
        reference: ConfiguredComponent,
        metric: str | None,
        sample: int,
    ) -> Tunable:
        """What ``cfbench tune`` optimizes."""
        from cfbench_recsys.tuning import tunable

        study = Study(config, registry, access, self.metrics(config, registry))
        return tunable(TuningSuite(sample), study, reference, metric)

    def describe_data(self, config: RecsysConfig, summaries: Mapping[str, Any]) -> str:
        read = [summaries[dataset.label] for dataset in config.data if dataset.label in summaries]
        texts = [
            summary["text"] + "".join(f" [{difference}]" for difference in summary["differences"])
            for summary in read
        ]
        return " · ".join([*texts, *([explained_users(config, read)] if read else [])])

    def verbalize(self, run: Run) -> str:
        from cfbench_recsys.verbalization import best_explanation

        return best_explanation(run)


class TuningSuite(RecsysSuite):
    """The grid of a run with other users, on whom ``cfbench tune`` judges explainers: see ``steps/tuning.py``."""

    steps: ClassVar[Mapping[str, str]] = {
        **RecsysSuite.steps,
        "choose_units": f"{STEPS}.tuning:choose_tuning_units",
    }

    def __init__(self, sample: int) -> None:
        self.sample = sample

    def unit_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        return {**super().unit_parameters(study, point), "sample": self.sample}


def explained_users(config: RecsysConfig, read: Sequence[Mapping[str, Any]]) -> str:
    """ "100 users": how many are explained. A split by users has fewer to choose from than the dataset."""
    protocol = config.protocol
    if protocol.users_file is not None:
        return f"users of {Path(protocol.users_file).name}"
    fewest = min(summary["users"] for summary in read)
    unsure = protocol.users > fewest or config.split.kind == "per-user"
    return f"{'up to ' if unsure else ''}{protocol.users:,} users"
