"""The keys of a configuration: a page for each suite; options of components are on their pages."""

from __future__ import annotations

from cfbench_core.component_documentation import option_fields
from cfbench_core.registry import Component, Registry
from cfbench_core.specs import CORE
from reference_pages import components
from reference_pages.tables import keys


def path_of(suite: Component) -> str:
    return f"configuration/{suite.spec.name}.md"


def index(registry: Registry) -> str:
    suites = [
        f"- [Suite `{one.spec.name}`]({path_of(one)}): {one.spec.summary}"
        for one in registry.components("suite")
    ]
    executors, stores = (
        [
            f"- [`{one.spec.name}`]({components.path_of(one)}): {one.spec.summary}"
            for one in registry.components(kind, CORE)
        ]
        for kind in ("executor", "store")
    )
    return "\n".join(
        [
            "# Configuration",
            "",
            "A study is one YAML document. Its keys depend on the suite; the options of a data set, model, explainer or "
            "metric are on [the page of the component](components.md). `cfbench describe NAME` shows the same on the "
            "command line, and `cfbench init` writes a commented example.",
            "",
            "## Keys of a suite",
            "",
            *suites,
            "",
            "## Executors",
            "",
            "`executor: {name: NAME, key: value}` in the configuration of every suite.",
            "",
            *executors,
            "",
            "## Stores",
            "",
            "`store: {name: NAME, key: value}` in the configuration of every suite.",
            "",
            *stores,
            "",
        ]
    )


def page(suite: Component) -> str:
    name = suite.spec.name
    return "\n".join(
        [f"# Configuration of the suite {name}", "", f"{suite.spec.summary}.", "", keys(option_fields(suite.spec)), ""]
    )  # fmt: skip
