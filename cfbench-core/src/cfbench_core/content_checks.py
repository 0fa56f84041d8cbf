"""Checks of files that come from elsewhere: what they begin with, and how far they unpack."""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO

from cfbench_core.errors import UserError

BEGINNINGS = {
    ".gz": (b"\x1f\x8b",),
    ".zip": (b"PK\x03\x04", b"PK\x05\x06"),
    ".xz": (b"\xfd7zXZ\x00",),
    ".parquet": (b"PAR1",),
}
"""How files of a kind begin, by the last suffix of their name."""
WEB_PAGE = (b"<!doctype html", b"<html", b"<head", b"<?xml", b"<script")
TEXT_SUFFIXES = frozenset(
    {".csv", ".tsv", ".txt", ".json", ".jsonl", ".dat", ".data", ".inter", ".item", ".yaml"}
)

FREE_BYTES = 256 << 20
"""What any file may unpack to."""
RATIO = 100
"""How many times its packed size a larger file may unpack to; text packs to between a third and a twentieth."""


def wrong_beginning(path: Path, name: str = "") -> str:
    """Why the content of a file cannot be what its name says; empty if it can.

    A login or error page that a server sends in place of a file is recognised by its first bytes.

    Args:
        path: of the file.
        name: by whose suffix the kind is known, where the file does not have its final name yet.
    """
    with path.open("rb") as file:
        first = file.read(512)
    suffix = Path(name or path.name).suffix.lower()
    if suffix not in (".html", ".htm", ".xml") and _is_web_page(first):
        return "is a web page, not data (a login or an error page?)"
    if suffix in BEGINNINGS and not first.startswith(BEGINNINGS[suffix]):
        return f"does not begin as a {suffix} file does"
    if suffix in TEXT_SUFFIXES and b"\x00" in first and not first.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "is not text"
    return ""


def _is_web_page(first: bytes) -> bool:
    text = first.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return text.startswith(WEB_PAGE)


def unpacked_limit(packed: int) -> int:
    """The number of bytes that a packed file of this size may unpack to."""
    return max(FREE_BYTES, RATIO * packed)


class LimitedReader(io.RawIOBase):
    """Reads an unpacking file, and refuses to go on beyond what its packed size makes plausible.

    Raises:
        UserError: on the read that crosses the limit, before the memory or the disk is full.
    """

    def __init__(self, file: IO[bytes], path: Path, packed: int, what: str = "") -> None:
        self._file = file
        self._path = path
        self._what = what
        self._limit = unpacked_limit(packed)
        self._done = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        block = self._file.read(len(view))
        self._done += len(block)
        if self._done > self._limit:
            what = f": {self._what}" if self._what else ""
            raise UserError(
                f"{self._path}{what}: unpacks to more than {self._limit:,} bytes, over {RATIO} times its packed "
                "size; it was not read further. Unpack it yourself if it is what it should be."
            )
        view[: len(block)] = block
        return len(block)


def limited(file: IO[bytes], path: Path, packed: int, what: str = "") -> io.BufferedReader:
    """A buffered :class:`LimitedReader`."""
    return io.BufferedReader(LimitedReader(file, path, packed, what), 1 << 16)
