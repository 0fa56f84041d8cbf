"""Starts a Dask cluster for one run, in a process of its own that ends the cluster with the run.

In a process of its own, because a scheduler should not compete with the run for one interpreter, because Dask starts local
workers by importing the main module again (a script without ``if __name__ == "__main__"`` would run twice), and because
somebody must cancel the jobs of a cluster when the run is killed.

The process is ``python -m cfbench_core.executors.dask_cluster``. It reads one line of JSON, what to start, and writes one:
``{"address": "tcp://..."}`` or ``{"problem": "..."}``. The end of its standard input ends the cluster.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from cfbench_core.errors import UserError
from cfbench_core.executors.worker import end_own_group, private_channel
from cfbench_core.plain_text import one_line
from cfbench_core.redaction import redacted

LOCAL = "local"

CLOSE_SECONDS = 20.0
"""What the end of a cluster may take, for example cancelling its jobs."""


def deployer_problem(name: str) -> str:
    """Why a configuration cannot name this cluster; empty if it can.

    Only classes of Dask's own packages, whose names say that they are clusters: a configuration may come from a stranger,
    and must not call any other function of an installed library.
    """
    if name == LOCAL:
        return ""
    module, _, cls = name.rpartition(".")
    parts = module.split(".")
    known = parts[0] == "distributed" or parts[0].startswith("dask_")
    if known and cls.endswith("Cluster") and all(part.isidentifier() for part in [*parts, cls]):
        return ""
    return (
        f"must be 'local', or a cluster of a package of Dask, such as dask_jobqueue.SLURMCluster, "
        f"got {one_line(name, 60)!r}"
    )


class ClusterProcess:
    """A cluster that was started for a run.

    Attributes:
        address: of its scheduler.

    Raises:
        UserError: if it cannot be started.
    """

    def __init__(
        self, name: str, workers: int | None, adaptive: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the process lives)
        # -P, as for worker processes: a file in the current folder must not replace a module.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cfbench_core.executors.dask_cluster"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._output,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C does not reach it
        )
        settings = {"cluster": name, "workers": workers, "adaptive": dict(adaptive), "options": dict(options)}
        try:
            self.address = self._started(name, settings)
        except BaseException:
            self.close()
            raise

    def _started(self, name: str, settings: Mapping[str, Any]) -> str:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(settings) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"problem": self._last_line()}
        if "problem" in answer:
            raise UserError(
                f"executor dask: cluster {name!r} cannot be started: {one_line(redacted(answer['problem']), 500)}"
            )
        return str(answer["address"])

    def _last_line(self) -> str:
        self._output.seek(0)
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "its process ended"

    def close(self) -> None:
        """Ends the cluster and its process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_SECONDS + 5)
        if self._process.returncode is None:
            if os.name == "posix":
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._output.close()


def main() -> None:
    incoming, outgoing = private_channel()
    settings = json.loads(incoming.readline())
    cluster = None
    try:
        cluster = _deployed(settings)
        answer = {"address": cluster.scheduler_address}
    except Exception as error:  # of somebody else's class
        answer = {"problem": _reason(error)}
    outgoing.write(json.dumps(answer) + "\n")
    outgoing.flush()
    for _ in incoming:  # until the run has ended
        pass
    if cluster is not None:
        with contextlib.suppress(Exception):
            cluster.close(timeout=CLOSE_SECONDS)
    end_own_group()


def _reason(error: BaseException) -> str:
    """What went wrong first: Dask reports an error of a worker as one of the cluster."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {error}"


def _deployed(settings: Mapping[str, Any]) -> Any:
    from distributed.deploy import Cluster

    name, options, workers = settings["cluster"], settings["options"], settings["workers"]
    if name == LOCAL:
        from distributed import LocalCluster

        local = {"host": "127.0.0.1", "threads_per_worker": 1, "processes": True, "dashboard_address": None}
        cluster = LocalCluster(**{**local, "n_workers": workers or 0, **options})
    else:
        module, _, cls = name.rpartition(".")
        problem = deployer_problem(name)
        if problem:
            raise ValueError(problem)
        cluster = getattr(importlib.import_module(module), cls)(**options)
        if not isinstance(cluster, Cluster):
            raise TypeError(f"{name} is no cluster of Dask but {type(cluster).__name__}")
        if workers is not None:
            cluster.scale(workers)
    if settings["adaptive"]:
        cluster.adapt(**settings["adaptive"])
    return cluster


if __name__ == "__main__":
    main()
