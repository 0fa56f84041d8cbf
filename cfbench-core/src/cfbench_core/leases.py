"""Who computes an artifact: a lease that its holder renews, so that nobody else computes the same meanwhile.

A lease is a small file that one process creates, and that it writes again every few seconds with another number in it. Who
wants the same waits. Where the number does not change for long, the holder is gone and the lease may be taken; a holder on
the same machine is looked up, so that one that was killed is noticed at once. No clocks are compared. If two take an expired
lease in the same moment, both compute the artifact, which costs time and changes nothing: one of the two is published.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

from cfbench_core import owners
from cfbench_core.errors import UserError

RENEW_SECONDS = 10.0
"""The interval at which a holder renews its lease."""

EXPIRY_SECONDS = 60.0
"""A lease that was not renewed for so long may be taken."""

EMPTY_SECONDS = 5.0
"""One that stays empty for so long may be taken, too: who created it was killed before its name was written."""

POLL_SECONDS = 0.5
"""The interval at which a lease is looked at that somebody else holds."""


class LeaseFiles(Protocol):
    """Where leases are. What fails is an OSError or a UserError."""

    def create(self, name: str, content: bytes) -> bool:
        """Creates a file; False if there is one."""

    def read(self, name: str) -> bytes | None:
        """The content; None if there is no such file."""

    def write(self, name: str, content: bytes) -> None:
        """Replaces the content of a file."""

    def remove(self, name: str) -> None:
        """Removes a file, if it is there."""


@contextlib.contextmanager
def leased(
    files: LeaseFiles, name: str, appeared: Callable[[], bool], waiting: Callable[[], None]
) -> Iterator[bool]:
    """Holds a lease inside of the ``with``, unless what it is for appears first.

    Args:
        appeared: whether the artifact is there.
        waiting: called now and then while somebody else computes it.

    Yields:
        Whether it has appeared: then there is nothing to compute.
    """
    content = owners.new_name()
    if not _taken(files, name, content, appeared, waiting):
        yield True
        return
    ended = threading.Event()
    renewing = threading.Thread(
        target=_renew, args=(files, name, content, ended), name="cfbench-lease", daemon=True
    )
    try:
        renewing.start()  # in here: a Ctrl-C must not leave it renewing
        yield appeared()  # it may have, before the lease was taken
    finally:
        ended.set()
        if renewing.is_alive():
            renewing.join()
        with contextlib.suppress(OSError, UserError):
            if _owner(files.read(name)) == content:
                files.remove(name)


def _taken(
    files: LeaseFiles, name: str, content: str, appeared: Callable[[], bool], waiting: Callable[[], None]
) -> bool:
    """Whether the lease is ours; False when what it is for has appeared."""
    last: bytes | None = b""
    since = time.monotonic()
    while not files.create(name, content.encode()):
        found = files.read(name)
        now = time.monotonic()
        if found != last:
            last, since = found, now
        patience = EXPIRY_SECONDS if found else EMPTY_SECONDS
        if found is not None and (owners.is_gone(_owner(found)) or now - since > patience):
            files.remove(name)
            continue
        if appeared():
            return False
        waiting()
        time.sleep(POLL_SECONDS)
    return True


def _owner(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace").partition(" ")[0]


def _renew(files: LeaseFiles, name: str, content: str, ended: threading.Event) -> None:
    number = 0
    while not ended.wait(RENEW_SECONDS):
        number += 1
        with contextlib.suppress(OSError, UserError):  # the next time may succeed
            files.write(name, f"{content} {number}".encode())


class LocalLeases:
    """Leases in a folder, which is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, name: str, content: bytes) -> bool:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
        except OSError:  # a full disk: an empty lease, which names no holder, would be waited for
            path.unlink(missing_ok=True)
            raise
        return True

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        # In place: a full disk leaves no empty lease, and one that somebody removed is not made again.
        with (self._folder / name).open("r+b") as file:
            file.write(content)
            file.truncate()

    def remove(self, name: str) -> None:
        (self._folder / name).unlink(missing_ok=True)
