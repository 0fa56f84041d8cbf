"""The text suite on the shared life cycle: generators are the models, and explain themselves.

Imports neither pandas nor torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cfbench_core.config import ConfiguredComponent
from cfbench_core.data_files import DataAccess
from cfbench_core.errors import UserError
from cfbench_core.lifecycle.study import PreparedDataset, ProtocolPoint, Study
from cfbench_core.lifecycle.suite import LifecycleSuite
from cfbench_core.plan import Cell, Column, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.specs import ComponentSpec, lacking
from cfbench_core.stages import Stage
from cfbench_text.config import TextConfig
from cfbench_text.config_templates import CONTROLS, EXAMPLE_DOCUMENT
from cfbench_text.contracts import CONTRACTS
from cfbench_text.external_texts import TextTable

if TYPE_CHECKING:
    from cfbench_core.run_directory import Run

STEPS = "cfbench_text.steps"

SPEC = ComponentSpec(
    id="text/suite/text",
    summary="Natural-language explanations: statements of generated texts against the user's own review",
    target=f"{__name__}:TextSuite",
    papers=("statementfactuality",),
    details={"conformance": "cfbench_text.testing:checks", "compared": "generator"},
)

FIRST_METRICS = (
    "hallucination",
    "st2exp",
    "stent",
    "stent-bin",
    "stcoh",
    "one-to-one",
    "fmr",
    "bleu",
    "rouge",
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
        tables={"statements.parquet": "scores"},
    )
    steps: ClassVar[Mapping[str, str]] = {
        **{step: f"{STEPS}.data:{step}" for step in ("read_data", "load_data", "choose_units", "open_chunk")},
        **{step: f"{STEPS}.fitting:{step}" for step in ("fit", "restore")},
        **{step: f"{STEPS}.texts:{step}" for step in ("explain", "to_rows", "from_rows")},
        "observe": f"{STEPS}.scoring:observe",
    }
    model_kind = "generator"
    models_key = "generators"
    models_explain = True
    external_target = f"{STEPS}.external:select_texts"

    # The grid

    def cells(
        self,
        config: TextConfig,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        for component in (
            config.extractor,
            *config.generators,
            *config.judges,
            *self.metrics(config, registry),
        ):
            _check_model(component)
        return super().cells(config, registry, access, explanations)

    def metrics(self, config: TextConfig, registry: Registry) -> tuple[ConfiguredComponent, ...]:
        """Those that the configuration names, else all that are installed, need no model, and have their judge."""
        for metric in config.metrics or ():
            if not _judges(config, metric):
                verdict = " and ".join(sorted(metric.spec.needs["judge"].get("verdict", ())))
                raise UserError(
                    f"metric {metric.label} needs a judge that gives {verdict}; name one in 'judges'"
                )
        names = registry.by_default(self.name, "metric")
        place = {name: number for number, name in enumerate(FIRST_METRICS)}
        ordered = sorted(names, key=lambda name: (place.get(name, len(place)), name))
        return tuple(
            metric for metric in self.named_metrics(config, registry, ordered) if _judges(config, metric)
        )

    def metric_entries(
        self, study: Study, metric: ConfiguredComponent, point: ProtocolPoint
    ) -> list[tuple[Mapping[str, Any], Sequence[Column]]]:
        """A metric once for each judge that gives what it needs, with the name of the judge in its columns."""
        entries: list[tuple[Mapping[str, Any], Sequence[Column]]] = []
        for judge in _judges(study.config, metric):
            suffix = "" if judge is None else f" ({judge.label})"
            columns = metric.create().columns(point)
            entry = {
                "metric": metric.parameters(),
                "columns": {column.name: f"{column.name}{suffix}" for column in columns},
                "judge": None if judge is None else judge.parameters(),
                "label": None if judge is None else judge.label,
                "verdicts": sorted(metric.spec.needs.get("judge", {}).get("verdict", ())),
                "empty": study.config.protocol.empty,
            }
            entries.append((entry, [replace(column, name=f"{column.name}{suffix}") for column in columns]))
        return entries

    def model_components(self, study: Study) -> Sequence[ConfiguredComponent]:
        """The generators, or external texts with the controls of the configuration; names in the file come first."""
        chosen = super().model_components(study)
        names = {one.label for one in chosen}
        return (
            *chosen,
            *(one for one in study.config.generators if one.spec.role and one.label not in names),
        )

    # Stages and their parameters

    def data_parameters(self, study: Study, dataset: ConfiguredComponent) -> Mapping[str, Any]:
        protocol = vars(study.config.protocol)
        return {name: protocol[name] for name in ("split", "train", "validation", "min_reviews_per_user")}

    def prepared(self, study: Study, dataset: ConfiguredComponent) -> PreparedDataset:
        """The reviews, whatever the seed, and their statements."""
        data = self.read(study, dataset, seed=0)
        statements = self.stage(
            "statements",
            f"statements of {dataset.label}",
            f"{STEPS}.statements:extract_statements",
            {"extractor": study.config.extractor.parameters()},
            {"data": data},
            (),
            0,
            dataset.spec.name,
        )
        return PreparedDataset(dataset, {"data": data, "statements": statements})

    def chunk_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        return {"reference": study.config.protocol.reference}

    def unit_parameters(self, study: Study, point: ProtocolPoint) -> Mapping[str, Any]:
        return {"rows": study.config.protocol.rows}

    def unit_key(self, point: ProtocolPoint) -> tuple[str, ...]:
        return ("user", "item", "time")

    def explanation_parameters(
        self, study: Study, explainer: ConfiguredComponent, point: ProtocolPoint
    ) -> Mapping[str, Any]:
        sees = "references" in explainer.spec.provides.get("sees", ())
        return {"threads": study.config.threads, "sees_references": sees}

    def scored_inputs(
        self,
        study: Study,
        explainer: ConfiguredComponent,
        known: Mapping[str, Stage],
        explained: Mapping[str, Stage],
    ) -> Mapping[str, Stage]:
        """The statements of the texts."""
        read = explainer.spec.details.get("read", study.config.protocol.read)
        stage = self.stage(
            "statements of texts",
            f"statements of {explainer.label} on {known['data'].label}",
            f"{STEPS}.statements:read_texts",
            {"extractor": study.config.extractor.parameters(), "read": read},
            {"data": known["data"], "units": known["units"], "explanations": explained["explanations"]},
            (),
            0,
            known["data"].dataset,
            chunked=True,
        )
        return {"statements of texts": stage}

    def external_table(self, path: Path) -> TextTable:
        return TextTable(path, (*self.layout.by, self.layout.row))

    # Documents and descriptions

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """What is installed and needs no model; controls are calibration rows, so they are always there."""
        others = [name for name in registry.by_default(self.name, "generator") if name != "most-frequent"]
        chosen = {"extractor": "rules", "generators": [*others, *CONTROLS], "judges": ["overlap"]}
        return {"suite": self.name, "seed": 0, "data": ["toy-reviews"], **chosen}

    def example_document(self, registry: Registry) -> str:
        return EXAMPLE_DOCUMENT

    def describe_data(self, config: TextConfig, summaries: Mapping[str, Any]) -> str:
        read = {one.label: summaries[one.label] for one in config.data if one.label in summaries}
        return ", ".join(
            f"{label} ({'synthetic, ' if known['synthetic'] else ''}{known['reviews']:,} reviews, "
            f"{known['users']:,} users)"
            for label, known in read.items()
        )

    def verbalize(self, run: Run) -> str:
        from cfbench_text.verbalization import worst_hallucination

        return worst_hallucination(run)


def _judges(config: TextConfig, metric: ConfiguredComponent) -> list[ConfiguredComponent | None]:
    """The judges that give what a metric needs; a single None for a metric that needs none."""
    needed = metric.spec.needs.get("judge")
    if needed is None:
        return [None]
    return [judge for judge in config.judges if not lacking(needed, judge.spec.provides)]


def _check_model(component: ConfiguredComponent) -> None:
    """That a model which is named by a path or a package is there, before anything is computed with it."""
    from cfbench_text.models.loading import find_local

    model = getattr(component.options, "model", None)
    if isinstance(model, str) and getattr(component.options, "endpoint", None) is None:
        try:
            find_local(model)
        except UserError as error:
            raise UserError(f"{component.kind} {component.label}: {error}") from None
