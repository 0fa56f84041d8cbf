"""What a file imports, read from its syntax tree.

A statement counts wherever Python accepts it: in functions, behind a semicolon or a colon, over several lines. Calls of
``import_module`` and ``__import__`` with a constant name count as well. Imports under ``if TYPE_CHECKING:`` do not run and
do not count.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

_BY_NAME = frozenset({"import_module", "__import__"})
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)
_LEAVES = (ast.Constant, ast.expr_context)


class Import(NamedTuple):
    """One imported name.

    Attributes:
        module: as it is written, with leading dots.
        name: what ``from module import name`` imports; "" for ``import module``.
        bound: what the name is called afterwards.
        re_exported: whether the name is that of the other module: imported once, under its own name, at the top of the
            file, which binds nothing else to it and does not use it.
    """

    module: str
    name: str
    bound: str
    re_exported: bool


def import_statements(tree: ast.Module) -> tuple[Import, ...]:
    """The imports of a file, by its syntax tree."""
    names: set[str] = set()
    found: list[tuple[str, str, str]] = []
    for node in _running(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, _NAMED) and node.name:
            names.add(node.name)
        else:
            found += _imported(node)
    top = {one for node in tree.body if isinstance(node, ast.ImportFrom) for one in _imported(node)}
    bound = [one[2] for one in found]
    return tuple(
        Import(
            *one, one in top and one[1] == one[2] != "*" and bound.count(one[2]) == 1 and one[2] not in names
        )
        for one in found
    )


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, without constants, contexts and the bodies of ``if TYPE_CHECKING:``."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _is_for_typing(node.test):
            waiting += node.orelse
            continue
        for field in node._fields:  # faster than ast.iter_child_nodes
            value = getattr(node, field, None)
            if isinstance(value, list):
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, _LEAVES):
                waiting.append(value)


def _is_for_typing(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else test.id if isinstance(test, ast.Name) else ""
    return name == "TYPE_CHECKING"


def _imported(node: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Module, name and what it is called afterwards."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name, "", alias.asname or alias.name.partition(".")[0]
    elif isinstance(node, ast.ImportFrom):
        for alias in node.names:
            yield "." * node.level + (node.module or ""), alias.name, alias.asname or alias.name
    elif isinstance(node, ast.Call) and node.args:
        function, first = node.func, node.args[0]
        called = getattr(function, "attr", getattr(function, "id", ""))
        if (
            called in _BY_NAME
            and isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and first.value
        ):
            yield first.value, "", ""
