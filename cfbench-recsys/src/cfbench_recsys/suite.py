"""The recommender suite: from a configuration to cells, as data. Imports neither torch nor pandas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import Capabilities, ComponentSpec, resolve
from cfbench_core.tuning import Tunable
from cfbench_recsys import tuning
from cfbench_recsys.config import RecsysConfig
from cfbench_recsys.config_templates import DEFAULT_DOCUMENT, EXAMPLE_DOCUMENT
from cfbench_recsys.external import ExternalTable
from cfbench_recsys.grid import Grid, models_of, protocol_points, split_stage
from cfbench_recsys.metrics import DEFAULT_METRICS

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="recsys/suite/recsys",
    summary="Why was this recommended? Interactions to remove or add, for one item or a whole list",
    target=f"{__name__}:RecsysSuite",
    details={
        "conformance": "cfbench_recsys.testing:checks",
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


class RecsysSuite:
    """data -> split -> model -> units -> [explainer] -> explanations -> scores, for every pair that can work."""

    config = RecsysConfig
    layout = TableLayout(
        by=("dataset", "model", "level", "k", "format", "edit", "scope"),
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
            split = split_stage(dataset, config, access)
            for recommender in config.recommenders:
                for model in models_of(recommender, dataset, split, config):
                    grid = Grid(config, dataset, model, split, metrics, external)
                    cells += [
                        grid.cell(explainer, point)
                        for point in protocol_points(config.protocol, recommender.spec.provides)
                        for explainer in explainers
                    ]
        return cells

    def tunable(
        self,
        config: RecsysConfig,
        registry: Registry,
        access: DataAccess,
        reference: ConfiguredComponent,
        metric: str | None,
        sample: int,
    ) -> Tunable:
        """What ``cfbench tune`` makes as good as it can be."""
        return tuning.tunable(config, self._metrics(config, registry), access, reference, metric, sample)

    def _metrics(self, config: RecsysConfig, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        if config.metrics is not None:
            return config.metrics
        return tuple(_named(registry, "metric", name) for name in DEFAULT_METRICS)

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """What a class named by ``import:`` can do, derived from the methods it has."""
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
        return {**DEFAULT_DOCUMENT, "explainers": registry.by_default("recsys", "explainer")}

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

    def verbalize(self, run: Run) -> str:
        from cfbench_recsys.verbalization import best_explanation

        return best_explanation(run)


def explained_users(config: RecsysConfig, read: Sequence[Mapping[str, Any]]) -> str:
    """ "100 users": how many are explained. A split by users has fewer to choose from than the data set."""
    protocol = config.protocol
    if protocol.users_file is not None:
        return f"users of {Path(protocol.users_file).name}"
    fewest = min(summary["users"] for summary in read)
    unsure = protocol.users > fewest or config.split.kind == "per-user"
    return f"{'up to ' if unsure else ''}{protocol.users:,} users"


def _named(registry: Registry, kind: str, name: str) -> ConfiguredComponent:
    component = registry.find("recsys", kind, name)
    options = resolve(component.spec.config)() if component.spec.config else None
    return ConfiguredComponent(
        kind, name, component.spec, options, f"{component.distribution} {component.distribution_version}"
    )


def _references(table: ExternalTable) -> tuple[ConfiguredComponent, ...]:
    """Stand for the explainers of a table of external explanations."""
    spec = ComponentSpec(
        id="recsys/explainer/external",
        summary="explanations external",
        target="cfbench_recsys.stages.explaining:import_explanations",
    )
    return tuple(ConfiguredComponent("explainer", name, spec) for name in table.explainers())


def _recommender_capabilities(implementation: type) -> Capabilities:
    access, scope = {"scores"}, {"user-vector"}
    if hasattr(implementation, "score_edits"):
        scope = {"user-only", "indirect", "k-hop", "full"}
    elif not hasattr(implementation, "score_profiles"):
        raise UserError(
            f"{implementation.__name__} has neither score_profiles(profiles) nor score_edits(edits)"
        )
    access |= {"weights"} if hasattr(implementation, "weights") else set()
    by_gradient = "score_weighted" if hasattr(implementation, "score_edits") else "score_dense"
    access |= {"gradients"} if hasattr(implementation, by_gradient) else set()
    access |= {"embeddings"} if hasattr(implementation, "item_embeddings") else set()
    return {"access": frozenset(access), "scope": frozenset(scope)}
