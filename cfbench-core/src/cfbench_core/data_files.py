"""Where the files of a data set are: in a package, in a data directory, in the cache, or with their owner.

A data set says what it needs as a :class:`DataFiles`; a component spec points at it, as text, so that listing
data sets imports nothing: ``details={"files": "package.module:FILES", "licence": "...", "embedded": False}``.
A data set without files of its own (one that a library carries) leaves ``files`` out and says
``"embedded": True``.

Searched in this order:

1. a path in the configuration;
2. the package itself, when the data set is embedded;
3. the data directories: ``--data-dir``, ``$CFBENCH_DATA_DIR``, ``./data``, the user's cache. In each of them
   ``<id>/``, ``<suite>/<id>/``, ``<suite>/`` and the directory itself; in the last two only names that begin
   with the id count (``ml-1m.parquet``) or contain a folder (``datasets/Adult.csv.gz``), because a ``ratings.dat``
   there may be anybody's;
4. a download from the owner, unless that is forbidden.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfbench_core.data_types import DataFile, DataFiles, Form, Progress
from cfbench_core.errors import UserError
from cfbench_core.files import cache_root, disk_trouble, write_atomically
from cfbench_core.hashing import file_digest

__all__ = [
    "DataAccess",
    "DataFile",
    "DataFiles",
    "Form",
    "Place",
    "Source",
    "cache_folder",
    "fetch",
    "how_to_get",
    "locate",
    "megabytes",
    "missing_lines",
    "read_record",
    "search_path",
]

ENVIRONMENT = "CFBENCH_DATA_DIR"
LICENCE = "licence.txt"
RECORD = "source.json"


@dataclass(frozen=True)
class Source:
    """Files that were found, by the name under which the data set knows them."""

    paths: Mapping[str, Path]
    where: str
    package: str = ""
    sha256: Mapping[str, str] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """As JSON, for the parameters of a stage. A path inside a package is stored relative to it."""
        root = _package_folder(self.package) if self.package else None
        paths = {
            name: str(path.relative_to(root) if root else path.resolve())
            for name, path in sorted(self.paths.items())
        }
        return {"package": self.package, "paths": paths, "sha256": dict(sorted(self.sha256.items()))}

    @staticmethod
    def of(parameters: Mapping[str, Any] | Source) -> Source:
        """What :meth:`parameters` gave, in another process perhaps."""
        if isinstance(parameters, Source):
            return parameters
        package = str(parameters["package"])
        root = _package_folder(package) if package else Path()
        paths = {name: root / path for name, path in parameters["paths"].items()}
        return Source(paths, "", package, dict(parameters["sha256"]))


@dataclass(frozen=True)
class Place:
    """A directory in which data sets are looked for, and what to call it."""

    folder: Path
    name: str


@dataclass(frozen=True)
class DataAccess:
    """Where data sets may be looked for, whether they may be downloaded, and who is notified.

    ``notify`` is given lines for people: a licence, once, before the first byte; what could not be checked.
    ``planning``: nothing is downloaded; what a run would download is reported and planned without its files.
    """

    data_dir: Path | None = None
    offline: bool = False
    progress: Progress | None = None
    notify: Callable[[str], None] | None = None
    planning: bool = False

    def find(self, files: DataFiles, path: str | Path | None = None) -> Source:
        """The files of a data set, downloaded if need be, with their fingerprints.

        Raises:
            UserError: where it was looked for, how to get it, and where to put it.
        """
        found = locate(files, path, self.data_dir)
        if found is None:
            if self.offline or not files.downloads:
                raise UserError(*missing_lines(files, self))
            if self.planning:
                return self._to_download(files)
            fetch(files, self)
            found = locate(files, None, self.data_dir)
        if found is None:
            raise UserError(f"{files.id}: its download does not hold what it should: {_any_form(files)}")
        fingerprints = {name: file_digest(path) for name, path in found.paths.items()}
        return Source(found.paths, found.where, found.package, fingerprints)

    def _to_download(self, files: DataFiles) -> Source:
        if self.notify is not None:
            size = f"{megabytes(files.bytes)}, " if files.bytes else ""
            self.notify(f"{files.id}: is not here; a run would download it ({size}{files.licence})")
        return Source({}, "to be downloaded")


def cache_folder() -> Path:
    """The folder ``data`` of the cache."""
    return cache_root() / "data"


def search_path(data_dir: Path | None = None) -> list[Place]:
    """The data directories, in the order in which they are searched."""
    places = [Place(data_dir.expanduser(), f"--data-dir {data_dir}")] if data_dir else []
    environment = os.environ.get(ENVIRONMENT)
    if environment:
        places.append(Place(Path(environment).expanduser(), f"${ENVIRONMENT}"))
    return [*places, Place(Path("data"), "./data"), Place(cache_folder(), "the cache")]


def locate(files: DataFiles, path: str | Path | None = None, data_dir: Path | None = None) -> Source | None:
    """Where the files of a data set are, without fingerprints; None if they are nowhere. Downloads nothing.

    Raises:
        UserError: if ``path`` is given and is not there, or is not what the data set can read.
    """
    if path is not None:
        return _at_path(files, Path(path).expanduser())
    if files.package:
        return _embedded(files)
    for place in search_path(data_dir):
        for folder, own in _folders(place.folder, files):
            found = _form_in(folder, files, own)
            if found:
                return Source(found, place.name)
    return None


def _folders(root: Path, files: DataFiles) -> list[tuple[Path, bool]]:
    """The folders below a data directory in which to look, and whether each is the data set's own."""
    suite = root / files.suite
    return [(root / files.id, True), (suite / files.id, True), (suite, False), (root, False)]


