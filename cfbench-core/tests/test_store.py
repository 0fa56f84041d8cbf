"""The artifact store: whole artifacts or none, whoever writes, is killed, or comes second."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from child_processes import popen

from cfbench_core.stages import Task
from cfbench_core.store import Store, default_root

HERE = str(Path(__file__).parent)
KEY = "ab" + "0" * 62


def task(key: str = KEY, **changes: object) -> Task:
    fields: dict[str, object] = {
        "key": key,
        "stage_key": key,
        "kind": "model",
        "label": "mf on debian-python",
        "target": "executor_stages:answer",
        "steps": {},
        "parameters": {"factors": 8},
        "inputs": {"data": "d" * 64},
        "input_kinds": {"data": "data"},
        "seed": 7,
    }
    return Task(**(fields | changes))  # type: ignore[arg-type]


def committed(store: Store, content: str = "numbers", key: str = KEY, **options: bool) -> Path:
    temporary = store.begin()
    (temporary / "inner").mkdir()
    (temporary / "inner" / "weights.bin").write_text(content)
    store.commit(temporary, task(key), {"quality": 0.5}, 1.25, 1000, **options)
    return store.path("model", key)


def test_an_artifact_is_a_folder_that_describes_itself(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert not store.has("model", KEY)
    path = committed(store)
    assert path == tmp_path / "model" / "ab" / KEY
    assert store.has("model", KEY)
    written = json.loads((path / "artifact.json").read_text())
    created, computed_by = written.pop("created"), written.pop("computed_by")
    assert len(written.pop("digest")) == 64
    assert computed_by["python"].endswith(platform.python_version())
    assert {"cfbench-core", "numpy"} <= set(computed_by["versions"])
    assert written == {
        "kind": "model",
        "key": KEY,
        "label": "mf on debian-python",
        "target": "executor_stages:answer",
        "steps": {},
        "parameters": {"factors": 8},
        "inputs": {"data": "d" * 64},
        "chunk": None,
        "seed": 7,
        "summary": {"quality": 0.5},
        "elapsed_seconds": 1.25,
        "peak_memory_bytes": 1000,
        "files": {"inner/weights.bin": {"bytes": 7, "sha256": hashlib.sha256(b"numbers").hexdigest()}},
    }
    assert created.endswith("+00:00")
    assert list((tmp_path / "tmp").iterdir()) == []


def test_nothing_is_seen_before_commit(tmp_path: Path) -> None:
    store = Store(tmp_path)
    temporary = store.begin()
    (temporary / "weights.bin").write_text("half")
    assert store.entries() == []
    assert not store.has("model", KEY)


def test_the_first_of_two_writers_wins_and_the_second_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    committed(store, "first")
    path = committed(store, "second")
    assert (path / "inner" / "weights.bin").read_text() == "first"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_replacing_puts_the_new_in_place_of_the_old(tmp_path: Path) -> None:
    store = Store(tmp_path)
    committed(store, "first")
    path = committed(store, "second", replace=True)
    assert (path / "inner" / "weights.bin").read_text() == "second"
    assert store.verify(store.entries()[0]) == []
    assert list((tmp_path / "tmp").iterdir()) == []


RACE = """
import sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {here!r} + "/samples"]
from test_store import committed
from cfbench_core.store import Store
root, start, me = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
time.sleep(max(0, start - time.time()))
for number in range(40):
    committed(Store(root), me * 100_000, f"{{number:064x}}", replace=(number % 2 == 1))
