"""What replaces an artifact in a store elsewhere reaches the other machines: a complete one, and one computed anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_tasks import task

from cfbench_core import owners
from cfbench_core.compute import compute
from cfbench_core.errors import UserError
from cfbench_core.stages import Task
from cfbench_core.store import Store
from cfbench_core.stores.fsspec import FsspecStore, RemoteFiles
from cfbench_core.stores.published import PublishedStore

pytest.importorskip("fsspec", reason="needs fsspec: pip install 'cfbench-core[fsspec]'")

OPEN = Callable[[str], FsspecStore]


@pytest.fixture
def machine(tmp_path: Path) -> OPEN:
    """The store as another machine has it, with a cache of its own."""
    address = {"url": f"file://{tmp_path / 'remote'}", "options": {}}
    return lambda name: FsspecStore(address, tmp_path / name)


def content(done: Task, store: FsspecStore) -> str:
    assert store.fetch(done.kind, done.key) is not None
    return (store.path(done.kind, done.key) / "answer.txt").read_text().strip()


def test_an_incomplete_result_is_completed_once_for_all_machines(machine: OPEN, tmp_path: Path) -> None:
    asks = task("queries_a_server", {"server": str(tmp_path / "server")})
    for name in ("one", "two"):
        assert compute(asks, machine(name)).summary["answer"] == 0
        assert content(asks, machine(name)) == "?"
    (tmp_path / "server").touch()
    outcomes = [compute(asks, machine(name)) for name in ("one", "one", "two", "three")]
    assert [outcome.summary for outcome in outcomes] == [{"answer": 42}] * 4
    assert [outcome.status for outcome in outcomes] == ["ok", "cached", "cached", "cached"]
    assert [content(asks, machine(name)) for name in ("one", "two", "three")] == ["42"] * 3


@pytest.mark.parametrize("elsewhere", [False, True])
def test_who_completes_a_result_is_waited_for(machine: OPEN, tmp_path: Path, elsewhere: bool) -> None:
    """Of two runs after an incomplete one, one queries the server again."""
    store = machine("one") if elsewhere else Store(tmp_path / "here")
    asks = task("queries_a_server", {"server": str(tmp_path / "server")})
    assert compute(asks, store).summary["answer"] == 0

    def waits() -> None:
        raise RuntimeError("waits")

    with store.reserved(asks.kind, asks.key, waits) as appeared:
        assert not appeared
        with pytest.raises(RuntimeError, match="waits"), store.reserved(asks.kind, asks.key, waits):
            pass


def test_a_new_result_that_could_not_be_published_is_published_later(
    machine: OPEN, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: RemoteFiles, local: Path, name: str) -> None:
        raise UserError("nobody answers")

    done = task("answer")
    assert compute(done, machine("one")).status == "ok"
    with monkeypatch.context() as patch:
        patch.setattr(RemoteFiles, "upload", broken)
        assert compute(done, machine("one"), fresh=True).reason == "nobody answers"
    assert compute(done, machine("one")).status == "cached"
    two = machine("two")
    assert content(done, two) == "42"
    assert two.digest(done.kind, done.key) == machine("one").digest(done.kind, done.key)


def test_what_an_interrupted_upload_left_is_removed_with_old_artifacts(machine: OPEN, tmp_path: Path) -> None:
    assert compute(task("answer"), machine("one")).status == "ok"
    (archive,) = (tmp_path / "remote").rglob("*.tar")
    left = archive.with_name(f"{archive.name}.{owners.new_name()}.tmp")
    left.write_bytes(b"half")
    published = PublishedStore(f"file://{tmp_path / 'remote'}", {})
    assert published.gc(older_than_days=1) == [] and left.exists()
    os.utime(left, (0, 0))
    assert published.gc(older_than_days=1) == [] and not left.exists() and archive.exists()