def _form_in(folder: Path, files: DataFiles, own: bool) -> dict[str, Path] | None:
    for form in files.forms:
        names = [name for name in (*form.files, *form.extras) if own or _names_it(name, files.id)]
        usable = {name: folder / name for name in names if (folder / name).is_file()}
        if all(name in usable for name in form.files):
            return usable
    return None


def _names_it(name: str, id: str) -> bool:
    """Whether a file's name says whose it is: ``Amazon_Fashion.csv.gz`` is one of amazon-fashion.

    So does a folder in the name.
    """
    return "/" in name or name.lower().replace("_", "-").startswith(id)


def _at_path(files: DataFiles, path: Path) -> Source:
    """The form that a file or folder named in a configuration stands for."""
    where = "the configuration"
    if path.is_dir():
        found = _form_in(path, files, own=True)
        if found:
            return Source(found, where)
        raise UserError(f"{path}: holds no {files.id}: {_any_form(files)}")
    if not path.is_file():
        raise UserError(f"{path}: no such file ({files.id}: {_any_form(files)})")
    same_name = [form for form in files.forms if form.files[0] == path.name]
    same_kind = [form for form in files.forms if _suffix(form.files[0]) == _suffix(path.name)]
    for form in same_name or same_kind:
        others = {name: path.with_name(name) for name in (*form.files[1:], *form.extras)}
        there = {name: other for name, other in others.items() if other.is_file()}
        if all(name in there for name in form.files[1:]):
            return Source({form.files[0]: path, **there}, where)
    raise UserError(f"{path}: {files.id} cannot be read from this file; it must be like {_any_form(files)}")


def _suffix(name: str) -> str:
    """``.csv`` for ``a.csv`` and ``a.csv.gz``."""
    return Path(name.lower().removesuffix(".gz").removesuffix(".xz")).suffix


def _embedded(files: DataFiles) -> Source:
    folder = _package_folder(files.package) / "data"
    found = _form_in(folder, files, own=True)
    if found is None:
        raise UserError(f"{files.id}: {folder} lacks {_any_form(files)}. Install {files.package} again.")
    return Source(found, f"embedded in {files.package.replace('_', '-')}", files.package)


def _package_folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise UserError(f"the package {package}, which carries data, is not installed")
    return Path(next(iter(spec.submodule_search_locations)))


def _any_form(files: DataFiles, most: int | None = None) -> str:
    """The forms, or the first ``most`` of them: "ratings.dat or ml-1m.parquet"."""
    return " or ".join(" with ".join(form.files) for form in files.forms[:most])


def missing_lines(files: DataFiles, access: DataAccess) -> list[str]:
    """What to say when a data set is nowhere: where it was looked for, how to get it, where to put it."""
    names = [place.name for place in search_path(access.data_dir)]
    if not os.environ.get(ENVIRONMENT):
        names.insert(-2, f"${ENVIRONMENT} (not set)")
    ban = ", and --offline forbids downloading" if files.downloads else ""
    indent = " " * (len(files.id) + 2)
    return [
        f"{files.id}: not found in {', '.join(names[:-1])} or {names[-1]}{ban}.",
        f"{indent}{how_to_get(files)}, or put {_any_form(files, 2)} into ./data/{files.id}/.",
    ]


