"""Finds what is installed. One broken plugin becomes a row with its reason, and harms nobody else."""

from __future__ import annotations

import functools
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata

import pluggy
from packaging.requirements import Requirement
from packaging.version import Version

from cfbench_core.distribution_metadata import field_of, requirements_of
from cfbench_core.errors import UserError, did_you_mean
from cfbench_core.hooks import ENTRY_POINT_GROUP, KIND_OF_HOOK, Hooks
from cfbench_core.specs import ComponentSpec, plural


@dataclass(frozen=True)
class Component:
    """A spec together with the distribution that brought it."""

    spec: ComponentSpec
    distribution: str
    distribution_version: str

    @property
    def owner(self) -> str:
        """ "cfbench-recsys 0.1.0"."""
        return f"{self.distribution} {self.distribution_version}".rstrip()


@dataclass(frozen=True)
class Plugin:
    """An entry point, and how loading it went. ``problem`` is empty when all is well."""

    name: str
    distribution: str
    version: str
    module: str
    components: tuple[Component, ...] = ()
    problem: str = ""
    traceback: str = field(default="", repr=False)


class Registry:
    """The components of a list of plugins."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.plugins = tuple(sorted(plugins, key=lambda plugin: (plugin.distribution, plugin.name)))
        self._defined: dict[str, list[Component]] = {}
        for plugin in self.plugins:
            for component in plugin.components:
                self._defined.setdefault(component.spec.id, []).append(component)

    def components(self, kind: str | None = None, suite: str | None = None) -> list[Component]:
        """The usable components, sorted by id. An id that two distributions define is usable by nobody."""
        return [
            defined[0]
            for _, defined in sorted(self._defined.items())
            if len(defined) == 1
            and kind in (None, defined[0].spec.kind)
            and suite in (None, defined[0].spec.suite)
        ]

    def conflicts(self) -> dict[str, list[Component]]:
        """Ids that are defined more than once, each with all who define it."""
        return {id: defined for id, defined in sorted(self._defined.items()) if len(defined) > 1}

    def problems(self) -> list[str]:
        """One line for each plugin that could not be loaded and each id defined twice."""
        lines = [
            f"{plugin.distribution} {plugin.version}: {plugin.problem}"
            for plugin in self.plugins
            if plugin.problem
        ]
        return lines + [self._conflict(id) for id in self.conflicts()]

    def names(self, suite: str, kind: str) -> list[str]:
        return [component.spec.name for component in self.components(kind, suite)]

    def by_default(self, suite: str, kind: str) -> list[str]:
        """The names of those that a run without a configuration takes: not the ones that say ``"default": False``."""
        found = self.components(kind, suite)
        return [component.spec.name for component in found if component.spec.details.get("default", True)]

    def suites(self) -> list[str]:
        return [component.spec.name for component in self.components("suite")]

    def suites_to_run(self) -> list[str]:
        """The suites that have something to compare: explainers, or what their spec says in ``"compared"``."""
        found = self.components("suite")
        return [
            one.spec.name
            for one in found
            if self.components(one.spec.details.get("compared", "explainer"), one.spec.name)
        ]

    def broken_hint(self) -> str:
        """For a message on what was not found: the plugins that could not be loaded and may have it; empty without any."""
        broken = [f"{plugin.distribution} ({plugin.problem})" for plugin in self.plugins if plugin.problem]
        if not broken:
            return ""
        return f" It may be in what could not be loaded: {', '.join(broken)}; see cfbench plugins."

    def find(self, suite: str, kind: str, name: str) -> Component:
        """The component, or a UserError with the nearest spelling and the broken plugins that may have had it."""
        defined = self._defined.get(f"{suite}/{kind}/{name}", [])
        if len(defined) == 1:
            return defined[0]
        if defined:
            raise UserError(self._conflict(f"{suite}/{kind}/{name}"))
        hint = did_you_mean(name, self.suites() if kind == "suite" else self.names(suite, kind))
        others = [one for one in self.suites() if f"{one}/{kind}/{name}" in self._defined]
        if others and kind != "suite":
            hint = f" It belongs to the suite {' and '.join(others)}, this configuration to {suite}."
        if not hint and (absent := self._not_installed(suite)):
            hint = f" It may be in {' or '.join(absent)}, not installed here."
        hint += self.broken_hint()
        if kind == "suite":
            install = known_extras().get(name)
            advice = (
                f" Install it: pip install {' or '.join(install)}" if install else " (cfbench list suites)"
            )
            raise UserError(f"no suite {name!r} is installed.{hint}{advice}")
        raise UserError(f"no {kind} {name!r}.{hint}  (cfbench list {plural(kind)})")

    def _not_installed(self, suite: str) -> list[str]:
        """The distributions that cfbench has for a suite and that are not among these plugins."""
        known = {plugin.distribution for plugin in self.plugins}
        return [name for name in known_extras().get(suite, ()) if name not in known]

    def by_id(self, id: str) -> list[Component]:
        """Components by full id, ``kind/name`` or bare name; for ``cfbench describe``."""
        return [c for c in self.components() if c.spec.id == id or c.spec.id.endswith("/" + id)]

    def _conflict(self, id: str) -> str:
        owners = " and ".join(c.owner for c in self._defined[id])
        return f"{id} is defined by both {owners}: uninstall one of them"


def known_extras() -> dict[str, list[str]]:
    """The distributions of further suites by the extra of cfbench-core that names them, from its metadata.

    ``{"recsys": ["cfbench-explainers-native", ...], ...}``; the code itself knows of no suite.
    """
    found: dict[str, list[str]] = {}
    for line in metadata.requires("cfbench-core") or []:
        requirement = Requirement(line)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", str(requirement.marker or ""))
        if extra and requirement.name.startswith("cfbench-"):
            found.setdefault(extra[1], []).append(requirement.name)
    return found


def installation_advice() -> str:
    """ "pip install cfbench-tabular (tabular)  or  ..."; for messages when nothing is installed."""
    return "  or  ".join(
        f"pip install {' '.join(names)} ({suite})" for suite, names in known_extras().items()
    )


@functools.cache
def installed() -> Registry:
    """The registry of everything that is installed in this environment."""
    return Registry(_load(entry_point) for entry_point in _entry_points())


def _entry_points() -> Iterator[metadata.EntryPoint]:
    seen = set()
    for entry_point in metadata.entry_points(group=ENTRY_POINT_GROUP):
        name, _ = _distribution_of(entry_point)
        if (name, entry_point.name) not in seen:  # an editable install may be found twice on sys.path
            seen.add((name, entry_point.name))
            yield entry_point


def _distribution_of(entry_point: metadata.EntryPoint) -> tuple[str, str]:
    """The name and the version of the distribution; half an installation may have neither."""
    return field_of(entry_point.dist, "Name") or entry_point.name, field_of(
        entry_point.dist, "Version"
    ) or "?"


def _load(entry_point: metadata.EntryPoint) -> Plugin:
    """A plugin is somebody else's code, and so is its metadata: whatever is wrong with them becomes its row."""
    name, version = _distribution_of(entry_point)
    specs: list[ComponentSpec] = []
    problem = trace = ""
    try:
        if entry_point.dist is not None:
            problem = _version_clash(entry_point.dist)
        if not problem:
            specs = _specs(entry_point.load())
    except (Exception, SystemExit) as error:
        first_line = (str(error).strip().splitlines() or ["without a word"])[0]
        problem, trace = f"{type(error).__name__}: {first_line}", traceback.format_exc()
    components = tuple(Component(spec, name, version) for spec in specs)
    return Plugin(entry_point.name, name, version, entry_point.value, components, problem, trace)


