"""Full disks and damaged artifacts: one line, nothing half written, and the next run completes it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_disk import small_disk
from toy_runs import artifacts, configuration, ends, run

from cfbench_core import owners
from cfbench_core.api import execute, prepare
from cfbench_core.errors import DamageWarning, UserError
from cfbench_core.leases import LocalLeases
from cfbench_core.registry import Registry
from cfbench_core.run_directory import Run
from cfbench_core.store import Store


def assert_nothing_is_half_written(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not path.name.endswith(".tmp"), path
        if path.suffix == ".parquet":
            pq.read_table(path)
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.suffix == ".jsonl":
            assert all(json.loads(line) for line in path.read_text().splitlines())


def fill(disk: Path, leaving: int) -> Path:
    """A file that leaves so many bytes free."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - leaving))
    return ballast


def lines_of_the_error(registry: Registry, out: Path) -> tuple[str, ...]:
    """Keeps no traceback: what is open in its frames would keep the disk from being unmounted."""
    with pytest.raises(UserError) as caught:
        run(registry, out)
    return caught.value.lines


@pytest.mark.parametrize("pages", [0, 1, 2, 4, 7, 10])
def test_a_full_disk_under_the_run_directory_is_one_line_and_room_completes_the_run(
    registry: Registry, tmp_path: Path, pages: int
) -> None:
    undisturbed = run(registry, tmp_path / "undisturbed")
    with small_disk(tmp_path) as disk:
        ballast = fill(disk, leaving=4096 * pages)
        (line,) = lines_of_the_error(registry, disk / "run")
        assert str(disk / "run") in line and ("the disk is full" in line or "No space left" in line)
        if (disk / "run").exists():
            assert_nothing_is_half_written(disk / "run")
        ballast.unlink()
        done = run(registry, disk / "run")
        assert done.exit_code == 0
        files = {path.name for path in done.directory.iterdir()}
        assert files == {path.name for path in undisturbed.directory.iterdir()}
        assert (disk / "run" / "scores.parquet").read_bytes() == (
            undisturbed.directory / "scores.parquet"
        ).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("pages", [0, 3, 6, 12])
def test_a_full_disk_under_the_cache_fails_the_cells_and_room_completes_the_run(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    undisturbed = run(registry, tmp_path / "undisturbed")
    with small_disk(tmp_path) as disk:
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(disk / "cache"))
        ballast = fill(disk, leaving=4096 * pages)
        failed = run(registry, tmp_path / "run")
        assert failed.exit_code == 1
        (reason,) = {c.reason for c in failed.cells()}
        assert "the disk is full" in reason and "CFBENCH_CACHE_DIR" in reason and "\n" not in reason
        store = Store()
        assert [problem for entry in store.entries() for problem in store.verify(entry)] == []
        assert list((disk / "cache").glob("**/leases/*")) == []  # the next run would wait for their holder
        ballast.unlink()
        done = run(registry, tmp_path / "run")
        assert done.exit_code == 0
        assert done.scores.equals(undisturbed.scores)
        assert list((disk / "cache").glob("artifacts/tmp/*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc, or other words for it")
@pytest.mark.parametrize("place", ["file", "file/below", "/proc/cache"])
def test_a_cache_that_cannot_be_used_is_one_line_before_anything_runs(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / place))
    (line,) = lines_of_the_error(registry, tmp_path / "run")
    reason = "No such file or directory" if place.startswith("/proc") else "Not a directory"
    assert line == f"{tmp_path / place}: the cache folder (CFBENCH_CACHE_DIR) cannot be used ({reason})"
    assert not (tmp_path / "run").exists()


def test_a_cache_that_cannot_be_written_to_is_enough_where_it_holds_everything(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_disk(tmp_path) as disk:
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(disk))
        before = run(registry, tmp_path / "before")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        assert run(registry, tmp_path / "after").scores.equals(before.scores)
        with pytest.raises(UserError, match=r"cannot be written to, and [0-9]+ of [0-9]+ stages") as caught:
            execute(prepare(configuration(count=9), registry=registry), out=tmp_path / "other")
        assert caught.value.lines[0].startswith(f"{disk}: the cache folder (CFBENCH_CACHE_DIR)")
        assert not (tmp_path / "other").exists()


