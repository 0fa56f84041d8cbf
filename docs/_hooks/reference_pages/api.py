"""The Python API: a page for each group of modules, whose content mkdocstrings takes from the docstrings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Public objects that belong together.

    objects: dotted names of modules, classes or functions.
    """

    name: str
    title: str
    summary: str
    objects: tuple[str, ...]


GROUPS = (
    Group(
        "studies",
        "Studies and runs",
        "Run a study, read and analyse its tables. `cfbench_core` exports `run`, `prepare`, `execute`, `analyse`, `Run`, "
        "`tune` and `cite`.",
        (
            "cfbench_core.api",
            "cfbench_core.run_directory.Run",
            "cfbench_core.tuning.search.tune",
            "cfbench_core.used_components.cite",
            "cfbench_core.comparison.compare",
            "cfbench_core.sentences.explain",
            "cfbench_core.sentences.Sentence",
            "cfbench_core.run_status.status",
            "cfbench_core.run_status.RunStatus",
            "cfbench_core.reports.render",
            "cfbench_core.exports",
            "cfbench_core.view",
            "cfbench_core.replications",
            "cfbench_core.verdicts",
        ),
    ),
    Group(
        "installation",
        "Installation and data",
        "What is installed, what a component documents, which data are at hand, and what is cached.",
        (
            "cfbench_core.component_documentation.describe",
            "cfbench_core.initial_configuration.initial_configuration",
            "cfbench_core.data_status",
            "cfbench_core.store.Store",
            "cfbench_core.diagnosis.diagnose",
            "cfbench_core.diagnosis.Finding",
            "cfbench_core.plugin_template.NewPlugin",
            "cfbench_core.plugin_template.write",
        ),
    ),
    Group(
        "plugins",
        "Plugins",
        "What every plugin uses, whatever its suite.",
        (
            "cfbench_core.specs",
            "cfbench_core.component_specs",
            "cfbench_core.hooks",
            "cfbench_core.config",
            "cfbench_core.config.component",
            "cfbench_core.contracts",
            "cfbench_core.errors",
            "cfbench_core.plan",
            "cfbench_core.papers",
            "cfbench_core.reproduction_levels",
            "cfbench_core.registry",
            "cfbench_core.testing",
        ),
    ),
    Group(
        "suites",
        "Suites",
        "What a suite states about itself; the core runs its stages.",
        (
            "cfbench_core.suites",
            "cfbench_core.lifecycle.suite",
            "cfbench_core.lifecycle.study",
            "cfbench_core.lifecycle.steps",
            "cfbench_core.lifecycle.models",
            "cfbench_core.lifecycle.streams",
            "cfbench_core.stages",
            "cfbench_core.view.blocks",
        ),
    ),
    Group(
        "recsys",
        "Recommenders",
        "Data structures and contracts of the suite `recsys`.",
        (
            "cfbench_recsys.contracts",
            "cfbench_recsys.explainer_contracts",
            "cfbench_recsys.targets",
            "cfbench_recsys.edits",
            "cfbench_recsys.answers",
            "cfbench_recsys.interactions",
        ),
    ),
    Group(
        "tabular",
        "Tabular classifiers",
        "Data structures and contracts of the suite `tabular`.",
        (
            "cfbench_tabular.table",
            "cfbench_tabular.encoding",
            "cfbench_tabular.classifiers.base",
            "cfbench_tabular.classifier_contracts",
            "cfbench_tabular.explainers.base",
            "cfbench_tabular.testing",
        ),
    ),
    Group(
        "text",
        "Explanation texts",
        "Data structures and contracts of the suite `text`.",
        (
            "cfbench_text.contracts",
            "cfbench_text.generators.base",
            "cfbench_text.judges.base",
            "cfbench_text.meta_evaluation.evaluate",
            "cfbench_text.testing",
        ),
    ),
)


def path_of(group: Group) -> str:
    return f"api/{group.name}.md"


def index() -> str:
    links = [f"- [{group.title}]({path_of(group)}): {group.summary}" for group in GROUPS]
    return "\n".join(
        [
            "# Python API",
            "",
            "Every command of `cfbench` is also one Python call: [Commands](commands.md) shows it.",
            "",
            *links,
            "",
        ]
    )


def page(group: Group) -> str:
    parts = [f"# {group.title}", "", group.summary, ""]
    for name in group.objects:
        parts += [f"## `{name}`", "", f"::: {name}", ""]
    return "\n".join(parts)