"""


def test_concurrent_writers_of_the_same_artifacts_leave_complete_ones(tmp_path: Path) -> None:
    start = str(time.time() + 1.0)
    writers = [
        popen([sys.executable, "-c", RACE.format(here=HERE), str(tmp_path), start, me]) for me in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    store = Store(tmp_path)
    entries = store.entries()
    assert len(entries) == 40
    assert [store.verify(entry) for entry in entries] == [[]] * 40
    assert list((tmp_path / "tmp").iterdir()) == []


KILLED = """
import sys, time
from pathlib import Path
sys.path[:0] = [{here!r}, {here!r} + "/samples"]
from test_store import task
from cfbench_core.store import Store
store = Store(Path(sys.argv[1]))
temporary = store.begin()
file = (temporary / "weights.bin").open("wb")
file.write(b"x" * 1000); file.flush()
print("writing", flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
def test_a_writer_that_is_killed_leaves_nothing_that_is_seen_and_its_rest_is_cleaned(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED.format(here=HERE), str(tmp_path)]
    with popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        store = Store(tmp_path)
        ours = store.begin()
        assert store.clean_abandoned() == []  # both are alive
        writer.send_signal(signal.SIGKILL)
    assert store.entries() == []
    assert len(store.clean_abandoned()) == 1
    assert list((tmp_path / "tmp").iterdir()) == [ours]


def test_the_folder_of_a_process_in_another_container_stays_as_long_as_it_is_renewed(tmp_path: Path) -> None:
    """It has the same host name, and there is no process of its number here."""
    store = Store(tmp_path)
    foreign = tmp_path / "tmp" / f"{'0' * 12}-999999999-1-{'a' * 16}"
    foreign.mkdir(parents=True)
    assert store.clean_abandoned() == []
    os.utime(foreign, (0, time.time() - 3 * 3600))
    assert store.clean_abandoned() == [foreign]


def test_verify_finds_a_flipped_byte(tmp_path: Path) -> None:
    store = Store(tmp_path)
    path = committed(store)
    [entry] = store.entries()
    assert store.verify(entry) == []
    (path / "inner" / "weights.bin").write_text("nunbers")
    assert store.verify(entry) == ["inner/weights.bin has changed since it was written (SHA-256)"]


def test_a_missing_or_truncated_file_makes_the_artifact_absent_and_is_mended_by_computing_again(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    path = committed(store)
    (path / "inner" / "weights.bin").write_text("num")
    assert store.verify(store.entries()[0]) == ["inner/weights.bin has 3 bytes in place of 7"]
    assert not store.has("model", KEY)
    committed(store)
    assert store.has("model", KEY)
    (path / "inner" / "weights.bin").unlink()
    assert store.verify(store.entries()[0]) == ["inner/weights.bin is missing"]
    assert not store.has("model", KEY)
    committed(store)
    assert store.verify(store.entries()[0]) == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "artifact.json is not JSON"),
        (b"{", "artifact.json is not JSON"),
        (b"\xff\xfe", "artifact.json is not JSON"),
        (b"[" * 100_000, "artifact.json is not JSON"),
        (b"[]", "artifact.json is not an object"),
        (b"{}", "artifact.json has changed since it was written"),
        (b'{"files": {}, "summary": {}}', "artifact.json has changed since it was written"),
        (b'{"files": 3, "digest": null}', "artifact.json has changed since it was written"),
    ],
)
def test_a_damaged_manifest_is_listed_and_reported_and_mended(
    tmp_path: Path, text: bytes, problem: str
) -> None:
    store = Store(tmp_path)
    path = committed(store)
    (path / "artifact.json").write_bytes(text)
    [entry] = store.entries()
    assert entry.label == "?"
    assert store.verify(entry) == [problem]
    assert not store.has("model", KEY)
    committed(store)
    assert store.has("model", KEY)


