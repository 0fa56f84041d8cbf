"""Stores behind an address: a folder, a server that speaks S3 and OpenSSH, all of them real and on 127.0.0.1."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers
from sample_tasks import task
from toy_runs import configuration

from cfbench_core import leases, owners
from cfbench_core.api import execute, prepare
from cfbench_core.compute import compute
from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.store import Store
from cfbench_core.stores import open_store
from cfbench_core.stores.fsspec import FsspecConfig, FsspecStore, RemoteFiles
from cfbench_core.stores.published import PublishedStore

pytest.importorskip("fsspec", reason="needs fsspec: pip install 'cfbench-core[fsspec]'")

Address = dict[str, Any]
OPEN = Callable[..., FsspecStore]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    pytest.importorskip(
        "moto", reason="needs a server that speaks S3: pip install 'moto[s3]' flask flask-cors"
    )
    pytest.importorskip("s3fs", reason="needs s3fs: pip install 'cfbench-core[fsspec]'")
    with servers.s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture(params=["file", pytest.param("s3", marks=pytest.mark.slow), "sftp"])
def address(request: pytest.FixtureRequest, tmp_path: Path, credentials: None) -> Iterator[Address]:
    if request.param == "file":
        yield {"url": f"file://{tmp_path / 'remote'}", "options": {}}
    elif request.param == "s3":
        yield bucket(request.getfixturevalue("s3"), tmp_path)
    elif servers.sshd() is None:
        pytest.skip("needs OpenSSH's server: apt-get install openssh-server")
    else:
        pytest.importorskip("paramiko", reason="needs paramiko: pip install 'cfbench-core[fsspec]'")
        Path("/run/sshd").mkdir(exist_ok=True)
        folder = tmp_path / "ssh"
        folder.mkdir()
        with servers.sftp_server(folder) as (url, options):
            yield {"url": url, "options": options}


def bucket(endpoint: str, tmp_path: Path) -> Address:
    import s3fs

    name = f"b{abs(hash(str(tmp_path)))}"
    s3fs.S3FileSystem(endpoint_url=endpoint, skip_instance_cache=True).mkdir(name)
    return {"url": f"s3://{name}/results", "options": {"endpoint_url": endpoint}}


@pytest.fixture
def machine(tmp_path: Path, address: Address) -> OPEN:
    """The store as another machine has it, with a cache of its own."""
    return lambda name: FsspecStore(address, tmp_path / name)


def test_what_one_machine_publishes_another_one_reads(machine: OPEN) -> None:
    done = task("answer")
    assert compute(done, machine("one")).status == "ok"
    two = machine("two")
    assert two.manifest(done.kind, done.key) is not None
    assert not two.path(done.kind, done.key).exists()  # a manifest costs no download
    assert compute(done, two).status == "cached"
    reader = task("adds_inputs", {}, {"data": done})
    outcome = compute(reader, machine("three"))
    assert (outcome.status, outcome.summary["text"]) == ("ok", "42\n")
    assert machine("one").digest(done.kind, done.key) == machine("four").digest(done.kind, done.key)


def test_what_was_published_is_listed_verified_and_removed(
    machine: OPEN, address: Address, tmp_path: Path
) -> None:
    one = machine("one")
    for label in ("answer", "other"):
        assert compute(task("answer", {"label": label}, label=label), one).status == "ok"
    published = PublishedStore(address["url"], address["options"])
    entries = published.entries()
    assert sorted(entry.label for entry in entries) == ["answer", "other"]
    assert [published.verify(entry) for entry in entries] == [[], []]
    assert all(entry.bytes > 300 and abs(entry.used - time.time()) < 120 for entry in entries)
    assert published.gc(older_than_days=1) == []

    files = RemoteFiles(address["url"], address["options"])
    (archive,) = entries[0].archives
    files.write(archive, b"damaged")
    orphan = archive.replace("-", "0-")  # a machine died before it wrote the manifest
    files.write(orphan, b"left behind")
    assert "archive" in published.verify(entries[0])[0]
    published.remove(entries[0])
    assert machine("two").fetch(entries[0].kind, entries[0].key) is None
    assert [entry.key for entry in published.entries()] == [entries[1].key]
    assert len(published.gc(older_than_days=0)) == 1
    assert published.entries() == []
    assert not [name for name in files.all() if name.endswith((".tar", ".json"))]
    again = task("answer", {"label": "answer"}, label="answer")
    assert compute(again, machine("one")).status == "cached"  # and publishes it anew
    assert machine("two").fetch(again.kind, again.key) is not None


def test_the_command_cache_reads_a_store_at_an_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from cfbench_core.cli import main

    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    url = f"file://{tmp_path / 'remote'}"
    compute(
        task("answer"), FsspecStore({"url": url, "options": {}}, tmp_path / "a"), lambda done, total: None
    )
    for arguments, words in [
        (["ls"], "scores"),
        (["ls", "scores"], "answer"),
        (["verify"], "1 artifact verified, 0 damaged"),
        (["gc", "--older-than", "0", "--dry-run"], "would remove 1 artifact"),
        (["gc", "--older-than", "0"], "removed 1 artifact"),
        (["ls"], "nothing is cached"),
    ]:
        assert main(["cache", *arguments, "--store", url]) == 0
        assert words in capsys.readouterr().out
    assert main(["cache", "ls", "--store", "bucket"]) == 2
    assert "no address" in capsys.readouterr().err


def test_an_artifact_without_a_manifest_is_not_there(machine: OPEN, address: Address) -> None:
    done = task("answer")
    compute(done, machine("one"))
    RemoteFiles(**address).remove(f"{done.kind}/{done.key[:2]}/{done.key}.json")
    assert machine("two").manifest(done.kind, done.key) is None
    assert machine("one").manifest(done.kind, done.key) is not None  # from its cache


def test_a_damaged_archive_is_computed_again(machine: OPEN, address: Address, tmp_path: Path) -> None:
    done, files = task("answer"), RemoteFiles(**address)
    compute(done, machine("one"))
    (name,) = [path for path in files._system.find(files._base) if path.endswith(".tar") and done.key in path]
    content = bytearray(files._system.cat_file(name))
    content[content.index(b"\x0042\n\x00") + 1] ^= 1  # in the file itself, behind its header
    (tmp_path / "worse").write_bytes(content)
    files._system.put_file(str(tmp_path / "worse"), name)
    two = machine("two")
    assert two.fetch(done.kind, done.key) is None
    assert compute(done, two).status == "ok"
    assert machine("three").fetch(done.kind, done.key) is not None


def test_only_one_of_many_creates_a_lease(address: Address) -> None:
    files = [RemoteFiles(**address) for _ in range(4)]
    barrier, created = threading.Barrier(len(files)), []

    def create(number: int) -> None:
        barrier.wait()
        if files[number].create("leases/abc", str(number).encode()):
            created.append(number)

    threads = [threading.Thread(target=create, args=[number]) for number in range(len(files))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1
    assert files[0].read("leases/abc") == str(created[0]).encode()


def both(stores: list[Store], **parameters: Any) -> list[str]:
    """How one task ends in several stores at once."""
    slow, ends = task("sleeps", {"seconds": 2.0, **parameters}), []
    threads = [
        threading.Thread(target=lambda store=one: ends.append(compute(slow, store).status)) for one in stores
    ]
    for thread in threads:
        thread.start()
        time.sleep(0.5)
    for thread in threads:
        thread.join()
    return sorted(ends)


@pytest.mark.skipif("not hasattr(__import__('os'), 'fork')", reason="written for POSIX")
def test_what_somebody_computes_is_waited_for(machine: OPEN, tmp_path: Path) -> None:
    assert both([machine("one"), machine("two")]) == ["cached", "ok"]
    assert both([Store(tmp_path / "folder"), Store(tmp_path / "folder")]) == ["cached", "ok"]


def test_the_lease_of_a_dead_process_is_taken_at_once_and_that_of_another_machine_when_it_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, waited = leases.LocalLeases(tmp_path), []

    def held(owner: str) -> float:
        assert files.create("abc", owner.encode())
        started = time.monotonic()
        with leases.leased(files, "abc", lambda: False, lambda: waited.append(owner)) as appeared:
            assert not appeared
        assert files.read("abc") is None  # released
        return time.monotonic() - started

    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 1.0)
    monkeypatch.setattr(leases, "EMPTY_SECONDS", 0.3)
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.1)
    space, *_ = owners.new_name().split("-")
    assert held(f"{space}-999999999-1-{'0' * 16}") < 0.9 and not waited
    assert 0.9 < held(f"{'0' * 12}-1-1-{'0' * 16}") < 5 and waited
    assert 0.2 < held("") < 0.9  # killed before it wrote its name


class Interrupted(leases.LocalLeases):
    """A store elsewhere whose line breaks after a lease was taken, and comes back for the second renewal."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.renewed = threading.Event()
        self.broken = False

    def read(self, name: str) -> bytes | None:
        raise UserError("nobody answers")

    def write(self, name: str, content: bytes) -> None:
        if not self.broken:
            self.broken = True
            raise UserError("nobody answers")
        super().write(name, content)
        self.renewed.set()


