"""Files and folders that appear whole or not at all, whatever happens while they are written.

The pattern is always the same: write under a temporary name in the same file system, push it to the disk
(fsync), and rename. A full or read-only disk becomes one line that says what to do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from cfbench_core.errors import UserError

_FULL = {errno.ENOSPC, errno.EDQUOT} if hasattr(errno, "EDQUOT") else {errno.ENOSPC}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_EMPTY = {errno.ENOTEMPTY, errno.EEXIST}


def cache_root() -> Path:
    """``$CFBENCH_CACHE_DIR``, or the user's cache folder as the operating system has it."""
    chosen = os.environ.get("CFBENCH_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_cache_dir("cfbench", appauthor=False))


def write_atomically(path: Path, content: bytes | str) -> None:
    """Writes a file so that readers see its old content or its new one. Makes the folders above it.

    Raises:
        UserError: when the disk is full or may not be written to; nothing is left behind then.
    """
    data = content.encode() if isinstance(content, str) else content
    with disk_trouble(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)


def place_folder(temporary: Path, final: Path) -> bool:
    """Renames a finished folder to its name; False when somebody else's is there already (ours is untouched).

    The content reaches the disk before the name does, so the name never stands for half a folder.
    """
    for folder, _, names in os.walk(temporary):
        for name in names:
            _sync(Path(folder, name))
        _sync(Path(folder))
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.rename(final)
    except OSError as error:
        # Windows says "access denied" for a name that is taken.
        if error.errno in _NOT_EMPTY or final.exists():
            return False
        raise
    _sync(final.parent)
    return True


def remove_folder(folder: Path, grave: Path) -> None:
    """Removes a folder by way of another name, so it is never seen half removed. It may be gone already."""
    grave.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(grave)
    except FileNotFoundError:
        return
    shutil.rmtree(grave, ignore_errors=True)


@contextlib.contextmanager
def disk_trouble(folder: Path) -> Iterator[None]:
    """Turns a full or forbidden disk, met while writing below ``folder``, into a UserError of one line."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise UserError(disk_full_message(folder)) from error
        if error.errno in _FORBIDDEN:
            raise UserError(
                f"{folder}: cannot be written to ({error.strerror}). Change its permissions, or choose"
                " another folder (for the cache: $CFBENCH_CACHE_DIR)."
            ) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full. Libraries in Rust and C++ say so in words only."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return "No space left on device" in str(error) or "Disk quota exceeded" in str(error)


def disk_full_message(folder: Path) -> str:
    """Which disk is full, how much is left on it, and what to do."""
    there = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path.cwd())
    free = shutil.disk_usage(there).free / 1e6
    return (
        f"{folder}: the disk is full ({free:,.1f} MB left). Free some space (cfbench cache gc), or choose"
        " another folder (--out; for the cache: $CFBENCH_CACHE_DIR). Finished results are stored: the same"
        " command resumes."
    )


def _sync(path: Path) -> None:
    """Pushes a file, or the names in a folder, to the disk."""
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder, and needs no such push
        return
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot do it for folders, and say so
            raise
    finally:
        os.close(descriptor)
