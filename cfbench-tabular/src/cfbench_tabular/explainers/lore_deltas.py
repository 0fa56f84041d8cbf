"""The counterfactual rules of LORE's code: what has to change for the shortest rule of the other class to hold.

The rule of a leaf has a condition for each column on its path: low < number <= high, or a level. Its *delta* are the
conditions that do not follow from the rule that holds for x (the path of x in the tree): an interval that is not that of
x's rule and narrower on one side at least, with both of its ends that are finite; a level that is not that of x's rule.
Its length is the number of these ends and levels. The counterfactuals are the deltas of the smallest length, of the leaves
of the other class that hold rows.

Source: github.com/riccotti/LORE, ``pyyadt.py``; there a threshold of exactly 0 counts as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.c45 import Node
from cfbench_tabular.explainers.lore_rules import next_value
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

Interval = tuple[float, float]
Rule = Mapping[int, Interval | int]
"""By column, the condition: low and high of a number, or the position of a level."""

ANY: Interval = (-np.inf, np.inf)
DECIMALS = 9
"""Squared distances that agree in these tie; of rows that tie, the order does not depend on that of the rules."""


@dataclass(frozen=True)
class Delta:
    """What has to change.

    Attributes:
        conditions: by column.
        columns: of the whole rule.
    """

    conditions: Rule
    columns: int


def shortest_deltas(tree: Node, own: FloatArray, label: int, numeric: BoolArray) -> list[Delta]:
    """The deltas of the smallest length.

    Args:
        own: (C,) the factual, as the tree reads it.
        label: its class.
        numeric: (C,) which columns are numbers.
    """
    holds = _rule_of(tree, own)
    found: list[Delta] = []
    shortest = np.inf
    for leaf, rule in _leaves(tree, {}):
        if leaf.label == label or not leaf.counts.sum():
            continue
        conditions, length = _delta(holds, rule)
        if length < shortest:
            found, shortest = [], float(length)
        if length == shortest:
            found.append(Delta(conditions, len(rule)))
    return found


def rows_of(
    deltas: list[Delta], row: FloatArray, own: FloatArray, encoding: Encoding
) -> tuple[FloatArray, IntArray]:
    """(D, d) the factual moved to satisfy each delta, the nearest first, and (D,) the number of columns of their rules.

    Args:
        row: (d,) the factual, encoded.
        own: (C,) the same as the tree reads it.
    """
    moved = [_moved(delta.conditions, row, own, encoding) for delta in deltas]
    distances = [round(float(((one - row) ** 2).sum()), DECIMALS) for one in moved]
    order = sorted(range(len(moved)), key=lambda place: (distances[place], moved[place].tolist()))
    return np.stack([moved[place] for place in order]), np.array([deltas[place].columns for place in order])


def _leaves(node: Node, rule: Rule) -> Iterator[tuple[Node, Rule]]:
    """The leaves below a node with the conditions on their paths."""
    if node.column is None:
        yield node, rule
        return
    for place, child in enumerate(node.children):
        yield from _leaves(child, {**rule, node.column: _condition(node, place, rule.get(node.column))})


def _rule_of(node: Node, own: FloatArray) -> Rule:
    rule: dict[int, Interval | int] = {}
    while node.column is not None:
        value = own[node.column]
        place = int(value) if node.threshold is None else int(value > node.threshold)
        rule[node.column] = _condition(node, place, rule.get(node.column))
        node = node.children[place]
    return rule


def _condition(node: Node, place: int, above: Interval | int | None) -> Interval | int:
    """That of a branch of the node, together with the condition ``above`` on the same column."""
    if node.threshold is None:
        return place
    low, high = _interval(above)
    return (max(low, node.threshold), high) if place else (low, min(high, node.threshold))


def _interval(condition: Interval | int | None) -> Interval:
    return condition if isinstance(condition, tuple) else ANY


def _delta(holds: Rule, rule: Rule) -> tuple[Rule, int]:
    """The conditions of a rule that do not follow from the rule that holds, and their length."""
    found: dict[int, Interval | int] = {}
    length = 0
    for column, condition in rule.items():
        given = holds.get(column)
        if condition == given:
            continue
        if isinstance(condition, tuple):
            low, high = condition
            if given is not None:
                of_own = _interval(given)
                if not (of_own[0] < low or of_own[1] > high):
                    continue
            length += int(np.isfinite(low)) + int(np.isfinite(high))
        else:
            length += 1
        found[column] = condition
    return found, length


def _moved(conditions: Rule, row: FloatArray, own: FloatArray, encoding: Encoding) -> FloatArray:
    """(d,) the factual with the columns that do not satisfy their condition moved to where they do."""
    moved = row.copy()
    for column, condition in conditions.items():
        block = encoding.blocks[column]
        if not isinstance(condition, tuple):
            width = block.stop - block.start
            moved[block] = condition if width == 1 else np.eye(width)[condition]
        elif not condition[0] < own[column] <= condition[1]:
            down = bool(own[column] > condition[1])
            threshold = encoding.encode_number(column, np.array([condition[1] if down else condition[0]]))[0]
            moved[block.start] = next_value(encoding, block.start, float(threshold), down)
    return moved
