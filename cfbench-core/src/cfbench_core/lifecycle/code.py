"""The digest of a component's code: its module and all in-house modules that it imports, transitively.

A cached result is reused only while the code that computed it is what runs today. For a reference ``"package.module:Name"``
the *import closure* is the module and, transitively, every in-house module that a file of the closure imports, inside
functions too; imports under ``if TYPE_CHECKING:`` do not run and do not count. In-house are the packages of cfbench and of
its plugins, and modules that lie outside the standard library and ``site-packages`` (those of a user).

Each file is digested as compiled code without docstrings and line numbers, so a comment or a docstring changes no key,
while any change of a constant or a statement does. Data files that lie in the folder of an imported package (word
lists, schemas) count by their bytes, as do compiled extension modules.

Other libraries that the closure imports count by their minor version ("numpy 2.1"), see :class:`Closure`.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

from cfbench_core.hashing import digest, file_digest
from cfbench_core.lifecycle.code_digests import code_digest, imports
from cfbench_core.lifecycle.import_statements import Import

DESCRIPTIONS = ("papers.toml", "py.typed")
"""Package data that no computation reads."""

DISTRIBUTION_OF = MappingProxyType(
    {
        "sklearn": "scikit-learn",
        "yaml": "PyYAML",
        "PIL": "pillow",
        "ortools": "ortools",
        "cv2": "opencv-python",
    }
)
"""Distributions that are not called as their module; others are looked up under the module's name."""

_SKIPPED_SUFFIXES = frozenset({".py", ".pyc", ".pyi", ".so", ".pyd"})


@dataclass(frozen=True)
class Closure:
    """What one or several references stand on.

    Attributes:
        digest: of the code, 64 hexadecimal digits.
        libraries: other libraries that it imports, with their minor versions: ``{"numpy": "2.1"}``.
        modules: the in-house modules, sorted.
    """

    digest: str
    libraries: Mapping[str, str]
    modules: tuple[str, ...]


@functools.cache
def closure(*references: str) -> Closure:
    """The import closure of ``"package.module:Name"`` references, computed once per process.

    A module that is not found contributes its name: whoever imports it reports the error.
    """
    found: dict[str, _Module] = {}
    parents: dict[str, str] = {}
    libraries: set[str] = set()
    waiting = [reference.partition(":")[0] for reference in references]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        if not is_in_house(name.partition(".")[0]):
            libraries.add(name.partition(".")[0])
            continue
        module = _module(name)
        found[name] = module
        waiting += module.imports
        libraries |= module.libraries
        for package in set(_parents(name)) - set(parents):
            # A parent package runs when its module is imported, but what it only re-exports is not used.
            parents[package] = _module(package).digest
            waiting += _used_by(package)
    parts = parents | {name: module.digest for name, module in found.items()}
    versions = {name: version for name in sorted(libraries) if (version := minor_version(name))}
    return Closure(digest(dict(sorted(parts.items()))), MappingProxyType(versions), tuple(sorted(found)))


@functools.cache
def minor_version(module: str) -> str:
    """The version of the library that a top-level module belongs to, without the patch level: "1.15"; "" if unknown."""
    try:
        found = metadata.distribution(DISTRIBUTION_OF.get(module, module))
    except metadata.PackageNotFoundError:
        return ""
    # The property "version" parses the description of the library as well, which takes ten times as long.
    text = found.read_text("METADATA") or ""
    version = next((line[8:].strip() for line in text.splitlines() if line.startswith("Version:")), "")
    return ".".join(version.partition("+")[0].split(".")[:2])


@functools.cache
def is_in_house(package: str) -> bool:
    """Whether a top-level package is cfbench's, a plugin's, or a user's own: then its code counts, not its version."""
    if package in sys.stdlib_module_names:
        return False
    if package.startswith("cfbench_") or package in plugin_packages():
        return True
    return _location(package) is not None and not in_library_folders(package)


def in_library_folders(package: str) -> bool:
    """Whether a top-level package is in the standard library's folders or in ``site-packages``."""
    folder = _location(package)
    return folder is not None and any(folder.is_relative_to(installed) for installed in library_folders())


@functools.cache
def plugin_packages() -> frozenset[str]:
    """Top-level packages of the installed plugins, by their entry points."""
    return frozenset(
        entry.value.partition(":")[0].partition(".")[0] for entry in metadata.entry_points(group="cfbench")
    )


