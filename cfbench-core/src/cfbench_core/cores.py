"""How many processor cores this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from cfbench_core.control_groups import group_folders


def usable_cores() -> int:
    """The cores on which the system lets this process run, at least 1.

    The number of cores of the machine, or fewer where the affinity (``taskset``, a Slurm job) or the CPU quota of a
    control group (a container, version 1 or 2) says so. A quota of 1.5 cores counts as 2.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _quotas(Path("/")))]))


def _quotas(root: Path) -> Iterator[float]:
    """The CPU quotas, in cores, of the control groups of this process and of those above them; none outside of Linux.

    ``root`` is the folder that holds ``proc`` and ``sys``.
    """
    for folder in group_folders(root, "cpu"):
        quota, period = _limit(folder)
        if quota > 0 and period > 0:
            yield quota / period


def _limit(folder: Path) -> tuple[float, float]:
    """Microseconds of CPU time per period in microseconds; 0 where nothing is said or there is no limit."""
    try:
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text().split()
        else:
            quota = (folder / "cpu.cfs_quota_us").read_text()
            period = (folder / "cpu.cfs_period_us").read_text()
        return float(quota), float(period)
    except (OSError, ValueError):  # "max" is no limit
        return 0.0, 0.0
