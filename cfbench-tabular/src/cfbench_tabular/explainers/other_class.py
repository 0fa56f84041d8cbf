"""The nearest training points of the other class, for ALIBIC's prototypes and the starts of its refinement."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import cKDTree

from cfbench_tabular.table import FloatArray, IntArray


class OtherClass:
    """Known points (k, M) of the classes 0 and 1 (k,), with one k-d tree for each class, built when it is first used."""

    def __init__(self, known: FloatArray, classes: IntArray) -> None:
        self._than = [known[classes != label] for label in (0, 1)]
        self._trees: dict[int, cKDTree] = {}

    def _tree(self, label: int) -> cKDTree:
        """The tree of the points of another class than ``label``."""
        if label not in self._trees:
            self._trees[label] = cKDTree(self._than[label])
        return self._trees[label]

    def _members(self, classes: IntArray) -> Iterator[tuple[int, IntArray, FloatArray]]:
        """Of each class (n,) that has points of the other class: its label, its members, and those points."""
        for label, enemies in enumerate(self._than):
            members = np.flatnonzero(classes == label)
            if len(enemies) and len(members):
                yield label, members, enemies

    def _nearest(self, label: int, points: FloatArray, count: int) -> FloatArray:
        """(n, count, M) the nearest points of another class than ``label``, or as many as there are."""
        enemies = self._than[label]
        _, nearest = self._tree(label).query(points, k=np.arange(1, min(count, len(enemies)) + 1))
        found: FloatArray = enemies[nearest]
        return found

    def nearest_means(self, points: FloatArray, classes: IntArray, neighbours: int) -> FloatArray:
        """(n, M) the mean of the nearest known points of another class than ``classes`` (n,); NaN where there is none."""
        found = np.full_like(points, np.nan)
        for label, members, _ in self._members(classes):
            found[members] = self._nearest(label, points[members], neighbours).mean(axis=1)
        return found

    def nearest_rows(
        self,
        points: FloatArray,
        classes: IntArray,
        count: int,
        inside: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """(n, count, M) the nearest known points of the other class, the nearest first; NaN where there are no more.

        inside: (n, M) lower and upper limits for each of the points (n, M); None if all known points are within them.
        """
        found = np.full((len(points), count, points.shape[1]), np.nan)
        if count == 0:
            return found
        for label, members, enemies in self._members(classes):
            if inside is None:
                nearest = self._nearest(label, points[members], count)
                found[members, : nearest.shape[1]] = nearest
                continue
            for place in members:
                low, high = (side[place] for side in inside)
                admissible = enemies[((low <= enemies) & (enemies <= high)).all(axis=1)]
                distances = ((admissible - points[place]) ** 2).sum(axis=1)
                order = np.argsort(distances, kind="stable")[:count]
                found[place, : len(order)] = admissible[order]
        return found
