"""The text suite: from a configuration to cells. Imports neither pandas nor torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cfbench_core.config import ConfiguredComponent
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, TableLayout
from cfbench_core.specs import Capabilities, ComponentSpec, lacking, resolve
from cfbench_text.config import TextConfig
from cfbench_text.contracts import CONTRACTS
from cfbench_text.grid import EXTERNAL, STAGES, Grid, measures

if TYPE_CHECKING:
    from cfbench_core.data_files import DataAccess
    from cfbench_core.registry import Registry
    from cfbench_core.run_directory import Run

SPEC = ComponentSpec(
    id="text/suite/text",
    summary="Natural-language explanations: statements of generated texts against the user's own review",
    target=f"{__name__}:TextSuite",
    papers=("statementfactuality",),
    details={"conformance": "cfbench_text.testing:checks", "compared": "generator"},
)


CONTROLS = (
    {"name": "most-frequent"},
    {"name": "most-frequent", "of": "item", "label": "most-frequent-item"},
    {"name": "most-frequent", "of": "user", "label": "most-frequent-user"},
)
FIRST_METRICS = [
    "hallucination",
    "st2exp",
    "stent",
    "stent-bin",
    "stcoh",
    "one-to-one",
    "fmr",
    "bleu",
    "rouge",
]


class TextSuite:
    """reviews -> statements -> generator -> texts -> statements -> scores, for every data set and generator."""

    config = TextConfig
    layout = TableLayout(
        by=("dataset",),
        row="model",
        cluster="user",
        unit_columns=("user", "item", "time"),
        tables={"statements.parquet": "scores"},
    )

    def cells(
        self,
        config: TextConfig,
        registry: Registry,
        access: DataAccess | None = None,
        explanations: Path | None = None,
    ) -> Sequence[Cell]:
        metrics = _metrics(config, registry)
        for reference in (config.extractor, *config.generators, *config.judges, *metrics):
            _check_model(reference)
        chosen = measures(metrics, config.judges)
        generators = config.generators
        if explanations is not None:
            generators = _with_calibration(_external(explanations), generators)
        cells = []
        for dataset in config.data:
            grid = Grid(config, dataset, chosen, access, explanations)
            cells += [grid.cell(generator) for generator in generators]
        return cells

    def imported(self, kind: str, implementation: type) -> tuple[Capabilities, Mapping[str, Capabilities]]:
        """The capabilities of a class named by ``import:``, derived from its methods."""
        contract = CONTRACTS.get(kind)
        if contract is None:
            return {}, {}
        problem = contract.problem(implementation, kind)
        if problem:
            raise UserError(f"{implementation.__name__}: {problem}")
        return contract.capabilities(implementation), contract.needs

    def default_document(self, registry: Registry) -> Mapping[str, Any]:
        """What is installed and needs no model; controls are calibration rows, so they are always there."""
        others = [
            one.spec.name
            for one in registry.components("generator", "text")
            if one.spec.details.get("default", True) and one.spec.name != "most-frequent"
        ]
        return {
            "suite": "text",
            "seed": 0,
            "data": ["toy-reviews"],
            "extractor": "rules",
            "generators": [*others, *CONTROLS],
            "judges": ["overlap"],
        }

    def example_document(self, registry: Registry) -> str:
        return EXAMPLE_DOCUMENT

    def describe_data(self, config: TextConfig, summaries: Mapping[str, Any]) -> str:
        described = []
        for dataset in config.data:
            known = summaries.get(dataset.label)
            if known is not None:
                kind = "synthetic, " if known["synthetic"] else ""
                described.append(
                    f"{dataset.label} ({kind}{known['reviews']:,} reviews, {known['users']:,} users)"
                )
        return ", ".join(described)

    def verbalize(self, run: Run) -> str:
        from cfbench_text.verbalization import worst_hallucination

        return worst_hallucination(run)


def _check_model(reference: ConfiguredComponent) -> None:
    """That a model which is named by a path or a package is there: known before anything is computed with it."""
    from cfbench_text.models.loading import find_local

    model = getattr(reference.options, "model", None)
    if isinstance(model, str) and getattr(reference.options, "endpoint", None) is None:
        try:
            find_local(model)
        except UserError as error:
            raise UserError(f"{reference.kind} {reference.label}: {error}") from None


def _metrics(config: TextConfig, registry: Registry) -> Sequence[ConfiguredComponent]:
    """Those that the configuration names, else all that are installed, need no model, and have their judge."""
    if config.metrics is not None:
        for metric in config.metrics:
            needed = metric.spec.needs.get("judge")
            if needed is not None and all(lacking(needed, judge.spec.provides) for judge in config.judges):
                verdict = " and ".join(sorted(needed.get("verdict", ())))
                raise UserError(
                    f"metric {metric.label} needs a judge that gives {verdict}; name one in 'judges'"
                )
        return config.metrics
    names = [
        one.spec.name
        for one in registry.components("metric", "text")
        if one.spec.details.get("default", True)
    ]
    names.sort(key=lambda name: (FIRST_METRICS.index(name) if name in FIRST_METRICS else 99, name))
    return [_with_defaults(registry, name) for name in names]


def _with_defaults(registry: Registry, metric: str) -> ConfiguredComponent:
    component = registry.find("text", "metric", metric)
    options = resolve(component.spec.config)() if component.spec.config else None
    owner = f"{component.distribution} {component.distribution_version}"
    return ConfiguredComponent("metric", metric, component.spec, options, owner)


def _with_calibration(
    external: Sequence[ConfiguredComponent], generators: Sequence[ConfiguredComponent]
) -> tuple[ConfiguredComponent, ...]:
    """External texts, and the controls of the configuration; names in the file take precedence."""
    names = {one.label for one in external}
    return (*external, *(one for one in generators if one.spec.role and one.label not in names))


def _external(path: Path) -> tuple[ConfiguredComponent, ...]:
    """Stand for who wrote the texts in a file: one for each name in its column model, if any."""
    from cfbench_text.tables import models_in

    spec = ComponentSpec(
        id=EXTERNAL,
        summary="external explanations",
        target=f"{STAGES}:import_explanations",
    )
    return tuple(
        ConfiguredComponent("generator", name, spec)
        for name in models_in(path) or [path.name.partition(".")[0]]
    )


EXAMPLE_DOCUMENT = """\
# A study of written reasons. Check it with 'cfbench plan', run it with 'cfbench run'.
suite: text
seed: 0
data:                                  # 'cfbench list datasets --suite text'
  - toy-reviews                        # synthetic
  # - musical-instruments              # Amazon 2014; 'cfbench data fetch musical-instruments'
  # - {name: reviews, path: mine.jsonl, domain: my_topics.yaml}
extractor: rules                       # reviews and texts into statements; 'cfbench list extractors'
generators:                          # write the explanations
  - item-review
  - most-frequent
  - {name: most-frequent, of: item, label: most-frequent-item}
  - reference                          # the ceiling
  - round-trip                         # what the extraction loses
  - shuffled-reference                 # a baseline
judges: [overlap]                      # compares words; no judge of meaning
protocol:
  split: per-user                      # by time, 80/10/10
  empty: zero                          # a text without statements has recall 0
limits: {seconds: 1800, memory_gb: 8}  # of each task
"""
