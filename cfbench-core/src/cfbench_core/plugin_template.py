"""A new plugin: a complete distribution with an explainer, rendered from ``templates/plugin``.

``common`` holds what every plugin has; the folder of a suite what its explainers need. A suite of somebody
else's names its folder in its spec, ``details={"plugin_template": "package:folder"}``, laid out like ours:
file names may mention ``__module__`` and ``__file__``, and contents are Jinja templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.registry import Component, Registry, installed

TEMPLATES = Path(__file__).parent / "templates" / "plugin"
SUFFIX = ".jinja"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


@dataclass(frozen=True)
class NewPlugin:
    """A plugin to write. ``name`` is its explainer's: "lift" is brought by cfbench-explainer-lift."""

    name: str
    suite: str
    summary: str
    paper: str = ""

    @property
    def distribution(self) -> str:
        return f"cfbench-explainer-{self.name}"

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    @property
    def file(self) -> str:
        return self.name.replace("-", "_")

    @property
    def class_name(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("-"))


def render(plugin: NewPlugin, registry: Registry | None = None) -> dict[Path, str]:
    """The files of a plugin, by their path in it.

    Raises:
        UserError: for a name that cannot be one, and for a suite that is not installed or has no template.
    """
    import jinja2

    if not NAME.fullmatch(plugin.name):
        raise UserError(
            f"{plugin.name!r} cannot be a name: lower-case words with hyphens between, such as 'my-explainer'"
        )
    registry = registry or installed()
    suite = registry.find(plugin.suite, "suite", plugin.suite)
    if plugin.name in registry.names(plugin.suite, "explainer"):
        raise UserError(f"there is an explainer {plugin.name!r} already: choose another name")
    environment = jinja2.Environment(
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined, autoescape=False
    )
    environment.filters["quoted"] = lambda text: json.dumps(
        text, ensure_ascii=False
    )  # right in Python and in TOML
    values = {
        **vars(plugin),
        "distribution": plugin.distribution,
        "module": plugin.module,
        "file": plugin.file,
        "class_name": plugin.class_name,
        "core_range": _compatible("cfbench-core"),
        "suite_distribution": suite.distribution,
        "suite_range": _compatible(suite.distribution),
    }
    return {
        _named(path.relative_to(folder), plugin): environment.from_string(path.read_text("utf-8")).render(
            values
        )
        for folder in (TEMPLATES / "common", _folder_of(suite))
        for path in _templates(folder)
    }


def write(plugin: NewPlugin, folder: Path, registry: Registry | None = None) -> list[Path]:
    """Writes a plugin into a folder that is new or empty; returns the files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: exists already and is not empty; give another folder with --out")
    files = render(plugin, registry)
    for path, content in files.items():
        write_atomically(folder / path, content)
    return [folder / path for path in files]


def suites_with_template(registry: Registry) -> list[str]:
    """The installed suites for which a plugin can be written."""
    return [c.spec.name for c in registry.components("suite") if _template_of(c) is not None]


def _templates(folder: Path) -> Iterator[Path]:
    yield from sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.is_file())


def _named(path: Path, plugin: NewPlugin) -> Path:
    text = path.as_posix().removesuffix(SUFFIX)
    return Path(text.replace("__module__", plugin.module).replace("__file__", plugin.file))


def _folder_of(suite: Component) -> Path:
    folder = _template_of(suite)
    if folder is None:
        raise UserError(f"the suite {suite.spec.name} has no template for a plugin")
    return folder


def _template_of(suite: Component) -> Path | None:
    reference = suite.spec.details.get("plugin_template")
    if reference is None:
        folder = TEMPLATES / suite.spec.name
    else:
        package, _, name = str(reference).partition(":")
        found = find_spec(package)
        if found is None or not found.submodule_search_locations:
            return None
        folder = Path(next(iter(found.submodule_search_locations))) / name
    return folder if folder.is_dir() else None


def _compatible(distribution: str) -> str:
    """The versions that a plugin written today works with: ">=0.1,<0.2"."""
    from packaging.version import Version

    version = Version(metadata.version(distribution))
    following = f"0.{version.minor + 1}" if version.major == 0 else str(version.major + 1)
    return f">={version.major}.{version.minor},<{following}"