@functools.cache
def library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    names = ("purelib", "platlib", "stdlib", "platstdlib")
    return tuple({Path(paths[name]).resolve() for name in names})


def _location(package: str) -> Path | None:
    """The file or folder of a top-level package; None for one that is built in or not there."""
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError, AttributeError):
        return None
    if found is None:
        return None
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations))).resolve()
    return Path(found.origin).resolve() if found.has_location and found.origin else None


@dataclass(frozen=True)
class _Module:
    """One file: the digest of its code, in-house modules that it imports, and top-level names of other libraries."""

    digest: str
    imports: tuple[str, ...] = ()
    libraries: frozenset[str] = frozenset()


@functools.cache
def _module(name: str) -> _Module:
    path = _file_of(name)
    if path is None:
        return _Module(digest({"not found": name}))
    if path.suffix != ".py":
        return _Module(file_digest(path))
    source = path.read_bytes()
    is_package = path.name == "__init__.py"
    in_house, libraries = _imports_of(source, name, is_package)
    parts = [code_digest(source), *(_data_digests(path.parent) if is_package else ())]
    return _Module(digest(parts), in_house, libraries)


@functools.cache
def _file_of(name: str) -> Path | None:
    """The file of a module, found without importing its parents."""
    top, *rest = name.split(".")
    base = _location(top)
    if base is None:
        return None
    if not rest and base.is_file():
        return base
    place = base.joinpath(*rest)
    for candidate in (place / "__init__.py", place.with_name(f"{place.name}.py")):
        if candidate.is_file():
            return candidate
    compiled = sorted(place.parent.glob(f"{place.name}.*.so")) if place.parent.is_dir() else []
    return compiled[0] if compiled else None


def _data_digests(folder: Path) -> Iterator[list[str]]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix not in _SKIPPED_SUFFIXES and path.name not in DESCRIPTIONS:
            yield [path.name, file_digest(path)]


def _parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts)):
        yield ".".join(parts[:length])


def _imports_of(source: bytes, name: str, is_package: bool) -> tuple[tuple[str, ...], frozenset[str]]:
    """In-house modules that a source imports, and top-level names of other libraries."""
    in_house: dict[str, None] = {}
    libraries: set[str] = set()
    for one in imports(source):
        for module in _modules_of(one, name, is_package):
            top = module.partition(".")[0]
            if not is_in_house(top):
                libraries.add(top)
            elif _file_of(module) is not None:
                in_house[module] = None
    return tuple(in_house), frozenset(libraries - sys.stdlib_module_names)


def _modules_of(one: Import, importer: str, is_package: bool) -> Iterator[str]:
    """The modules in which an import finds what it names."""
    base = _absolute(one.module, importer, is_package)
    if one.name:
        yield from _home(base, one.name)
    else:
        yield base


def _home(module: str, name: str) -> Iterator[str]:
    """The modules in which ``from module import name`` finds the name.

    A package that only re-exports it is not followed to the other modules that it re-exports from.
    """
    if not is_in_house(module.partition(".")[0]):
        yield module
        return
    path = _file_of(module)
    if (path is None or path.name == "__init__.py") and name != "*":  # None: a folder without an __init__
        if _file_of(f"{module}.{name}") is not None:
            yield f"{module}.{name}"
            return
        if name in (origins := _re_exports(module)):
            yield from _home(*origins[name])
            return
    yield module


@functools.cache
def _used_by(package: str) -> tuple[str, ...]:
    """In-house modules whose names a package's ``__init__`` does not merely pass on."""
    path = _file_of(package)
    found = imports(path.read_bytes()) if path is not None else ()
    modules = (module for one in found if not one.re_exported for module in _modules_of(one, package, True))
    return tuple(module for module in modules if is_in_house(module.partition(".")[0]) and _file_of(module))


@functools.cache
def _re_exports(package: str) -> Mapping[str, tuple[str, str]]:
    """Names that a package's ``__init__`` imports from elsewhere and only passes on: module and name there."""
    path = _file_of(package)
    found = imports(path.read_bytes()) if path is not None else ()
    return {one.name: (_absolute(one.module, package, True), one.name) for one in found if one.re_exported}


def _absolute(module: str, importer: str, is_package: bool) -> str:
    """``.base`` as seen from its importer."""
    dots = len(module) - len(module.lstrip("."))
    if not dots:
        return module
    parts = importer.split(".")
    package = parts[: len(parts) - dots + is_package]
    return ".".join([*package, module[dots:]] if module[dots:] else package)
