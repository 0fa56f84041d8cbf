"""Pages made when the site is built: components, configuration and commands from the registry, the API from docstrings.

They are not stored in the repository.
"""

from __future__ import annotations

from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from reference_pages import api, commands, components, configuration, examples, formulas, python_calls
from result_tables import replications

from cfbench_core.registry import Registry, installed


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """mkdocs calls this once the files of docs/ are known."""
    registry = installed()
    problems = [
        *registry.problems(),
        *formulas.problems(registry),
        *replications.problems(registry),
        *commands.problems(),
        *python_calls.problems(),
    ]
    if problems:
        raise RuntimeError("the documentation has problems: " + "; ".join(problems))
    for path, content in pages(registry):
        files.append(File.generated(config, f"reference/{path}", content=content))
    return files


def pages(registry: Registry) -> Iterator[tuple[str, str]]:
    """Path below reference/, and Markdown, of each generated page."""
    yield "components.md", components.index(registry)
    for component in registry.components():
        yield components.path_of(component), components.page(component, registry)
    yield "configuration.md", configuration.index(registry)
    for component in registry.components("suite"):
        yield configuration.path_of(component), configuration.page(component)
    yield "commands.md", commands.page()
    yield "examples.md", examples.page()
    yield "api.md", api.index()
    for group in api.GROUPS:
        yield api.path_of(group), api.page(group)
