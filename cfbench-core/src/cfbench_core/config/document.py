"""A YAML document that remembers on which line each value stands."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import yaml

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line
from cfbench_core.yaml_nodes import MAPPING, NULL, TEXT, Where, compose, read_text

SECRET_KEYS = frozenset({"key"})
"""Names of keys whose values are not repeated in messages: somebody may have put a secret there."""


class Assignment(str):
    """A change ``a.b=c`` that was given by another option than ``--set``.

    Attributes:
        given: as it was given, such as ``--data ml-1m``; errors about the change begin with it.
    """

    __slots__ = ("given",)
    given: str

    def __new__(cls, text: str, option: str, values: Sequence[str]) -> Self:
        """The change ``text`` for these ``values`` of an option such as ``--data``."""
        found = super().__new__(cls, text)
        shown = (f"{option} {value if _is_plain(value) else '...'}" for value in one_or_several(values))
        found.given = one_line(" ".join(shown), 160)
        return found


def one_or_several(given: Sequence[str]) -> Sequence[str]:
    """A plain string as a sequence of one; any other sequence as it is."""
    return (given,) if isinstance(given, str) else given


class Document:
    """A mapping read from a file, or given as Python data, with ``--set`` changes applied.

    Attributes:
        source: what error lines begin with, the file's name.
        root: the YAML node of the whole document.
        folder: where relative paths in it start.
        allowed_variables: environment variables that it may name in addition to those that end in ``_API_KEY``.
    """

    allowed_variables: frozenset[str] = frozenset()

    def __init__(self, text: str, source: str, folder: Path, lines: bool = True) -> None:
        self.source = source
        self.folder = folder
        self._lines = lines
        self._sources: dict[int, str] = {}  # id of a node that --set (or a preset) brought -> where from
        self._brought: list[yaml.Node] = []  # referenced, so that no other node reuses the id of one of them
        root = compose(text, lambda line: f"{source}:{line}" if lines else source)
        if root is None:
            root = yaml.MappingNode(MAPPING, [])
        if not isinstance(root, yaml.MappingNode):
            raise UserError(
                f"{self.where(root)}: must be a mapping of keys and values, such as 'suite: recsys'"
            )
        self.root = root

    @classmethod
    def read(cls, path: Path) -> Document:
        """The document in a file.

        Raises:
            UserError: if the file cannot be read or is not YAML that is supported, see ``yaml_nodes.py``.
        """
        return cls(read_text(path), str(path), path.resolve().parent)

    @classmethod
    def of(cls, data: Mapping[str, Any], source: str = "configuration") -> Document:
        """A document of Python data; its errors name keys, not lines.

        Raises:
            UserError: if the data cannot be written as YAML.
        """
        return cls(_dumped(data, source), source, _working_directory(), lines=False)

    def set(self, assignments: Sequence[str]) -> None:
        """Applies ``a.b=c`` changes; the value is YAML, a number in the path is a place in a list (from 0).

        A plain string is one change. Errors show a change as ``--set``, or as it was given (:class:`Assignment`).
        """
        for assignment in one_or_several(assignments):
            path, sign, value = assignment.partition("=")
            if not sign or not path:
                raise UserError(f"--set {one_line(assignment, 100)}: must look like key.inner=value")
            shown = shown_assignment(assignment)
            node = compose(value, _constantly(shown)) or yaml.ScalarNode(NULL, "null")
            self._bring(node, shown)
            self._assign(path.split("."), node, shown)

    def brought(self, data: Mapping[str, Any], source: str) -> yaml.MappingNode:
        """Data from another source as a node of this document; its errors name ``source``."""
        node = compose(_dumped(data, source), _constantly(source))
        assert isinstance(node, yaml.MappingNode)
        self._bring(node, source)
        return node

    def where(self, node: yaml.Node) -> str:
        """``study.yaml:7``, or the ``--set`` or the preset that the node came from."""
        if id(node) in self._sources:
            return self._sources[id(node)]
        if not self._lines or node.start_mark is None:
            return self.source
        return f"{self.source}:{node.start_mark.line + 1}"

    def blamed(self, node: yaml.MappingNode, reason: str) -> yaml.Node:
        """The value that a reason against a whole mapping is about, so that its ``--set`` or its line is named.

        A reason begins with its key, ``scope[1]: ...``; of the keys in it, one that an option gave is what changed last.
        """
        words = re.findall(r"[\w-]+", reason)
        named: dict[str, yaml.Node] = {
            str(key.value): value for key, value in node.value if key.value in words
        }
        begins = re.match(r"([\w-]+)(?:\[([0-9]+)\])?:", reason)
        first: yaml.Node | None = named.get(begins[1]) if begins else None
        if (
            begins
            and begins[2]
            and isinstance(first, yaml.SequenceNode)
            and int(begins[2]) < len(first.value)
        ):
            first = first.value[int(begins[2])]
        for one in (first, *named.values()):
            if self._sources.get(id(one), "").startswith("--"):
                assert one is not None
                return one
        return first or node

    @contextlib.contextmanager
    def named_in_errors(self) -> Iterator[None]:
        """Begins the lines of a UserError inside with the document's file, unless they begin with another file."""
        try:
            yield
        except UserError as error:
            if not self._lines:
                raise
            raise UserError(*(self._with_source(line) for line in error.lines)) from error

    def _with_source(self, line: str) -> str:
        begins_with_file = os.path.exists(line.partition(":")[0])  # noqa: PTH110 (also for what is no path)
        if begins_with_file or line.startswith(" "):  # " ": it continues the line before
            return line
        # The line begins with what it is about: "judge nli: ...", "ml-1m: not found", "domain 'x': no such file".
        for word in reversed([word.strip(":'") for word in line.split()[:2]]):
            for _, node in self.scalars():
                if node.value == word:
                    return f"{self.where(node)}: {line}"
        return f"{self.source}: {line}"

    def scalars(self) -> Iterator[tuple[str, yaml.ScalarNode]]:
        """Every single value of the document with the key that it stands at, "" for the members of a list."""
        waiting: list[tuple[str, yaml.Node]] = [("", self.root)]
        while waiting:
            key, node = waiting.pop()
            if isinstance(node, yaml.ScalarNode):
                yield key, node
            elif isinstance(node, yaml.SequenceNode):
                waiting += [("", member) for member in node.value]
            else:
                waiting += [(str(name.value), member) for name, member in node.value]

    def _bring(self, node: yaml.Node, source: str) -> None:
        self._brought.append(node)
        self._mark(node, source)

    def _mark(self, node: yaml.Node, source: str) -> None:
        self._sources[id(node)] = source
        children = node.value if isinstance(node.value, list) else []
        for child in children:
            for part in child if isinstance(child, tuple) else (child,):
                self._mark(part, source)

    def _assign(self, path: Sequence[str], value: yaml.Node, shown: str) -> None:
        node: yaml.Node = self.root
        for depth, key in enumerate(path):
            last = depth == len(path) - 1
            if isinstance(node, yaml.SequenceNode):
                if not (key.isascii() and key.isdigit() and len(key) < 7) or int(key) >= len(node.value):
                    raise UserError(
                        f"{shown}: {key!r} is not a place in a list of {len(node.value)} (they count from 0)"
                    )
                if last:
                    node.value[int(key)] = value
                else:
                    node = node.value[int(key)]
            elif isinstance(node, yaml.MappingNode):
                place = next((i for i, (k, _) in enumerate(node.value) if k.value == key), None)
                new = value if last else yaml.MappingNode(MAPPING, [])
                if place is None:
                    name = yaml.ScalarNode(TEXT, key)
                    self._bring(name, shown)
                    self._bring(new, shown)
                    node.value.append((name, new))
                    node = new
                elif last:
                    node.value[place] = (node.value[place][0], value)
                else:
                    node = node.value[place][1]
            else:
                raise UserError(f"{shown}: {'.'.join(path[:depth])} is a single value, not a mapping")


