"""Files and folders that appear whole or not at all, whatever happens while they are written.

The pattern is always the same: write under a temporary name in the same file system, push it to the disk
(fsync), and rename. A full or read-only disk becomes one line that says what to do.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cfbench_core import owners
from cfbench_core.errors import UserError
from cfbench_core.plain_text import visible

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}
_FULL_IN_WORDS = (
    "No space left on device",
    "Disk quota exceeded",
    "File too large",
    "database or disk is full",
)
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_EXHAUSTED = {
    errno.EMFILE: "raise the limit of open files (ulimit -n), or use fewer --workers",
    errno.ENFILE: "the whole system has too many files open; end other programs",
    errno.ENOMEM: "end other programs, or use fewer --workers",
    errno.EIO: "the disk fails; check it, or choose another folder",
    errno.ENAMETOOLONG: "choose a folder with a shorter name",
}
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

    A device, or a pipe that somebody reads (``/dev/null``, ``/dev/stdout``), is written to, and not replaced.

    Raises:
        UserError: when the disk is full or may not be written to; nothing is left behind then.
    """
    data = content.encode() if isinstance(content, str) else content
    with disk_trouble(path.parent):
        if _is_written_to(path, data):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(owners.temporary_name(path.name))
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            make_room(path)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        sync(path.parent)


def _is_written_to(path: Path, data: bytes) -> bool:
    """Writes into a device or a pipe; False where a path is neither, or nobody reads the pipe."""
    try:
        found = path.stat()
    except OSError:
        return False
    mode = found.st_mode
    stream = path.is_symlink() and path.parts[:2] in (("/", "dev"), ("/", "proc"))  # /dev/stdout, /dev/fd/1
    device = stat.S_ISCHR(mode) or stream
    if not device and not stat.S_ISFIFO(mode):
        return False
    try:
        descriptor = _opened(path, found)
    except OSError:
        if device:
            raise
        return False
    with os.fdopen(descriptor, "wb") as file:
        if hasattr(os, "set_blocking"):
            os.set_blocking(descriptor, True)
        file.write(data)
    return True


def _opened(path: Path, found: os.stat_result) -> int:
    """A device or a pipe, for writing; a standard stream as this process has it, which may be a file that grows."""
    for standard in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            if os.path.samestat(os.fstat(standard), found):
                return os.dup(standard)
    return os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))


def make_room(path: Path) -> None:
    """Removes an empty folder from the place of a file.

    Raises:
        UserError: when there is something in it.
    """
    if path.is_dir() and not path.is_symlink():
        try:
            path.rmdir()
        except OSError:
            raise UserError(f"{path}: is a folder where a file belongs; remove it") from None


def place_folder(temporary: Path, final: Path) -> bool:
    """Renames a finished folder to its name; False when somebody else's is there already (ours is untouched).

    The content reaches the disk before the name does, so the name never stands for half a folder.
    """
    for folder, _, names in os.walk(temporary):
        for name in names:
            sync(Path(folder, name))
        sync(Path(folder))
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        temporary.rename(final)
    except OSError as error:
        # Windows says "access denied" for a name that is taken.
        if error.errno in _NOT_EMPTY or final.exists():
            return False
        raise
    sync(final.parent)
    return True


