"""A folder that one process at a time writes into."""

from __future__ import annotations

import contextlib
import fcntl
import os
from pathlib import Path
from typing import IO

from cfbench_core.errors import UserError


class FolderLock:
    """Taken when made; the folder is made if need be. A process that dies releases it.

    Raises:
        UserError: when another process has it, or the folder may not be written to.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / ".lock"
        self._file = _locked(directory)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)  # while it is ours: the next one makes its own
        self._file.close()


def _locked(directory: Path) -> IO[str]:
    path = directory / ".lock"
    while True:
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = path.open("w")
        except OSError as error:
            raise UserError(f"{directory}: cannot be written to: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise UserError(
                f"{directory}: another cfbench is running in it; wait, or give another --out"
            ) from None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(lock.fileno()).st_ino:
                return lock
        lock.close()  # its owner removed it while we opened it