def _version_clash(distribution: metadata.Distribution) -> str:
    """Why the cfbench distributions that are installed are not those that this one declares, if so."""
    for line in requirements_of(distribution):
        if not line.startswith("cfbench"):
            continue
        requirement = Requirement(line)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            return f"needs {requirement.name}{requirement.specifier}, which is not installed"
        if not requirement.specifier.contains(Version(found), prereleases=True):
            return f"needs {requirement.name}{requirement.specifier}, but {found} is installed"
    return ""


def _specs(module: object) -> list[ComponentSpec]:
    """What the hooks of a plugin return, checked.

    Raises:
        TypeError: when a hook returns what it may not.
        ValueError: when there is no hook, or two components have the same id.
    """
    manager = pluggy.PluginManager("cfbench")
    manager.add_hookspecs(Hooks)
    manager.register(module)
    manager.check_pending()
    if not manager.get_hookcallers(module):
        raise ValueError("has no hook; mark its functions with @cfbench_core.hooks.hookimpl")
    found: dict[str, ComponentSpec] = {}
    for hook, kind in KIND_OF_HOOK.items():
        for returned in getattr(manager.hook, hook)():
            if not isinstance(returned, Iterable) or isinstance(returned, (str, bytes, Mapping)):
                raise TypeError(f"{hook} must return a list of ComponentSpec, not {type(returned).__name__}")
            for spec in returned:
                if not isinstance(spec, ComponentSpec):
                    raise TypeError(f"{hook} returned {spec!r}, which is not a ComponentSpec")
                if kind is not None and spec.kind != kind:
                    raise TypeError(f"{hook} returned {spec.id}, which is not of kind {kind}")
                if spec.id in found:
                    raise ValueError(f"{spec.id} is defined twice")
                found[spec.id] = spec
    return list(found.values())