def _dumped(data: Mapping[str, Any], source: str) -> str:
    """Python data as YAML text."""
    try:
        text: str = yaml.safe_dump(dict(data), sort_keys=False, allow_unicode=True)
    except yaml.representer.RepresenterError as error:
        held = error.args[-1]
        raise UserError(
            f"{source}: {one_line(repr(held), 60)} is {type(held).__name__}; values must be text, numbers, "
            "true, false, None, lists or dicts"
        ) from None
    except RecursionError:
        raise UserError(f"{source}: is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{source}: must be a mapping of keys and values ({one_line(str(error), 100)})"
        ) from None
    return text


def _working_directory() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise UserError("the working directory does not exist any more; change to another one") from None


def _constantly(source: str) -> Where:
    return lambda line: source


def shown_assignment(assignment: str) -> str:
    """``--set seed=3``; without the value where that is long, a list or a mapping, or may be a secret."""
    if isinstance(assignment, Assignment):
        return assignment.given
    path, _, value = assignment.partition("=")
    if path.rpartition(".")[2] in SECRET_KEYS or not _is_plain(value):
        value = "..."
    return one_line(f"--set {path}={value}", 160)


def _is_plain(value: str) -> bool:
    """Whether a value is short, and neither a list nor a mapping."""
    return len(value) <= 40 and not value.lstrip().startswith(("{", "[", "&", "*", '"', "'"))
