"""Decision trees as arrays: kept without pickle, predicted without scikit-learn, to the last bit the same.

All trees lie one after the other. Node j asks whether column ``feature[j]`` is at most ``threshold[j]`` and goes on
at ``left[j]``, else at ``right[j]``; a leaf goes on at itself. scikit-learn compares 32-bit columns with 64-bit
thresholds, so this does too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cfbench_tabular.table import FloatArray

Index = np.ndarray[tuple[int, ...], np.dtype[np.int32]]

AT_ONCE = 1 << 16
"""Places in trees that are followed together: enough to hide Python, few enough for the cache."""


@dataclass(frozen=True)
class Trees:
    """T trees with J nodes in all.

    Attributes:
        roots: (T,) their first nodes.
        feature, left, right: (J,).
        threshold: (J,).
        value: (J,) what a leaf says.
    """

    roots: Index
    feature: Index
    threshold: FloatArray
    left: Index
    right: Index
    value: FloatArray

    @staticmethod
    def of(estimators: Sequence[Any], values: Sequence[FloatArray]) -> Trees:
        """From scikit-learn's trees and what to keep of each of their nodes."""
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
        """(n,) the sum of what all trees say of the rows (n, d)."""
        numbers = np.ascontiguousarray(vectors, dtype=np.float32)
        totals = np.empty(len(numbers))
        step = max(1, AT_ONCE // len(self.roots))
        for start in range(0, len(numbers), step):
            block = numbers[start : start + step]
            totals[start : start + step] = self.value[self._leaves(block)].sum(axis=1)
        return totals

    def _leaves(self, rows: np.ndarray[Any, Any]) -> Index:
        """(n, T) the leaf of each row in each tree. Those that have arrived are not followed any further."""
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
