"""``artifact.json``: what an artifact is, with the size and SHA-256 of each of its files, and a digest of itself.

Whatever a damaged disk or a careless hand makes of an artifact, reading it here ends in one of two ways: its manifest,
when every byte is as it was written, or one line that says what is wrong. Errors of the system that say nothing about
the content (too many open files, no permission, a failing disk) are raised: they must not get good results removed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

MANIFEST = "artifact.json"
_DIGEST = "digest"
_MISSING = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EISDIR}
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "kind": str,
    "key": str,
    "label": str,
    "created": str,
    "summary": dict,
    "computed_by": dict,
    "elapsed_seconds": (int, float),
    "peak_memory_bytes": int,
    "files": dict,
}


class DamageError(Exception):
    """What is wrong with an artifact, in one line. Nobody outside of the store sees it."""


def manifest_text(fields: Mapping[str, Any]) -> str:
    """The content of ``artifact.json``: the fields, and as the last one the SHA-256 of the text without it.

    Raises:
        ValueError, TypeError: when a field is not JSON.
    """
    text = json.dumps(fields, allow_nan=False, default=_plain, indent=1)
    return text.removesuffix("\n}") + _ending(hashlib.sha256(text.encode()).hexdigest())


def _ending(digest: str) -> str:
    return f',\n "{_DIGEST}": "{digest}"\n}}\n'


def _is_as_written(content: bytes) -> bool:
    """Whether every byte of a manifest is as :func:`manifest_text` wrote it, the digest and every space."""
    ending = content[-len(_ending("0" * 64)) :]
    text = content.removesuffix(ending) + b"\n}"
    return ending == _ending(hashlib.sha256(text).hexdigest()).encode()


def manifest_digest(folder: Path) -> str:
    """The digest of the manifest in a folder, which names all that the artifact is; its files are not looked at.

    Raises:
        DamageError: when there is no manifest.
    """
    return digest_in(_content(folder / MANIFEST))


def digest_in(manifest: bytes) -> str:
    """The digest that a manifest ends with."""
    return manifest[-68:-4].decode(errors="replace")


def read_manifest(folder: Path, kind: str, key: str) -> dict[str, Any] | None:
    """The manifest of the artifact in a folder; None when there is no such folder.

    Raises:
        DamageError: when it cannot be read, was changed, or belongs to another artifact.
    """
    try:
        content = _content(folder / MANIFEST)
    except DamageError as damage:
        if not os.path.lexists(folder):
            return None
        raise DamageError(f"{MANIFEST} {damage}") from None
    manifest = parse_manifest(content)
    if (manifest["kind"], manifest["key"]) != (kind, key):
        raise DamageError(f"{MANIFEST} is that of another artifact")
    return manifest


def parse_manifest(content: bytes) -> dict[str, Any]:
    """The manifest in the content of ``artifact.json``.

    Raises:
        DamageError: when it is not as it was written.
    """
    try:
        manifest: Any = json.loads(content)
        if not isinstance(manifest, dict):
            raise DamageError(f"{MANIFEST} is not an object")
    except (ValueError, RecursionError):
        raise DamageError(f"{MANIFEST} is not JSON") from None
    if not _is_as_written(content):
        raise DamageError(f"{MANIFEST} has changed since it was written")
    manifest.pop(_DIGEST, None)
    for name, kinds in _TYPES.items():
        if not isinstance(manifest.get(name), kinds):
            raise DamageError(f"{MANIFEST}: {name} is missing or of a wrong type")
    for name, described in manifest["files"].items():
        if not _is_inside(name) or not _describes(described):
            raise DamageError(f"{MANIFEST}: an entry of files is wrong")
    checked: dict[str, Any] = manifest
    return checked


def is_incomplete(manifest: Mapping[str, Any]) -> bool:
    """Whether the artifact lacks something that a later run may get; see ``errors.IncompleteWarning``."""
    return bool(manifest["summary"].get("incomplete"))


def describe_files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and SHA-256 of every file below a folder, by its name in it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _described(path) for path in files}


def _described(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {"bytes": os.fstat(file.fileno()).st_size, "sha256": digest}


Stamp = tuple[int, ...]
"""Device, inode, size and times of change of a file: while they stay, so does its content."""


class Verified:
    """The files whose SHA-256 this process has compared already. Each is read once, and again after a change."""

    def __init__(self) -> None:
        self._stamps: dict[Path, tuple[Stamp, str]] = {}

    def problem(self, path: Path, described: Mapping[str, Any]) -> str:
        """What is wrong with a file, without its name; empty if nothing is."""
        try:
            descriptor = _opened(path)
        except DamageError as damage:
            return str(damage)
        with os.fdopen(descriptor, "rb") as file:
            before = _stamp(os.fstat(descriptor))
            if before[2] != described["bytes"]:
                return f"has {before[2]} bytes in place of {described['bytes']}"
            if self._stamps.get(path) == (before, described["sha256"]):
                return ""
            if hashlib.file_digest(file, "sha256").hexdigest() != described["sha256"]:
                return "has changed since it was written (SHA-256)"
            self._stamps[path] = (before, described["sha256"])
        return ""


def problems_of(folder: Path, manifest: Mapping[str, Any], verified: Verified) -> list[str]:
    """What is wrong with the files that a manifest names, a line each."""
    found = {name: verified.problem(folder / name, of) for name, of in manifest["files"].items()}
    return [f"{name} {problem}" for name, problem in found.items() if problem]


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _content(path: Path) -> bytes:
    with os.fdopen(_opened(path), "rb") as file:
        return file.read()


def _opened(path: Path) -> int:
    """A descriptor of a regular file.

    Raises:
        DamageError: when there is none. A named pipe must not make the reader wait for a writer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno in _MISSING or path.is_dir():  # Windows refuses to open a folder
            raise DamageError(
                "is missing" if not path.is_dir() else "is a folder in place of a file"
            ) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamageError("is not a file")
    return descriptor


def _is_inside(name: object) -> bool:
    """Whether a name stays in the artifact's own folder."""
    if not isinstance(name, str) or "\0" in name:
        return False
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _describes(described: object) -> bool:
    return (
        isinstance(described, dict)
        and isinstance(described.get("bytes"), int)
        and isinstance(described.get("sha256"), str)
    )


def _plain(value: object) -> Any:
    """Mappings that are not dicts, for ``json.dumps``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} ({type(value).__name__}) is not JSON")