def test_a_line_that_breaks_ends_neither_the_renewals_nor_what_was_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.02)
    files = Interrupted(tmp_path)
    with leases.leased(files, "abc", lambda: False, lambda: None) as appeared:
        assert not appeared and files.renewed.wait(10)


def test_a_lease_that_is_interrupted_at_its_beginning_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    files = leases.LocalLeases(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt), leases.leased(files, "abc", lambda: False, lambda: None):
            pass
    assert files.read("abc") is None
    assert not [thread for thread in threading.enumerate() if thread.name == "cfbench-lease"]


def test_a_lease_that_is_renewed_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_SECONDS", 0.1)
    monkeypatch.setattr(leases, "EXPIRY_SECONDS", 0.5)
    monkeypatch.setattr(leases, "POLL_SECONDS", 0.05)
    files, order = leases.LocalLeases(tmp_path), []

    def second() -> None:
        with leases.leased(files, "abc", lambda: False, lambda: None):
            order.append("second")

    with leases.leased(files, "abc", lambda: False, lambda: None):
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(1.5)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"url": "bucket"}, "no address"),
        ({"url": "sftp://me:hidden@host/x"}, "password"),
        ({"url": "s3://b/x", "options": {"secret": "hidden"}}, "environment"),
    ],
)
def test_a_configuration_holds_no_secrets(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words) as found:
        FsspecConfig(**options)
    assert "hidden" not in str(found.value)


