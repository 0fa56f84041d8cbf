"""The recommender suite on the shared life cycle. Imports neither torch nor pandas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.hashing import file_digest
from cfbench_core.lifecycle.steps import steps_by_module
from cfbench_core.lifecycle.study import (
    PlannedCell,
    PreparedDataset,
    PreparedModel,
    ProtocolPoint,
    Setting,
    Study,
)
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Stage
from cfbench_core.tuning import Tunable
from cfbench_recsys.config import RecsysConfig
from cfbench_recsys.config_templates import DEFAULT_DOCUMENT, EXAMPLE_DOCUMENT
from cfbench_recsys.explainer_contracts import CONTRACTS
from cfbench_recsys.labels import ANY_BUDGET, LABEL_FORMATS, NO_BUDGET
from cfbench_recsys.metrics import DEFAULT_METRICS
from cfbench_recsys.plan_checks import link_problem
from cfbench_recsys.scope_labels import scope_kind
from cfbench_recsys.steps import WITHHELD

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

STEPS = "cfbench_recsys.steps"

SPEC = ComponentSpec(
    id="recsys/suite/recsys",
    summary="Why was this recommended? Interactions to remove or add, for one item or a whole list",
    target=f"{__name__}:RecsysSuite",
    details={
        "conformance": "cfbench_recsys.testing:checks",
        "commands": {"convert": "cfbench_recsys.conversion.command:command"},
        "axes": {
            "format": ("implicit", "explicit"),
            "level": ("item", "list"),
            "scope": ("user-vector", "user-only", "indirect", "k-hop", "full"),
            "edit": ("remove", "add"),
            "access": ("scores", "weights", "gradients", "embeddings", "training", "attention", "module"),
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
        by=("dataset", "model", "level", "k", "format", "edit", "scope", "max_edits"),
        row="explainer",
        cluster="user",
        unit_columns=("user", "item", "rank"),
        label_formats=LABEL_FORMATS,
        primary=("POS-P", "PN-S"),
    )
    steps: ClassVar[Mapping[str, str]] = steps_by_module(
        STEPS,
        reading="read_data",
        data="load_data",
        fitting="fit restore",
        units="choose_units",
        chunks="open_chunk",
        explaining="prepare explain derive",
        answers="to_rows from_rows from_rows_of_source",
        scoring="observe",
    )
    withholding: ClassVar[str] = "units:withhold_users"
    """The function in ``STEPS`` that lists the users from whom no explainer may learn."""

    model_kind = "recommender"
    models_key = "recommenders"
    external_columns = ("edge_user", "edge_item", "op")
    external_numbers = ("importance",)
    external_words: ClassVar[Mapping[str, Collection[str]]] = {"op": ("remove", "add")}
    defaults = DEFAULT_DOCUMENT
    example = EXAMPLE_DOCUMENT
    verbalization = "cfbench_recsys.verbalization:best_explanation"

    # The grid

    def default_metrics(self, registry: Registry) -> Sequence[str]:
        return DEFAULT_METRICS

    def points(self, config: RecsysConfig, model: PreparedModel) -> Iterator[ProtocolPoint]:
        """Every choice of the protocol: a graph has scopes, a profile is its own scope."""
        protocol = config.protocol
        provided = model.component.spec.provides.get("scope", frozenset())
        scopes = protocol.scopes if provided & {"graph", "full"} else ("user-vector",)
        budgets = [ANY_BUDGET if most is None else str(most) for most in protocol.max_edits]
        forms: dict[str, list[tuple[str, str]]] = {
            "implicit": [("remove", NO_BUDGET)],
            "explicit": list(product(protocol.edits, budgets)),
        }
        for level, format in product(protocol.level, protocol.format):
            for (edit, most), scope, k in product(forms[format], scopes, protocol.k):
                point = {"level": level, "format": format, "scope": scope, "edit": edit}
                yield {**point, "k": k, "max_edits": most}

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """The data as they are, whatever the seed, and their split."""
        data, split = study.read(dataset, draws=False), study.config.split
        label, target = f"{dataset.label} split {split.kind}", f"{STEPS}.data:split_data"
        divided = study.stage("split", label, target, {"split": vars(split)}, {"data": data})
        return PreparedDataset(dataset, {"data": data, "split": divided})

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
        parameters = {"model": component.parameters(), "threads": study.config.threads}
        label, fit = f"{component.label} on {data.dataset.label}", f"{STEPS}.fitting:fit_checkpoints"
        training = study.stage("training", label, fit, {**parameters, "checkpoints": names}, data.stages)
        inputs, take = {**data.stages, "training": training}, f"{STEPS}.fitting:take_checkpoint"
        models = [PreparedModel(data, component, f"{component.label}@{name}", data.stages) for name in names]
        return [
            model.with_stage(
                study.stage("model", model.about, take, {**parameters, "checkpoint": name}, inputs)
            )
            for name, model in zip(names, models, strict=True)
        ]

    def incompatibility(self, cell: PlannedCell) -> str:
        provides, point = cell.explainer.spec.provides, cell.point
        formats = provides.get("format", frozenset())
        derivable = point["format"] == "explicit" and derivation(cell) != "none"
        if point["format"] not in formats and not (derivable and "implicit" in formats):
            return f"no {point['format']} format"
        if point["format"] == "explicit" and not derivable and self.derived_from(cell) is not None:
            return "its edits would be derived from importances: derive is none"
        for axis, value in (("level", point["level"]), ("scope", scope_kind(str(point["scope"])))):
            if value not in provides.get(axis, frozenset()):
                return f"no {value} {axis}"
        edits = provides.get("edit", frozenset({"remove"}))
        if point["edit"] == "remove-or-add" and "add" not in edits:
            return "never adds an interaction"
        if point["edit"] == "remove" and "remove" not in edits:
            return "adds interactions, which 'protocol.edits' leaves out here"
        return super().incompatibility(cell) or link_problem(cell.explainer, cell.model.component)

    def obstacle(self, setting: Setting) -> str:
        if setting.config.split.kind == "per-user" and setting.point["scope"] != "user-vector":
            model = setting.model.label
            return f"{model} is a graph recommender: users outside its graph (per-user split) have no place"
        return ""

    def fits(self, setting: Setting, metric: ConfiguredComponent) -> bool:
        format, level = setting.point["format"], setting.point["level"]
        formats = metric.spec.needs.get("explainer", {}).get("format", frozenset({format}))
        return format in formats and level in metric.spec.provides.get("level", frozenset({level}))

    # Parameters of stages

    def chunk_parameters(self, setting: Setting) -> Mapping[str, Any]:
        return setting.point

    def unit_parameters(self, setting: Setting) -> Mapping[str, Any]:
        point = setting.point
        return {"level": point["level"], "k": point["k"], **self._user_parameters(setting)}

    def _user_parameters(self, setting: Setting) -> Mapping[str, Any]:
        """What determines which users are explained."""
        protocol = setting.config.protocol
        if protocol.users_file is None:
            return {"users": protocol.users}
        return {"users_file": protocol.users_file, "digest": file_digest(Path(protocol.users_file))}

    def pretraining_inputs(self, cell: PlannedCell, known: Mapping[str, Stage]) -> Mapping[str, Stage]:
        """Not the units: what is learned from other users is the same for all levels, formats, scopes and k."""
        return {**cell.model.stages, **self.explained_inputs(cell)}

    def explained_inputs(self, cell: PlannedCell) -> Mapping[str, Stage]:
        """The users from whom no explainer may learn."""
        data, target = cell.model.data, f"{STEPS}.{self.withholding}"
        label = f"explained users of {data.dataset.label}"
        return {WITHHELD: cell.study.stage("users", label, target, self._user_parameters(cell), data.stages)}

    def unit_key(self, setting: Setting) -> tuple[str, ...]:
        return ("user", "item") if setting.point["level"] == "item" else ("user",)

    def explanation_parameters(self, cell: PlannedCell) -> Mapping[str, Any]:
        declared = {"access": sorted(cell.model.component.spec.provides.get("access", ()))}
        if cell.point["format"] == "implicit":
            return declared
        postprocess = {**vars(cell.config.protocol.postprocess), "derive": derivation(cell)}
        return {**declared, "postprocess": postprocess}

    def explainer_as_queried(self, cell: PlannedCell) -> ConfiguredComponent:
        """Without ``derive``: importances, and what is learned for them, do not depend on it."""
        explainer = cell.explainer
        has_own = getattr(explainer.options, "derive", None) is not None
        return explainer.with_options({"derive": None}) if has_own else explainer

    def derived_from(self, cell: PlannedCell) -> ProtocolPoint | None:
        """Edits come from importances where the explainer returns none of its own."""
        if cell.point["format"] == "implicit" or hasattr(cell.explainer.implementation(), "counterfactuals"):
            return None
        return {**cell.point, "format": "implicit", "max_edits": NO_BUDGET}

    # Documents and descriptions

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

        suite = TuningSuite(sample)
        study = suite.study(config, registry, access)
        return tunable(suite, study, reference, metric, held_out=TuningSuite(sample, held_out=True))

    def units_in_words(self, run: Run) -> Mapping[str, int]:
        """For ``cfbench explain``: in how many cells there is a sentence, by unit."""
        from cfbench_recsys.verbalization import units_in_words

        return units_in_words(run)

    def why_not_in_words(self, run: Run, units: Collection[str]) -> str:
        """For ``cfbench explain``: why there is no sentence of these units."""
        from cfbench_recsys.verbalization import why_not_in_words

        return why_not_in_words(run, units)

    def describe_data(self, config: RecsysConfig, summaries: Mapping[str, Any]) -> str:
        read = [summaries[dataset.label] for dataset in config.data if dataset.label in summaries]
        texts = [one["text"] + "".join(f" [{text}]" for text in one["differences"]) for one in read]
        explained = [explained_users(config, read)] if read else []
        return " · ".join([*texts, *explained])


def derivation(cell: PlannedCell) -> str:
    """How edits are made of importances: as the option ``derive`` of the explainer says, else as the protocol does."""
    own: str | None = getattr(cell.explainer.options, "derive", None)
    return own or str(cell.config.protocol.postprocess.derive)


class TuningSuite(RecsysSuite):
    """The grid of a run with other users, on whom ``cfbench tune`` judges explainers: see ``steps/tuning.py``."""

    steps: ClassVar[Mapping[str, str]] = {
        **RecsysSuite.steps,
        "choose_units": f"{STEPS}.tuning:choose_tuning_units",
    }
    withholding: ClassVar[str] = "tuning:withhold_tuning_users"

    def __init__(self, sample: int, held_out: bool = False) -> None:
        self.sample, self.held_out = sample, held_out

    def _user_parameters(self, setting: Setting) -> Mapping[str, Any]:
        chosen = {"sample": self.sample, **({"held_out": True} if self.held_out else {})}
        return {**super()._user_parameters(setting), **chosen}


def explained_users(config: RecsysConfig, read: Sequence[Mapping[str, Any]]) -> str:
    """ "100 users": how many are explained. A split by users has fewer to choose from than the dataset."""
    protocol = config.protocol
    if protocol.users_file is not None:
        return f"users of {Path(protocol.users_file).name}"
    fewest = min(summary["users"] for summary in read)
    unsure = protocol.users > fewest or config.split.kind == "per-user"
    return f"{'up to ' if unsure else ''}{protocol.users:,} user{'' if protocol.users == 1 else 's'}"
