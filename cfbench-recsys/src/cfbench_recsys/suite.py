"""The recommender suite: from a configuration to cells, as data. Imports neither torch nor pandas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import Reference
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.plan import Cell, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import Capabilities, ComponentSpec, lacking, resolve
from cfbench_core.stages import UNITS, Stage
from cfbench_recsys.config import Protocol, RecsysConfig
from cfbench_recsys.external import ExternalTable
from cfbench_recsys.metrics import DEFAULT_METRICS
from cfbench_recsys.words import DEFAULT_DOCUMENT, EXAMPLE_DOCUMENT

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

STAGES = "cfbench_recsys.stages"
VERSION = "1"  # of the stages; raise it when what they compute changes


@dataclass(frozen=True)
class Corner:
    """One choice of the protocol: how a list is explained."""

    level: str
    format: str
    scope: str
    k: int


class RecsysSuite:
    """data -> split -> model -> units -> [explainer] -> explanations -> scores, for every pair that can work."""

    config = RecsysConfig
    layout = TableLayout(
        by=("dataset", "model", "level", "k", "format", "scope"),
        row="explainer",
        cluster="user",
        unit_columns=("user", "item", "rank"),
    )

    def cells(
        self,
        config: RecsysConfig,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        access = access or DataAccess()
        metrics = self._metrics(config, registry)
        external = ExternalTable(explanations) if explanations else None
        explainers = _references(external) if external else config.explainers
        cells = []
        for dataset in config.data:
            split = _split_stage(dataset, config, access)
            for recommender in config.recommenders:
                grid = _Grid(config, dataset, recommender, split, metrics, external)
                cells += [
                    grid.cell(explainer, corner)
                    for corner in corners(config.protocol, recommender.spec.provides)
                    for explainer in explainers
                ]
        return cells

    def _metrics(self, config: RecsysConfig, registry: Registry) -> tuple[Reference, ...]:
        if config.metrics is not None:
            return config.metrics
        return tuple(_named(registry, "metric", name) for name in DEFAULT_METRICS)

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """What a class named by ``import:`` can do, told from the methods it has."""
        if kind == "recommender":
            return _recommender_capabilities(implementation), {}
        if kind == "explainer":
            formats = {"implicit": "importances", "explicit": "counterfactuals"}
            offered = frozenset(name for name, method in formats.items() if hasattr(implementation, method))
            if not offered:
                raise UserError(
                    f"{implementation.__name__} has neither importances(targets, context) nor "
                    "counterfactuals(targets, context)"
                )
            provides = {
                "format": offered,
                "level": frozenset({"item", "list"}),
                "scope": frozenset({"user-vector", "user-only"}),
            }
            if hasattr(implementation, "prepare"):
                provides["pretraining"] = frozenset({"yes"})
            return provides, {}
        return {}, {}

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        names = registry.names("recsys", "explainer")
        return {**DEFAULT_DOCUMENT, "explainers": names}

    def example_document(self, registry: Registry) -> str:
        names = registry.names("recsys", "explainer") or ["lime-rs"]
        return EXAMPLE_DOCUMENT.format(explainers=", ".join(names))

    def describe_data(self, config: RecsysConfig, summaries: Mapping[str, Any]) -> str:
        read = [summaries[dataset.label] for dataset in config.data if dataset.label in summaries]
        texts = [
            summary["text"] + "".join(f" [{difference}]" for difference in summary["differences"])
            for summary in read
        ]
        return " · ".join([*texts, *([explained_users(config, read)] if read else [])])

    def in_words(self, run: Run) -> str:
        from cfbench_recsys.sentences import best_explanation

        return best_explanation(run)


def explained_users(config: RecsysConfig, read: Sequence[Mapping[str, Any]]) -> str:
    """ "100 users": how many are explained. A split by users has fewer to choose from than the data set."""
    protocol = config.protocol
    if protocol.users_file is not None:
        return f"users of {Path(protocol.users_file).name}"
    fewest = min(summary["users"] for summary in read)
    unsure = protocol.users > fewest or config.split.kind == "per-user"
    return f"{'up to ' if unsure else ''}{protocol.users:,} users"


def corners(protocol: Protocol, recommender: Capabilities) -> Iterator[Corner]:
    """Every choice of the protocol, for a recommender: a graph has scopes, a profile is its own scope."""
    on_graph = "graph" in recommender.get("scope", frozenset()) or "full" in recommender.get(
        "scope", frozenset()
    )
    for level in protocol.level:
        for format in protocol.format:
            for scope in protocol.scope if on_graph else ("user-vector",):
                for k in protocol.k:
                    yield Corner(level, format, scope, k)


class _Grid:
    """The cells of one data set and one recommender."""

    def __init__(
        self,
        config: RecsysConfig,
        dataset: Reference,
        recommender: Reference,
        split: Stage,
        metrics: Sequence[Reference],
        external: ExternalTable | None,
    ) -> None:
        self.config = config
        self.dataset = dataset
        self.recommender = recommender
        self.metrics = metrics
        self.external = external
        self.split = split
        self.on = f"on {dataset.label}"
        self.common = {"version": VERSION, "threads": config.threads}
        self.model = Stage(
            kind="model",
            label=f"{recommender.label} {self.on}",
            target=f"{STAGES}:fit_model",
            parameters={**self.common, "recommender": recommender.parameters()},
            inputs={"split": split},
            seed=config.seed,
        )

    def cell(self, explainer: Reference, corner: Corner) -> Cell:
        labels = self.labels(explainer, corner)
        fitting = [metric for metric in self.metrics if _fits(metric.spec, corner)]
        skipped = self.why_not(explainer, corner) or (
            "" if fitting else f"no metric fits {corner.format} answers"
        )
        if skipped:
            return Cell(labels, skipped=skipped, role=explainer.spec.role)
        created = [metric.create() for metric in fitting]
        columns = tuple(column for metric in created for column in metric.columns(corner.k, corner.level))
        return Cell(labels, columns, self.stages(explainer, corner, fitting), role=explainer.spec.role)

    def labels(self, explainer: Reference, corner: Corner) -> dict[str, str | int]:
        """What tells a cell from the others: columns of every table."""
        return {
            "dataset": self.dataset.label,
            "model": self.recommender.label,
            "explainer": explainer.label,
            "level": corner.level,
            "format": corner.format,
            "scope": corner.scope,
            "k": corner.k,
        }

    def why_not(self, explainer: Reference, corner: Corner) -> str:
        """Why an explainer and a corner of the protocol do not go together, without its name; empty when they do."""
        provides, needs = explainer.spec.provides, explainer.spec.needs
        if self.config.split.kind == "per-user" and corner.scope != "user-vector":
            return f"{self.recommender.label} is a graph recommender: users outside its graph (per-user split) have no place"
        if self.external is not None:
            return self.external.lacks(self.labels(explainer, corner))
        formats = provides.get("format", frozenset())
        derivable = corner.format == "explicit" and self.config.protocol.answers.derive != "none"
        if corner.format not in formats and not (derivable and "implicit" in formats):
            return f"no {corner.format} format"
        if corner.level not in provides.get("level", frozenset()):
            return f"no {corner.level} level"
        if corner.scope not in provides.get("scope", frozenset()):
            return f"no {corner.scope} scope"
        gap = lacking(needs.get("recommender", {}), self.recommender.spec.provides)
        return f"needs {gap}, which {self.recommender.label} does not offer" if gap else ""

    def stages(self, explainer: Reference, corner: Corner, metrics: Sequence[Reference]) -> dict[str, Stage]:
        units = self.units(corner)
        known = {"split": self.split, "model": self.model, UNITS: units}
        explanations = self.explained(explainer, corner, known)
        scores = Stage(
            kind="scores",
            label=f"scores of {explainer.label} for {self.recommender.label} {self.on}",
            target=f"{STAGES}:score_{corner.format}",
            parameters={**self.common, "metrics": [m.parameters() for m in metrics], **vars(corner)},
            inputs={**known, "explanations": explanations},
            seed=self.config.seed,
            chunked=True,
        )
        return {
            "data": self.split.inputs["data"],
            "model": self.model,
            "units": units,
            "explanations": explanations,
            "scores": scores,
        }

    def units(self, corner: Corner) -> Stage:
        protocol = self.config.protocol
        chosen: dict[str, Any] = {"users": protocol.users}
        if protocol.users_file is not None:
            chosen = {"users_file": protocol.users_file, "digest": file_digest(Path(protocol.users_file))}
        return Stage(
            kind="units",
            label=f"lists of {self.recommender.label} {self.on}",
            target=f"{STAGES}:choose_units",
            parameters={**self.common, "level": corner.level, "k": corner.k, **chosen},
            inputs={"split": self.split, "model": self.model},
            seed=self.config.seed,
        )

    def explained(self, explainer: Reference, corner: Corner, known: Mapping[str, Stage]) -> Stage:
        """The stage that ends in explanations of the asked format, by whatever way the explainer goes."""
        if self.external is not None:
            path = self.external.path
            return self.stage(
                "import_explanations",
                explainer,
                {
                    "file": str(path.resolve()),
                    "digest": file_digest(path),
                    "labels": self.labels(explainer, corner),
                    **vars(corner),
                },
                known,
            )
        inputs = dict(known)
        if "pretraining" in explainer.spec.provides:
            inputs["explainer"] = self.prepared(explainer, corner, known)
        base = {
            "explainer": explainer.parameters(),
            "level": corner.level,
            "scope": corner.scope,
            "k": corner.k,
        }
        answers = vars(self.config.protocol.answers)
        native = hasattr(explainer.implementation(), "counterfactuals")
        if corner.format == "explicit" and native:
            return self.stage("explain_explicit", explainer, {**base, "answers": answers}, inputs)
        importances = self.stage("explain_implicit", explainer, base, inputs)
        if corner.format == "implicit":
            return importances
        return self.stage(
            "derive_explicit",
            explainer,
            {"answers": answers, "level": corner.level, "scope": corner.scope, "k": corner.k},
            {**known, "importances": importances},
        )

    def prepared(self, explainer: Reference, corner: Corner, known: Mapping[str, Stage]) -> Stage:
        return Stage(
            kind="explainer",
            label=f"{explainer.label} learns about {self.recommender.label} {self.on}",
            target=f"{STAGES}:prepare_explainer",
            parameters={
                **self.common,
                "explainer": explainer.parameters(),
                "level": corner.level,
                "scope": corner.scope,
                "k": corner.k,
            },
            inputs=known,
            seed=self.config.seed,
        )

    def stage(
        self, function: str, explainer: Reference, parameters: Mapping[str, Any], inputs: Mapping[str, Stage]
    ) -> Stage:
        return Stage(
            kind="explanations",
            label=f"{explainer.label} for {self.recommender.label} {self.on}",
            target=f"{STAGES}:{function}",
            parameters={**self.common, **parameters},
            inputs=inputs,
            seed=self.config.seed,
            chunked=True,
        )


def _split_stage(dataset: Reference, config: RecsysConfig, access: DataAccess) -> Stage:
    """Reads a data set and divides it. Its key holds the fingerprint of the file that was found."""
    source = dataset.create().find(access)
    data = Stage(
        kind="data",
        label=dataset.label,
        target=f"{STAGES}:read_data",
        parameters={"version": VERSION, "dataset": dataset.parameters(), "source": source.parameters()},
    )
    return Stage(
        kind="split",
        label=f"{dataset.label} split {config.split.kind}",
        target=f"{STAGES}:split_data",
        parameters={"version": VERSION, "split": vars(config.split)},
        inputs={"data": data},
        seed=config.seed,
    )


def _fits(metric: ComponentSpec, corner: Corner) -> bool:
    formats = metric.needs.get("explainer", {}).get("format", frozenset())
    return corner.format in formats and corner.level in metric.provides.get("level", frozenset())


def _named(registry: Registry, kind: str, name: str) -> Reference:
    component = registry.find("recsys", kind, name)
    options = resolve(component.spec.config)() if component.spec.config else None
    return Reference(
        kind, name, component.spec, options, f"{component.distribution} {component.distribution_version}"
    )


def _references(table: ExternalTable) -> tuple[Reference, ...]:
    """Stand for whoever made the explanations of a table."""
    spec = ComponentSpec(
        id="recsys/explainer/external",
        summary="explanations made elsewhere",
        target=f"{STAGES}:import_explanations",
    )
    return tuple(Reference("explainer", name, spec) for name in table.explainers())


def _recommender_capabilities(implementation: type) -> Capabilities:
    access, scope = {"scores"}, {"user-vector"}
    if hasattr(implementation, "score_edits"):
        scope = {"user-only", "indirect", "k-hop", "full"}
    elif not hasattr(implementation, "score_profiles"):
        raise UserError(
            f"{implementation.__name__} has neither score_profiles(profiles) nor score_edits(edits)"
        )
    access |= {"weights"} if hasattr(implementation, "weights") else set()
    access |= {"gradients"} if hasattr(implementation, "score_weighted") else set()
    access |= {"embeddings"} if hasattr(implementation, "item_embeddings") else set()
    return {"access": frozenset(access), "scope": frozenset(scope)}
