"""Processes that tests start: with the default signal handling, and ended with the test at the latest."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

_STARTED: list[subprocess.Popen[Any]] = []


def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    """``subprocess.Popen`` in a process group of its own.

    A child inherits ignored signals: below ``nohup`` or in a background job of a shell, Ctrl-C would not reach it.
    """
    process = subprocess.Popen(command, preexec_fn=_default_signals, start_new_session=True, **options)
    _STARTED.append(process)
    return process


def _default_signals() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def end_all() -> None:
    """Kills what is left of every group, and collects the processes."""
    while _STARTED:
        process = _STARTED.pop()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                stream.close()
