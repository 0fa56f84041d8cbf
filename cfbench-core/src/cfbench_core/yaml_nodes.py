"""YAML text into nodes that know their lines. What a configuration has no use for is refused here.

A configuration may come from a stranger, so nothing in it may take the process down, run code or have two meanings: tags
(``!!python/name:os.system``), keys that are given twice, aliases of themselves, control characters, and documents that
are too long, too deep or too large once their aliases are expanded end in one line with the file's name and line.

Values are null, true or false, numbers of 64 bits, or text. Dates, numbers such as ``010`` (octal in YAML 1.1) and ``1:30``
(sexagesimal) and larger whole numbers are text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line

MAXIMUM_BYTES = 2_000_000
MAXIMUM_DEPTH = 50
_TOO_DEEP = f"is nested more than {MAXIMUM_DEPTH} levels deep"
MAXIMUM_NODES = 200_000
"""Values of a document, those behind an alias counted at each alias."""

MOST_ERRORS = 20
"""Lines of errors that are shown at once."""

BITS_64 = 2**63

TEXT, NULL, BOOL, INT, FLOAT, SEQUENCE, MAPPING = (
    f"tag:yaml.org,2002:{name}" for name in ("str", "null", "bool", "int", "float", "seq", "map")
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_WHOLE_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)")

Where = Callable[[int], str]
"""What errors begin with, from the number of a line (from 1): "study.yaml:7"."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_resolver: Any = yaml.resolver.Resolver()


def read_text(path: Path) -> str:
    """The text of a YAML file: UTF-8, with or without a byte order mark.

    Raises:
        UserError: if it is no regular file, is too long, or is not UTF-8.
    """
    try:
        if path.is_dir():
            raise UserError(f"{path}: is a directory; give a YAML file")
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise UserError(f"{path}: is not a regular file; give a YAML file")
        with path.open("rb") as file:
            data = file.read(MAXIMUM_BYTES + 1)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file. A first one is written by 'cfbench init'") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > MAXIMUM_BYTES:
        raise UserError(f"{path}: is longer than {MAXIMUM_BYTES // 1_000_000} MB, the limit of a YAML file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(
            f"{path}:{line}: is not UTF-8 text (byte 0x{data[error.start]:02x}); save it as UTF-8"
        ) from None


def compose(text: str, where: Where) -> yaml.Node | None:
    """The node of a YAML document; None if it is empty.

    Raises:
        UserError: one line for everything that is refused, or for what is not YAML.
    """
    if len(text) > MAXIMUM_BYTES:
        raise UserError(f"{where(1)}: is longer than {MAXIMUM_BYTES // 1_000_000} MB")
    unwanted = _CONTROL.search(text)
    if unwanted:
        line = text.count("\n", 0, unwanted.start()) + 1
        raise UserError(f"{where(line)}: holds the control character {_code_point(unwanted[0])}")
    composer = _Composer(where)
    try:
        for event in cast("Iterator[Any]", yaml.parse(text, Loader=_Loader)):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = where(mark.line + 1 if mark else 1)
        if "maximum nesting depth" in str(error.problem):  # libyaml may refuse it first
            raise UserError(f"{place}: {_TOO_DEEP}") from None
        raise UserError(f"{place}: not valid YAML: {one_line(str(error.problem), 200)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{where(1)}: not valid YAML: {one_line(str(error), 200)}") from None
    if composer.errors:
        raise UserError(*composer.errors)
    return composer.root


def plain(node: yaml.Node) -> Any:
    """A node as Python data: scalars, lists, and dicts whose keys are text."""
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [plain(value) for value in node.value]
    text = str(node.value)
    if node.tag == NULL:
        return None
    if node.tag == BOOL:
        return text.lower() in ("yes", "true", "on")
    if node.tag == INT:
        return int(text.replace("_", ""), 0)
    if node.tag == FLOAT:
        number = text.replace("_", "").lower()
        return float(number.replace(".inf", "inf").replace(".nan", "nan"))
    return text


@dataclass(frozen=True)
class _Anchored:
    """A value with a name: how many nodes it has and how deep it is, with those behind its own aliases."""

    node: yaml.Node
    size: int
    height: int


@dataclass
class _Open:
    """A sequence or mapping whose end has not been read.

    Attributes:
        path: its place, such as ``protocol.k[1]``.
        size: its nodes so far, with those behind aliases. height: the levels that they span.
        lines: the line of each key of a mapping. key: the one whose value is next.
    """

    node: Any
    path: str
    anchor: str | None
    size: int = 1
    height: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    key: yaml.ScalarNode | None = None

    def next_path(self) -> str:
        if isinstance(self.node, yaml.SequenceNode):
            return f"{self.path}[{len(self.node.value)}]"
        if self.key is None:
            return self.path
        name = one_line(self.key.value, 60)
        return f"{self.path}.{name}" if self.path else name


