"""An ensemble of trees with sigmoids in place of its tests, and its gradient (Lucic et al. 2022, equations 6 to 8).

A node with threshold t sends the share sigma(s (x - t)) of a row to the right and the rest to the left; a leaf
receives the product of the shares on its path, and the tree is the sum of its leaves weighted by these. With growing
sharpness s it becomes the tree itself. Rows do not influence each other.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.special import expit

from cfbench_tabular.classifiers.trees import Trees
from cfbench_tabular.table import FloatArray, IntArray


class SoftTrees:
    """The trees with their nodes ordered by depth, so that each level is a slice.

    Attributes:
        nodes: J, the number of nodes.
    """

    def __init__(self, trees: Trees, sharpness: FloatArray) -> None:
        """sharpness: (d,) s of each position."""
        depth = _depths(trees)
        order = np.argsort(depth, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        self.nodes = len(order)
        self._leaves = trees.left[order] == order
        self._value = np.where(self._leaves, trees.value[order], 0.0)
        self._feature = trees.feature[order].astype(np.int64)
        self._threshold = trees.threshold[order]
        self._left, self._right = place[trees.left[order]], place[trees.right[order]]
        self._sharpness, self._width = sharpness, len(sharpness)
        self._trees = len(trees.roots)
        ends = np.searchsorted(depth[order], np.arange(depth.max() + 2))
        self._levels = [
            begin + np.flatnonzero(~self._leaves[begin:end]) for begin, end in pairwise(ends.tolist())
        ]

    def total(self, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n,) the sum of the soft trees for rows (n, d), and (n, d) its gradient."""
        count = len(vectors)
        slope = self._sharpness[self._feature]
        right = expit(slope * (vectors[:, self._feature] - self._threshold))
        share = np.ones((count, self.nodes))
        for level in self._levels:
            share[:, self._right[level]] = share[:, level] * right[:, level]
            share[:, self._left[level]] = share[:, level] * (1 - right[:, level])
        below = np.repeat(self._value[None], count, axis=0)
        for level in reversed(self._levels):
            first, second = below[:, self._left[level]], below[:, self._right[level]]
            below[:, level] = first + right[:, level] * (second - first)
        inner: IntArray = np.concatenate(self._levels)
        change = below[:, self._right[inner]] - below[:, self._left[inner]]
        flow = share[:, inner] * change * (right[:, inner] * (1 - right[:, inner])) * slope[inner]
        at = self._feature[inner][None] + self._width * np.arange(count)[:, None]
        gradient = np.bincount(at.ravel(), flow.ravel(), minlength=count * self._width).astype(np.float64)
        totals: FloatArray = below[:, : self._trees].sum(axis=1)
        return totals, gradient.reshape(count, self._width)


def _depths(trees: Trees) -> IntArray:
    """(J,) the number of tests above each node."""
    depth = np.zeros(len(trees.left), dtype=np.int64)
    level: IntArray = trees.roots.astype(np.int64)
    while len(level):
        inner = level[trees.left[level] != level]
        children = np.concatenate([trees.left[inner], trees.right[inner]]).astype(np.int64)
        depth[children] = np.concatenate([depth[inner], depth[inner]]) + 1
        level = children
    return depth
