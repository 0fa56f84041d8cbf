"""One process at a time writes into a folder, with flock and without."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import popen

from cfbench_core import locks, owners
from cfbench_core.errors import UserError

HOLDER = """
import sys, time
if sys.argv[2] == "without flock":
    sys.modules["fcntl"] = None
from pathlib import Path
from cfbench_core import locks
lock = locks.FolderLock(Path(sys.argv[1]))
print("locked", flush=True)
time.sleep(60)
"""


@pytest.fixture(params=["with flock", "without flock"])
def flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "without flock":
        monkeypatch.setattr(locks, "_fcntl", None)
    elif locks._fcntl is None:
        pytest.skip("this system has no flock")
    yield request.param


def test_a_folder_is_locked_until_it_is_released(tmp_path: Path, flock: str) -> None:
    folder = tmp_path / "new" / "folder"
    assert not locks.is_locked(folder)
    lock = locks.FolderLock(folder)
    assert locks.is_locked(folder)
    with pytest.raises(UserError, match="another cfbench is running in it; wait, or give another --output"):
        locks.FolderLock(folder)
    lock.release()
    lock.release()
    assert not locks.is_locked(folder)
    assert list(folder.iterdir()) == []
    locks.FolderLock(folder).release()


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_process_that_is_killed_releases_its_folder(tmp_path: Path, flock: str) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path), flock]
    with popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        assert locks.is_locked(tmp_path)
        with pytest.raises(UserError, match="another cfbench is running"):
            locks.FolderLock(tmp_path)
        holder.send_signal(signal.SIGKILL)
    assert not locks.is_locked(tmp_path)
    locks.FolderLock(tmp_path).release()
    assert list(tmp_path.iterdir()) == []


def test_without_flock_a_process_of_another_container_is_respected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "_fcntl", None)
    theirs = tmp_path / f".lock-{'0' * 12}-1-1-{'a' * 16}"
    theirs.touch()
    with pytest.raises(UserError, match="another cfbench is running"):
        locks.FolderLock(tmp_path)
    assert list(tmp_path.iterdir()) == [theirs]


def test_a_disk_that_has_no_locks_is_locked_by_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def flock(*args: object) -> None:
            raise OSError(37, "No locks available")

    monkeypatch.setattr(locks, "_fcntl", NoLocks)
    lock = locks.FolderLock(tmp_path)
    assert locks.is_locked(tmp_path)
    with pytest.raises(UserError, match="another cfbench is running"):
        locks.FolderLock(tmp_path)
    lock.release()
    assert not locks.is_locked(tmp_path)


def test_run_and_status_are_imported_without_fcntl() -> None:
    code = (
        "import sys; sys.modules['fcntl'] = None\n"
        "import cfbench_core.cli.commands.status, cfbench_core.cli.commands.run, cfbench_core.run_writer\n"
        "import cfbench_core.executors.process, cfbench_core.executors.worker, cfbench_core.tuning.journal"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_name_of_the_lock_says_who_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_fcntl", None)
    lock = locks.FolderLock(tmp_path)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith(f".lock-{owners.space()}-")
    lock.release()
