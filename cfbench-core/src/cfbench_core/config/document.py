"""A YAML document that remembers on which line each value stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cfbench_core.errors import UserError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document:
    """A mapping read from a file, or given as Python data, with ``--set`` changes applied.

    Attributes:
        source: what error lines begin with, the file's name.
        root: the YAML node of the whole document.
        folder: where relative paths in it start.
    """

    def __init__(self, text: str, source: str, folder: Path) -> None:
        self.source = source
        self.folder = folder
        self._sources: dict[int, str] = {}  # id of a node that --set (or a preset) brought -> where from
        self._brought: list[yaml.Node] = []  # referenced, so that no other node reuses the id of one of them
        try:
            root = yaml.compose(text, Loader=_Loader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            where = f"{source}:{mark.line + 1}" if mark else source
            raise UserError(f"{where}: not valid YAML: {error.problem}") from None
        except yaml.YAMLError as error:
            raise UserError(f"{source}: not valid YAML: {str(error).splitlines()[0]}") from None
        if root is None:
            root = yaml.MappingNode("tag:yaml.org,2002:map", [])
        if not isinstance(root, yaml.MappingNode):
            raise UserError(f"{source}:1: must be a mapping of keys and values, such as 'suite: recsys'")
        self.root = root

    @classmethod
    def read(cls, path: Path) -> Document:
        try:
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise UserError(f"{path}: no such file. A first one is written by 'cfbench init'") from None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read: {error}") from None
        return cls(text, str(path), path.resolve().parent)

    @classmethod
    def of(cls, data: Mapping[str, Any], source: str = "configuration") -> Document:
        """A document of Python data; its errors name keys, not lines."""
        document = cls(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True), source, Path.cwd())
        document._without_lines = True
        return document

    _without_lines = False

    def set(self, assignments: Sequence[str]) -> None:
        """Applies ``a.b=c`` changes; the value is YAML, a number in the path is a place in a list (from 0)."""
        for assignment in assignments:
            path, sign, value = assignment.partition("=")
            if not sign or not path:
                raise UserError(f"--set {assignment}: must look like key.inner=value")
            try:
                node = yaml.compose(value, Loader=_Loader) or yaml.ScalarNode(
                    "tag:yaml.org,2002:null", "null"
                )
            except yaml.YAMLError:
                raise UserError(f"--set {assignment}: the value is not valid YAML") from None
            self._mark(node, f"--set {assignment}")
            self._assign(path.split("."), node, assignment)

    def brought(self, data: Mapping[str, Any], source: str) -> yaml.MappingNode:
        """Data from another source as a node of this document; its errors name ``source``."""
        node = yaml.compose(yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True), Loader=_Loader)
        assert isinstance(node, yaml.MappingNode)
        self._mark(node, source)
        self._brought.append(node)
        return node

    def where(self, node: yaml.Node) -> str:
        """``study.yaml:7``, or the ``--set`` or the preset that the node came from."""
        if id(node) in self._sources:
            return self._sources[id(node)]
        if self._without_lines or node.start_mark is None:
            return self.source
        return f"{self.source}:{node.start_mark.line + 1}"

    def _mark(self, node: yaml.Node, source: str) -> None:
        self._sources[id(node)] = source
        children = node.value if isinstance(node.value, list) else []
        for child in children:
            for part in child if isinstance(child, tuple) else (child,):
                self._mark(part, source)

    def _assign(self, path: Sequence[str], value: yaml.Node, assignment: str) -> None:
        node: yaml.Node = self.root
        for depth, key in enumerate(path):
            last = depth == len(path) - 1
            if isinstance(node, yaml.SequenceNode):
                if not key.isdigit() or int(key) >= len(node.value):
                    raise UserError(
                        f"--set {assignment}: {key!r} is not a place in a list of {len(node.value)} (they count from 0)"
                    )
                if last:
                    node.value[int(key)] = value
                else:
                    node = node.value[int(key)]
            elif isinstance(node, yaml.MappingNode):
                place = next((i for i, (k, _) in enumerate(node.value) if k.value == key), None)
                new = value if last else yaml.MappingNode("tag:yaml.org,2002:map", [])
                if place is None:
                    name = yaml.ScalarNode("tag:yaml.org,2002:str", key)
                    self._mark(name, f"--set {assignment}")
                    self._mark(new, f"--set {assignment}")
                    node.value.append((name, new))
                    node = new
                elif last:
                    node.value[place] = (node.value[place][0], value)
                else:
                    node = node.value[place][1]
            else:
                raise UserError(
                    f"--set {assignment}: {'.'.join(path[:depth])} is a single value, not a mapping"
                )


def plain(node: yaml.Node) -> Any:
    """A node as Python data (scalars, lists, dicts)."""
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()