def test_entries_have_label_size_and_age(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.entries() == []
    path = committed(store)
    [entry] = store.entries()
    assert (entry.kind, entry.key, entry.path, entry.label) == ("model", KEY, path, "mf on debian-python")
    assert entry.bytes == 7 + (path / "artifact.json").stat().st_size
    assert abs(entry.used - time.time()) < 60


def test_gc_removes_what_is_old_and_unused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [f"{number:064x}" for number in range(4)]
    for key in keys:
        path = committed(store, key=key)
        os.utime(path / "artifact.json", (0, time.time() - 10 * 86400))
    store.mark_used("model", keys[3])
    removed = store.gc(older_than_days=5, keep={keys[0]})
    assert [entry.key for entry in removed] == [keys[1], keys[2]]
    assert [entry.key for entry in store.entries()] == [keys[0], keys[3]]
    assert len(store.gc()) == 2
    assert store.entries() == []


def test_a_summary_that_is_not_json_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for summary, error in (({"x": {1}}, TypeError), ({"x": float("nan")}, ValueError)):
        with pytest.raises(error):
            store.commit(store.begin(), task(), summary, 0.0, 0)
    assert store.entries() == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_root_is_where_the_variable_says_or_in_the_users_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", "~/somewhere")
    assert default_root() == Path.home() / "somewhere" / "artifacts"
    monkeypatch.delenv("CFBENCH_CACHE_DIR")
    assert default_root().parts[-2:] == ("cfbench", "artifacts")


DAMAGES = {
    "a flipped bit": lambda file: file.write_bytes(b"oumbers"),
    "a lost end": lambda file: file.write_bytes(b"numb"),
    "more at the end": lambda file: file.write_bytes(b"numbers!"),
    "nothing left": lambda file: file.write_bytes(b""),
    "deleted": lambda file: file.unlink(),
    "a folder in its place": lambda file: (file.unlink(), file.mkdir()),
    "a dead link in its place": lambda file: (file.unlink(), file.symlink_to("nowhere")),
    "a link to itself in its place": lambda file: (file.unlink(), file.symlink_to(file.name)),
    "a named pipe in its place": lambda file: (file.unlink(), os.mkfifo(file)),
    "its folder deleted": lambda file: shutil.rmtree(file.parent),
    "a file in place of its folder": lambda file: (shutil.rmtree(file.parent), file.parent.touch()),
}


@pytest.mark.skipif(sys.platform == "win32", reason="no links and pipes")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["inner/weights.bin", "artifact.json"])
def test_a_damaged_artifact_is_absent_and_is_replaced(tmp_path: Path, damage: str, name: str) -> None:
    store = Store(tmp_path)
    path = committed(store)
    assert store.has("model", KEY)
    DAMAGES[damage](path / name)
    for seen_by in (store, Store(tmp_path)):
        assert not seen_by.has("model", KEY)
        for entry in seen_by.entries():
            assert len(seen_by.verify(entry)) == 1 and entry.used >= 0 and entry.bytes >= 0
    damaged = store.path("model", KEY).exists()
    assert bool(store.remove_if_damaged("model", KEY)) == damaged
    assert not os.path.lexists(path)
    committed(store)
    assert store.has("model", KEY)
    assert [store.verify(entry) for entry in store.entries()] == [[]]
    assert list((tmp_path / "tmp").iterdir()) == []


def test_artifacts_that_were_swapped_are_both_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [f"{number:064x}" for number in (1, 2)]
    paths = [committed(store, f"number{key[-1]}", key) for key in keys]
    paths[0].rename(tmp_path / "aside")
    paths[1].rename(paths[0])
    (tmp_path / "aside").rename(paths[1])
    assert [store.has("model", key) for key in keys] == [False, False]
    assert {p for e in store.entries() for p in store.verify(e)} == {
        "artifact.json is that of another artifact"
    }


def test_files_that_were_swapped_between_artifacts_are_damaged(tmp_path: Path) -> None:
    store = Store(tmp_path)
    keys = [f"{number:064x}" for number in (1, 2)]
    first, second = (committed(store, f"number{key[-1]}", key) / "inner" / "weights.bin" for key in keys)
    first.rename(tmp_path / "aside")
    second.rename(first)
    (tmp_path / "aside").rename(second)
    assert [store.has("model", key) for key in keys] == [False, False]


def test_a_file_is_read_once_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    weights = committed(store) / "inner" / "weights.bin"
    read = []
    file_digest = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, name: read.append(name) or file_digest(file, name)
    )
    assert [store.has("model", KEY) for _ in range(3)] == [True] * 3
    assert len(read) == 1
    times = weights.stat()
    weights.write_text("nunbers")
    os.utime(weights, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not store.has("model", KEY)


def test_an_error_that_says_nothing_of_the_content_does_not_remove_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    path = committed(store)

    def refuse(*args: object, **options: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            store.has("model", KEY)
        with pytest.raises(OSError, match="Too many open files"):
            store.remove_if_damaged("model", KEY)
    assert path.exists() and store.has("model", KEY)


@pytest.mark.parametrize("place", ["model", "model/ab", f"model/ab/{KEY}", "tmp"])
def test_a_file_in_place_of_a_folder_of_the_store_is_replaced(tmp_path: Path, place: str) -> None:
    store = Store(tmp_path)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("not a folder")
    assert not store.has("model", KEY)
    store.clean_abandoned()
    store.entries()
    committed(store)
    assert store.has("model", KEY)


@pytest.mark.parametrize(
    "kind", ["Model", "con", "nul", "lpt1", "tmp", "a:b", "model.", "model ", "a/b", "..", ""]
)
def test_a_kind_that_some_file_system_confuses_or_refuses_is_an_error(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="cannot be a kind of artifact"):
        Store(tmp_path).path(kind, KEY)


def test_a_kind_may_have_several_words(tmp_path: Path) -> None:
    assert Store(tmp_path).path("statements of texts", KEY).parts[-3] == "statements of texts"


def test_keys_that_differ_in_case_only_cannot_exist(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be the key"):
        Store(tmp_path).path("model", KEY.upper())
