"""Where each data set stands, and whether its files are what they should be: for ``cfbench data list`` and ``verify``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cfbench_core.config import loaded
from cfbench_core.data_files import (
    RECORD,
    DataAccess,
    DataFiles,
    how_to_get,
    locate,
    missing_lines,
    read_record,
)
from cfbench_core.errors import UserError
from cfbench_core.hashing import file_digest
from cfbench_core.specs import ComponentSpec

if TYPE_CHECKING:
    from cfbench_core.registry import Registry

State = Literal["embedded", "found", "downloadable", "by hand", "broken"]


@dataclass(frozen=True)
class DataStatus:
    """One line of ``cfbench data list``.

    Attributes:
        state: "embedded" (travels with a package), "found", "downloadable", "by hand", or "broken".
        where: the folder of a data set that is there; else how to get it, or what is broken about it.
        bytes: on disk when it is there, else of the download; None when not known.
    """

    id: str
    suite: str
    state: State
    where: str
    bytes: int | None
    licence: str
    page: str


@dataclass(frozen=True)
class FileCheck:
    """One line of ``cfbench data verify``. ``right`` is None when there is nothing to compare with."""

    path: Path
    sha256: str
    right: bool | None
    text: str


def files_of(spec: ComponentSpec) -> DataFiles | None:
    """What a data set says that it needs; None for one without files of its own."""
    reference = spec.details.get("files")
    files = loaded(reference, spec, "") if isinstance(reference, str) else reference
    return files if isinstance(files, DataFiles) else None


def statuses(registry: Registry, data_dir: Path | None = None) -> list[DataStatus]:
    """Every data set that is installed: embedded, found, to be downloaded or got by hand, or broken."""
    return [_status_or_why(component.spec, data_dir) for component in registry.components("dataset")]


def _status_or_why(spec: ComponentSpec, data_dir: Path | None) -> DataStatus:
    """One data set that is broken does not hide the others."""
    try:
        return status(spec, data_dir)
    except UserError as error:
        licence, page = str(spec.details.get("licence", "")), str(spec.details.get("page", ""))
        return DataStatus(spec.name, spec.suite, "broken", " ".join(error.lines), None, licence, page)


def status(spec: ComponentSpec, data_dir: Path | None = None) -> DataStatus:
    """Where one data set stands.

    Raises:
        UserError: if what its plugin says of its files cannot be used.
    """
    licence, page = str(spec.details.get("licence", "")), str(spec.details.get("page", ""))
    files = files_of(spec)
    if files is None and spec.details.get("embedded"):
        return DataStatus(spec.name, spec.suite, "embedded", "needs no file", None, licence, page)
    if files is None:
        where = str(spec.details.get("how", "named in the configuration"))
        return DataStatus(spec.name, spec.suite, "by hand", where, None, licence, page)

    def line(state: State, where: str, size: int | None) -> DataStatus:
        return DataStatus(spec.name, spec.suite, state, where, size, files.licence, files.page)

    found = locate(files, None, data_dir)
    if found is not None:
        size = sum(path.stat().st_size for path in found.paths.values())
        first = next(iter(found.paths.values()))
        return line("embedded" if found.package else "found", str(first.parent), size)
    return line("downloadable" if files.downloads else "by hand", how_to_get(files), files.bytes)


def verify(spec: ComponentSpec, data_dir: Path | None = None) -> list[FileCheck]:
    """Compares the files of a data set that is there with what is known of them.

    Raises:
        UserError: if it is not there.
    """
    files = files_of(spec)
    if files is None:
        return []
    found = locate(files, None, data_dir)
    if found is None:
        raise UserError(*missing_lines(files, DataAccess(data_dir, offline=True)))
    return [_check(name, path, files) for name, path in found.paths.items()]


def _check(name: str, path: Path, files: DataFiles) -> FileCheck:
    actual = file_digest(path)
    downloads = {file.name: file.sha256 for file in files.downloads if not file.members}
    published = files.sha256.get(name) or downloads.get(name)
    recorded = read_record(path.parent / RECORD)["files"].get(name, {}).get("sha256")
    expected, source = (published, "published") if published else (recorded, "recorded when it was fetched")
    if expected is None:
        return FileCheck(path, actual, None, "no checksum is known for this file")
    if expected == actual:
        return FileCheck(path, actual, True, f"sha256 as {source}")
    return FileCheck(path, actual, False, f"sha256 differs: {source} {expected}, found {actual}")
