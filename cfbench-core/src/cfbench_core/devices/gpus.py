"""The GPUs of this machine, found without torch, and which worker process gets which.

GPUs are those that ``nvidia-smi`` lists and ``CUDA_VISIBLE_DEVICES`` allows, if the installed torch is a build for CUDA.
"""

from __future__ import annotations

import functools
import importlib.util
import math
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
SHARE = "CFBENCH_GPU_SHARE"
"""The environment variable with the share of the memory of a GPU that a worker process may use."""

WORKSPACE = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""Without it matrix products of CUDA are not deterministic; it must be set before a process first uses the GPU."""

SECONDS = 20.0
"""What ``nvidia-smi`` may take."""

LIBRARIES = ("libtorch_cuda.so", "torch_cuda.dll")
"""Of a torch that is built for CUDA."""


@dataclass(frozen=True)
class Gpu:
    """A GPU: its name in ``CUDA_VISIBLE_DEVICES``, and its whole memory (0: unknown)."""

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Place:
    """A place for a worker process on a GPU, with the share of its memory that the worker may use."""

    gpu: Gpu
    share: float

    def environment(self) -> Mapping[str, str]:
        """Environment variables of the worker process."""
        return {VISIBLE: self.gpu.name, SHARE: repr(self.share), **WORKSPACE}


class Places:
    """The places for worker processes on GPUs, given out in turn.

    A GPU has as many places as it holds the memory of a task, at least one, and no more than its share of the workers.

    Args:
        workers: tasks at a time.
        task_gigabytes: memory of a GPU for one task.
        first: the number of the GPU that is given out first.
    """

    def __init__(self, gpus: Sequence[Gpu], workers: int, task_gigabytes: float, first: int = 0) -> None:
        start = first % len(gpus) if gpus else 0
        self._gpus = (*gpus[start:], *gpus[:start])
        each = math.ceil(workers / len(gpus)) if gpus else 0
        self._places = {
            gpu: max(1, min(each, int(gpu.memory_bytes / (task_gigabytes * 1e9)))) for gpu in self._gpus
        }
        self._taken: Counter[Gpu] = Counter()

    def __bool__(self) -> bool:
        """Whether there are GPUs at all."""
        return bool(self._gpus)

    @property
    def free(self) -> int:
        """The number of places that nobody has."""
        return sum(self._places.values()) - self._taken.total()

    def take(self) -> Place:
        """A place on the GPU that has the fewest workers, the first of these; there must be a free one."""
        open_ones = [gpu for gpu in self._gpus if self._taken[gpu] < self._places[gpu]]
        gpu = min(open_ones, key=lambda one: self._taken[one])
        self._taken[gpu] += 1
        return Place(gpu, 1 / self._places[gpu])

    def give_back(self, place: Place) -> None:
        """The worker has ended."""
        self._taken[place.gpu] -= 1


def hidden() -> Mapping[str, str]:
    """Environment variables of a worker process that computes on the CPU: no library finds a GPU."""
    return {VISIBLE: ""}


@functools.cache
def visible_gpus() -> tuple[Gpu, ...]:
    """The GPUs that this process may use; none where torch is missing or built without CUDA."""
    if not torch_has_cuda():
        return ()
    return allowed_gpus(_listed(), os.environ.get(VISIBLE))


def torch_has_cuda() -> bool:
    """Whether the installed torch is built for CUDA. Does not import it."""
    found = importlib.util.find_spec("torch")
    if found is None or not found.origin:
        return False
    folder = Path(found.origin).parent / "lib"
    return any((folder / name).is_file() for name in LIBRARIES)


def _listed() -> tuple[Gpu, ...]:
    """All GPUs of the machine, by the driver's command ``nvidia-smi``; none where it is missing or fails."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return ()
    query = ["--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(
            [command, *query], capture_output=True, text=True, timeout=SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):  # a driver that does not work: torch cannot use it either
        return ()
    rows = [line.split(",") for line in answer.stdout.splitlines() if line.count(",") == 1]
    return tuple(Gpu(name.strip(), _bytes(memory)) for name, memory in rows)


def _bytes(mebibytes: str) -> int:
    return int(mebibytes) * 2**20 if mebibytes.strip().isdigit() else 0


def allowed_gpus(listed: Sequence[Gpu], variable: str | None) -> tuple[Gpu, ...]:
    """The GPUs that a value of ``CUDA_VISIBLE_DEVICES`` allows, in its order; None: all.

    As CUDA reads it: an entry that names no GPU hides itself and what follows. CUDA numbers GPUs by speed and
    ``nvidia-smi`` by place, so a GPU that is named by its number is supposed to have the smallest memory of all.
    """
    if variable is None:
        return tuple(listed)
    least = min((gpu.memory_bytes for gpu in listed), default=0)
    found: list[Gpu] = []
    for entry in (part.strip() for part in variable.split(",")):
        if entry.isdigit() and int(entry) < len(listed):
            found.append(Gpu(entry, least))
        elif entry.startswith("MIG-") and listed:  # a part of a GPU, whose memory is not listed
            found.append(Gpu(entry, 0))
        elif entry and (named := [gpu for gpu in listed if gpu.name.startswith(entry)]):
            found.append(Gpu(named[0].name, named[0].memory_bytes))
        else:
            break
    return tuple(dict.fromkeys(found))