def make_folder(folder: Path, root: Path) -> None:
    """Makes a folder and those above it. What stands in their place below ``root`` and is no folder is removed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        above = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(root)]
        wrong = [path for path in above if os.path.lexists(path) and not path.is_dir()]
        if not wrong or wrong == [root]:
            raise
        for path in wrong:
            path.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)


def remove_folder(folder: Path, grave: Path) -> None:
    """Removes a folder (or what stands in its place) by way of another name, so it is never seen half removed.

    It may be gone already. ``grave`` is a name of :func:`owners.new_name` below the store's ``tmp``.
    """
    make_folder(grave.parent, grave.parent.parent)
    try:
        folder.rename(grave)
    except (FileNotFoundError, NotADirectoryError):
        return
    owners.discard(grave)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[Path]:
    """Where to write what an empty folder is to hold: it appears there when the ``with`` ends well, and else not at all.

    What a killed process left goes with :func:`cfbench_core.owners.remove_abandoned`.
    """
    with disk_trouble(folder):
        inside = folder / owners.temporary_name("unfinished")
        inside.mkdir(parents=True)
        try:
            with owners.owned(inside):
                yield inside
            for path in sorted(inside.iterdir()):
                path.rename(folder / path.name)
        finally:
            owners.discard(inside)


@contextlib.contextmanager
def disk_trouble(folder: Path) -> Iterator[None]:
    """Turns a full or forbidden disk, met while writing below ``folder``, into a UserError of one line."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise UserError(disk_full_message(folder, error)) from error
        if error.errno in _FORBIDDEN:
            raise UserError(
                f"{folder}: cannot be written to ({error.strerror}). Change its permissions, or choose"
                " another folder (for the cache: $CFBENCH_CACHE_DIR)."
            ) from error
        if error.errno in _EXHAUSTED:
            raise UserError(f"{folder}: {error.strerror}; {_EXHAUSTED[error.errno]}") from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that no more can be written. Libraries in Rust and C++, and SQLite, say so in words only."""
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return any(words in str(error) for words in _FULL_IN_WORDS)


def disk_full_message(folder: Path, error: BaseException | None = None) -> str:
    """What there is no more of (space, files, quota, or what a process may write), and what to do."""
    there = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path.cwd())
    resume = "Finished results are stored: the same command resumes."
    elsewhere = "or choose another folder (--output; for the cache: $CFBENCH_CACHE_DIR)"
    said = str(error)
    if "File too large" in said:
        return f"{folder}: a file would be larger than allowed; raise the limit (ulimit -f), {elsewhere}. {resume}"
    if "quota" in said:
        return (
            f"{folder}: your disk quota is used up. Free some space (cfbench cache gc), {elsewhere}. {resume}"
        )
    if _no_files_left(there):
        return (
            f"{folder}: the disk can hold no more files (all of its inodes are in use). Remove some files"
            f" (cfbench cache gc), {elsewhere}. {resume}"
        )
    free = shutil.disk_usage(there).free / 1e6
    return f"{folder}: the disk is full ({free:,.1f} MB left). Free some space (cfbench cache gc), {elsewhere}. {resume}"


def _no_files_left(there: Path) -> bool:
    """Whether a disk has space, but no inode for another file. Some file systems do not count them."""
    if not hasattr(os, "statvfs"):
        return False
    disk = os.statvfs(there)
    return disk.f_files > 0 and disk.f_favail == 0 and disk.f_bavail > 0


def check_path(path: Path) -> None:
    """Refuses a path that libraries in C++ (Parquet, safetensors) cannot be given: they take UTF-8 only.

    Raises:
        UserError: when the name of the file, or of a folder above it, is not UTF-8.
    """
    try:
        text = str(path.absolute())
        if os.fsencode(text) == text.encode("utf-8"):
            return
    except UnicodeEncodeError:
        pass
    except FileNotFoundError:  # a relative path, and the current folder was removed
        raise UserError(
            f"{path}: the current folder does not exist any more; change to another one"
        ) from None
    raise UserError(f"{visible(text)}: its name is not in UTF-8; rename it, or choose another folder")


def check_cache(root: Path) -> bool:
    """Makes the folder of the cache where it does not exist; returns whether it can be written to.

    A folder that cannot be written to may still hold all that a run needs. A full disk counts as one that can: what is
    written to it fails with a message of its own, and room may be made meanwhile.

    Raises:
        UserError: when there is no such folder, and none can be made.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if is_disk_full(error):
            return True
        reason = os.strerror(errno.ENOTDIR) if isinstance(error, FileExistsError) else error.strerror
        raise UserError(f"{root}: the cache folder (CFBENCH_CACHE_DIR) cannot be used ({reason})") from error
    inside = root / "artifacts"
    try:  # asking for rights would not do: root has all
        tempfile.TemporaryFile(dir=inside if inside.is_dir() else root).close()
    except OSError as error:
        return error.errno not in _FORBIDDEN
    return True


def sync(path: Path) -> None:
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
