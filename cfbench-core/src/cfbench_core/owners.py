"""Names of unfinished files and folders that say which process they belong to, so that others know when it is gone.

A name is ``space-process-start-token``: the boot and the PID namespace of the machine (hashed), the process id, when
that process started, and a random part. Within one space a process either runs or it is gone. Processes of another
space (another container, another host on a shared disk) cannot be looked up, even under the same host name: their
files count as abandoned only when the modification time, which a live owner renews every minute, is hours old.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import secrets
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

HEARTBEAT_SECONDS = 60.0
"""The interval at which the owner renews the modification time."""

SILENT_SECONDS = 2 * 3600.0
"""After so long without a renewal an owner in another space counts as gone. Generous: code in C may hold the
interpreter, and with it the thread that renews, for a long time."""

UNKNOWN = "unknown"
"""The space where the system names neither boot nor machine: only renewals count then."""

_NAME = re.compile(r"([0-9a-f]{12}|unknown)-(\d+)-(\d+)-([0-9a-f]{16})")
_TEMPORARY = re.compile(rf"\..+\.{_NAME.pattern}\.tmp")


def new_name() -> str:
    """A unique name of this process: letters, digits and hyphens, valid on every file system."""
    process = os.getpid()
    return f"{space()}-{process}-{_own_start(process)}-{secrets.token_hex(8)}"


def temporary_name(name: str) -> str:
    """A hidden name of this process for a file that will be called ``name`` when it is complete."""
    return f".{name}.{new_name()}.tmp"


def is_abandoned(path: Path) -> bool:
    """Whether the owner of a file or folder is gone. The name, or the end of it, is one of :func:`new_name`."""
    match = _NAME.search(path.name)
    if match is not None and match[1] == space() != UNKNOWN:
        return not _is_alive(int(match[2]), int(match[3]))
    return _silence(path) > SILENT_SECONDS


def is_gone(name: str) -> bool:
    """Whether a process is known to be gone, by a name of :func:`new_name`. One in another space never is."""
    match = _NAME.fullmatch(name)
    return (
        match is not None and match[1] == space() != UNKNOWN and not _is_alive(int(match[2]), int(match[3]))
    )


def remove_abandoned(folder: Path) -> None:
    """Removes the temporary files and folders (see :func:`temporary_name`) that dead processes left in a folder."""
    for path in folder.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name) and is_abandoned(path):
            discard(path)


def discard(path: Path) -> None:
    """Removes a folder, a file or a link, as far as possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


@functools.cache
def space() -> str:
    """12 hexadecimal digits that name the boot and the PID namespace that this process runs in, or ``UNKNOWN``."""
    named = _boot()
    return hashlib.sha256(named.encode()).hexdigest()[:12] if named else UNKNOWN


def _boot() -> str:
    """What no other running system shares with this one; empty where nothing is known."""
    try:
        if sys.platform == "win32":
            import winreg

            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, r"SOFTWARE\Microsoft\Cryptography") as key:
                return str(winreg.QueryValueEx(key, "MachineGuid")[0])
        if sys.platform == "darwin":
            import ctypes

            text, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
            failed = ctypes.CDLL(None).sysctlbyname(
                b"kern.bootsessionuuid", text, ctypes.byref(size), None, 0
            )
            return "" if failed else text.value.decode("ascii")
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except (OSError, ValueError):
        return ""


@functools.lru_cache(maxsize=1)
def _own_start(process: int) -> int:
    """When this process started; ``process`` is its id, because a fork has another."""
    return _start(process) or 0


def _is_alive(process: int, start: int) -> bool:
    """Whether a process of this space still runs; where its start cannot be compared, whether its id does."""
    found = _start(process)
    return found is not None and (not found or not start or abs(found - start) <= _start_tolerance())


def _start(process: int) -> int | None:
    """When a process started; 0 where that is unknown; None when there is no such process, or only its exit
    code is left."""
    stat = Path(f"/proc/{process}/stat")
    try:
        fields = stat.read_bytes().rpartition(b")")[2].split()
        return None if fields[0] in (b"Z", b"X") else int(fields[19])  # in ticks since the boot
    except (OSError, IndexError, ValueError):
        return _start_by_psutil(process)


def _start_by_psutil(process: int) -> int | None:
    import psutil

    try:
        found = psutil.Process(process)
        return None if found.status() == psutil.STATUS_ZOMBIE else int(found.create_time())
    except psutil.NoSuchProcess:
        # /proc may hide the processes of other users, but not from a signal
        return 0 if psutil.pid_exists(process) else None
    except (psutil.Error, OSError):
        return 0


def _start_tolerance() -> int:
    """Clocks that are set move a start by a second or two where it is known in seconds only."""
    return 0 if Path("/proc/self/stat").exists() else 2


def _silence(path: Path) -> float:
    """Seconds since a file or folder was renewed, by the clock of its file system; 0 when that is unknown."""
    probe = path.with_name(temporary_name("clock"))
    try:
        probe.touch()  # on a network disk the clock is the server's
        try:
            return probe.stat().st_mtime - path.stat().st_mtime
        finally:
            probe.unlink()
    except OSError:
        return 0.0


class _Heartbeat:
    """Renews the modification times of what this process owns, from a thread of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: set[Path] = set()
        self._process = 0

    def add(self, path: Path) -> None:
        with self._lock:
            self._owned.add(path)
            if self._process != os.getpid():  # the first one, or the first one after a fork
                self._process = os.getpid()
                threading.Thread(target=self._run, name="cfbench-heartbeat", daemon=True).start()

    def remove(self, path: Path) -> None:
        with self._lock:
            self._owned.discard(path)

    def renew(self) -> None:
        with self._lock:
            owned = list(self._owned)
        for path in owned:
            with contextlib.suppress(OSError):
                os.utime(path)

    def _run(self) -> None:
        never = threading.Event()
        while not never.wait(HEARTBEAT_SECONDS):
            self.renew()


_HEARTBEAT = _Heartbeat()


def own(path: Path) -> None:
    """Renews the modification time of a file or folder regularly, until :func:`disown` or the end of the process."""
    _HEARTBEAT.add(path)


def disown(path: Path) -> None:
    """Ends :func:`own`."""
    _HEARTBEAT.remove(path)


@contextlib.contextmanager
def owned(path: Path) -> Iterator[Path]:
    """:func:`own` while the block runs."""
    own(path)
    try:
        yield path
    finally:
        disown(path)
