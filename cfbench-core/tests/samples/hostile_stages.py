"""Stage functions that do what components of other distributions might do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import numpy as np

from cfbench_core.isolation.protection import protect
from cfbench_core.stages import TaskContext

SHARED = {"weights": np.zeros(3), "names": ["a", "b"]}


def tells_pid(task: TaskContext) -> dict[str, int]:
    return {"pid": os.getpid()}


def changes_nothing(task: TaskContext) -> None:
    shared = protect("the model", SHARED)
    shared["weights"] + 1  # type: ignore[operator]


def writes_read_only(task: TaskContext) -> None:
    protect("the model", SHARED)["weights"][0] = 1  # type: ignore[index]


def writes_anyway(task: TaskContext) -> None:
    weights = protect("the model", SHARED)["weights"]
    assert isinstance(weights, np.ndarray)
    weights.flags.writeable = True
    weights += 1


def appends(task: TaskContext) -> None:
    names = protect("the model", SHARED)["names"]
    assert isinstance(names, list)
    names.append("c")


def patches(task: TaskContext) -> None:
    np.argsort = lambda array, *rest, **options: np.zeros(len(array))  # type: ignore[assignment]


def patches_and_raises(task: TaskContext) -> None:
    patches(task)
    raise ValueError("as if nothing had happened")


def sorts(task: TaskContext) -> dict[str, object]:
    return {"order": np.argsort(np.array([3, 1, 2])).tolist(), "pid": os.getpid()}


def raises_a_surrogate(task: TaskContext) -> None:
    raise ValueError("\ud800")


class UnshowableError(Exception):
    """Its message cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


def raises_what_cannot_be_shown(task: TaskContext) -> None:
    raise UnshowableError


def raises_generator_exit(task: TaskContext) -> None:
    raise GeneratorExit


def raises_a_long_message(task: TaskContext) -> None:
    raise ValueError("x" * 5_000_000)


def raises_escape_sequences(task: TaskContext) -> None:
    raise ValueError("\x1b[2J gone")


def interrupts(task: TaskContext) -> None:
    raise KeyboardInterrupt


def forks(task: TaskContext) -> dict[str, bool]:
    """Returns twice."""
    os.fork()
    return {"done": True}


def leaves_a_daemon(task: TaskContext) -> dict[str, int]:
    """A process in a session of its own, whose parent has ended."""
    code = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return {"pid": os.getpid()}


def leaves_a_thread(task: TaskContext) -> dict[str, int]:
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return {"pid": os.getpid()}


def prints_much(task: TaskContext) -> None:
    for _ in range(60):
        print("\x1b[31m" + "y" * 500_000)


def claims_success(task: TaskContext) -> None:
    """Writes into every file that is open, in the words of a worker."""
    import json

    line = json.dumps({"event": "finished", "outcome": json.dumps({"status": "ok"}), "unfit": False})
    for descriptor in range(3, 32):
        try:
            os.write(descriptor, line.encode() + b"\n")
        except OSError:
            continue
    os._exit(0)


def writes_nonsense(task: TaskContext) -> None:
    for descriptor in range(3, 32):
        try:
            os.write(descriptor, b"nonsense\n")
        except OSError:
            continue
    time.sleep(30)
