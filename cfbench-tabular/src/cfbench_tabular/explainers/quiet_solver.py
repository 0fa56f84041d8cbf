"""Suppresses what a library in C prints to standard output whatever its options say."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_c_output() -> Iterator[None]:
    """Discards what is written to file descriptor 1 in the meantime, by any thread of the process."""
    if os.name != "posix":
        yield
        return
    libc = ctypes.CDLL(None)
    sys.stdout.flush()
    libc.fflush(None)
    stdout = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        libc.fflush(None)  # C buffers: without this, it would be printed later
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(nowhere)
