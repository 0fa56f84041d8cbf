"""Batches that fit into the memory of a device. Results must not depend on how work is divided into them.

On the CPU there is one batch. On a GPU the first one is small; what it needs, and the free memory, decide the size of the
next. A batch for which the memory does not suffice is divided in halves, down to single members.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from cfbench_core.devices.gpus import SHARE

FIRST = 8
"""Members of the first batch on a GPU."""

USED = 0.7
"""The share of the free memory of a GPU that a batch is planned to need."""

T = TypeVar("T")


class DeviceMemoryError(MemoryError):
    """One member alone does not fit into the memory of the device; ``shortage``: in the words of torch.

    Args:
        advice: what the user can do about it.
    """

    def __init__(self, shortage: str, advice: str = "") -> None:
        so = f": {advice}" if advice else ""
        super().__init__(f"the memory of the device does not suffice for a batch of one{so} ({shortage})")
        self.shortage = shortage


class DeviceMemory(Protocol):
    """The memory of a GPU, as far as this process may use it."""

    def free(self) -> int:
        """Bytes that can still be allocated."""

    def start(self) -> None:
        """A batch begins."""

    def needed(self) -> int:
        """The most bytes that were allocated since then, beyond those before."""


class CudaMemory:
    """The memory of a GPU of NVIDIA, as torch sees it.

    Args:
        device: of torch.
    """

    def __init__(self, device: Any) -> None:
        import torch

        self._cuda, self._device, self._before = torch.cuda, device, 0

    def free(self) -> int:
        free, total = self._cuda.mem_get_info(self._device)
        cached = self._cuda.memory_reserved(self._device) - self._cuda.memory_allocated(self._device)
        share = int(total * float(os.environ.get(SHARE, "1")))
        return int(min(free + cached, share - self._cuda.memory_allocated(self._device)))

    def start(self) -> None:
        self._before = self._cuda.memory_allocated(self._device)
        self._cuda.reset_peak_memory_stats(self._device)

    def needed(self) -> int:
        return int(self._cuda.max_memory_allocated(self._device)) - self._before


def memory_of(device: Any) -> DeviceMemory | None:
    """The memory by which batches on a device of torch are sized; None for the CPU, whose batches are not."""
    return CudaMemory(device) if str(device).partition(":")[0] == "cuda" else None


class Batches:
    """Divides work on a device; learns from one call to the next what fits.

    Args:
        memory: of the device; None: the first batch is everything.
    """

    def __init__(self, memory: DeviceMemory | None = None) -> None:
        self._memory = memory
        self._size: int | None = None if memory is None else FIRST
        self._most: int | None = None

    def computed(self, count: int, compute: Callable[[range], T]) -> Iterator[tuple[range, T]]:
        """``compute(part)`` for consecutive ranges that cover ``range(count)``, each with its result.

        Raises:
            DeviceMemoryError: if the memory does not suffice for a single member.
        """
        start = 0
        while start < count:
            size = min(size for size in (count, self._size, self._most) if size is not None)
            part = range(start, min(start + size, count))
            shortage, found = self._attempt(part, compute)
            if not shortage:
                start = part.stop
                yield part, found[0]
            elif len(part) == 1:
                raise DeviceMemoryError(shortage)
            else:
                self._most = len(part) // 2
                release_memory()

    def _attempt(self, part: range, compute: Callable[[range], T]) -> tuple[str, list[T]]:
        """Why the memory did not suffice, "" if it did; and the result."""
        if self._memory is not None:
            self._memory.start()
        try:
            found = compute(part)
        except Exception as error:
            if not is_device_memory_error(error):
                raise
            return shortage_of(error), []  # no frame of it survives
        if self._memory is not None:
            each = max(1, self._memory.needed()) / len(part)
            self._size = max(1, int(USED * self._memory.free() / each))
        return "", [found]


def halved(
    batches: Iterable[Sequence[int]], compute: Callable[[Sequence[int]], T]
) -> Iterator[tuple[Sequence[int], T]]:
    """``compute(members)`` for each batch, or for parts of it where the memory of the device does not suffice.

    Raises:
        DeviceMemoryError: if it does not suffice for a single member.
    """
    fitting = Batches()
    for batch in batches:
        members = list(batch)

        def compute_part(part: range, members: list[int] = members) -> T:
            return compute(members[part.start : part.stop])

        for part, found in fitting.computed(len(members), compute_part):
            yield members[part.start : part.stop], found


def is_device_memory_error(error: BaseException) -> bool:
    """Whether it says that a device has too little memory: torch's error, known by its name (torch may not be imported),
    or that of batches inside of a batch."""
    return isinstance(error, DeviceMemoryError) or (
        isinstance(error, RuntimeError) and type(error).__name__ == "OutOfMemoryError"
    )


def shortage_of(error: Exception) -> str:
    """In the words of torch, what a device has too little memory for; never empty."""
    if isinstance(error, DeviceMemoryError):
        return error.shortage
    return str(error).partition("\n")[0] or type(error).__name__


def release_memory() -> None:
    """Gives memory back that torch holds for later allocations."""
    gc.collect()
    torch: Any = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
