"""Finished work on disk. An artifact is a folder named by the hash of all that determines its content.

    root/kind/ab/abcdef.../artifact.json    what it is, what it was made of, and a SHA-256 of each file
    root/kind/ab/abcdef.../...              the files that the stage wrote
    root/tmp/...                            artifacts in the making, and those being removed

A folder gets its final name by one rename when it is complete, so an artifact is there as a whole or not at
all, also when the writer is killed, the power fails, or two processes write the same one.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import secrets
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfbench_core.environment import provenance
from cfbench_core.files import cache_root, disk_trouble, place_folder, remove_folder
from cfbench_core.hashing import file_digest
from cfbench_core.stages import Task

MANIFEST = "artifact.json"
_TEMPORARY = "tmp"
_ABANDONED_SECONDS = 7 * 86400.0
"""After so long without a change any unfinished folder is taken for abandoned, whatever machine it is of."""


def default_root() -> Path:
    """The folder ``artifacts`` of the cache."""
    return cache_root() / "artifacts"


@dataclass(frozen=True)
class Entry:
    """One artifact, for ``cfbench cache``. ``manifest`` is empty when ``artifact.json`` cannot be read."""

    kind: str
    key: str
    path: Path
    manifest: Mapping[str, Any]

    @property
    def label(self) -> str:
        return str(self.manifest.get("label", "?"))

    @property
    def created(self) -> str:
        """When it was made, ISO 8601 in UTC; empty when unknown."""
        return str(self.manifest.get("created", ""))

    @property
    def used(self) -> float:
        """When it was made or last used, in seconds since 1970."""
        manifest = self.path / MANIFEST
        return (manifest if manifest.exists() else self.path).stat().st_mtime

    @functools.cached_property
    def bytes(self) -> int:
        """What it takes on disk."""
        return sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())


class Store:
    """The artifacts below one folder. Any number of processes may use it at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()

    def path(self, kind: str, key: str) -> Path:
        """Where the artifact is, or would be."""
        return self.root / kind / key[:2] / key

    def has(self, kind: str, key: str) -> bool:
        return self.manifest(kind, key) is not None

    def manifest(self, kind: str, key: str) -> dict[str, Any] | None:
        """What ``artifact.json`` says; None when there is no such artifact, or a file of it is missing or cut
        short.

        So damage of that sort is mended by computing again. Changed bytes are found by :meth:`verify` only.
        """
        path = self.path(kind, key)
        manifest = _read_manifest(path)
        return manifest if manifest is not None and not _wrong_sizes(path, manifest) else None

    def mark_used(self, kind: str, key: str) -> None:
        """Tells :meth:`gc` that the artifact is still of use."""
        with contextlib.suppress(OSError):  # a store that may only be read is left as it is
            os.utime(self.path(kind, key) / MANIFEST)

    def begin(self) -> Path:
        """A new, empty folder of this process, to become an artifact.

        Raises:
            UserError: when the disk is full or may not be written to.
        """
        folder = self._temporary()
        with disk_trouble(self.root):
            folder.mkdir(parents=True)
        return folder

    def _temporary(self) -> Path:
        """A new name below ``tmp`` that tells whose it is."""
        return self.root / _TEMPORARY / f"{platform.node()}--{os.getpid()}--{secrets.token_hex(8)}"

    def commit(
        self,
        temporary: Path,
        task: Task,
        summary: Mapping[str, Any],
        elapsed_seconds: float,
        peak_memory_bytes: int,
        replace: bool = False,
    ) -> dict[str, Any]:
        """Makes a folder of :meth:`begin` the artifact of ``work``, and returns its manifest.

        When another process was first, its artifact stands and ours is discarded, unless ``replace``.

        Raises:
            UserError: when the disk is full; the temporary folder is removed then.
            ValueError, TypeError: when ``summary`` is not JSON.
        """
        manifest = {
            "kind": task.kind,
            "key": task.key,
            "label": task.label,
            "target": task.target,
            "steps": task.steps,
            "parameters": task.parameters,
            "inputs": task.inputs,
            "chunk": task.chunk,
            "seed": task.seed,
            "summary": summary,
            "elapsed_seconds": elapsed_seconds,
            "peak_memory_bytes": peak_memory_bytes,
            "computed_by": provenance(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "files": _described(temporary),
        }
        final = self.path(task.kind, task.key)
        try:
            text = json.dumps(manifest, indent=1, ensure_ascii=False, allow_nan=False, default=_plain)
            with disk_trouble(self.root):
                (temporary / MANIFEST).write_text(text + "\n", encoding="utf-8")
                if replace or (final.exists() and not self.has(task.kind, task.key)):
                    remove_folder(final, self._temporary())
                ours: dict[str, Any] = json.loads(text)
                if place_folder(temporary, final):
                    return ours
                return self.manifest(task.kind, task.key) or ours
        finally:
            shutil.rmtree(temporary, ignore_errors=True)  # it has its final name, or it is not wanted

    def entries(self) -> list[Entry]:
        """Every artifact, by kind and key."""
        return sorted(self._entries(), key=lambda entry: (entry.kind, entry.key))

    def _entries(self) -> Iterator[Entry]:
        for path in self.root.glob("*/??/*"):
            if path.relative_to(self.root).parts[0] != _TEMPORARY and path.is_dir():
                yield Entry(path.parts[-3], path.name, path, _read_manifest(path) or {})

    def verify(self, entry: Entry) -> list[str]:
        """What is wrong with an artifact, a line each: every file is read and compared with its SHA-256."""
        if not entry.manifest:
            return [f"{MANIFEST} is missing or cannot be read"]
        problems = _wrong_sizes(entry.path, entry.manifest)
        for name, described in entry.manifest["files"].items():
            path = entry.path / name
            whole = path.is_file() and path.stat().st_size == described["bytes"]
            if whole and file_digest(path) != described["sha256"]:
                problems.append(f"{name} has changed since it was written (SHA-256)")
        return problems

    def remove(self, entry: Entry) -> None:
        """Removes an artifact; it is computed again when it is needed."""
        remove_folder(entry.path, self._temporary())

    def gc(self, older_than_days: float | None = None, keep: Collection[str] = ()) -> list[Entry]:
        """Removes artifacts, and what dead processes left; returns what was removed.

        Args:
            older_than_days: only those that nobody used for so long; None: all.
            keep: keys of artifacts that stay.
        """
        limit = float("inf") if older_than_days is None else time.time() - older_than_days * 86400
        removed = [entry for entry in self.entries() if entry.key not in keep and entry.used <= limit]
        for entry in removed:
            self.remove(entry)
        self.clean_abandoned()
        return removed

    def clean_abandoned(self) -> list[Path]:
        """Removes the unfinished folders of processes that are no more; returns them."""
        abandoned = [path for path in (self.root / _TEMPORARY).glob("*--*--*") if _is_abandoned(path)]
        for path in abandoned:
            shutil.rmtree(path, ignore_errors=True)
        return abandoned


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return manifest if isinstance(manifest, dict) and "files" in manifest else None


def _described(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and digest of every file below a folder, by its name in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_digest(path)}
        for path in files
    }


def _wrong_sizes(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    problems = []
    for name, described in manifest["files"].items():
        try:
            size = (folder / name).stat().st_size
        except FileNotFoundError:
            problems.append(f"{name} is missing")
            continue
        if size != described["bytes"]:
            problems.append(f"{name} has {size} bytes in place of {described['bytes']}")
    return problems


def _is_abandoned(folder: Path) -> bool:
    """Whether the process that owns a temporary folder is dead, as far as this machine can tell."""
    node, process, _ = folder.name.rsplit("--", 2)
    if node == platform.node() and not _is_alive(int(process)):
        return True
    try:
        return time.time() - folder.stat().st_mtime > _ABANDONED_SECONDS
    except FileNotFoundError:
        return False


def _is_alive(process: int) -> bool:
    import psutil

    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True


def _plain(value: object) -> Any:
    """Mappings that are not dicts, for ``json.dumps``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} ({type(value).__name__}) is not JSON")
