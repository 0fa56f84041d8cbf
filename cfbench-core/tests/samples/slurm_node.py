"""A real Slurm of one node on 127.0.0.1, as root: munge, slurmctld and slurmd, with a configuration of its own."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from child_processes import popen

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")

CONFIGURATION = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
SlurmctldPort={controller}
SlurmdPort={daemon}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=2000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
"""


def why_not() -> str:
    """Why Slurm cannot be started here; empty where it can be tried."""
    missing = [name for name in COMMANDS if shutil.which(name) is None]
    if missing:
        return f"Slurm is not installed (apt-get install slurm-wlm munge): no {', '.join(missing)}"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def start(folder: Path, seconds: float = 30.0) -> dict[str, str]:
    """Starts the node, and returns the environment in which Slurm's commands find it.

    The processes end with the test. Raises RuntimeError, with the last line of a log, where the node is not idle in time.
    """
    for name in ("state", "spool"):
        (folder / name).mkdir()
    (folder / "key").write_bytes(os.urandom(1024))
    (folder / "key").chmod(0o600)
    host = socket.gethostname().split(".")[0]
    controller, daemon = _free_ports()
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=host, controller=controller, daemon=daemon, folder=folder, cores=os.cpu_count()
        )
    )
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    files = {"socket": "munge.socket", "key-file": "key", "pid-file": "munge.pid", "seed-file": "munge.seed"}
    munge = [f"--{option}={folder / name}" for option, name in files.items()]
    _start(folder, ["munged", "--foreground", "--force", *munge], environment)
    _start(folder, ["slurmctld", "-D"], environment)
    _start(folder, ["slurmd", "-D", "-N", host], environment)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        states = subprocess.run(
            ["sinfo", "--noheader", "--format=%T"], env=environment, capture_output=True, text=True
        )
        if states.stdout.strip() == "idle":
            return environment
        time.sleep(0.2)
    lines = [(folder / f"{name}.log").read_text().splitlines()[-1:] for name in ("slurmctld", "slurmd")]
    raise RuntimeError(f"Slurm did not start within {seconds:g} s: {lines}")


def _start(folder: Path, command: list[str], environment: dict[str, str]) -> None:
    with (folder / f"{command[0]}.log").open("wb") as log:
        popen(command, stdout=log, stderr=log, env=environment)


def _free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as first,
        socket.create_server(("127.0.0.1", 0)) as second,
    ):
        return first.getsockname()[1], second.getsockname()[1]