def test_a_lease_that_a_full_disk_cuts_short_is_not_left_behind(tmp_path: Path) -> None:
    """Neither in a folder nor in a store elsewhere: nobody would know whom to wait for."""
    pytest.importorskip("fsspec", reason="needs fsspec: pip install 'cfbench-core[fsspec]'")
    from cfbench_core.stores.fsspec import RemoteFiles

    with small_disk(tmp_path) as disk:
        places = {
            "here": LocalLeases(disk / "here"),
            "elsewhere": RemoteFiles(f"file://{disk}/elsewhere", {}),
        }
        for name, files in places.items():
            assert files.create("first", b"somebody")  # makes the folder
            ballast = fill(disk, leaving=0)
            with pytest.raises((OSError, UserError), match="No space left"):
                files.create("second", b"somebody")
            if name == "here":
                files.write("first", b"somebody 1")
                assert files.read("first") == b"somebody 1"
            else:  # a new file takes the name of the old one
                with pytest.raises(UserError, match="No space left"):
                    files.write("first", b"somebody 1")
                assert files.read("first") == b"somebody"
            assert [path.name for path in (disk / name).iterdir()] == ["first"]
            ballast.unlink()
            assert files.create("second", b"somebody")


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.DamageWarning")
def test_a_truncated_or_lost_file_of_an_artifact_is_computed_again(
    registry: Registry, tmp_path: Path
) -> None:
    first = run(registry, tmp_path / "a")
    before = first.scores
    cut, lost = artifacts("explanations")
    (cut / "explanations.parquet").write_bytes((cut / "explanations.parquet").read_bytes()[:50])
    (lost / "costs.parquet").unlink()
    second = run(registry, tmp_path / "b")
    assert second.scores.equals(before)
    computed = [end["kind"] for end in ends(second.directory) if end["status"] == "ok"]
    assert computed == ["explanations", "explanations"]


@pytest.mark.parametrize("kind", ["data", "model", "units", "explanations", "scores"])
def test_damage_that_keeps_the_size_is_computed_again_and_shown_in_one_line(
    registry: Registry, tmp_path: Path, kind: str
) -> None:
    before = run(registry, tmp_path / "a")
    folder = artifacts(kind)[0]
    damaged = next(path for path in sorted(folder.iterdir()) if path.name != "artifact.json")
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    with pytest.warns(DamageWarning, match=rf"{kind} .*damaged \({damaged.name} has changed") as warned:
        second = run(registry, tmp_path / "b")
    assert len(warned) == 1
    assert second.exit_code == 0
    assert (second.directory / "scores.parquet").read_bytes() == (
        before.directory / "scores.parquet"
    ).read_bytes()
    computed = [end["kind"] for end in ends(second.directory) if end["status"] == "ok"]
    assert computed == [kind]
    store = Store()
    assert [problem for entry in store.entries() for problem in store.verify(entry)] == []


class Damages:
    """An observer that damages an artifact when a task of some kind has ended."""

    def __init__(self, when: str, kind: str, remove: bool) -> None:
        self.when, self.kind, self.remove, self.done = when, kind, remove, False

    def started(self, task: Any) -> None: ...

    def progress(self, task: Any, done: int, total: int) -> None: ...

    def finished(self, task: Any, outcome: Any, done: int, total: Any) -> None:
        if task.kind == self.when and not self.done:
            self.done = True
            (folder, *_) = artifacts(self.kind)
            file = next(path for path in sorted(folder.iterdir()) if path.name != "artifact.json")
            if self.remove:
                shutil.rmtree(folder)
            else:
                file.write_bytes(bytes(file.stat().st_size))


@pytest.mark.parametrize("remove", [False, True])
@pytest.mark.filterwarnings("ignore::cfbench_core.errors.DamageWarning")
def test_an_input_that_is_lost_while_the_run_goes_on_is_computed_again(
    registry: Registry, tmp_path: Path, remove: bool
) -> None:
    undisturbed = run(registry, tmp_path / "undisturbed")
    shutil.rmtree(tmp_path / "cache")
    prepared = prepare(configuration(), registry=registry)
    done = execute(prepared, out=tmp_path / "run", observer=Damages("units", "data", remove))
    assert [c.status for c in done.cells()] == ["ok"]  # nobody reads the data after the units
    shutil.rmtree(tmp_path / "cache")
    done = execute(prepared, out=tmp_path / "run", observer=Damages("units", "model", remove))
    assert [c.status for c in done.cells()] == ["ok"]
    assert done.scores.equals(undisturbed.scores)
    kinds = [end["kind"] for end in ends(done.directory)[-7:]]
    assert kinds == ["data", "model", "units", "explanations", "explanations", "scores", "scores"]


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.DamageWarning")
@pytest.mark.parametrize("kind", ["explanations", "scores"])
def test_a_result_that_is_damaged_before_the_tables_are_written_is_one_line(
    registry: Registry, tmp_path: Path, kind: str
) -> None:
    observer = DamagesAtTheEnd(kind)
    with pytest.raises(UserError, match="was damaged or removed during the run; the same command") as caught:
        execute(prepare(configuration(), registry=registry), out=tmp_path / "run", observer=observer)
    assert len(caught.value.lines) == 1
    assert run(registry, tmp_path / "run").exit_code == 0


