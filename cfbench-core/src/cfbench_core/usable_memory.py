"""How much memory this process may still use, and what limits it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cfbench_core.control_groups import group_folders
from cfbench_core.errors import UserError

TASK_MEMORY = "CFBENCH_TASK_MEMORY"
"""The environment variable of a worker process with the bytes that a task may use (``limits.memory_gb``)."""

UNLIMITED = 2**62
"""A control group of version 1 without a limit has one near 2^63 bytes."""


@dataclass(frozen=True)
class UsableMemory:
    """The bytes that are left of a limit of this process, and what sets the limit: "this machine has 16.0 GB"."""

    left: int
    limit: str


def require_memory(needed: int, purpose: str, advice: str) -> None:
    """Checks that this process may use so many more bytes.

    Args:
        purpose: what needs them: "ease: 20,000 items".
        advice: what to do instead.

    Raises:
        UserError: if it may not.
    """
    usable = usable_memory()
    if needed > usable.left:
        raise UserError(
            f"{purpose} need {_gigabytes(needed)}, and {usable.limit}, of which {_gigabytes(usable.left)} are left; {advice}"
        )


def usable_memory() -> UsableMemory:
    """What is left of the memory of the machine, of the control groups (a container, a Slurm job), of ``ulimit -v``, and of
    the memory limit of the task in a worker process: the least of these.

    Memory of other processes does not count: it may be released meanwhile, and the same study would fail on one day only.
    """
    import psutil

    used = psutil.Process().memory_info()
    limits = [(_machine(), used.rss), *((limit, used.rss) for limit in _of_groups(Path("/")))]
    limits += [(limit, used.rss) for limit in _of_task(os.environ)]
    limits += [(limit, used.vms) for limit in _of_address_space()]
    return min(
        (UsableMemory(max(0, limit.left - own), limit.limit) for limit, own in limits),
        key=lambda usable: usable.left,
    )


def _machine() -> UsableMemory:
    import psutil

    total = int(psutil.virtual_memory().total)
    return UsableMemory(total, f"this machine has {_gigabytes(total)}")


def _of_groups(root: Path) -> Iterator[UsableMemory]:
    for folder in group_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            try:
                limit = int((folder / name).read_text())
            except (OSError, ValueError):  # no such file, or "max"
                continue
            if 0 <= limit < UNLIMITED:
                yield UsableMemory(limit, f"the control group (container or job) has {_gigabytes(limit)}")


def _of_task(environment: Mapping[str, str]) -> Iterator[UsableMemory]:
    if TASK_MEMORY in environment:
        limit = int(environment[TASK_MEMORY])
        yield UsableMemory(limit, f"limits.memory_gb allows {_gigabytes(limit)}")


def _of_address_space() -> Iterator[UsableMemory]:
    try:
        import resource
    except ImportError:  # Windows
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        yield UsableMemory(limit, f"ulimit -v allows {_gigabytes(limit)} of addresses")


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
