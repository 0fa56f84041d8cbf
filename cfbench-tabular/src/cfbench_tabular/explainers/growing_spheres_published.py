"""Growing Spheres as in its authors' code (Laugel et al. 2018): ``loop: published``.

Read from github.com/thibaultlaugel/growingspheres (``growingspheres.py``), which differs from the paper:

- The ball begins with radius 0.1 in every dimension and is divided by ten in place of two until its points hold no enemy,
  and once more then. The shells begin at this radius, and each is a tenth of it thick.
- Points of the ball are the first d coordinates of points on the unit sphere of d + 2 dimensions, times the radius.
- Every change is tried once, the smallest first, and reset where the class stays the enemy's; the paper stops at the
  first change that cannot be reset.

The code searches without end where there is no enemy; here after ``layers`` shells. Immutable columns, which it does not
know, never move: the spheres are those of the other columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SHRINKING = 10.0
"""``dicrease_radius`` of the code."""

NUMBERS = 4_000_000
"""Maximum number of coordinates of sampled points that are held in memory at once."""


@dataclass
class PublishedSpheres:
    """The search for factuals (B, d).

    Attributes:
        free: (d,) the positions that may move.
        streams: the random numbers of each factual.
        samples, radius, halvings, layers: the options of the explainer.
    """

    model: Classifier
    vectors: FloatArray
    classes: IntArray
    free: BoolArray
    streams: list[np.random.Generator]
    samples: int
    radius: float
    halvings: int
    layers: int

    def rows(self) -> FloatArray:
        """(B, d) counterfactuals; NaN where no shell holds an enemy."""
        found = np.full_like(self.vectors, np.nan)
        if self.free.any():
            step = max(1, NUMBERS // (self.samples * self.vectors.shape[1]))
            for start in range(0, len(found), step):
                part = np.arange(start, min(start + step, len(found)))
                found[part] = self._nearest_enemies(part)
            for place in np.flatnonzero(complete(found)).tolist():
                found[place] = self._sparse(place, found[place])
        return found

    def _nearest_enemies(self, factuals: IntArray) -> FloatArray:
        """(A, d) the nearest enemy in the first shell that holds one, or NaN."""
        found = np.full((len(factuals), self.vectors.shape[1]), np.nan)
        radii = self._first_radii(factuals)
        thickness = radii / SHRINKING
        growing = np.arange(len(factuals))
        for _ in range(self.layers):
            inner = radii[growing]
            found[growing] = self._nearest(
                factuals[growing], self._shells(factuals[growing], inner, inner + thickness[growing])
            )
            radii[growing] = inner + thickness[growing]
            growing = growing[~complete(found[growing])]
            if len(growing) == 0:
                break
        return found

    def _first_radii(self, factuals: IntArray) -> FloatArray:
        """(A,) the radii at which the shells begin."""
        radii: FloatArray = np.full(len(factuals), self.radius)
        shrinking = np.arange(len(factuals))
        for _ in range(self.halvings):
            enemies = self._nearest(factuals[shrinking], self._balls(factuals[shrinking], radii[shrinking]))
            radii[shrinking] /= SHRINKING
            shrinking = shrinking[complete(enemies)]
            if len(shrinking) == 0:
                break
        return radii

    def _balls(self, factuals: IntArray, radii: FloatArray) -> FloatArray:
        """(A, n, d) points in the balls."""
        size = int(self.free.sum())
        drawn = [self.streams[factual].normal(size=(self.samples, size + 2)) for factual in factuals.tolist()]
        directions = np.stack(drawn)
        directions /= np.linalg.norm(directions, axis=2, keepdims=True)
        return self._placed(factuals, directions[:, :, :size] * radii[:, None, None])

    def _shells(self, factuals: IntArray, inner: FloatArray, outer: FloatArray) -> FloatArray:
        """(A, n, d) points uniform in the shells."""
        size = int(self.free.sum())
        moves = np.empty((len(factuals), self.samples, size))
        for place, (factual, low, high) in enumerate(zip(factuals.tolist(), inner, outer, strict=True)):
            directions = self.streams[factual].normal(size=(self.samples, size))
            volumes = self.streams[factual].uniform(low**size, high**size, self.samples)
            distances = volumes ** (1.0 / size)
            moves[place] = directions * distances[:, None] / np.linalg.norm(directions, axis=1)[:, None]
        return self._placed(factuals, moves)

    def _placed(self, factuals: IntArray, moves: FloatArray) -> FloatArray:
        """(A, n, d) the factuals with the moves (A, n, free positions) added."""
        if self.free.all():
            return moves + self.vectors[factuals, None]
        points = np.repeat(self.vectors[factuals, None], self.samples, axis=1)
        points[:, :, self.free] += moves
        return points

    def _nearest(self, factuals: IntArray, points: FloatArray) -> FloatArray:
        """(A, d) of the points (A, n, d) the enemy that is nearest to each factual, or NaN."""
        classes = predicted_classes(self.model, points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        distances = ((points - self.vectors[factuals, None]) ** 2).sum(axis=2)
        distances[classes == self.classes[factuals, None]] = np.inf
        nearest = points[np.arange(len(points)), distances.argmin(axis=1)]
        return np.where(np.isfinite(distances.min(axis=1))[:, None], nearest, np.nan)

    def _sparse(self, factual: int, enemy: FloatArray) -> FloatArray:
        """(d,) the enemy with the changes reset that can be, one after the other."""
        row, sparse = self.vectors[factual], enemy.copy()
        changes = np.abs(enemy - row)
        for position in np.argsort(changes, kind="stable").tolist():
            if changes[position] > 0:
                tried = sparse.copy()
                tried[position] = row[position]
                if predicted_classes(self.model, tried[None])[0] != self.classes[factual]:
                    sparse = tried
        return sparse
