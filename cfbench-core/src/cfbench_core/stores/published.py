"""What a store at an address holds, for ``cfbench cache --store``: lists, verifies and removes what machines published."""

from __future__ import annotations

import functools
import re
import secrets
import tarfile
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cfbench_core.artifact_manifest import DamageError, Verified, digest_in, parse_manifest, problems_of
from cfbench_core.stores.fsspec import PRUNED, RemoteFiles, archive_name

_MANIFEST = re.compile(r"(?P<kind>[^/]+)/[0-9a-f]{2}/(?P<key>[0-9a-f]+)\.json")
_ARCHIVE = re.compile(r"(?P<kind>[^/]+)/[0-9a-f]{2}/(?P<key>[0-9a-f]+)-[0-9a-f]+\.tar")


@dataclass(frozen=True)
class PublishedEntry:
    """One artifact. ``used`` is when it was published, in seconds since 1970: who reads it leaves no trace.

    Attributes:
        path: of its manifest, below the address.
        bytes: of the manifest and of all its archives.
    """

    kind: str
    key: str
    path: str
    bytes: int
    used: float
    archives: tuple[str, ...]
    files: RemoteFiles

    @functools.cached_property
    def manifest(self) -> Mapping[str, Any]:
        """Empty where it is damaged or has just been removed."""
        try:
            return parse_manifest(self.files.read(self.path) or b"")
        except DamageError:
            return {}

    @property
    def label(self) -> str:
        return str(self.manifest.get("label", "?"))

    @property
    def created(self) -> str:
        return str(self.manifest.get("created", ""))


class PublishedStore:
    """The artifacts at an address; see :mod:`cfbench_core.stores.fsspec`.

    Raises:
        UserError: where nobody answers there.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        self.root = url
        self._files = RemoteFiles(url, options)

    def entries(self) -> list[PublishedEntry]:
        """Every artifact, by kind and key. Those without a manifest are being written, or were left behind."""
        return _entries(self._files, self._files.all())

    def verify(self, entry: PublishedEntry) -> list[str]:
        """What is wrong with an artifact, a line each: it is downloaded and compared with its SHA-256."""
        text = self._files.read(entry.path)
        if text is None:
            return []  # removed meanwhile
        try:
            manifest = parse_manifest(text)
        except DamageError as damage:
            return [str(damage)]
        with tempfile.TemporaryDirectory() as folder:
            packed, files = Path(folder) / "files.tar", Path(folder) / "files"
            if not self._files.download(archive_name(entry.kind, entry.key, digest_in(text)), packed):
                return ["its archive is missing"]
            try:
                with tarfile.open(packed) as tar:
                    tar.extractall(files, filter="data")
            except tarfile.TarError as error:
                return [f"its archive cannot be read ({error})"]
            return problems_of(files, manifest, Verified())

    def remove(self, entry: PublishedEntry) -> None:
        """Removes an artifact, its manifest first: without it the artifact is not there."""
        self._remove(entry)
        self._files.write(PRUNED, secrets.token_hex(16).encode())

    def _remove(self, entry: PublishedEntry) -> None:
        for name in (entry.path, *entry.archives):
            self._files.remove(name)

    def gc(self, older_than_days: float) -> list[PublishedEntry]:
        """Removes artifacts that were published so many days ago, and what interrupted uploads left that is as old."""
        limit = time.time() - older_than_days * 86400
        files = self._files.all()
        entries = _entries(self._files, files)
        removed = [entry for entry in entries if entry.used <= limit]
        for entry in removed:
            self._remove(entry)
        owned = {archive for entry in entries for archive in entry.archives}
        for name, (_, changed) in files.items():
            left = name.endswith(".tmp") or (_ARCHIVE.fullmatch(name) and name not in owned)
            if left and changed <= limit:
                self._files.remove(name)
        if removed:
            self._files.write(PRUNED, secrets.token_hex(16).encode())
        return removed


def _entries(where: RemoteFiles, files: Mapping[str, tuple[int, float]]) -> list[PublishedEntry]:
    archives: dict[tuple[str, str], list[str]] = {}
    for name in sorted(files):
        if match := _ARCHIVE.fullmatch(name):
            archives.setdefault((match["kind"], match["key"]), []).append(name)
    found = []
    for name, (size, changed) in sorted(files.items()):
        match = _MANIFEST.fullmatch(name)
        if match is not None:
            own = tuple(archives.get((match["kind"], match["key"]), ()))
            total = size + sum(files[archive][0] for archive in own)
            found.append(PublishedEntry(match["kind"], match["key"], name, total, changed, own, where))
    return found
