"""Artifacts in an object store or on a server (S3, GCS, SFTP, ...), reached through fsspec; no folder is shared.

    URL/kind/ab/abcdef...-DIGEST.tar    the files of an artifact, named by the digest of its manifest
    URL/kind/ab/abcdef....json          the manifest, written last: an artifact without it is not there
    URL/pruned                          has another content whenever artifacts were removed
    URL/leases/abcdef...                who computes it now, see :mod:`cfbench_core.leases`

Each machine has a cache of what it computed and read, an ordinary store in a folder. Two machines that publish the same
artifact write different archives, and the last manifest decides which counts, so a reader gets one of them as a whole. Files
are compared with their SHA-256 after each download.
"""

from __future__ import annotations

import contextlib
import os
import tarfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

from cfbench_core import owners
from cfbench_core.artifact_manifest import (
    MANIFEST,
    DamageError,
    Verified,
    digest_in,
    is_incomplete,
    parse_manifest,
    problems_of,
)
from cfbench_core.config import Help
from cfbench_core.errors import UserError
from cfbench_core.files import (
    cache_root,
    disk_trouble,
    make_folder,
    place_folder,
    remove_folder,
    write_atomically,
)
from cfbench_core.hashing import digest
from cfbench_core.leases import leased
from cfbench_core.plain_text import one_line
from cfbench_core.specs import ComponentSpec
from cfbench_core.stages import Task
from cfbench_core.store import Store

SPEC = ComponentSpec(
    id="core/store/fsspec",
    summary="An object store or a server (S3, GCS, SFTP, ...), for machines without a shared folder",
    target=f"{__name__}:FsspecStore",
    config=f"{__name__}:FsspecConfig",
)

SECRETS = ("key", "secret", "token", "password", "passphrase", "pkey", "username")
"""Options that a configuration must not hold: it is stored with the run and sent to other machines."""

_PUBLISHED = "published"
PRUNED = "pruned"
"""A file at the address with another content whenever artifacts were removed there."""