def test_an_address_that_nobody_answers_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no-such-protocol") as found:
        open_store(tmp_path, {"url": "no-such-protocol://x/y", "options": {}})
    assert len(found.value.lines) == 1


def tables(directory: Path) -> list[bytes]:
    return [(directory / f"{name}.parquet").read_bytes() for name in ("scores", "explanations")]


@pytest.mark.parametrize("executor", ["inline", pytest.param("process", marks=pytest.mark.slow)])
def test_tables_are_identical_with_a_store_elsewhere(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: Address, executor: str
) -> None:
    found = []
    for machine, store in [
        ("a", "file"),
        ("b", {"name": "fsspec", **address}),
        ("c", {"name": "fsspec", **address}),
    ]:
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / machine))
        study = prepare(configuration(executor=executor, store=store), registry=registry)
        run = execute(study, out=tmp_path / f"run-{machine}")
        assert run.exit_code == 0
        found.append(tables(run.directory))
    assert found[0] == found[1] == found[2]
    assert {cell.status for cell in run.cells()} == {"cached"}  # what machine b computed


@pytest.mark.slow
def test_dask_with_a_store_in_s3_and_no_shared_folder(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: str, credentials: None
) -> None:
    """Two workers with caches of their own, a run with a third one: nothing but S3 joins them."""
    pytest.importorskip("distributed", reason="needs distributed: pip install 'cfbench-core[dask]'")
    from dask_commands import Commands
    from toy_runs import SAMPLES

    monkeypatch.chdir(SAMPLES)
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "file"))
    expected = tables(
        execute(prepare(configuration(24), registry=registry), out=tmp_path / "expected").directory
    )
    commands = Commands(tmp_path)
    scheduler = commands.scheduler()
    caches = [tmp_path / "one", tmp_path / "two"]
    for cache in caches:
        commands.worker(1, CFBENCH_CACHE_DIR=str(cache), PYTHONPATH=_path(SAMPLES))
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "main"))
    store = {"name": "fsspec", **bucket(s3, tmp_path)}
    executor = {"name": "dask", "address": scheduler}
    study = prepare(configuration(24, executor=executor, store=store), registry=registry)
    run = execute(study, out=tmp_path / "run")
    assert run.exit_code == 0
    assert tables(run.directory) == expected
    with contextlib.suppress(FileNotFoundError):
        assert not list((tmp_path / "main" / "artifacts").iterdir())
    assert any((cache / "remote").is_dir() for cache in caches)  # and no machine wrote into another's


