"""Single values of a configuration: what is wrong with one, and how an error message shows it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from cfbench_core.config.fields import Range
from cfbench_core.plain_text import one_line
from cfbench_core.yaml_nodes import NULL, plain

LONGEST_LABEL = 120
"""Characters of a label, which names rows, cells and files."""


def infinite_numbers(node: yaml.Node, path: str) -> Iterator[tuple[yaml.Node, str]]:
    """The numbers below a node that JSON cannot hold (.inf, .nan), each with its place."""
    waiting = [(node, path)]
    while waiting:
        inner, place = waiting.pop()
        if isinstance(inner, yaml.MappingNode):
            waiting += [(value, f"{place}.{key.value}") for key, value in inner.value]
        elif isinstance(inner, yaml.SequenceNode):
            waiting += [(value, f"{place}[{number}]") for number, value in enumerate(inner.value)]
        elif isinstance(value := plain(inner), float) and not math.isfinite(value):
            yield inner, place


def name_problem(node: yaml.Node, key: str) -> str:
    """Why a node cannot be the name, the class or the label of a component; empty if it can."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == NULL or not node.value.strip():
        return f"must be text, got {shown(node)}"
    if key == "label" and (len(node.value) > LONGEST_LABEL or one_line(node.value) != node.value):
        return f"must be one line of at most {LONGEST_LABEL} visible characters, got {shown(node)}"
    return ""


def is_long_number(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and re.fullmatch(r"[-+]?[1-9][0-9_]*", node.value) is not None


def shown(node: yaml.Node) -> str:
    """A node as an error message shows it."""
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if node.tag == NULL else repr(one_line(node.value, 60))
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def kind_of(kind: Any, bounds: Range | None) -> str:
    """ "a positive whole number", "true or false", ..."""
    words = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}[kind]
    return f"{words} {bounds}" if bounds is not None and str(bounds) else words
