"""Finished work on disk. An artifact is a folder named by the hash of all that determines its content.

    root/kind/ab/abcdef.../artifact.json    what it is, what it was made of, and a SHA-256 of each file
    root/kind/ab/abcdef.../...              the files that the stage wrote
    root/tmp/...                            artifacts in the making, and those being removed
    root/leases/...                         who computes an artifact now

A folder gets its final name by one rename when it is complete, so an artifact is there as a whole or not at
all, also when the writer is killed, the power fails, or two processes write the same one. What happens to it
afterwards is found by the SHA-256 of its files, which are compared before they are used: a damaged artifact
counts as absent, and is computed again.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cfbench_core import owners
from cfbench_core.artifact_manifest import (
    MANIFEST,
    DamageError,
    Verified,
    describe_files,
    is_incomplete,
    manifest_digest,
    manifest_text,
    parse_manifest,
    problems_of,
    read_manifest,
)
from cfbench_core.environment import provenance
from cfbench_core.files import cache_root, disk_trouble, make_folder, place_folder, remove_folder
from cfbench_core.leases import LocalLeases, leased
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task

SPEC = ComponentSpec(
    id="core/store/file",
    summary="The cache folder of this machine, or a shared folder ($CFBENCH_CACHE_DIR)",
    target=f"{__name__}:Store",
)

_TEMPORARY = "tmp"
_LEASES = "leases"
_KIND = re.compile(r"(?!(?:con|prn|aux|nul|tmp|com\d|lpt\d)$)[a-z][a-z0-9_-]*( [a-z0-9_-]+)*")
"""Lower case, because some file systems ignore case, and no name that Windows reserves."""
_KEY = re.compile(r"[0-9a-f]{3,}")
_ATTEMPTS = 3


def default_root() -> Path:
    """The folder ``artifacts`` of the cache."""
    return cache_root() / "artifacts"


@dataclass(frozen=True)
class Entry:
    """One artifact, for ``cfbench cache``. ``manifest`` is empty when ``artifact.json`` is missing or damaged."""

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
        """When it was made or last used, in seconds since 1970; 0 when it has just been removed."""
        for path in (self.path / MANIFEST, self.path):
            with contextlib.suppress(OSError):
                return path.stat().st_mtime
        return 0.0

    @functools.cached_property
    def bytes(self) -> int:
        """What it takes on disk."""
        total = 0
        for path in [self.path, *self.path.rglob("*")]:
            with contextlib.suppress(OSError):  # somebody removes it meanwhile
                total += path.stat().st_size if path.is_file() else 0
        return total


class Store:
    """The artifacts below one folder. Any number of processes may use it at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else default_root()
        self.remote: Mapping[str, Any] | None = None
        """The settings of a store elsewhere of which the folder is a cache; None if the folder is the store."""
        self._verified = Verified()

    def path(self, kind: str, key: str) -> Path:
        """Where the artifact is, or would be.

        Raises:
            ValueError: when ``kind`` is no name that every file system accepts, or ``key`` not hexadecimal.
        """
        if not _KIND.fullmatch(kind):
            raise ValueError(
                f"{kind!r} cannot be a kind of artifact: use lower-case words of letters, digits, hyphens and underscores"
            )
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} cannot be the key of an artifact: use hexadecimal digits")
        return self.root.joinpath(kind, key[:2], key)

    def has(self, kind: str, key: str) -> bool:
        """Whether the artifact is there with every byte as it was written; see :meth:`manifest`."""
        return self.manifest(kind, key) is not None

    def has_complete(self, kind: str, key: str) -> bool:
        """Whether the artifact is there, and lacks nothing that a later run may get."""
        manifest = self.manifest(kind, key)
        return manifest is not None and not is_incomplete(manifest)

    def manifest(self, kind: str, key: str) -> dict[str, Any] | None:
        """What ``artifact.json`` says; None when there is no such artifact, or when it is damaged.

        Each file of the artifact is compared with its SHA-256, once per store object as long as it does not change.

        Raises:
            OSError: when the system refuses to read it, for a reason other than its content.
        """
        try:
            return self._intact(kind, key)
        except DamageError:
            return None

    def fetch(self, kind: str, key: str) -> dict[str, Any] | None:
        """As :meth:`manifest`; the files of the artifact are at :meth:`path` afterwards."""
        return self.manifest(kind, key)

    def is_there(self, kind: str, key: str) -> bool:
        """Whether there is an artifact; its bytes are verified when it is read."""
        return (self.path(kind, key) / MANIFEST).is_file()

    def is_done(self, kind: str, key: str) -> bool:
        """Whether there is an artifact that lacks nothing; its bytes are verified when it is read."""
        try:
            manifest = read_manifest(self.path(kind, key), kind, key)
        except DamageError:
            return False
        return manifest is not None and not is_incomplete(manifest)

    @contextlib.contextmanager
    def reserved(self, kind: str, key: str, waiting: Callable[[], None]) -> Iterator[bool]:
        """Sees to it that one process at a time computes an artifact; see :func:`cfbench_core.leases.leased`."""
        files = LocalLeases(self.root / _LEASES)
        try:
            lease = leased(files, key, lambda: self.is_done(kind, key), waiting)
            appeared = lease.__enter__()
        except OSError:  # a full or read-only disk: who computes will say so
            yield False
            return
        try:
            yield appeared
        finally:
            lease.__exit__(None, None, None)

    def digest(self, kind: str, key: str) -> str:
        """What distinguishes an artifact from another one under its key; empty when there is none."""
        try:
            return manifest_digest(self.path(kind, key))
        except DamageError:
            return ""

    def _intact(self, kind: str, key: str) -> dict[str, Any] | None:
        folder = self.path(kind, key)
        manifest = read_manifest(folder, kind, key)
        problems = problems_of(folder, manifest, self._verified) if manifest else []
        if problems:
            raise DamageError("; ".join(problems))
        return manifest

    def remove_if_damaged(self, kind: str, key: str) -> str:
        """Removes an artifact that is damaged; returns what was wrong with it, in one line, or nothing.

        Raises:
            UserError: when the store may only be read.
        """
        problem = ""
        for _ in range(_ATTEMPTS):  # somebody may replace it while it is read
            before, problem = problem, self._problem(kind, key)
            if not problem:
                return ""
            if problem == before:
                break
        with disk_trouble(self.root):
            remove_folder(self.path(kind, key), self._temporary())
        return problem

    def _problem(self, kind: str, key: str) -> str:
        try:
            self._intact(kind, key)
        except DamageError as damage:
            return str(damage)
        return ""

    def mark_used(self, kind: str, key: str) -> None:
        """Tells :meth:`gc` that the artifact is still of use."""
        with contextlib.suppress(OSError):  # a store that may only be read is left as it is
            os.utime(self.path(kind, key) / MANIFEST)

    def begin(self) -> Path:
        """A new, empty folder of this process, to become an artifact. End it with :meth:`commit` or :meth:`abandon`.

        Raises:
            UserError: when the disk is full or may not be written to.
        """
        folder = self._temporary()
        with disk_trouble(self.root):
            make_folder(folder, self.root)
        owners.own(folder)
        return folder

    def abandon(self, temporary: Path) -> None:
        """Removes a folder of :meth:`begin`, if it is still there."""
        owners.disown(temporary)
        owners.discard(temporary)

    def _temporary(self) -> Path:
        """A new name below ``tmp`` that says which process it belongs to."""
        return self.root / _TEMPORARY / owners.new_name()

    def commit(
        self,
        temporary: Path,
        task: Task,
        summary: Mapping[str, Any],
        elapsed_seconds: float,
        peak_memory_bytes: int,
        replace: bool = False,
    ) -> dict[str, Any]:
        """Makes a folder of :meth:`begin` the artifact of ``task``, and returns its manifest.

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
            "files": describe_files(temporary),
        }
        final = self.path(task.kind, task.key)
        try:
            theirs = None if replace else self._committed_elsewhere(task)
            if theirs is not None:
                return theirs
            text = manifest_text(manifest)
            with disk_trouble(self.root):
                (temporary / MANIFEST).write_text(text, encoding="utf-8")
                if replace or (os.path.lexists(final) and not self.has_complete(task.kind, task.key)):
                    remove_folder(final, self._temporary())
                ours = parse_manifest(text.encode())
                make_folder(final.parent, self.root)
                placed = place_folder(temporary, final)
            self._committed(task, replace)
            return ours if placed else self.manifest(task.kind, task.key) or ours
        finally:
            self.abandon(temporary)  # it has its final name, or it is not wanted

    def _committed_elsewhere(self, task: Task) -> dict[str, Any] | None:
        """The manifest of the artifact of ``task`` that another machine has committed meanwhile."""
        return None

    def _committed(self, task: Task, replace: bool) -> None:
        """Publishes an artifact that is in its place, for other machines."""

    def entries(self) -> list[Entry]:
        """Every artifact, by kind and key."""
        return sorted(self._entries(), key=lambda entry: (entry.kind, entry.key))

    def _entries(self) -> Iterator[Entry]:
        for path in self.root.glob("*/??/*"):
            if path.relative_to(self.root).parts[0] != _TEMPORARY:
                kind, key = path.parts[-3], path.name
                try:
                    manifest = read_manifest(path, kind, key) or {}
                except (DamageError, OSError):
                    manifest = {}
                yield Entry(kind, key, path, manifest)

    def verify(self, entry: Entry) -> list[str]:
        """What is wrong with an artifact, a line each: every file is read and compared with its SHA-256."""
        try:
            manifest = read_manifest(entry.path, entry.kind, entry.key)
            return problems_of(entry.path, manifest, Verified()) if manifest else []
        except DamageError as damage:
            return [str(damage)]
        except OSError as error:
            return [f"cannot be read ({error.strerror})"]

    def remove(self, entry: Entry) -> None:
        """Removes an artifact; it is computed again when it is needed.

        Raises:
            UserError: when the store may only be read.
        """
        with disk_trouble(self.root):
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
        abandoned = [path for path in (self.root / _TEMPORARY).glob("*") if owners.is_abandoned(path)]
        for path in abandoned:
            owners.discard(path)
        return abandoned
