"""Servers for tests of stores, in processes of their own on 127.0.0.1: one that speaks S3, and OpenSSH for SFTP."""

from __future__ import annotations

import contextlib
import getpass
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from child_processes import popen

S3 = """
import sys
import threading
from moto.server import DomainDispatcherApplication, ThreadedMotoServer
one, answer = threading.Lock(), DomainDispatcherApplication.__call__
def in_turn(self, *request):  # moto looks whether there is an object and then creates it; S3 does both at once
    with one:
        return answer(self, *request)
DomainDispatcherApplication.__call__ = in_turn
server = ThreadedMotoServer("127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of a server that speaks S3. It ends with the test, or with this process."""
    command = [sys.executable, "-c", S3]  # serves several tests; the end of its standard input ends it
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        assert process.stdout is not None
        *_, port = process.stdout.readline().split()
        yield f"http://127.0.0.1:{int(port)}"
    finally:
        process.kill()
        process.wait()


def sshd() -> str | None:
    """OpenSSH's server, where it is installed."""
    return shutil.which("sshd") or shutil.which("/usr/sbin/sshd")


@contextlib.contextmanager
def sftp_server(folder: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """The address and the options of a folder behind OpenSSH's server, which accepts one key."""
    for name in ("host", "user"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {
        "ListenAddress": "127.0.0.1", "Port": port, "HostKey": folder / "host", "PidFile": "none",
        "AuthorizedKeysFile": folder / "authorized", "StrictModes": "no", "UsePAM": "no",
        "PermitRootLogin": "prohibit-password", "Subsystem": "sftp internal-sftp",
    }  # fmt: skip
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    executable = sshd()
    assert executable is not None
    with (folder / "log").open("wb") as log:
        # It ends after five minutes, even where the process of the tests was killed.
        command = ["timeout", "300", executable, "-D", "-e", "-f", str(folder / "config")]
        process = popen(command, stdout=log, stderr=log)
    try:
        _wait_for(port, folder / "log", process)
        (folder / "data").mkdir()
        options = {"port": port, "key_filename": str(folder / "user"), "look_for_keys": False}
        yield f"sftp://{getpass.getuser()}@127.0.0.1{folder / 'data'}", options
    finally:
        process.terminate()  # not killed: timeout ends the server that it started
        process.wait(30)


def _wait_for(port: int, log: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise AssertionError(f"the server does not answer: {log.read_text()}")
