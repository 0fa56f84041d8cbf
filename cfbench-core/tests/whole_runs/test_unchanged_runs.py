"""A run into the directory of an equal run leaves its tables and reports as they are."""

from __future__ import annotations

import errno
import os
import shutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from toy_runs import artifacts, configuration, run

from cfbench_core.api import prepare
from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.reports.page_limits import limited
from cfbench_core.reports.saved import saved_tables, saved_words
from cfbench_core.reports.tables import built
from cfbench_core.run_ends import store_end
from cfbench_core.store import Store

MADE = (
    "scores.parquet",
    "explanations.parquet",
    "costs.parquet",
    "summary.csv",
    "report.json",
    "report.html",
)


def written(directory: Path) -> dict[str, int]:
    return {name: (directory / name).stat().st_mtime_ns for name in MADE}


def test_nothing_is_written_again_unless_something_changed(registry: Registry, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = run(registry, out)
    assert saved_words(first) == "7 is explained by 7."
    before, environment = written(out), (out / "environment.json").read_bytes()
    again = run(registry, out)
    assert written(out) == before
    assert (out / "environment.json").read_bytes() == environment
    assert {cell.status for cell in again.cells()} == {"cached"}

    page = out / "report.html"
    page.write_text(page.read_text() + "x")  # not as it was written
    run(registry, out)
    assert not page.read_text().endswith("x")

    run(registry, out, fresh=True)  # other results, by their times
    assert all(written(out)[name] > before[name] for name in MADE)


def test_saved_tables_are_those_of_the_run_and_large_ones_are_cut(registry: Registry, tmp_path: Path) -> None:
    explainers = [{"name": "digits", "base": base, "label": f"base-{base}"} for base in range(2, 12)]
    result = run(registry, tmp_path / "run", explainers=explainers)
    tables = built(result)
    assert saved_tables(result) == tables or repr(saved_tables(result)) == repr(tables)  # NaN is not NaN
    (table,) = limited(tables * 1)
    assert len(table.lines) == 10 and table.left_out == 0
    assert len(limited(tables * 500)) == 100  # 1,000 rows


def test_a_new_directory_of_an_equal_run_gets_copies_of_its_tables_and_reports(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(registry, tmp_path / "first")
    with monkeypatch.context() as patch:
        patch.setattr("cfbench_core.api._write_reports", lambda *_: pytest.fail("reports were made again"))
        second = run(registry, tmp_path / "second")
    for name in (*MADE, "quality.csv", "environment.json"):
        assert (second.directory / name).read_bytes() == (first.directory / name).read_bytes()
    assert second.summary.equals(first.summary)
    assert {cell.status for cell in second.cells()} == {"cached"}

    (entry,) = [entry for entry in Store().entries() if entry.kind == "run"]
    (entry.path / "scores.parquet").write_bytes(b"damaged")
    third = run(registry, tmp_path / "third")  # a damaged copy counts as none
    assert (third.directory / "scores.parquet").read_bytes() == (
        first.directory / "scores.parquet"
    ).read_bytes()
    assert Store().verify(entry) == []


@pytest.mark.parametrize("writer", ["run_writer.write_parquet", "run_ends.write_atomically"])
def test_a_full_disk_at_the_end_leaves_no_tables_of_two_runs_side_by_side(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str
) -> None:
    first = run(registry, tmp_path / "run")
    (first.directory / "report.html").unlink()  # so that it counts as changed
    if "run_writer" in writer:  # no copy of its tables
        shutil.rmtree(artifacts("run")[0])
    module, _, name = writer.partition(".")
    whole, written = getattr(import_module(f"cfbench_core.{module}"), name), []

    def full(path: Path, content: Any) -> None:
        if written:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        whole(path, content)
        written.append(path.name)

    with monkeypatch.context() as patch:
        patch.setattr(f"cfbench_core.{writer}", full)
        with pytest.raises(UserError, match="the disk is full"):
            run(registry, first.directory)
    assert {path.name for path in first.directory.iterdir()} & {*MADE, "quality.csv"} == {*written}
    assert run(registry, first.directory).summary["n"].equals(first.summary["n"])


def test_copies_that_are_cleared_while_they_are_read_are_made_again(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, fetch = run(registry, tmp_path / "first"), Store.fetch

    def cleared(store: Store, kind: str, key: str) -> Any:
        found = fetch(store, kind, key)
        if kind == "run":
            shutil.rmtree(store.path(kind, key))
        return found

    monkeypatch.setattr(Store, "fetch", cleared)
    second = run(registry, tmp_path / "second")
    assert second.scores.equals(first.scores) and second.exit_code == 0


def test_tables_that_an_earlier_run_left_do_not_stay(registry: Registry, tmp_path: Path) -> None:
    run(registry, tmp_path / "second", count=4)
    left = tmp_path / "second" / "details.parquet"
    left.write_bytes(b"of another run")
    run(registry, tmp_path / "second", count=4, fresh=True)
    assert not left.exists()
    left.write_bytes(b"of another run")
    (tmp_path / "second" / "report.html").unlink()  # so that it counts as changed
    run(registry, tmp_path / "second", count=4)
    assert not left.exists() and (tmp_path / "second" / "report.html").exists()


def test_large_tables_are_not_copied(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = prepare(configuration(), registry=registry).plan
    directory = run(registry, tmp_path / "run").directory
    store = Store()
    store_end(directory, plan, store, "abc")
    assert store.has("run", "abc")
    monkeypatch.setattr("cfbench_core.run_ends.LARGEST", 10)
    store_end(directory, plan, store, "def")
    assert not store.has("run", "def")
