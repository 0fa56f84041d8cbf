"""What a process may use of the memory: as control groups, ``ulimit -v`` and the limit of the task say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from cfbench_core import usable_memory
from cfbench_core.control_groups import group_folders
from cfbench_core.errors import UserError
from cfbench_core.usable_memory import TASK_MEMORY, UsableMemory, require_memory


def folders(root: Path, groups: str, files: dict[str, str]) -> Path:
    """``/proc/self/cgroup`` and files below ``/sys/fs/cgroup``."""
    named = {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{name}": text for name, text in files.items()}}
    for name, text in named.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "3000000000\n"}, [3_000_000_000]),
        ("0::/docker/ab\n", {"memory.max": "5000000000\n"}, [5_000_000_000]),  # the path is that of the host
        (
            "5:cpu:/x\n4:memory:/x\n0::/\n",
            {
                "memory/x/memory.limit_in_bytes": "2000000000\n",
                "memory/memory.limit_in_bytes": "9223372036854771712\n",  # no limit
                "cpu/x/memory.limit_in_bytes": "7\n",
            },
            [2_000_000_000],
        ),
        ("0::/\n", {"memory.max": "nonsense\n"}, []),
    ],
)
def test_limits_of_control_groups(
    groups: str, files: dict[str, str], expected: list[int], tmp_path: Path
) -> None:
    root = folders(tmp_path, groups, files)
    assert [limit.left for limit in usable_memory._of_groups(root)] == expected


def test_without_control_groups_there_are_no_folders(tmp_path: Path) -> None:
    assert list(group_folders(tmp_path, "memory")) == []


def test_the_least_of_what_is_left_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = psutil.Process().memory_info()
    monkeypatch.setattr(usable_memory, "_machine", lambda: UsableMemory(own.rss + 8_000, "machine"))
    monkeypatch.setattr(usable_memory, "_of_groups", lambda root: iter([UsableMemory(5, "group")]))
    monkeypatch.setattr(usable_memory, "_of_address_space", lambda: iter(()))
    assert usable_memory.usable_memory() == UsableMemory(0, "group")  # the process holds more: never below 0
    monkeypatch.setattr(usable_memory, "_of_groups", lambda root: iter(()))
    assert usable_memory.usable_memory().limit == "machine"
    monkeypatch.setenv(TASK_MEMORY, "1000")
    assert usable_memory.usable_memory() == UsableMemory(0, "limits.memory_gb allows 0.0 GB")


def test_what_is_too_much_is_refused_with_the_limit_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    left = UsableMemory(7_500_000_000, "limits.memory_gb allows 8.0 GB")
    monkeypatch.setattr(usable_memory, "usable_memory", lambda: left)
    require_memory(7_500_000_000, "ease: 20 items", "take another")
    with pytest.raises(UserError) as raised:
        require_memory(12_800_000_000, "ease: 20 items", "take another")
    assert raised.value.lines == (
        "ease: 20 items need 12.8 GB, and limits.memory_gb allows 8.0 GB, of which 7.5 GB are left; take another",
    )


@pytest.mark.skipif(os.name != "posix", reason="the system has no ulimit")
def test_the_address_space_that_ulimit_allows_counts_with_what_is_mapped_already() -> None:
    code = (
        "import resource, psutil, mmap;"
        "from cfbench_core.usable_memory import usable_memory;"
        "limit = 10**9 + psutil.Process().memory_info().vms;"
        "resource.setrlimit(resource.RLIMIT_AS, (limit, limit));"
        "usable = usable_memory(); print(usable.left, usable.limit);"
        "most = mmap.mmap(-1, usable.left - 10**7)\n"  # so much there is
        "try:\n mmap.mmap(-1, 10**8)\n"  # and not more
        "except OSError: print('full')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    usable, full = done.stdout.splitlines()
    left, _, limit = usable.partition(" ")
    assert 9e8 < int(left) <= 1e9
    assert limit.startswith("ulimit -v allows ")
    assert limit.endswith(" GB of addresses")
    assert full == "full"
