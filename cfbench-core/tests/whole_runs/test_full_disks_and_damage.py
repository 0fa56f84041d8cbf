"""Full disks and damaged artifacts: one line, nothing half written, and the next run completes it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from small_disk import small_disk
from toy_runs import artifacts, ends, run

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
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
        ballast.unlink()
        done = run(registry, tmp_path / "run")
        assert done.exit_code == 0
        assert done.scores.equals(undisturbed.scores)
        assert list((disk / "cache").glob("artifacts/tmp/*")) == []


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


def test_damage_that_keeps_the_size_is_one_line_found_by_verify_and_mended(
    registry: Registry, tmp_path: Path
) -> None:
    before = run(registry, tmp_path / "a").scores
    damaged = artifacts("scores")[0] / "scores.parquet"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    with pytest.raises(UserError) as caught:
        run(registry, tmp_path / "b")
    (line,) = caught.value.lines
    assert str(damaged) in line and "'cfbench cache verify --remove'" in line
    store = Store()
    found = {entry.path: store.verify(entry) for entry in store.entries() if store.verify(entry)}
    assert found == {damaged.parent: ["scores.parquet has changed since it was written (SHA-256)"]}
    store.remove(next(entry for entry in store.entries() if entry.path == damaged.parent))
    assert run(registry, tmp_path / "b").scores.equals(before)
