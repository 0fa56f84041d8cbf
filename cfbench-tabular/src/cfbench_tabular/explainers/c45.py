"""C4.5: a decision tree by gain ratio with error-based pruning, as the program YaDT learns it.

Quinlan 1993, "C4.5: Programs for Machine Learning"; Ruggieri 2002, "Efficient C4.5"; Ruggieri 2004, "YaDT: Yet another
Decision Tree builder". YaDT is the program with which the authors of LORE learn their trees.

Growth. A node of n rows of K classes becomes a leaf if it has one class or fewer than four rows. Otherwise each column
has one candidate split, of information gain G (in bits) and split information S, the entropy of the branches:

    number    value <= t; the cut of the best gain among those between two distinct values of the node with at least
              min(max(2, n / (10 K)), 25) rows on either side; G = that gain - log2(number of these cuts) / n,
              and the column has no split unless G > 0
    category  one branch for each level; at least two branches need two rows

The column with the best G / S is taken, among those with G at least the average of the candidates (less 0.001). The
threshold t is the largest value of all training rows that is not above the middle of the cut. A split whose subtree
makes as many training errors as a leaf is undone.

Pruning. A leaf with e errors among n rows is predicted to make e + ``added_errors(n, e)``, the upper limit of a
confidence interval of 75%. From the leaves up, a subtree becomes a leaf unless that is predicted to make over 0.1
errors more.

YaDT 2.1.0 with its default options departs from release 8 of C4.5, and we follow YaDT (tests hold trees that it
printed): a subtree is not replaced by its largest branch, categories with very many levels count in the average gain,
and a cut may lie between values that differ by less than 1e-5. Ties fall to the smallest cut, the first column and the
first class. YaDT computes gains in single precision, so rounding decides what is nearly a tie, or nearly a gain of 0;
here each logarithm and sum has its precision and order. It prints thresholds with six decimals; here they are exact.
Values are known: there are no missing ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, sqrt
from typing import NamedTuple

import numpy as np

from cfbench_tabular.table import FloatArray, IntArray

SingleArray = np.ndarray[tuple[int, ...], np.dtype[np.float32]]

ROWS = 2
"""Minimum number of rows in two branches of a split."""

CONFIDENCE = 0.25
"""One-sided: the probability that a leaf makes more errors than predicted."""

DEVIATE = 0.84 - 0.59 * 0.25
"""The standard normal deviate of CONFIDENCE in C4.5: interpolated between those of 0.2 (0.84) and 0.4 (0.25)."""

AVERAGE_SLACK, PRUNING_SLACK = 1e-3, 0.1
"""How far a gain may be below the average, and the predicted errors of a leaf above those of its subtree."""


@dataclass(frozen=True)
class Node:
    """A node of the tree.

    Attributes:
        counts: (K,) the training rows of each class.
        label: the class that it predicts: the most frequent one, or that of its parent without training rows.
        column: the column of its split, None for a leaf.
        threshold: of a split of numbers, None for one of categories.
        children: at value <= threshold and value > threshold; or at each level, in their order.
    """

    counts: IntArray
    label: int
    column: int | None = None
    threshold: float | None = None
    children: tuple[Node, ...] = ()


def fit(rows: FloatArray, labels: IntArray, levels: Sequence[int], *, classes: int = 2) -> Node:
    """The pruned tree of the training rows.

    rows (N, C): the number, or the position of the level of a category; labels (N,): the class of each row;
    levels: for each column how many levels it has, 0 for a number. There is at least one row.
    """
    return _Learner(rows, labels, levels, classes).tree()


def leaf_of(node: Node, row: FloatArray) -> Node:
    """The leaf that a row (C,) reaches."""
    while node.column is not None:
        value = float(row[node.column])
        node = node.children[int(value) if node.threshold is None else int(value > node.threshold)]
    return node


def predict(node: Node, rows: FloatArray) -> IntArray:
    """The classes (N,) that the tree predicts for the rows (N, C)."""
    found = np.full(len(rows), node.label, dtype=np.int64)
    if node.column is None or not len(rows):
        return found
    branches = _branches(rows[:, node.column], node.threshold)
    for branch, child in enumerate(node.children):
        there = branches == branch
        found[there] = predict(child, rows[there])
    return found


def added_errors(rows: int, errors: int) -> float:
    """What is added to the errors of a leaf with this many rows to predict its errors on others.

    The rate p with P(Binomial(rows, p) = 0) = CONFIDENCE if there are no errors, otherwise the upper limit of Wilson's
    interval with a correction for continuity; 0 < errors < rows.
    """
    if rows == 0:
        return 0.0
    if errors == 0:
        return float(rows * (1 - CONFIDENCE ** (1 / rows)))
    square, above = DEVIATE**2, errors + 0.5
    root = sqrt(square * (above * (1 - above / rows) + square / 4))
    return rows * (above + square / 2 + root) / (rows + square) - errors


class _Split(NamedTuple):
    """A candidate: its gain and split information in bits, and the threshold of a number."""

    column: int
    gain: np.float32
    information: np.float32
    threshold: float | None


class _Subtree(NamedTuple):
    """A pruned subtree, the training errors of it before pruning, and the errors predicted for it."""

    node: Node
    errors: int
    predicted: float


class _Learner:
    """Holds what all nodes of one tree share: the rows, sorted once by each number, and a table of n log2(n)."""

    def __init__(self, rows: FloatArray, labels: IntArray, levels: Sequence[int], classes: int) -> None:
        size = np.asarray(levels, dtype=np.int64)
        self.rows, self.levels, self.total_classes = rows, size, classes
        self.present, self.labels = np.unique(labels, return_inverse=True)
        self.classes = len(self.present)
        self.numbers = np.flatnonzero(size == 0)
        self.known = {
            int(column): np.unique(rows[:, column]).astype(np.int64) for column in np.flatnonzero(size)
        }
        self.values = np.ascontiguousarray(rows[:, self.numbers].T)
        self.order = np.argsort(self.values, axis=1, kind="stable")
        self.distinct = [np.unique(values) for values in self.values]
        counts = np.arange(len(rows) + 1)
        # YaDT's ln 2 has single precision, the quotient is rounded to it
        binary = np.log(np.maximum(counts, 1)) / np.float64(np.float32(np.log(2)))
        self.logs = np.float32(counts) * binary.astype(np.float32)

    def tree(self) -> Node:
        return self.subtree(np.arange(len(self.rows)), self.order, 0).node

    def subtree(self, members: IntArray, order: IntArray, label: int) -> _Subtree:
        """Of the rows ``members`` (n,), which ``order`` (C, n) sorts by each number; label: the class without rows."""
        counts = np.bincount(self.labels[members], minlength=self.classes)
        n = len(members)
        label = int(counts.argmax()) if n else label
        leaf = self.node(counts, label)
        wrong = n - int(counts[label])
        as_leaf = _Subtree(leaf, wrong, wrong + added_errors(n, wrong))
        split = self.split(members, order, counts) if wrong and n >= 2 * ROWS else None
        if split is None:
            return as_leaf
        below = self.subtrees(split, members, order, label)
        errors = sum(child.errors for child in below)
        predicted = sum(child.predicted for child in below)
        if errors >= wrong:
            return as_leaf
        if as_leaf.predicted <= predicted + PRUNING_SLACK:
            return _Subtree(leaf, errors, as_leaf.predicted)
        children = tuple(child.node for child in below)
        return _Subtree(
            replace(leaf, column=split.column, threshold=split.threshold, children=children),
            errors,
            predicted,
        )

    def node(self, counts: IntArray, label: int) -> Node:
        """A leaf; counts and label are of the classes that occur."""
        of_all = np.zeros(self.total_classes, dtype=np.int64)
        of_all[self.present] = counts
        return Node(of_all, int(self.present[label]))

    def subtrees(self, split: _Split, members: IntArray, order: IntArray, label: int) -> list[_Subtree]:
        """One for each branch of the split."""
        branch_of = np.full(len(self.rows), -1)
        branch_of[members] = _branches(self.rows[members, split.column], split.threshold)
        there, sorted_there = branch_of[members], branch_of[order]
        return [
            self.subtree(
                members[there == branch],
                order[sorted_there == branch].reshape(len(order), int((there == branch).sum())),
                label,
            )
            for branch in range(int(self.levels[split.column]) or 2)
        ]

    def split(self, members: IntArray, order: IntArray, counts: IntArray) -> _Split | None:
        """The best ratio of gain and split information among the candidates with at least the average gain."""
        total = np.asarray(self.bits(counts.sum(), counts) / np.float32(len(members)))
        candidates = [
            *self.splits_of_categories(members, total),
            *self.splits_of_numbers(order, counts, total),
        ]
        if not candidates:
            return None
        candidates.sort(key=lambda candidate: candidate.column)
        gains = np.array([candidate.gain for candidate in candidates])
        ratios = gains / np.array([candidate.information for candidate in candidates])
        average = gains.cumsum()[-1] / np.float32(len(gains))
        ratios[gains < average - np.float32(AVERAGE_SLACK)] = -1
        return candidates[int(ratios.argmax())]

    def bits(self, sizes: IntArray | np.int64, counts: IntArray) -> SingleArray:
        """The entropy of groups of these sizes, times the size; counts (K, ...): of each class."""
        return np.asarray(self.logs[sizes] - _sum_in_pairs(self.logs[counts]))

    def splits_of_categories(self, members: IntArray, total: SingleArray) -> list[_Split]:
        found = []
        n, labels = len(members), self.labels[members]
        for column, known in self.known.items():
            codes = self.rows[members, column].astype(np.int64) * self.classes + labels
            cells = int(self.levels[column]) * self.classes
            table = np.bincount(codes, minlength=cells).reshape(-1, self.classes)[known]
            sizes = table.sum(axis=1)
            if (sizes >= ROWS).sum() >= 2:
                gain = total - self.bits(sizes, table.T).cumsum()[-1] / np.float32(n)
                found.append(_Split(column, np.float32(gain), np.float32(self.information(sizes)), None))
        return found

    def information(self, sizes: IntArray) -> SingleArray:
        """The split information of branches of these sizes (B, ...)."""
        n = int(sizes.sum(axis=0).flat[0])
        return np.asarray((self.logs[n] - _sum_in_pairs(self.logs[sizes])) / np.float32(n))

    def splits_of_numbers(self, order: IntArray, counts: IntArray, total: SingleArray) -> list[_Split]:
        n = order.shape[1]
        least = min(max(0.1 * n / self.classes, ROWS), 25)
        first, last = ceil(least), floor(n - least)
        values = np.take_along_axis(self.values, order, axis=1)[:, first - 1 : last + 1]
        cuts = values[:, :-1] < values[:, 1:]
        low = self.classes_below(order)[:, :, first - 1 : last]
        sizes = np.arange(first, last + 1)
        inside = self.bits(sizes, low) + self.bits(n - sizes, counts[:, None, None] - low)
        gains = np.where(cuts, total - inside / np.float32(n), np.float32(-np.inf))
        at = gains.argmax(axis=1)
        information = self.information(np.stack([sizes, n - sizes]))[at]
        found = []
        for i in np.flatnonzero(cuts.any(axis=1)):
            gain = gains[i, at[i]] - np.float32(np.log2(cuts[i].sum())) / np.float32(n)
            if gain > 0:
                threshold = self.threshold(int(i), values[i, at[i]], values[i, at[i] + 1])
                found.append(_Split(int(self.numbers[i]), gain, information[i], threshold))
        return found

    def classes_below(self, order: IntArray) -> IntArray:
        """(K, C, n) how many of the rows up to each position, sorted by each number, are of each class."""
        labels = self.labels[order]
        below = np.stack([(labels == label).cumsum(axis=1) for label in range(self.classes)])
        return below.astype(np.int64, copy=False)

    def threshold(self, number: int, low: float, high: float) -> float:
        """The largest value of all training rows that is not above the middle, rounded as YaDT rounds it."""
        distinct = self.distinct[number]
        return float(distinct[np.searchsorted(distinct, low + (high - low) / 2, side="right") - 1])


def _branches(values: FloatArray, threshold: float | None) -> IntArray:
    return (values if threshold is None else values > threshold).astype(np.int64)


def _sum_in_pairs(terms: SingleArray) -> SingleArray:
    """The sum over the first axis, rounded as in YaDT: of every other term, then both, then an even last one."""
    paired = terms[: len(terms) - 1 + len(terms) % 2]
    total = paired[::2].cumsum(axis=0)[-1]
    if len(paired) > 1:
        total = total + paired[1::2].cumsum(axis=0)[-1]
    return np.asarray(total + terms[-1] if len(terms) % 2 == 0 else total, dtype=np.float32)
