"""The control groups of this process (Linux, version 1 and 2): the folders in which the kernel states their limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def group_folders(root: Path, controller: str) -> Iterator[Path]:
    """The folders of the control groups of this process and of those above them; none outside of Linux.

    Args:
        root: the folder that holds ``proc`` and ``sys``.
        controller: ``cpu`` or ``memory``.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:  # "0::/user.slice" in version 2, "4:cpu,cpuacct:/docker/ab12" in version 1
        _, controllers, group = line.split(":", 2)
        if not controllers:
            yield from _and_above(root / "sys/fs/cgroup", group)
        elif controller in controllers.split(","):
            yield from _and_above(root / "sys/fs/cgroup" / controller, group)


def _and_above(mount: Path, group: str) -> Iterator[Path]:
    # In a container the path may be that outside of it: then only the top, which is always tried, is there.
    inner = mount / group.lstrip("/")
    for folder in [inner, *inner.parents]:
        if not folder.is_relative_to(mount):
            return
        yield folder
