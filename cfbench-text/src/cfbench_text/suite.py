"""The text suite on the shared life cycle: generators are the models, and explain themselves.

Imports neither pandas nor torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.lifecycle.steps import steps_by_module
from cfbench_core.lifecycle.study import PlannedCell, PreparedDataset, Setting, Study
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import Column, Plan, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Stage
from cfbench_text.config import TextConfig
from cfbench_text.config_templates import CONTROLS, EXAMPLE_DOCUMENT
from cfbench_text.contracts import CONTRACTS
from cfbench_text.external_texts import TextTable
from cfbench_text.judged_metrics import for_each_judge, lacking_judge
from cfbench_text.metrics import MAIN_METRICS
from cfbench_text.models.loading import require_local_model

STEPS = "cfbench_text.steps"

SPEC = ComponentSpec(
    id="text/suite/text",
    summary="Natural-language explanations: statements of generated texts against the user's own review",
    target=f"{__name__}:TextSuite",
    papers=("statementfactuality",),
    details={
        "conformance": "cfbench_text.testing:checks",
        "compared": "generator",
        "commands": {
            "meta-evaluate": "cfbench_text.meta_evaluation.command:command",
            "train-judge": "cfbench_text.judges.train_command:command",
            "evaluate-extractor": "cfbench_text.labelled_triplets.command:command",
        },
    },
)


class TextSuite(LifecycleSuite):
    """reviews -> statements -> generator -> texts -> statements -> scores, for every data set and generator."""

    name = "text"
    config = TextConfig
    contracts = CONTRACTS
    layout = TableLayout(
        by=("dataset",),
        row="model",
        cluster="user",
        unit_columns=("user", "item", "time"),
        tables=dict.fromkeys(("statements.parquet", "failures.parquet", "spans.parquet"), "scores"),
        primary=("St2Exp-F1", "hallucinated"),
    )
    steps: ClassVar[Mapping[str, str]] = steps_by_module(
        STEPS,
        data="read_data load_data choose_units open_chunk",
        fitting="fit restore",
        texts="explain to_rows from_rows",
        scoring="observe",
    )
    model_kind = "generator"
    models_key = "generators"
    models_explain = True
    main_metrics = MAIN_METRICS
    external_target = f"{STEPS}.external:select_texts"
    example = EXAMPLE_DOCUMENT
    verbalization = "cfbench_text.verbalization:worst_hallucination"

    # The grid

    def check(self, study: Study) -> None:
        config = study.config
        for component in (config.extractor, *config.generators, *config.judges, *study.metrics):
            require_local_model(component)

    def metric_needs(self, config: TextConfig, metric: ConfiguredComponent) -> str:
        return lacking_judge(metric, config.judges)

    def metric_entries(
        self, setting: Setting, metric: ConfiguredComponent
    ) -> list[tuple[Mapping[str, Any], Sequence[Column]]]:
        """A metric once for each judge that gives what it needs, with the name of the judge in its columns."""
        ((parameters, columns),) = super().metric_entries(setting, metric)
        protocol = setting.config.protocol
        parameters = {**parameters, "empty": protocol.empty, "max_failed": protocol.max_failed}
        return for_each_judge(metric, parameters, columns, setting.config.judges)

    def model_components(self, study: Study) -> Sequence[ConfiguredComponent]:
        """The generators, or external texts with the controls of the configuration; names in the file come first."""
        chosen = super().model_components(study)
        names = {one.label for one in chosen}
        controls = (one for one in study.config.generators if one.spec.role and one.label not in names)
        return (*chosen, *controls)

    def estimate(self, config: TextConfig, plan: Plan) -> Sequence[str]:
        """What the study sends to endpoints: requests, tokens, price; reads the reviews if there is an endpoint."""
        from cfbench_text.query_estimate import estimate

        return estimate(config, plan)

    # Stages and their parameters

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        protocol = vars(study.config.protocol)
        return {
            name: protocol[name] for name in ("split", "train", "validation", "min_reviews_per_user", "learn")
        }

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """The reviews, whatever the seed, and their statements."""
        inputs = {"data": study.read(dataset, self.data_parameters(study, dataset), draws=False)}
        label, target = f"statements of {dataset.label}", f"{STEPS}.statements:extract_statements"
        extractor = {
            "extractor": study.config.extractor.parameters(),
            "max_failed": study.config.protocol.max_failed,
        }
        statements = study.stage("statements", label, target, extractor, inputs, draws=False)
        return PreparedDataset(dataset, {**inputs, "statements": statements})

    def chunk_parameters(self, setting: Setting) -> Mapping[str, Any]:
        return {"reference": setting.config.protocol.reference}

    def unit_parameters(self, setting: Setting) -> Mapping[str, Any]:
        return {"rows": setting.config.protocol.rows}

    def explanation_parameters(self, cell: PlannedCell) -> Mapping[str, Any]:
        return {"sees_references": "references" in cell.explainer.spec.provides.get("sees", ())}

    def scored_inputs(self, cell: PlannedCell, stages: Mapping[str, Stage]) -> Mapping[str, Stage]:
        """The statements of the texts."""
        config, details = cell.config, cell.explainer.spec.details
        label = f"statements of {cell.explainer.label} on {stages['data'].label}"
        read = details.get("read", config.protocol.read)
        parameters = {"extractor": config.extractor.parameters(), "read": read}
        inputs = {role: stages[role] for role in ("data", "units", "explanations")}
        kind, target = "statements of texts", f"{STEPS}.statements:read_texts"
        stage = cell.study.stage(kind, label, target, parameters, inputs, draws=False, chunked=True)
        return {kind: stage}

    def external_table(self, path: Path) -> TextTable:
        return TextTable(path, (*self.layout.by, self.layout.row))

    def document_for(self, explanations: Path) -> Mapping[str, Any]:
        """A configuration for texts that come with their references."""
        from cfbench_text.own_texts import document_for

        return document_for(explanations)

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """What is installed and needs no model; controls are calibration rows, so they are always there."""
        others = [name for name in registry.by_default(self.name, "generator") if name != "most-frequent"]
        chosen = {"extractor": "atomic", "generators": [*others, *CONTROLS], "judges": ["overlap"]}
        return {"suite": self.name, "seed": 0, "data": ["toy-reviews"], **chosen}