class KillsWorkers:
    """Two Dask workers: the elder one is killed every few seconds, and another one joins in its place.

    What is waited for appears after ``kills``; after twice as many it stops, so that a slow machine gets on, too.
    """

    def __init__(self, start: Callable[[], Any], seconds: float, kills: int, go: Path) -> None:
        self._start, self._seconds, self._most, self._go = start, seconds, kills, go
        self._workers = [start(), start()]
        self._over = threading.Event()
        self.kills = 0
        self._thread = threading.Thread(target=self._kill, daemon=True)
        self._thread.start()

    def _kill(self) -> None:
        while self.kills < 2 * self._most and not self._over.wait(self._seconds):
            os.killpg(self._workers.pop(0).pid, signal.SIGKILL)
            self._workers.append(self._start())
            self.kills += 1
            if self.kills == self._most:
                self._go.touch()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["file", "s3"])
def test_tables_are_identical_with_a_worker_killed_every_few_seconds(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, credentials: None,
    request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    pytest.importorskip("distributed", reason="needs distributed: pip install 'cfbench-core[dask]'")
    from dask_commands import Commands
    from toy_runs import SAMPLES

    monkeypatch.chdir(SAMPLES)
    go = tmp_path / "go"
    explainers = [
        {"name": "digits", "misbehave": f"wait:{go}"},
        {"name": "digits", "base": 3, "label": "three"},
    ]
    remote = bucket(request.getfixturevalue("s3"), tmp_path) if kind == "s3" else None
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "main"))
    commands = Commands(tmp_path)
    executor = {"name": "dask", "address": commands.scheduler()}
    numbers = itertools.count()

    def worker() -> Any:
        cache = tmp_path / (f"worker-{next(numbers)}" if remote else "main")
        return commands.worker(1, CFBENCH_CACHE_DIR=str(cache), PYTHONPATH=_path(SAMPLES))

    store = {"name": "fsspec", **remote} if remote else "file"
    document = configuration(12, explainers=explainers, chunk=2, executor=executor, store=store)
    killer = KillsWorkers(worker, 2.5, 3, go)
    try:
        run = execute(prepare(document, registry=registry), out=tmp_path / "run")
    finally:
        killer.stop()
    assert run.exit_code == 0 and killer.kills >= 3
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "inline"))
    expected = configuration(12, explainers=explainers, chunk=2)
    assert tables(run.directory) == tables(
        execute(prepare(expected, registry=registry), out=tmp_path / "expected").directory
    )


def _path(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
