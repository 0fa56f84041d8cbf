"""``SHA256SUMS`` of a run directory: with it a damaged file is an error of one line, never other numbers.

The format is that of the program ``sha256sum``, whose ``--check`` verifies it as well. A file that is about to be
rewritten has no line; so a run in progress, or one that was killed, is readable as far as it went.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from cfbench_core.errors import UserError
from cfbench_core.files import write_atomically
from cfbench_core.hashing import file_digest

FILE = "SHA256SUMS"
_SUFFIXES = {".csv", ".json", ".jsonl", ".parquet", ".yaml"}
_LINE = re.compile(r"([0-9a-f]{64})  ([^/\\]+)")


def write_checksums(directory: Path, changing: Collection[str] = ()) -> None:
    """Writes the SHA-256 of each file that is read again, except those that are ``changing``."""
    names = sorted(path.name for path in directory.iterdir() if _is_read_again(path))
    lines = [f"{file_digest(directory / name)}  {name}\n" for name in names if name not in changing]
    write_atomically(directory / FILE, "".join(lines))


def forget(directory: Path, changing: Collection[str]) -> None:
    """Removes the lines of files that are about to change; the others stay verified."""
    try:
        known = _read(directory)
    except UserError:  # damaged: the files that nobody rewrites cannot be verified any more
        known = {}
    remaining = [f"{digest}  {name}\n" for name, digest in known.items() if name not in changing]
    if remaining:
        write_atomically(directory / FILE, "".join(remaining))
    else:
        (directory / FILE).unlink(missing_ok=True)


def recorded(directory: Path) -> list[str]:
    """The files that have a line.

    Raises:
        UserError: when ``SHA256SUMS`` itself is damaged.
    """
    return list(_read(directory))


def is_as_written(directory: Path, name: str) -> bool:
    """Whether a file has the SHA-256 that is recorded, or none is.

    Raises:
        UserError: when ``SHA256SUMS`` itself is damaged.
        OSError: when the file cannot be read.
    """
    for _ in range(3):  # a run may rewrite both while they are read
        said = _read(directory).get(name)
        if said is None or file_digest(directory / name) == said:
            return True
        if _read(directory).get(name) == said:
            return False
    return False


def _is_read_again(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file()


def _read(directory: Path) -> Mapping[str, str]:
    path = directory / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError):
        raise UserError(_damaged(path)) from None
    matches = [_LINE.fullmatch(line) for line in text.splitlines()]
    if not matches or not text.endswith("\n") or None in matches:
        raise UserError(_damaged(path))
    return {match[2]: match[1] for match in matches if match is not None}


def _damaged(path: Path) -> str:
    return f"{path}: is damaged; the same cfbench run with --output on this directory rewrites it"