@dataclass(frozen=True, kw_only=True)
class FsspecConfig:
    """The address; credentials come from the environment of each machine."""

    url: Annotated[str, Help("s3://bucket/folder, gs://..., sftp://user@host/folder")]
    options: Annotated[
        dict[str, Any], Help("of the file system: {endpoint_url: ...}; credentials come from the environment")
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "://" not in self.url:
            raise ValueError(f"url: {one_line(self.url, 100)!r} is no address such as s3://bucket/folder")
        if "@" in self.url and ":" in self.url.partition("://")[2].rpartition("@")[0]:
            raise ValueError("url: holds a password; use a key file or the environment")
        given = [name for name in SECRETS if name in self.options]
        if given:
            raise ValueError(f"options: {', '.join(given)} must come from the environment, not from here")

    @property
    def sends(self) -> str:
        """What the reader of a configuration should know (see ``used_components.trust_notes``)."""
        return f"all results to {one_line(self.url, 100)}"

    @property
    def remote(self) -> Mapping[str, Any]:
        """The settings for :func:`cfbench_core.stores.open_store`."""
        return {"url": self.url, "options": self.options}


class FsspecStore(Store):
    """Artifacts at an address, with a folder of this machine as the cache of those that it has used.

    Args:
        remote: ``{"url": ..., "options": ...}``, see :class:`FsspecConfig`.
        root: the cache; one for each address below the cache folder if None.

    Raises:
        UserError: where fsspec, or what it needs for the address, is not installed, or nobody answers there.
    """

    def __init__(self, remote: Mapping[str, Any], root: Path | None = None) -> None:
        name = digest([remote["url"], dict(remote["options"])])[:16]
        super().__init__(root if root is not None else cache_root() / "remote" / name)
        self.remote: Mapping[str, Any] | None = remote
        self._files = RemoteFiles(remote["url"], remote["options"])
        self._forget_what_was_pruned()

    def _forget_what_was_pruned(self) -> None:
        """After ``cfbench cache gc`` or ``verify`` has removed artifacts, those of the cache are published anew."""
        now = self._files.read(PRUNED) or b""
        known = self.root / _PUBLISHED / PRUNED
        if now == (known.read_bytes() if known.exists() else b""):
            return
        with disk_trouble(self.root):
            for marker in known.parent.glob("*"):
                marker.unlink(missing_ok=True)
        write_atomically(known, now)

    def manifest(self, kind: str, key: str) -> dict[str, Any] | None:
        """As that of a store in a folder; of an artifact that only other machines have, no file is read for it."""
        found = self._cached(kind, key)
        if found is not None:
            self._publish(kind, key)
            return found
        return self._published_manifest(kind, key)

    def fetch(self, kind: str, key: str) -> dict[str, Any] | None:
        found = self._cached(kind, key)
        if found is not None:
            return found
        manifest = self._published_manifest(kind, key)
        return None if manifest is None else self._download(kind, key)

    def _cached(self, kind: str, key: str) -> dict[str, Any] | None:
        """What the cache has; in place of an incomplete artifact the complete one that another machine has published."""
        found = super().manifest(kind, key)
        if found is not None and is_incomplete(found):
            published = self._published_manifest(kind, key)
            if published is not None and not is_incomplete(published):
                return self._download(kind, key) or found
        return found

    def is_there(self, kind: str, key: str) -> bool:
        return super().is_there(kind, key) or self._files.read(_manifest_name(kind, key)) is not None

    def is_done(self, kind: str, key: str) -> bool:
        if super().is_done(kind, key):
            return True
        published = self._published_manifest(kind, key)
        return published is not None and not is_incomplete(published)

    def digest(self, kind: str, key: str) -> str:
        text = self._files.read(_manifest_name(kind, key)) if not super().is_there(kind, key) else None
        return super().digest(kind, key) if text is None else digest_in(text)

    def _committed_elsewhere(self, task: Task) -> dict[str, Any] | None:
        found = self.fetch(task.kind, task.key)
        return None if found is None or is_incomplete(found) else found

    def _committed(self, task: Task, replace: bool) -> None:
        self._publish(task.kind, task.key)

    @contextlib.contextmanager
    def reserved(self, kind: str, key: str, waiting: Callable[[], None]) -> Iterator[bool]:
        with leased(self._files, f"leases/{key}", lambda: self.is_done(kind, key), waiting) as appeared:
            yield appeared

    # The other side

    def _published_manifest(self, kind: str, key: str) -> dict[str, Any] | None:
        self.path(kind, key)  # both are names
        text = self._files.read(_manifest_name(kind, key))
        if text is None:
            return None
        try:
            manifest = parse_manifest(text)
        except DamageError:
            return None
        return manifest if (manifest["kind"], manifest["key"]) == (kind, key) else None

    def _publish(self, kind: str, key: str) -> None:
        """Uploads an artifact of the cache, once. The manifest goes last."""
        folder = self.path(kind, key)
        try:
            text = (folder / MANIFEST).read_bytes()
        except FileNotFoundError:  # somebody has removed it
            return
        if self._is_published(key, text):
            return
        packed = self._temporary()
        with disk_trouble(self.root):
            make_folder(packed, self.root)
            try:
                archive = packed / "files.tar"
                with tarfile.open(archive, "w") as tar:
                    for name in sorted(parse_manifest(text)["files"]):
                        tar.add(folder / name, name, recursive=False)
                self._files.upload(archive, archive_name(kind, key, digest_in(text)))
                self._files.write(_manifest_name(kind, key), text)
            finally:
                self.abandon(packed)
            self._note_published(key, text)

    def _is_published(self, key: str, text: bytes) -> bool:
        """Whether this is what was published under a key; it may have been replaced since, and not yet published again."""
        marker = self.root / _PUBLISHED / key
        return marker.exists() and marker.read_text(encoding="ascii") == digest_in(text)

    def _note_published(self, key: str, text: bytes) -> None:
        marker = self.root / _PUBLISHED / key
        make_folder(marker.parent, self.root)
        marker.write_text(digest_in(text), encoding="ascii")

    def _download(self, kind: str, key: str) -> dict[str, Any] | None:
        """Puts an artifact into the cache. None: it is damaged or gone, and is to be computed again."""
        text = self._files.read(_manifest_name(kind, key))
        if text is None:
            return None
        folder = self.begin()
        try:
            with disk_trouble(self.root):
                packed = folder.with_name(f"{folder.name}.tar")
                try:
                    if not self._files.download(archive_name(kind, key, digest_in(text)), packed):
                        return None
                    with tarfile.open(packed) as tar:
                        tar.extractall(folder, filter="data")
                except tarfile.TarError:
                    self._forget(kind, key)
                    return None
                finally:
                    packed.unlink(missing_ok=True)
                (folder / MANIFEST).write_bytes(text)
                if problems_of(folder, parse_manifest(text), Verified()):
                    self._forget(kind, key)
                    return None
                final = self.path(kind, key)
                earlier = super().manifest(kind, key)
                if os.path.lexists(final) and (earlier is None or is_incomplete(earlier)):
                    remove_folder(final, self._temporary())
                make_folder(final.parent, self.root)
                if place_folder(folder, final):
                    self._note_published(key, text)
        finally:
            self.abandon(folder)
        return super().manifest(kind, key)

    def _forget(self, kind: str, key: str) -> None:
        """Withdraws an artifact that is damaged, so that it is computed again."""
        self._files.remove(_manifest_name(kind, key))


def _manifest_name(kind: str, key: str) -> str:
    return f"{kind}/{key[:2]}/{key}.json"


def archive_name(kind: str, key: str, manifest_digest: str) -> str:
    return f"{kind}/{key[:2]}/{key}-{manifest_digest}.tar"


class RemoteFiles:
    """Files below an address. Every error of the other side is a UserError of one line."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        try:
            import fsspec  # type: ignore[import-untyped]

            self._system, self._base = fsspec.url_to_fs(url, skip_instance_cache=True, **options)
        except ImportError as error:
            raise UserError(
                f"store {one_line(url, 100)}: {one_line(str(error), 200)}; pip install 'cfbench-core[fsspec]'"
            ) from None
        except (
            Exception
        ) as error:  # whatever a file system raises for a wrong option, or where nobody answers
            raise _trouble(url, error) from None
        self._url = url
        # paramiko's client is not for several threads, and a lease is renewed by one of its own
        self._lock = threading.RLock()
        protocols = self._system.protocol
        self._objects = bool(
            {"s3", "gs", "gcs"} & ({protocols} if isinstance(protocols, str) else {*protocols})
        )

    def read(self, name: str) -> bytes | None:
        with self._errors():
            try:
                content: bytes = self._system.cat_file(self._path(name))
                return content
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """An object store replaces objects as a whole; elsewhere a new file takes the name."""
        with self._errors():
            path = self._path(name)
            if self._objects:
                self._system.pipe_file(path, content)
                return
            self._place(path, lambda temporary: self._system.pipe_file(temporary, content))

    def upload(self, local: Path, name: str) -> None:
        with self._errors():
            path = self._path(name)
            if self._objects:
                self._system.put_file(str(local), path)
                return
            self._place(path, lambda temporary: self._system.put_file(str(local), temporary))

    def _place(self, path: str, write: Callable[[str], object]) -> None:
        """Writes a file under another name and renames it; leaves nothing under that where it fails."""
        self._make_folder(self._system._parent(path))
        temporary = f"{path}.{owners.new_name()}.tmp"
        try:
            write(temporary)
            self._system.mv(temporary, path)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(temporary)
            raise

    def download(self, name: str, local: Path) -> bool:
        """False where there is no such file."""
        with self._errors():
            try:
                self._system.get_file(self._path(name), str(local))
            except FileNotFoundError:
                return False
        return True

    def create(self, name: str, content: bytes) -> bool:
        """Creates a file; False if there is one. At most one of several that try at once succeeds."""
        with self._errors():
            path = self._path(name)
            try:
                if self._objects:
                    self._system.pipe_file(path, content, mode="create")
                    return True
                self._make_folder(self._system._parent(path))
                # paramiko (SFTP) wants to hear that the file is written to, Python must not
                file = self._system.open(path, "wxb" if hasattr(self._system, "ftp") else "xb")
            except FileExistsError:
                return False
            except OSError:
                self._system.invalidate_cache()
                if self._system.exists(path):  # SFTP says no more than "Failure"
                    return False
                raise
            return self._written(file, path, content)

    def _written(self, file: Any, path: str, content: bytes) -> bool:
        """Writes and closes a new file; False where closing finds that there is one. None is left where it fails."""
        try:
            with file:
                file.write(content)
        except FileExistsError:
            return False
        except OSError:  # a full disk: what is there names no holder of a lease, and would be waited for
            self._system.invalidate_cache()
            if self._system.exists(path) and content.startswith(self._system.cat_file(path)):
                self._system.rm_file(path)
            raise
        return True

    def all(self) -> dict[str, tuple[int, float]]:
        """Bytes, and the time of the last change in seconds since 1970, of each file by its name."""
        with self._errors():
            self._system.invalidate_cache()
            try:
                found = self._system.find(self._base, detail=True)
            except FileNotFoundError:
                return {}
        base = f"{self._base.strip('/')}/"
        return {
            path.lstrip("/").removeprefix(base): (int(entry.get("size") or 0), _changed(entry))
            for path, entry in found.items()
        }

    def remove(self, name: str) -> None:
        with self._errors(), contextlib.suppress(FileNotFoundError):
            self._system.rm_file(self._path(name))

    def _make_folder(self, path: str) -> None:
        for last in (False, True):
            try:
                self._system.makedirs(path, exist_ok=True)
                return
            except OSError:  # somebody else made a part of it in the same moment
                if last:
                    raise

    def _path(self, name: str) -> str:
        return f"{self._base.rstrip('/')}/{name}"

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with contextlib.nullcontext() if self._objects else self._lock:
                yield
        except (KeyboardInterrupt, UserError):
            raise
        except Exception as error:
            raise _trouble(self._url, error) from error


def _changed(entry: Mapping[str, Any]) -> float:
    """When a file was last changed, as its file system says it; now where it does not say so."""
    for name in ("LastModified", "mtime", "updated", "created"):
        value = entry.get(name)
        if isinstance(value, datetime):
            return value.timestamp()
        if isinstance(value, (int, float)):
            return float(value)
        if isinstance(value, str):
            return datetime.fromisoformat(value).timestamp()
    return time.time()


def _trouble(url: str, error: Exception) -> UserError:
    return UserError(
        f"store {one_line(url, 100)}: {one_line(f'{type(error).__name__}: {error}', 200)}; check the address, the "
        "network and the credentials, then run the same command again to go on with what is missing"
    )
