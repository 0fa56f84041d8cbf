"""The counterfactual rules of a decision tree, and rows that satisfy them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray, IntArray

ROUNDING = 1e-9
"""By which an encoded value that is a whole multiple of its step may miss it."""


@dataclass(frozen=True)
class Rule:
    """A leaf of the other class.

    Attributes:
        leaf: its number in the tree.
        low, high: by position, the conditions low < value <= high of its path.
        violated: the columns in which the factual violates the rule.
        length: the number of columns in the rule.
    """

    leaf: int
    low: dict[int, float]
    high: dict[int, float]
    violated: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class Candidates:
    """Of one rule: (2, d) the factual at its thresholds, and with the values of its nearest neighbour in the leaf."""

    rows: FloatArray
    length: int


def rules_of(tree: Any, leaves: IntArray, row: FloatArray, encoding: Encoding) -> list[Rule]:
    """The conditions on the paths to the ``leaves`` of a tree of scikit-learn, those violated in few columns first."""
    parents = np.full(tree.node_count, -1)
    inner = np.flatnonzero(tree.children_left >= 0)
    parents[tree.children_left[inner]] = parents[tree.children_right[inner]] = inner
    parent, right = parents.tolist(), set(tree.children_right[inner].tolist())
    feature, threshold, column_of = (
        tree.feature.tolist(),
        tree.threshold.tolist(),
        encoding.column_of.tolist(),
    )
    found = []
    for leaf in leaves.tolist():
        low: dict[int, float] = {}
        high: dict[int, float] = {}
        node = leaf
        while (above := parent[node]) >= 0:
            place, value = feature[above], threshold[above]
            if node in right:
                low[place] = max(value, low.get(place, value))
            else:
                high[place] = min(value, high.get(place, value))
            node = above
        wrong = {place for place, value in low.items() if row[place] <= value}
        wrong |= {place for place, value in high.items() if row[place] > value}
        violated = tuple(sorted({column_of[place] for place in wrong}))
        length = len({column_of[place] for place in (*low, *high)})
        found.append(Rule(leaf, low, high, violated, length))
    return sorted(found, key=lambda rule: len(rule.violated))


def candidates_in_turn(
    rules: list[Rule], row: FloatArray, rows: FloatArray, leaf: IntArray, encoding: Encoding
) -> Iterator[list[Candidates]]:
    """The candidates of the rules, those with equally many violated columns together, the nearest first.

    rows (N, d): the neighbours of the other class, and the leaves (N,) in which they are.
    """
    limits = encoding.limits(row[None])
    for _, group in groupby(rules, key=lambda rule: len(rule.violated)):
        found = []
        for rule in group:
            members = rows[leaf == rule.leaf]
            moved = limits.snapped(_satisfied(encoding, row, rule, members)[None])[0]
            nearest = members[((members - row) ** 2).sum(axis=1).argmin()]
            taken = row.copy()
            for column in rule.violated:
                taken[encoding.blocks[column]] = nearest[encoding.blocks[column]]
            away = moved - row
            found.append((float(away @ away), Candidates(np.stack([moved, taken]), rule.length)))
        found.sort(key=lambda pair: pair[0])
        yield [candidates for _, candidates in found]


def _satisfied(encoding: Encoding, row: FloatArray, rule: Rule, members: FloatArray) -> FloatArray:
    """(d,) the row with the violated columns moved to where the rule low < value <= high holds."""
    moved = row.copy()
    for column in rule.violated:
        block, place = encoding.blocks[column], encoding.blocks[column].start
        low, high = rule.low.get(place, -np.inf), rule.high.get(place, np.inf)
        if encoding.columns[column].scalar:
            down = bool(row[place] > high)
            moved[place] = next_value(encoding, place, high if down else low, down)
        elif block.stop - block.start == 1:
            moved[place] = 1 - row[place]
        else:
            fits = [
                rule.low.get(p, -np.inf) < 1 <= rule.high.get(p, np.inf)
                for p in range(block.start, block.stop)
            ]
            level = np.where(fits, members[:, block].sum(axis=0), -1.0).argmax()
            moved[block] = np.eye(len(fits))[level]
    return moved


def next_value(encoding: Encoding, position: int, threshold: float, down: bool) -> float:
    """The next value of the column on that side of an encoded threshold: at most it, or greater."""
    # Trees of scikit-learn compare in single precision.
    value = threshold if down else threshold + 1e-6 * max(1.0, abs(threshold))
    grid = encoding.grid
    at = np.flatnonzero(grid.positions == position)
    if not len(at):
        return value
    multiples = np.zeros(len(grid))
    multiples[at] = grid.multiples(np.full(len(grid), value))[at]
    return float(grid.at(np.floor(multiples + ROUNDING) if down else np.ceil(multiples - ROUNDING))[at[0]])
