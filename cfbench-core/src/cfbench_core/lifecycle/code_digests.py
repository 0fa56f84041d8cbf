"""The digest of a file's code, which comments, docstrings, line numbers and metadata of components do not change."""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import hashlib
import json
import opcode
import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from cfbench_core.errors import UserError
from cfbench_core.files import cache_root, write_atomically

_SPEC = re.compile(rb"^SPECS? = (?:[^\n]*\)$|\(?[^\n]*\n.*?^\))", re.MULTILINE | re.DOTALL)
_ASSERT = re.compile(rb"assert\b(?<!\wassert)")
MOST_REMEMBERED = 20_000
"""Digests of files in the user's cache; with more it starts anew."""

_NOP = opcode.opmap["NOP"]
_CLASSES_HOLD_LINES = sys.version_info >= (3, 13)


def code_digest(source: bytes) -> str:
    """The digest of a file's code, from the user's cache where a file with the same bytes was digested before.

    Compiling every file would take most of the time of planning. The cache is addressed by content, so an edited file is
    always digested anew.
    """
    known = _remembered()
    content = hashlib.sha256(source).hexdigest()
    if content not in known:
        if not known.get("changed"):
            known["changed"] = "yes"
            atexit.register(_save_remembered)
        known[content] = _digest(source)
    return known[content]


@functools.cache
def _remembered() -> dict[str, str]:
    try:
        known = json.loads(_remembered_file().read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) and len(known) < MOST_REMEMBERED else {}


def _save_remembered() -> None:
    with contextlib.suppress(OSError, UserError, MemoryError):  # it only saves time
        known = {content: found for content, found in _remembered().items() if content != "changed"}
        write_atomically(_remembered_file(), json.dumps(known))


@functools.cache
def _remembered_file() -> Path:
    """Named after the interpreter and this module: both decide what the digest of a file is."""
    version = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()[:16]
    return cache_root() / f"code-digests-{version}.json"


def _digest(source: bytes) -> str:
    """Of a file's code without docstrings, comments, line numbers and the metadata of components.

    What metadata says (a summary, a paper) computes nothing. What does not compile counts as it stands.
    """
    # Optimized code has no docstrings, and no assertions either; as assignments they stay. The word in a string
    # is replaced too, in the same way each time.
    source = _ASSERT.sub(b"__assert__ =", _SPEC.sub(b"", source))
    try:
        code = compile(_without_class_lines(source), "", "exec", dont_inherit=True, optimize=2)
    except (SyntaxError, ValueError):
        return hashlib.sha256(source).hexdigest()
    parts: list[str] = []
    _describe(code, parts)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _without_class_lines(source: bytes) -> ast.Module | bytes:
    """Since Python 3.13 the code of a class holds the number of its line."""
    if not _CLASSES_HOLD_LINES:
        return source
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.lineno, node.col_offset = 1, 0
            for decorator in node.decorator_list:
                decorator.lineno, decorator.col_offset = 1, 0
    return tree


def _describe(code: CodeType, parts: list[str]) -> None:
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    # A docstring that was left out leaves an instruction that does nothing. Every instruction has two bytes.
    left_out = _places(code.co_code, _NOP)
    others = b"".join(code.co_code[start:end] for start, end in _between(left_out, len(code.co_code)))
    parts.append(repr((code.co_name, others, names, counts, _guarded(code.co_exceptiontable, left_out))))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _describe(constant, parts)
        elif isinstance(constant, frozenset):  # the order of a set differs between processes
            parts.append(repr(sorted(map(repr, constant))))
        else:
            parts.append(repr(constant))


def _places(instructions: bytes, wanted: int) -> list[int]:
    """Where an instruction stands, in bytes."""
    found, place = [], instructions.find(wanted)
    while place >= 0:
        if place % 2 == 0:
            found.append(place)
        place = instructions.find(wanted, place + 2 - place % 2)
    return found


def _between(left_out: list[int], end: int) -> Iterator[tuple[int, int]]:
    start = 0
    for place in left_out:
        yield start, place
        start = place + 2
    yield start, end


def _guarded(table: bytes, left_out: list[int]) -> list[int]:
    """An exception table as numbers, four each: the start, length and handler of a range of instructions, and the depth.

    Numbers stand in the table as groups of six bits; bit 7 says that another group follows. Places are counted without
    the instructions that were left out.
    """
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    if left_out:
        for entry in range(0, len(numbers), 4):
            start, length, handler = numbers[entry : entry + 3]
            first, end, target = (
                place - bisect_left(left_out, 2 * place) for place in (start, start + length, handler)
            )
            numbers[entry : entry + 3] = first, end - first, target
    return numbers
