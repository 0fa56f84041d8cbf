"""A folder that one process at a time writes into, and a file that several take turns to write.

Where the system has ``flock``, the lock is that of the file ``.lock``: the kernel releases it when its process dies.
Elsewhere (Windows) each process that wants the folder creates a file ``.lock-OWNER`` with a name of
:mod:`cfbench_core.owners`, and holds the folder if no living process has one as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from cfbench_core import owners
from cfbench_core.errors import UserError

_fcntl: Any
try:
    import fcntl as _fcntl
except ImportError:  # Windows
    _fcntl = None

_NO_FLOCK = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}
"""What network file systems without ``flock`` answer."""
_ATTEMPTS = 5
_PAUSE_SECONDS = 0.02
"""``cfbench status`` holds the lock for a moment to see whether anybody has it: that must not refuse a run."""


class FolderLock:
    """Taken when made; the folder is made if need be. A process that dies releases it.

    Raises:
        UserError: when another process has it, or the folder may not be written to.
    """

    def __init__(self, directory: Path) -> None:
        for attempt in range(_ATTEMPTS):
            try:
                directory.mkdir(parents=True, exist_ok=True)
                release = _take(directory)
            except OSError as error:
                raise UserError(f"{directory}: cannot be written to: {error.strerror}") from None
            if release is not None:
                self._release = release
                return
            if attempt < _ATTEMPTS - 1:
                time.sleep(_PAUSE_SECONDS)
        raise UserError(f"{directory}: another cfbench is running in it; wait, or give another --output")

    def release(self) -> None:
        """Gives the folder free. May be called twice."""
        release, self._release = self._release, _nothing
        release()


@contextlib.contextmanager
def alone(lock: Path) -> Iterator[None]:
    """One process at a time: the next one waits. On systems and disks without ``flock`` nobody does."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        if _fcntl is not None:
            try:
                _fcntl.flock(handle, _fcntl.LOCK_EX)
            except OSError as error:
                if error.errno not in _NO_FLOCK:
                    raise
        yield


def is_locked(directory: Path) -> bool:
    """Whether a living process holds the folder."""
    if any(not owners.is_abandoned(path) for path in directory.glob(".lock-*")):
        return True
    if _fcntl is None:
        return False
    try:
        with (directory / ".lock").open("r+") as lock:
            return not _flocked(lock)
    except OSError:
        return False


def _nothing() -> None: ...


def _take(directory: Path) -> Callable[[], None] | None:
    """Takes the folder and returns what releases it; None when another process has it."""
    if _fcntl is None:
        return _take_file(directory)
    try:
        return _take_flock(directory)
    except OSError as error:
        if error.errno not in _NO_FLOCK:
            raise
        return _take_file(directory)


def _take_flock(directory: Path) -> Callable[[], None] | None:
    path = directory / ".lock"
    while True:
        lock = path.open("w")
        try:
            taken = _flocked(lock)
        except OSError:
            lock.close()
            raise
        if not taken:
            lock.close()
            return None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lambda: _release_flock(path, lock)
        lock.close()  # its owner removed it while we opened it


def _flocked(lock: IO[str]) -> bool:
    try:
        _fcntl.flock(lock, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _release_flock(path: Path, lock: IO[str]) -> None:
    path.unlink(missing_ok=True)  # while it is ours: the next one makes its own
    lock.close()


def _take_file(directory: Path) -> Callable[[], None] | None:
    """Of two processes that try at the same moment both may be refused, but never is neither."""
    ours = directory / f".lock-{owners.new_name()}"
    ours.touch(exist_ok=False)
    for path in directory.glob(".lock-*"):
        if path == ours:
            continue
        if not owners.is_abandoned(path):
            ours.unlink(missing_ok=True)
            return None
        path.unlink(missing_ok=True)
    owners.own(ours)
    return lambda: _release_file(ours)


def _release_file(ours: Path) -> None:
    owners.disown(ours)
    ours.unlink(missing_ok=True)
