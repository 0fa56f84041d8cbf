"""The cores that a process may use: as the affinity and the control groups say, in folders that stand for those of Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cfbench_core import cores


def folders(root: Path, cgroup: str, files: dict[str, str]) -> Path:
    """``/proc/self/cgroup`` and files below ``/sys/fs/cgroup``."""
    for name, text in {
        "proc/self/cgroup": cgroup,
        **{f"sys/fs/cgroup/{n}": t for n, t in files.items()},
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_version_2_counts_the_group_and_those_above_it(tmp_path: Path) -> None:
    files = {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "150000 100000\n", "cpu.max": "400000 100000\n"}
    assert sorted(cores._quotas(folders(tmp_path, "0::/a/b\n", files))) == [1.5, 4.0]


def test_in_a_container_the_top_counts_though_the_group_is_not_there(tmp_path: Path) -> None:
    files = {"cpu.max": "50000 100000\n"}
    assert list(cores._quotas(folders(tmp_path, "0::/docker/ab12\n", files))) == [0.5]


def test_version_1_counts_the_controller_of_the_cpu(tmp_path: Path) -> None:
    files = {"cpu/x/cpu.cfs_quota_us": "300000\n", "cpu/x/cpu.cfs_period_us": "100000\n"}
    files |= {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
    assert list(cores._quotas(folders(tmp_path, "5:memory:/x\n4:cpu,cpuacct:/x\n", files))) == [3.0]


@pytest.mark.parametrize("text", ["", "nonsense\n", "0 100000 3\n", "-1 0\n"])
def test_files_that_say_nothing_set_no_limit(tmp_path: Path, text: str) -> None:
    assert list(cores._quotas(folders(tmp_path, "0::/\n", {"cpu.max": text}))) == []


def test_without_control_groups_there_is_no_quota(tmp_path: Path) -> None:
    assert list(cores._quotas(tmp_path)) == []


def test_the_smallest_limit_holds_and_part_of_a_core_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(6)), raising=False)
    for quotas, expected in (([], 6), ([2.5, 4.0], 3), ([0.2], 1), ([64.0], 6)):
        monkeypatch.setattr(cores, "_quotas", lambda root, quotas=quotas: iter(quotas))
        assert cores.usable_cores() == expected


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_a_process_that_is_bound_to_one_core_uses_one() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from cfbench_core.cores import usable_cores; print(usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
