"""A new plugin: a complete distribution with one component, rendered from templates.

``templates/plugin/common`` of the core holds what every plugin has. The templates of a kind are in a folder named after
it, in ``templates/plugin`` of the core ("analysis", "suite") or of the package of the suite. File names may contain
``__module__`` and ``__file__``; contents are Jinja templates.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cfbench_core import owners
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.files import filled, write_atomically
from cfbench_core.registry import Component, Registry, installed
from cfbench_core.specs import ComponentSpec, plural, resolve

TEMPLATES = Path(__file__).parent / "templates" / "plugin"
SUFFIX = ".jinja"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
STUDIED = 2
"""The number of installed explainers in the study of a plugin, next to its own."""


@dataclass(frozen=True)
class NewPlugin:
    """A plugin to write.

    Attributes:
        name: of its component: the explainer "lift" is in the distribution cfbench-explainer-lift.
        suite: to which it belongs; a suite of its own name if ``kind`` is "suite".
        summary: one line for ``cfbench list``.
        kind: "explainer", "metric", ...
    """

    name: str
    suite: str
    summary: str
    kind: str = "explainer"

    @property
    def distribution(self) -> str:
        return f"cfbench-{self.kind}-{self.name}"

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    @property
    def file(self) -> str:
        return "suite" if self.kind == "suite" else self.name.replace("-", "_")

    @property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("-"))

    @property
    def component(self) -> str:
        """The id of its component."""
        return f"{self.name if self.kind == 'suite' else self.suite}/{self.kind}/{self.name}"


def render(plugin: NewPlugin, registry: Registry | None = None) -> dict[Path, str]:
    """The files of a plugin, by their path in it.

    Raises:
        UserError: for an invalid or taken name, and for a suite that is not installed or has no templates of the kind.
    """
    import jinja2

    if not NAME.fullmatch(plugin.name):
        raise UserError(
            f"{plugin.name!r} cannot be a name: lower-case words with hyphens between, such as 'my-{plugin.kind}'"
        )
    if keyword.iskeyword(plugin.file) or keyword.iskeyword(plugin.class_name):
        raise UserError(f"{plugin.name!r} cannot be a name: it is a word of Python that no module may have")
    registry = registry or installed()
    if registry.by_id(plugin.component):
        raise UserError(f"{plugin.component} exists already: choose another name")
    folder, distribution, version = _templates_of(plugin, registry)
    environment = jinja2.Environment(
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined, autoescape=False
    )
    environment.filters["quoted"] = lambda text: json.dumps(
        text, ensure_ascii=False
    )  # right in Python and TOML
    values = _values(plugin, distribution, version, registry)
    return {
        _named(path.relative_to(root), plugin): environment.from_string(path.read_text("utf-8")).render(
            values
        )
        for root in (TEMPLATES / "common", folder)
        for path in sorted(root.rglob(f"*{SUFFIX}"))
    }


def _values(plugin: NewPlugin, distribution: str, version: str, registry: Registry) -> dict[str, Any]:
    return {
        **vars(plugin),
        "kinds": plural(plugin.kind),
        "article": "an" if plugin.kind[0] in "aeiou" else "a",
        "distribution": plugin.distribution,
        "module": plugin.module,
        "file": plugin.file,
        "class_name": plugin.class_name,
        "component": plugin.component,
        "core_range": _compatible(metadata.version("cfbench-core")),
        "suite_distribution": distribution,
        "suite_range": _compatible(version),
        "explainers": _studied(plugin.suite, registry),
        "example_document": _example(plugin, registry),
    }


def _studied(suite: str, registry: Registry) -> list[str]:
    """Some installed explainers, baselines first: they are fast. Those that work with few models come last."""
    found = [component.spec for component in registry.components("explainer", suite)]
    usual = [spec for spec in found if spec.details.get("default", True)]
    return [spec.name for spec in sorted(usual, key=lambda spec: (spec.role != "baseline", _is_picky(spec)))][
        :STUDIED
    ]


def _is_picky(spec: ComponentSpec) -> bool:
    """Whether it needs more of a model than scores."""
    return any(axes != {"access": {"scores"}} for axes in spec.needs.values())


def _example(plugin: NewPlugin, registry: Registry) -> str:
    """The example configuration of the suite, for kinds whose template uses it."""
    if plugin.kind != "analysis":
        return ""
    suite = registry.find(plugin.suite, "suite", plugin.suite)
    return str(resolve(suite.spec.target)().example_document(registry))


def write(plugin: NewPlugin, folder: Path, registry: Registry | None = None) -> list[Path]:
    """Writes a plugin into a folder that is new or empty; returns the files."""
    owners.remove_abandoned(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists already and is not empty; give another folder with --output")
    files = render(plugin, registry)
    with filled(folder) as inside:
        for path, content in files.items():
            write_atomically(inside / path, content)
    return [folder / path for path in files]


def kinds_with_template(suite: str, registry: Registry) -> list[str]:
    """The kinds of plugin that can be written for an installed suite, and "suite"."""
    component = registry.find(suite, "suite", suite)
    own = [path.name for path in _folders(_suite_templates(component))]
    return sorted({*own, *(path.name for path in _folders(TEMPLATES) if path.name != "common")})


def suites_with_template(kind: str, registry: Registry) -> list[str]:
    """The installed suites for which a plugin of a kind can be written."""
    names = [component.spec.name for component in registry.components("suite")]
    return [name for name in names if kind in kinds_with_template(name, registry)]


def _templates_of(plugin: NewPlugin, registry: Registry) -> tuple[Path, str, str]:
    """The folder of the templates, and the distribution of the suite, on which the plugin depends, with its version."""
    if plugin.kind == "suite":
        return TEMPLATES / "suite", "cfbench-core", metadata.version("cfbench-core")
    suite = registry.find(plugin.suite, "suite", plugin.suite)
    for above in (_suite_templates(suite), TEMPLATES):
        if above is not None and (above / plugin.kind).is_dir():
            return above / plugin.kind, suite.distribution, suite.distribution_version
    known = kinds_with_template(plugin.suite, registry)
    raise UserError(
        f"the suite {plugin.suite} has no template for the kind {plugin.kind!r}."
        f"{did_you_mean(plugin.kind, known)}  (kinds: {', '.join(known)})"
    )


def _suite_templates(suite: Component) -> Path | None:
    found = find_spec(suite.spec.target.partition(":")[0].partition(".")[0])
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / "templates" / "plugin"


def _folders(above: Path | None) -> Iterator[Path]:
    if above is not None and above.is_dir():
        yield from (path for path in above.iterdir() if path.is_dir())


def _named(path: Path, plugin: NewPlugin) -> Path:
    text = path.as_posix().removesuffix(SUFFIX)
    return Path(text.replace("__module__", plugin.module).replace("__file__", plugin.file))


def _compatible(installed_version: str) -> str:
    """The versions that a plugin written today works with: ">=0.1,<0.2"."""
    from packaging.version import Version

    version = Version(installed_version)
    following = f"0.{version.minor + 1}" if version.major == 0 else str(version.major + 1)
    return f">={version.major}.{version.minor},<{following}"
