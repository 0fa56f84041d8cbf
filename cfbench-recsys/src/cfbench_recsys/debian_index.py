"""Dependencies of packages, from a ``Packages`` index of Debian: library recommendation with readable names.

A package is a "user", what it depends on its "items". The rule, for both data sets:

- the binary packages of one index (Debian 12, component main, amd64); of two versions the later in the file;
- the field Depends; of alternatives (``a | b``) the first, which is the one that is normally installed;
  versions, architectures and ``:any`` are dropped, so that one dependency counts once;
- names as they are written there. A virtual package (``python3-numpy-abi9``) is a name like another;
- a package that depends on itself does not count;
- ``debian-python``: dependencies that begin with ``python3-``;
  ``debian-all``: all but the run-times ``libc6``, ``perl`` and ``python3``;
- the recursive 3-core.

Package names and their dependencies are facts, free to ship.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from cfbench_core.content_checks import limited
from cfbench_core.errors import UserError

RULES = {
    "debian-python": (
        "a package and the python3-* packages in its Depends field (first alternatives); "
        "recursively, packages and dependencies with at least 3"
    ),
    "debian-all": (
        "a package and the packages in its Depends field (first alternatives) but libc6, perl and python3; "
        "recursively, packages and dependencies with at least 3"
    ),
}
CORE = 3
RUN_TIMES = frozenset({"libc6", "perl", "python3"})

_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9+.\-]*")


def dependency_pairs(index: Iterable[str], rule: str) -> list[tuple[str, str]]:
    """(package, dependency), each pair once, sorted; before the 3-core. ``rule``: a key of ``RULES``."""
    depends: dict[str, str] = {}
    for package, field in _fields(index):
        depends[package] = field
    return sorted(
        {
            (package, name)
            for package, field in depends.items()
            for name in _first_alternatives(field)
            if name != package and _counts(name, rule)
        }
    )


def _counts(name: str, rule: str) -> bool:
    return name.startswith("python3-") if rule == "debian-python" else name not in RUN_TIMES


def _fields(index: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(Package, Depends) of each paragraph; a line that begins with a space continues the one before."""
    package, depends, in_depends = "", "", False
    for line in index:
        if not line.strip():
            if package:
                yield package, depends
            package, depends, in_depends = "", "", False
        elif line[0] in " \t":
            depends += line.rstrip("\n") if in_depends else ""
        else:
            key, _, value = line.partition(":")
            in_depends = key == "Depends"
            if key == "Package":
                package = value.strip()
            elif in_depends:
                depends = value.strip()
    if package:
        yield package, depends


def _first_alternatives(field: str) -> Iterator[str]:
    for clause in field.split(","):
        name = _NAME.match(clause.strip())
        if name:
            yield name[0]


def read_index(path: Path) -> Iterator[str]:
    """The lines of a ``Packages`` file, plain, ``.gz`` or ``.xz``.

    Raises:
        UserError: if it is damaged.
    """
    try:
        with _opened(path) as lines:
            yield from lines
    except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: is no whole Packages index ({error})") from None


def _opened(path: Path) -> IO[str]:
    if path.suffix not in (".gz", ".xz"):
        return path.open(encoding="utf-8")
    packed: Any = gzip.GzipFile(path) if path.suffix == ".gz" else lzma.LZMAFile(path)  # noqa: SIM115
    return io.TextIOWrapper(limited(packed, path, path.stat().st_size), encoding="utf-8")
