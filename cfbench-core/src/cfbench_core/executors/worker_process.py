"""The parent's side of one worker process: starts it, speaks with it, weighs it, ends it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil

from cfbench_core.child_processes import children_of
from cfbench_core.devices.gpus import Place
from cfbench_core.executors.messages import to_json
from cfbench_core.outcomes import Outcome
from cfbench_core.plain_text import shortened
from cfbench_core.redaction import redacted
from cfbench_core.stages import Task
from cfbench_core.threads import thread_variables

REMEMBERED_INPUTS = 24
"""The number of loaded inputs that a process caches (see ``TaskContext.load``)."""

OUTPUT_BYTES = 100_000
"""Of what a task prints, so much of the end is stored."""

COPY = 0.02
"""Relative difference in resident memory up to which a child with the worker's command line is a copy of the worker."""

MOST_OUTPUT_BYTES = 20_000_000
"""The file that receives what a task prints is cut when it exceeds this."""

TOKEN = "CFBENCH_WORKER"
"""The environment variable by which processes that a worker started are recognized."""


class WorkerProcess:
    """A process that computes one task at a time.

    Its messages arrive as pairs (worker, message) in ``inbox``. It is the leader of a session of its own, so
    Ctrl-C in the terminal does not reach it, and it is ended together with everything that it started.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        threads: int,
        inbox: queue.SimpleQueue[tuple[WorkerProcess | None, Any]],
        silent: threading.Event,
        first: Task,
        place: Place | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """
        Args:
            silent: is set when the worker cannot say anything any more, as when it has ended.
            first: a task; the worker gets tasks of its pool only.
            place: on a GPU.
            environment: variables of the process, in addition to those of this one.
        """
        self.domain, self.pool, self.place = first.domain, first.pool, place
        self.task: Task | None = None
        self.given = 0.0
        self.begun: float | None = None
        self.verdict: Outcome | None = None
        self.reported = False  # that it is over
        self.highest_memory = 0
        self.is_fresh = True  # it has not computed any task
        self.loaded: deque[str] = deque(maxlen=REMEMBERED_INPUTS)
        self.lock = (
            threading.Lock()
        )  # of work and verdict: the watching thread must not condemn the next work
        self._children: list[psutil.Process] = []
        self._inbox = inbox
        self._silent = silent
        self._output = _deleted_file()
        self._token = secrets.token_hex(16)
        self._ticket = (
            ""  # of its task: a finished task shows it, which a component that writes into the pipe cannot
        )
        # -P: a file in the current folder named like a module of Python (queue.py) must not replace that.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-u", "-m", "cfbench_core.executors.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            env={**os.environ, **thread_variables(threads), **(environment or {}), TOKEN: self._token},
            encoding="utf-8",
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        self.pid = self._process.pid
        self._system = psutil.Process(self.pid)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._send(json.dumps({**settings, "threads": threads, "parent": os.getpid()}))

    # Speaking

    def give(self, task: Task) -> bool:
        """Hands the worker its next task; False when it is dead, and the task is still nobody's."""
        if not self._is_running():
            return False
        with self.lock:
            self.task, self.begun, self.given = task, None, time.monotonic()
            self.highest_memory = 0
            self.loaded.extend(key for key in task.inputs.values() if key not in self.loaded)
            self._ticket = secrets.token_hex(16)
            if not self._send(json.dumps({"ticket": self._ticket, "task": to_json(task)})):
                self.task = None
        return self.task is not None

    def _send(self, line: str) -> bool:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except OSError:  # it is dead, which the watching thread sees too
            return False
        return True

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                message = json.loads(line)
                if message["event"] == "begun":
                    self.begun = time.monotonic()  # noted here and now: the deadline counts from it
                elif message["event"] == "waiting":
                    self.given = time.monotonic()  # for somebody else: that is not held against it
                elif message["event"] == "progress":
                    done, total = int(message["done"]), int(message["total"])
                    self._inbox.put((self, {"event": "progress", "done": done, "total": total}))
                elif message["event"] == "finished":
                    if message["ticket"] != self._ticket:
                        raise ValueError("a component speaks for its worker")
                    self._inbox.put((self, message))
        except (ValueError, KeyError, TypeError):  # a component found the pipe and wrote into it
            self.condemn(Outcome("failed", "its worker sent a message that cannot be understood"))
        finally:
            self._silent.set()

    def condemn(self, verdict: Outcome) -> None:
        """Ends the worker; the verdict becomes the outcome of its task."""
        with self.lock:
            if self.task is None or self.verdict is not None:
                return
            self.verdict = verdict
        self.kill()

    def take_output(self) -> str:
        """What was printed since the last call."""
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - OUTPUT_BYTES))
        text = redacted(self._output.read().decode(errors="replace"))
        self._output.truncate(0)
        return shortened(text.replace("\r", "\n"), OUTPUT_BYTES)

    def limit_output(self) -> None:
        """Leaves only the end of what the task prints when it is too much."""
        with contextlib.suppress(OSError, ValueError):  # it was closed meanwhile
            size = os.fstat(self._output.fileno()).st_size
            if size > MOST_OUTPUT_BYTES and hasattr(os, "pread"):
                end = os.pread(self._output.fileno(), OUTPUT_BYTES, size - OUTPUT_BYTES)
                self._output.truncate(0)
                self._output.write(end)

    # Weighing

    def is_over(self) -> bool:
        """Whether the process has ended, and all that it had to say is in the inbox."""
        if self._process.returncode is None and self._is_running():
            return False
        self._kill_group()  # children that hold the pipe open would block the reader
        self._reader.join(timeout=1.0)
        return True

    def _is_running(self) -> bool:
        """Whether the process has not ended. Does not reap it: its number stays its own."""
        if hasattr(os, "waitid"):  # one call of the system, without reading files
            try:
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # reaped already
                return False
            return ended is None
        try:
            return bool(self._system.is_running() and self._system.status() != psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return False

    def memory(self, look_for_children: bool) -> int:
        """Resident memory in bytes of the worker and what it started (shared pages count for each).

        Of a child that is still a copy of the worker, as each is that was forked a moment ago to run another program,
        only the pages count that it does not share with the worker.
        """
        if look_for_children:
            self._children = children_of(self._system)
        own = total = 0
        with contextlib.suppress(psutil.Error):
            own = total = self._system.memory_info().rss
        for child in self._children:
            with contextlib.suppress(psutil.Error):
                total += self._added_by(child, own)
        self.highest_memory = max(self.highest_memory, total)
        return total

    def _added_by(self, child: psutil.Process, own: int) -> int:
        """The memory in bytes of a child that is not the worker's; ``own``: what the worker has."""
        resident = int(child.memory_info().rss)
        if child.cmdline() != self._system.cmdline():
            return resident
        if abs(resident - own) <= COPY * own:  # with vfork even its private pages are the worker's
            return 0
        return int(child.memory_full_info().uss)

    # Ending

    def dismiss(self) -> None:
        """Requests that an idle worker exits."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self, seconds: float) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=seconds)

    def kill(self) -> None:
        """Kills the worker and all that it started. Does not wait for the system to do so."""
        if self._process.returncode is None:
            # also those that left its session; where it is gone already, those that it had
            self._children = children_of(self._system) or self._children
        self._kill_group()
        for process in self._children:
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(OSError):
            self._process.kill()

    def end(self) -> None:
        """Kills the worker and all that it started, and waits until they are gone. May be called twice."""
        self.kill()
        self.wait(5.0)
        if self.domain:
            _end_strays(self._token)

    def release(self) -> None:
        """Closes the files of a worker that has ended."""
        self._reader.join(timeout=1.0)
        self.dismiss()
        if self._process.stdout is not None and not self._reader.is_alive():
            self._process.stdout.close()
        self._output.close()
        with contextlib.suppress(OSError):  # on Windows it is still there
            Path(self._output.name).unlink(missing_ok=True)

    def _kill_group(self) -> None:
        # Only before the process is reaped: afterwards its number may be somebody else's.
        if os.name == "posix" and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)

    def died_of(self) -> str:
        """How a process that ended by itself ended, for people."""
        self.wait(5.0)
        code = self._process.returncode
        if code is None or code >= 0:
            return f"its worker ended with exit code {code}"
        try:
            name = f" ({signal.Signals(-code).name})"
        except ValueError:
            name = ""
        hint = "; perhaps the system was short of memory" if -code == getattr(signal, "SIGKILL", None) else ""
        return f"its worker ended by signal {-code}{name}{hint}"


def _end_strays(token: str) -> None:
    """Kills processes that a worker started and that left its session and its children."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(TOKEN) == token:
                process.kill()


def _deleted_file() -> Any:
    """A file for appending and reading that is gone with the process, also when that is killed."""
    descriptor, name = tempfile.mkstemp(prefix="cfbench-")
    os.close(descriptor)
    # For appending: what the worker writes next goes to the end, also after the parent has truncated it.
    file = Path(name).open("a+b", buffering=0)  # noqa: SIM115 (open as long as the worker lives)
    with contextlib.suppress(PermissionError):  # Windows keeps files that are open
        Path(name).unlink()
    return file