class _Composer:
    """Builds nodes from the events of the parser, without recursion, whatever their depth."""

    def __init__(self, where: Where) -> None:
        self.where = where
        self.root: yaml.Node | None = None
        self.errors: list[str] = []
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._refused(event, "a second document begins; a file holds one")
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor, 1, 0)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._begin(event, yaml.SequenceNode(SEQUENCE, [], *_marks(event)))
        elif isinstance(event, yaml.MappingStartEvent):
            self._begin(event, yaml.MappingNode(MAPPING, [], *_marks(event)))
        elif isinstance(event, (yaml.SequenceEndEvent, yaml.MappingEndEvent)):
            done = self._open.pop()
            self._add(done.node, done.anchor, done.size, done.height)

    def _begin(self, event: Any, node: yaml.Node) -> None:
        self._check_tag(event)
        self._check_key(event)
        self._check_size(event, 1, 1)
        self._open.append(_Open(node, self._path(), event.anchor))

    def _alias(self, event: Any) -> None:
        if any(one.anchor == event.anchor for one in self._open):
            raise self._refused(event, f"the alias *{event.anchor} stands for a value around it")
        if event.anchor not in self._anchors:
            raise self._refused(event, f"no value before the alias *{event.anchor} has that name")
        found = self._anchors[event.anchor]
        if not isinstance(found.node, yaml.ScalarNode):
            self._check_key(event)
        self._check_size(event, found.size, found.height)
        self._add(found.node, None, found.size, found.height, event)

    def _scalar(self, event: Any) -> yaml.ScalarNode:
        self._check_tag(event)
        self._check_size(event, 1, 0)
        unwanted = _CONTROL.search(event.value)
        if unwanted:
            self._note(event, f"holds the control character {_code_point(unwanted[0])}")
        tag = _tag(event.value) if event.implicit[0] else TEXT
        return yaml.ScalarNode(tag, event.value, *_marks(event), style=event.style)

    def _add(self, node: yaml.Node, anchor: str | None, size: int, height: int, alias: Any = None) -> None:
        """Puts a complete node where it belongs."""
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, size, height)
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        parent.size += size
        parent.height = max(parent.height, height + 1)
        if isinstance(parent.node, yaml.SequenceNode):
            parent.node.value.append(node)
        elif parent.key is None:
            self._key(parent, node, alias or node)
        else:
            parent.node.value.append((parent.key, node))
            parent.key = None

    def _key(self, parent: _Open, node: Any, marked: Any) -> None:
        line = marked.start_mark.line + 1
        parent.key = node
        if node.value == "<<" and node.style not in ("'", '"'):
            self._note(marked, "merge keys are not supported; write the keys out")
        elif node.value in parent.lines:
            first = parent.lines[node.value]
            place = f"on line {first}" if first != line else "on the same line"
            self._note(marked, f"is given twice, first {place}")
        parent.lines.setdefault(node.value, line)

    def _check_key(self, event: Any) -> None:
        parent = self._open[-1] if self._open else None
        if parent is not None and isinstance(parent.node, yaml.MappingNode) and parent.key is None:
            raise self._refused(event, "a key must be text, not a list or a mapping")

    def _check_tag(self, event: Any) -> None:
        if event.tag is not None:
            tag = one_line(event.tag.replace("tag:yaml.org,2002:", "!!"), 60)
            self._note(event, f"has the tag {tag!r}; tags are not supported, write the value alone")

    def _check_size(self, event: Any, nodes: int, height: int) -> None:
        self._nodes += nodes
        if self._nodes > MAXIMUM_NODES:
            raise self._refused(event, f"the document has more than {MAXIMUM_NODES:,} values")
        if len(self._open) + height > MAXIMUM_DEPTH:
            raise self._refused(event, _TOO_DEEP)

    def _path(self) -> str:
        return self._open[-1].next_path() if self._open else ""

    def _refused(self, marked: Any, message: str) -> UserError:
        self._note(marked, message)
        return UserError(*self.errors)

    def _note(self, marked: Any, message: str) -> None:
        if len(self.errors) < MOST_ERRORS:
            where = self.where(marked.start_mark.line + 1)
            path = one_line(self._path(), 200)
            self.errors.append(f"{where}: {path}: {message}" if path else f"{where}: {message}")


def _marks(event: Any) -> tuple[Any, Any]:
    return event.start_mark, event.end_mark


def _tag(value: str) -> str:
    """What an unquoted scalar is."""
    tag: str = _resolver.resolve(yaml.ScalarNode, value, (True, False))
    if tag == INT:
        fits = len(value) < 100 and _WHOLE_NUMBER.fullmatch(value)
        return INT if fits and abs(int(value.replace("_", ""), 0)) < BITS_64 else TEXT
    if tag == FLOAT:
        return TEXT if ":" in value or len(value) > 1000 else FLOAT
    return tag if tag in (NULL, BOOL) else TEXT


def _code_point(character: str) -> str:
    return f"U+{ord(character):04X}"
