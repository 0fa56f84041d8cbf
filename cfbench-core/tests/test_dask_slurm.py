"""The executor on Dask with a real Slurm of one node: jobs are submitted, cancelled in the middle, and gone at the end."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import slurm_node
from child_processes import end_all
from dask_commands import MARK, marked, wait_until
from toy_runs import SAMPLES, configuration

from cfbench_core.api import execute, prepare
from cfbench_core.outcomes import Outcome, Total
from cfbench_core.registry import Registry
from cfbench_core.stages import Task

pytest.importorskip("distributed", reason="needs distributed: pip install 'cfbench-core[dask]'")
pytest.importorskip("dask_jobqueue", reason="needs dask-jobqueue: pip install dask-jobqueue")
pytestmark = pytest.mark.skipif(bool(slurm_node.why_not()), reason=slurm_node.why_not() or "it can be tried")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    mark = secrets.token_hex(8)
    monkeypatch.setenv(MARK, mark)
    monkeypatch.chdir(SAMPLES)
    folder = tmp_path / "slurm"
    folder.mkdir()
    try:
        environment = slurm_node.start(folder)
    except RuntimeError as error:
        end_all()
        pytest.skip(str(error))
    monkeypatch.setenv("SLURM_CONF", environment["SLURM_CONF"])
    yield environment
    subprocess.run(["scancel", "--user=root"], check=False)
    wait_until(lambda: jobs() == [], seconds=30)
    end_all()
    wait_until(lambda: not marked(mark), seconds=10)


def jobs() -> list[str]:
    """The numbers of all jobs that are queued or running."""
    found = subprocess.run(
        ["squeue", "--noheader", "--format=%i"], capture_output=True, text=True, check=True
    )
    return found.stdout.split()


class Cancels:
    """An observer: has Slurm cancel one of two jobs while the number 7 is being explained."""

    def __init__(self, go: Path) -> None:
        self.go = go
        self.before: list[str] = []

    def started(self, task: Task) -> None:
        if task.kind == "explanations" and task.chunk == (4, 8) and not self.before:
            wait_until(lambda: len(jobs()) == 2, seconds=30)
            self.before = jobs()
            subprocess.run(["scancel", self.before[0]], check=True)
            wait_until(lambda: len(jobs()) == 1, seconds=60)
            self.go.touch()

    def progress(self, task: Task, done: int, total: int) -> None: ...

    def finished(self, task: Task, outcome: Outcome, done: int, total: Total) -> None: ...


def test_results_on_slurm_are_identical_though_a_job_is_cancelled(
    slurm: dict[str, str], registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "jobs"
    options: dict[str, Any] = {
        "queue": "test",
        "cores": 1,
        "processes": 1,
        "memory": "500MB",
        "walltime": "00:05:00",
        "log_directory": str(log),
        "local_directory": str(tmp_path),
        "scheduler_options": {"host": "127.0.0.1", "dashboard_address": None},
        "worker_extra_args": ["--host", "127.0.0.1", "--no-dashboard"],
    }
    cluster = {
        "name": "dask",
        "cluster": "dask_jobqueue.SLURMCluster",
        "workers": 2,
        "cluster_options": options,
    }
    go = tmp_path / "go"
    cancels = Cancels(go)
    runs = {}
    for name, executor in {"slurm": cluster, "inline": "inline"}.items():
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / f"cache-{name}"))
        explainers = [
            {"name": "digits", "misbehave": f"wait:{go}"},
            {"name": "digits", "base": 3, "label": "three"},
        ]
        document = configuration(12, explainers=explainers, chunk=4, executor=executor)
        prepared = prepare(document, registry=registry)
        runs[name] = execute(prepared, out=tmp_path / name, observer=cancels if name == "slurm" else None)
        assert runs[name].exit_code == 0
    assert len(cancels.before) == 2
    for table in ("scores.parquet", "explanations.parquet"):
        assert (runs["slurm"].directory / table).read_bytes() == (
            runs["inline"].directory / table
        ).read_bytes()
    wait_until(lambda: jobs() == [], seconds=30)  # the jobs end with the run
    assert len(list(log.glob("*.err"))) == 2
