"""Whose an unfinished file is, and whether its owner is gone: other containers, reused numbers, no /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from child_processes import popen

from cfbench_core import owners

TOKEN = "a" * 16


@pytest.fixture(autouse=True)
def own_space() -> Iterator[None]:
    """What was found out of the system is forgotten: some tests take it away."""
    owners.space.cache_clear()
    owners._own_start.cache_clear()
    yield
    owners.space.cache_clear()
    owners._own_start.cache_clear()


def made(folder: Path, name: str, age: float = 0.0) -> Path:
    path = folder / name
    path.mkdir()
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_what_this_process_has_is_not_abandoned_however_old(tmp_path: Path) -> None:
    assert not owners.is_abandoned(made(tmp_path, owners.new_name(), age=30 * 86400))


def test_what_a_dead_process_had_is_abandoned_at_once(tmp_path: Path) -> None:
    code = "from cfbench_core import owners; print(owners.new_name())"
    name = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert owners.is_abandoned(made(tmp_path, name.strip()))


@pytest.mark.skipif(sys.platform == "win32", reason="no zombies")
def test_a_process_of_which_only_the_exit_code_is_left_is_dead(tmp_path: Path) -> None:
    code = "from cfbench_core import owners; print(owners.new_name(), flush=True)"
    with popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        path = made(tmp_path, child.stdout.readline().strip())
        deadline = time.monotonic() + 10
        while not owners.is_abandoned(path):
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_later_process_with_the_same_number_is_another(tmp_path: Path) -> None:
    space, process, start, token = owners.new_name().split("-")
    assert owners.is_abandoned(made(tmp_path, f"{space}-{process}-{int(start) - 500}-{token}"))


def test_the_owner_in_another_container_lives_as_long_as_it_renews(tmp_path: Path) -> None:
    """Its number means nothing here, whether a process has it or not."""
    for process in (os.getpid(), 999_999_999):
        name = f"{'0' * 12}-{process}-1-{TOKEN}"
        assert not owners.is_abandoned(made(tmp_path, name, age=3600))
        (tmp_path / name).rmdir()
        assert owners.is_abandoned(made(tmp_path, name, age=3 * 3600))


def test_silence_is_told_by_the_clock_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path, f"{'0' * 12}-1-1-{TOKEN}")
    monkeypatch.setattr(time, "time", lambda: 4e9)
    assert not owners.is_abandoned(path)
    assert list(tmp_path.iterdir()) == [path]


def test_a_live_owner_renews_what_it_owns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owners, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setattr(owners, "_HEARTBEAT", owners._Heartbeat())
    mine, given_up = made(tmp_path, "mine", age=1000), made(tmp_path, "given up", age=1000)
    owners.own(given_up)
    owners.disown(given_up)
    with owners.owned(mine):
        deadline = time.monotonic() + 10
        while time.time() - mine.stat().st_mtime > 100:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert time.time() - given_up.stat().st_mtime > 900


def test_without_proc_a_process_is_found_by_psutil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on macOS: the start of a process is known to the second."""
    hide_proc(monkeypatch)
    monkeypatch.setattr(owners, "_boot", lambda: "a boot session")
    name = owners.new_name()
    space, process, start, _ = name.split("-")
    assert int(start) == int(psutil.Process().create_time())
    assert not owners.is_abandoned(made(tmp_path, name))
    assert not owners.is_abandoned(made(tmp_path, f"{space}-{process}-{int(start) + 1}-{TOKEN}"))
    assert owners.is_abandoned(made(tmp_path, f"{space}-{process}-{int(start) - 100}-{TOKEN}"))
    assert owners.is_abandoned(made(tmp_path, f"{space}-999999999-{start}-{TOKEN}"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system itself answers")
def test_where_the_system_names_no_boot_only_silence_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide_proc(monkeypatch)
    assert owners.space() == owners.UNKNOWN
    dead = f"unknown-999999999-1-{TOKEN}"
    assert not owners.is_abandoned(made(tmp_path, dead, age=3600))
    (tmp_path / dead).rmdir()
    assert owners.is_abandoned(made(tmp_path, dead, age=3 * 3600))


def hide_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hiding(type(Path())):  # type: ignore[misc]
        def read_bytes(self) -> bytes:
            self.refuse()
            return super().read_bytes()

        def read_text(self, *args: object, **options: object) -> str:
            self.refuse()
            return super().read_text(*args, **options)

        def exists(self, **options: object) -> bool:
            return not str(self).startswith("/proc") and super().exists(**options)

        def refuse(self) -> None:
            if str(self).startswith("/proc"):
                raise FileNotFoundError(str(self))

    monkeypatch.setattr(owners, "Path", Hiding)


def test_the_rest_of_dead_writers_is_removed_and_nothing_else(tmp_path: Path) -> None:
    dead = tmp_path / f".table.parquet.{owners.space()}-999999999-1-{TOKEN}.tmp"
    alive = tmp_path / owners.temporary_name("table.parquet")
    others = [tmp_path / name for name in (".notes.tmp", "table.parquet", f"{owners.new_name()}.tmp")]
    for path in (dead, alive, *others):
        path.touch()
    owners.remove_abandoned(tmp_path)
    assert {*tmp_path.iterdir()} == {alive, *others}


def test_names_are_valid_on_every_file_system() -> None:
    name = owners.temporary_name("scores.parquet")
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")
    assert len(name) < 120