class DamagesAtTheEnd(Damages):
    def __init__(self, kind: str) -> None:
        super().__init__("scores", kind, remove=False)

    def finished(self, task: Any, outcome: Any, done: int, total: Any) -> None:
        if done == total.tasks:
            super().finished(task, outcome, done, total)


FILES = ["config.yaml", "environment.json", "plan.json", "scores.parquet", "explanations.parquet", "costs.parquet",
         "quality.csv", "summary.csv", "outcomes.jsonl"]  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_in_a_run_directory_is_one_line_and_the_same_run_repairs_it(
    registry: Registry, tmp_path: Path, name: str
) -> None:
    directory = run(registry, tmp_path / "run").directory
    before = {path.name: path.read_bytes() for path in directory.glob("*.parquet")}
    content = bytearray((directory / name).read_bytes())
    content[len(content) // 2] ^= 2
    (directory / name).write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_everything(directory)
    (line,) = caught.value.lines
    assert (
        str(directory) in line and "the same cfbench run with --output on this directory rewrites it" in line
    )
    run(registry, directory, fresh=name == "config.yaml")
    read_everything(directory)
    assert {path.name: path.read_bytes() for path in directory.glob("*.parquet")} == before


def read_everything(directory: Path) -> None:
    found = Run(directory)
    for attribute in ("plan", "config", "environment", "scores", "explanations", "costs", "details", "quality",
                      "summary", "outcomes", "unit_values"):  # fmt: skip
        getattr(found, attribute)


@pytest.mark.parametrize("content", [b"", b"not checksums", b"\xff", b"0" * 64 + b"  scores.parquet\n"])
def test_damaged_checksums_are_one_line_or_no_checksums(
    registry: Registry, tmp_path: Path, content: bytes
) -> None:
    directory = run(registry, tmp_path / "run").directory
    (directory / "SHA256SUMS").write_bytes(content)
    with pytest.raises(UserError, match="with --output on this directory rewrites it") as caught:
        read_everything(directory)
    assert len(caught.value.lines) == 1
    run(registry, directory)
    read_everything(directory)


def test_the_checksums_of_a_run_directory_are_those_of_sha256sum(registry: Registry, tmp_path: Path) -> None:
    directory = run(registry, tmp_path / "run").directory
    lines = (directory / "SHA256SUMS").read_text().splitlines()
    assert {line.split("  ")[1] for line in lines} >= {*FILES}
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((directory / name).read_bytes()).hexdigest() == digest


def test_a_run_directory_holds_no_rest_of_a_writer_that_was_killed(
    registry: Registry, tmp_path: Path
) -> None:
    directory = run(registry, tmp_path / "run").directory
    dead = directory / f".plan.json.{owners.space()}-999999999-1-{'a' * 16}.tmp"
    dead.write_text("half")
    ours = directory / owners.temporary_name("plan.json")
    ours.write_text("half")
    run(registry, directory)
    assert not dead.exists() and ours.exists()


def test_a_run_removes_what_dead_processes_left_in_the_cache_and_nothing_of_the_living(
    registry: Registry, tmp_path: Path
) -> None:
    temporary = tmp_path / "cache" / "artifacts" / "tmp"
    token = "a" * 16
    dead = temporary / f"{owners.space()}-999999999-1-{token}"
    other_container = temporary / f"{'0' * 12}-999999999-1-{token}"
    silent_container = temporary / f"{'1' * 12}-999999999-1-{token}"
    for folder in (dead, other_container, silent_container):
        folder.mkdir(parents=True)
        (folder / "half.parquet").write_text("half")
    os.utime(silent_container, (0, 0))
    run(registry, tmp_path / "run")
    assert list(temporary.iterdir()) == [other_container]
