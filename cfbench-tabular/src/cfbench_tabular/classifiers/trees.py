"""Decision trees as arrays, stored without pickle and evaluated without scikit-learn, with identical results.

The nodes of all trees are concatenated. Node j tests whether column ``feature[j]`` is at most ``threshold[j]`` and
continues at ``left[j]``, else at ``right[j]``; a leaf continues at itself. Like scikit-learn, it compares 32-bit
columns with 64-bit thresholds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_tabular.table import FloatArray

Index = np.ndarray[tuple[int, ...], np.dtype[np.int32]]

AT_ONCE = 1 << 16
"""Pairs of row and tree that are followed at once: many enough for vectorisation, few enough for the cache."""


@dataclass(frozen=True)
class Trees:
    """T trees with J nodes in total.

    Attributes:
        roots: (T,) their first nodes.
        feature, left, right: (J,).
        threshold: (J,).
        value: (J,) the values of the leaves.
    """

    roots: Index
    feature: Index
    threshold: FloatArray
    left: Index
    right: Index
    value: FloatArray

    @staticmethod
    def of(estimators: Sequence[Any], values: Sequence[FloatArray]) -> Trees:
        """From trees of scikit-learn and the values of their nodes."""
        trees = [estimator.tree_ for estimator in estimators]
        sizes = [tree.node_count for tree in trees]
        roots = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
        own = np.arange(sum(sizes), dtype=np.int32)
        first = np.repeat(roots, sizes)

        def joined(name: str) -> Any:
            return np.concatenate([getattr(tree, name) for tree in trees])

        left, right = joined("children_left"), joined("children_right")
        leaf = left < 0
        return Trees(
            roots,
            np.where(leaf, 0, joined("feature")).astype(np.int32),
            joined("threshold").astype(np.float64),
            np.where(leaf, own, first + left).astype(np.int32),
            np.where(leaf, own, first + right).astype(np.int32),
            np.concatenate(values).astype(np.float64),
        )

    def total(self, vectors: FloatArray) -> FloatArray:
        """(n,) the sum of the values of all trees for rows (n, d)."""
        numbers = np.ascontiguousarray(vectors, dtype=np.float32)
        totals = np.empty(len(numbers))
        step = max(1, AT_ONCE // len(self.roots))
        for start in range(0, len(numbers), step):
            block = numbers[start : start + step]
            totals[start : start + step] = self.value[self._leaves(block)].sum(axis=1)
        return totals

    def _leaves(self, rows: np.ndarray[Any, Any]) -> Index:
        """(n, T) the leaf of each row in each tree. Pairs that have reached a leaf are not followed further."""
        count, width = rows.shape
        flat = rows.ravel()
        arrived = np.tile(self.roots, count)
        moving = np.arange(len(arrived))
        node, base = arrived, np.repeat(np.arange(count) * width, len(self.roots))
        while len(moving):
            low = flat[base + self.feature[node]] <= self.threshold[node]
            after = np.where(low, self.left[node], self.right[node])
            on = self.left[after] != after
            arrived[moving] = after
            moving, node, base = moving[on], after[on], base[on]
        return arrived.reshape(count, -1)

    def state(self) -> dict[str, np.ndarray[Any, Any]]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @staticmethod
    def from_state(state: Mapping[str, np.ndarray[Any, Any]]) -> Trees:
        return Trees(**{name: np.asarray(state[name]) for name in Trees.__dataclass_fields__})