def how_to_get(files: DataFiles) -> str:
    """A sentence without its full stop: "Get it with 'cfbench data fetch ml-1m' (6 MB, GroupLens)"."""
    if not files.downloads:
        return files.how or f"Get it from {files.page} ({files.licence})"
    size = f"{megabytes(files.bytes)}, " if files.bytes else ""
    return f"Get it with 'cfbench data fetch {files.id}' ({size}{files.licence})"


def megabytes(size: int) -> str:
    """A size for people: "6 MB", "0.4 MB"."""
    return f"{size / 1e6:.0f} MB" if size >= 1_000_000 else f"{max(size / 1e6, 0.1):.1f} MB"


def fetch(files: DataFiles, access: DataAccess) -> Path:
    """Downloads a data set into ``<data directory>/<id>/`` and returns that folder.

    The data directory is ``--data-dir``, else ``$CFBENCH_DATA_DIR`` if it may be written to, else the cache.
    Next to the data stand ``licence.txt`` and ``source.json``: from where, when, what was checked, and a
    SHA-256 of each file. What a form may lack is stored first: no interruption leaves a form without its extras.

    Raises:
        UserError: if it cannot be downloaded, or is not what it should be; a wrong file is discarded.
    """
    from cfbench_core.downloads import download, extract  # HTTP, TLS and zip take a while to import
    from cfbench_core.locks import alone

    if not files.downloads:
        raise UserError(f"{files.id}: cannot be downloaded. {how_to_get(files)}.")
    folder = _target(access) / files.id
    needed = {name for form in files.forms for name in form.files}
    before = _form_in(folder, files, own=True)
    with disk_trouble(folder), alone(folder / ".fetch.lock"):
        if before is None and _form_in(folder, files, own=True) is not None:
            return folder  # another process has fetched it meanwhile
        _show_licence(files, folder, access)
        for file in sorted(files.downloads, key=lambda file: not needed.isdisjoint(file.saved)):
            try:
                path = download(file, folder, access.progress)
            except UserError as error:
                raise UserError(*error.lines, _by_hand(files, file)) from error
            record = _download_record(file, path)
            if file.members:
                members = zip(file.saved, file.members, strict=True)
                extract(path, [member for _, member in sorted(members, key=lambda m: m[0] in needed)], folder)
                path.unlink()
            _add_to_record(folder, file, record)
            if access.notify is not None and file.sha256 is None:
                access.notify(f"{file.name}: {record['checked']}.")
    return folder


def _target(access: DataAccess) -> Path:
    if access.data_dir is not None:
        return access.data_dir.expanduser()
    environment = os.environ.get(ENVIRONMENT)
    if environment and os.access(Path(environment).expanduser(), os.W_OK):
        return Path(environment).expanduser()
    return cache_folder()


def _by_hand(files: DataFiles, file: DataFile) -> str:
    page = file.page or file.url
    return f"Or get {file.name} yourself from {page}, and put {_any_form(files, 2)} into ./data/{files.id}/."


def _show_licence(files: DataFiles, folder: Path, access: DataAccess) -> None:
    """Shows the terms before the first download into this folder, and stores them there."""
    if (folder / LICENCE).exists():
        return
    terms = f"{files.id}: {files.licence}. Terms: {files.page}"
    if access.notify is not None:
        access.notify(terms)
    write_atomically(folder / LICENCE, terms + "\n")


def _download_record(file: DataFile, path: Path) -> dict[str, Any]:
    return {
        "url": file.url,
        "bytes": path.stat().st_size,
        "sha256": file_digest(path),
        "checked": _what_is_checked(file),
        "fetched": datetime.now(UTC).isoformat(timespec="seconds"),
        "licence": file.licence,
        "page": file.page,
    }


def _what_is_checked(file: DataFile) -> str:
    if file.sha256 is not None:
        return "sha256 and size checked" if file.bytes is not None else "sha256 checked"
    if file.bytes is not None:
        return "only its size was checked (no sha256 is known)"
    return "its content was not checked (neither sha256 nor size is known)"


def _add_to_record(folder: Path, file: DataFile, record: Mapping[str, Any]) -> None:
    path = folder / RECORD
    known = read_record(path)
    known["downloads"][file.name] = dict(record)
    for name in file.saved:
        known["files"][name] = {"bytes": (folder / name).stat().st_size, "sha256": file_digest(folder / name)}
    write_atomically(path, json.dumps(known, indent=2, sort_keys=True) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return {"downloads": dict(known["downloads"]), "files": dict(known["files"])}
    except FileNotFoundError:
        return {"downloads": {}, "files": {}}
    except (ValueError, KeyError, TypeError):
        raise UserError(f"{path}: is damaged. Delete it, and fetch the data set again.") from None
