"""The digest of a file's code, which comments, docstrings, line numbers and metadata of components do not change."""

from __future__ import annotations

import ast
import atexit
import contextlib
import functools
import gc
import hashlib
import json
import opcode
import sys
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from cfbench_core.errors import UserError
from cfbench_core.files import cache_root, write_atomically
from cfbench_core.lifecycle.import_statements import Import, import_statements

_SPECS = frozenset({"SPEC", "SPECS"})
MOST_REMEMBERED = 20_000
"""Digests of files in the user's cache; with more it starts anew."""

_IMPORTS = "imports "
"""Before the hash of a file in the cache, where what is remembered are its imports."""

_NO_CODE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What Python raises for a file that is not code."""

_OPTIMIZED_AWAY = (b"assert", b"__debug__", b"coding:", b"coding=")
"""A file without these bytes has neither assertions nor ``__debug__``, in whatever encoding it says it is."""

_NOP = opcode.opmap["NOP"]
_CLASSES_HOLD_LINES = sys.version_info >= (3, 13)


def code_digest(source: bytes) -> str:
    """The digest of a file's code, from the user's cache where a file with the same bytes was digested before.

    Compiling every file would take most of the time of planning. The cache is addressed by content, so an edited file is
    always digested anew.
    """
    return _known("", source)


def imports(source: bytes) -> tuple[Import, ...]:
    """What a file imports, from the same cache."""
    return tuple(Import(*one) for one in json.loads(_known(_IMPORTS, source)))


def _known(prefix: str, source: bytes) -> str:
    known = _remembered()
    content = hashlib.sha256(source).hexdigest()
    if prefix + content not in known:
        if not known.get("changed"):
            known["changed"] = "yes"
            atexit.register(_save_remembered)
        known[content], known[_IMPORTS + content] = _digest_and_imports(source)
    return known[prefix + content]


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
    """Named after the interpreter and the modules that decide what the digest and the imports of a file are."""
    here = Path(__file__)
    code = here.read_bytes() + here.with_name("import_statements.py").read_bytes()
    version = hashlib.sha256(code + sys.version.encode()).hexdigest()[:16]
    return cache_root() / f"code-digests-{version}.json"


def _digest_and_imports(source: bytes) -> tuple[str, str]:
    """The digest of a file's code without docstrings, comments, line numbers and the metadata of components; its imports.

    What metadata says (a summary, a paper) computes nothing. What does not compile counts as it stands, and has no imports:
    whoever imports it reports the error.
    """
    with _without_garbage_collection():  # which looks at a hundred thousand nodes again and again
        try:
            tree = ast.parse(source)
        except _NO_CODE:
            return hashlib.sha256(source).hexdigest(), "[]"
        found = json.dumps(import_statements(tree))
        try:
            maybe = not source.isascii() or any(word in source for word in _OPTIMIZED_AWAY)
            tree = _as_it_runs(tree, has_assertions=maybe)
            code = compile(tree, "", "exec", dont_inherit=True, optimize=2)
        except _NO_CODE:
            return hashlib.sha256(source).hexdigest(), found
        parts: list[str] = []
        _describe(code, parts)
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest(), found


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _as_it_runs(tree: ast.Module, has_assertions: bool) -> ast.Module:
    """A file without the metadata of components, in a form of which optimized code leaves out docstrings alone.

    ``has_assertions``: whether it may have assertions or ``__debug__``; otherwise the tree need not be visited.
    """
    tree.body = [node for node in tree.body if not _is_metadata(node)]
    if _CLASSES_HOLD_LINES:
        _without_class_lines(tree)
    if has_assertions:
        _Unoptimized().visit(tree)
        ast.fix_missing_locations(tree)
    return tree


def _is_debug(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "__debug__"


def _without_class_lines(tree: ast.Module) -> None:
    """Since Python 3.13 the code of a class holds the number of its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            node.lineno, node.col_offset = 1, 0
            for decorator in node.decorator_list:
                decorator.lineno, decorator.col_offset = 1, 0


def _is_metadata(node: ast.stmt) -> bool:
    """``SPEC = ComponentSpec(...)``, or ``SPECS`` with several of them."""
    if not isinstance(node, ast.Assign):
        return False
    named = all(isinstance(target, ast.Name) and target.id in _SPECS for target in node.targets)
    values = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else [node.value]
    return named and all(
        isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] == "ComponentSpec"
        for value in values
    )


class _Unoptimized(ast.NodeTransformer):
    """Optimized code has no assertions, and no code ``if __debug__``; under other names both stay."""

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        parts = [node.test] if node.msg is None else [node.test, node.msg]
        stored = ast.Name("__assert__", ast.Store())
        return ast.copy_location(ast.Assign([stored], ast.Tuple(parts, ast.Load())), node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.copy_location(ast.Name("__debug", node.ctx), node) if _is_debug(node) else node


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
