"""Growing Spheres: search ever wider shells around the row for an enemy, then reset small changes.

Laugel, Lesot, Marsala, Renard & Detyniecki 2018, "Comparison-based inverse classification for
interpretability in machine learning" (algorithms 1 and 2). With SL(x, a, b) = {z : a <= ||z - x||_2 <= b} and
n points at a time:

1. Halve the radius eta until n points drawn uniformly in the ball SL(x, 0, eta) hold no enemy.
2. Draw n points in SL(x, eta, 2 eta), then SL(x, 2 eta, 3 eta), ...: shells of equal thickness eta, until one
   holds an enemy; e is the enemy nearest to x.
3. Reset to x the feature of e with the smallest |e_j - x_j| that differs, as long as the class stays the
   enemy's.

Uniform in a shell: a uniform direction, and the radius b (q + (1 - q) U)^(1/d) with q = (a / b)^d and U
uniform.

Departures: the first eta is proportional to the root of the number of encoded columns, so that it means the same change
per column for every data set. ``one_hot: project`` moves each point to the nearest row (largest level of each category,
numbers at the steps of their columns) and resets whole columns; ``ignore`` is as published, without support for
categories. ``ranges: clip`` moves numbers to the nearest observed or allowed value; ``ignore`` is as published.
Immutable columns never move: the spheres are those of the other columns. (The adapter of CF-tabular doubles the radius
from shell to shell, through an array that two names share.) The paper searches without a limit; here the search ends
after ``layers`` shells (not seconds, so that the result does not depend on the machine). Each row has its own random
stream. Preset ``as-published``: :mod:`growing_spheres_published <.growing_spheres_published>`, any points, without
categories and ranges. As published, there is one counterfactual.

Several counterfactuals: the search goes on, from the shell that held the last enemy, for the nearest enemy that is at least
``minimum_distance`` away from the counterfactuals found so far and contains the changes of none; no change is reset that
would bring it closer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.explainers.growing_spheres_published import PublishedSpheres
from cfbench_tabular.explainers.spaced_sets import MinimumDistance, SpacedSets
from cfbench_tabular.table import BoolArray, FloatArray, IntArray, complete

SPEC = ComponentSpec(
    id="tabular/explainer/growing-spheres",
    summary="The nearest enemy among random points in growing shells, made sparse",
    target=f"{__name__}:GrowingSpheres",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("laugel2018comparison",),
    presets="cfbench_tabular:presets/growing-spheres.yaml",
    version="2",
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of sampled points that are held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config:
    samples: Annotated[int, Range(minimum=1), Help("points drawn in a shell, n")] = 1000
    loop: Annotated[
        Literal["cfbench", "published"],
        Help("published: as in the authors' code, with samples, radius, halvings and layers alone"),
    ] = "cfbench"
    radius: Annotated[
        float,
        Range(above=0),
        Help("first eta, in standard deviations per column; published: of all together"),
    ] = 0.1
    halvings: Annotated[int, Range(minimum=0), Help("at most; published: divisions by ten")] = 30
    layers: Annotated[int, Range(minimum=1), Help("maximum number of shells")] = 100
    one_hot: Annotated[Literal["project", "ignore"], Help("sample rows only, or any points as published")] = (
        "project"
    )
    ranges: Annotated[
        Literal["clip", "ignore"], Help("sample observed ranges only, or any numbers as published")
    ] = "clip"
    minimum_distance: MinimumDistance = 0.5


class GrowingSpheres:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), in the order in which they are found, mostly the nearest first; (B, d) for k = 1, or as published."""
        if self.config.loop == "published":
            return self._published(model, factuals, context).rows()
        search = ShellSearch(self.config, model, factuals, context)
        size = context.counterfactuals_per_instance
        sets = SpacedSets(factuals.vectors, size, context.encoding, self.config.minimum_distance)
        if search.free == 0:
            return sets.results()
        thickness = self._thickness(search)
        layer: IntArray = np.ones(len(factuals), dtype=np.int64)
        for _ in range(2 * size - 1):  # a counterfactual may take the place of others
            layer[sets.counts == size] = self.config.layers + 1
            enemies, layer = self._grown(search, thickness, layer, sets)
            rows = search.undo_small_changes(enemies, sets)
            for place in np.flatnonzero(complete(rows)).tolist():
                sets.add(place, rows[place])
        return sets.results()

    def _published(self, model: Classifier, factuals: Factuals, context: Context) -> PublishedSpheres:
        return PublishedSpheres(
            model,
            factuals.vectors,
            factuals.classes,
            ~context.encoding.immutable,
            [context.generator(unit) for unit in factuals.units],
            self.config.samples,
            self.config.radius,
            self.config.halvings,
            self.config.layers,
        )

    def _thickness(self, search: ShellSearch) -> FloatArray:
        """(B,) the radius halved until the ball of each factual holds no enemy."""
        thickness = np.full(len(search.factuals), self.config.radius * np.sqrt(search.free))
        shrinking = np.arange(len(thickness))
        for _ in range(self.config.halvings):
            enemies = search.nearest_enemies(shrinking, np.zeros(len(shrinking)), thickness[shrinking])
            shrinking = shrinking[complete(enemies)]
            if len(shrinking) == 0:
                break
            thickness[shrinking] /= 2
        return thickness

    def _grown(
        self, search: ShellSearch, thickness: FloatArray, layer: IntArray, sets: SpacedSets
    ) -> tuple[FloatArray, IntArray]:
        """(B, d) the nearest enemy in the first shell from number ``layer`` (B,) on that holds one that the set
        admits; NaN if none does. And (B,) the number of this shell; after the last one, ``layers`` + 1."""
        found, layer = no_counterfactuals(search.factuals), layer.copy()
        growing = np.flatnonzero(layer <= self.config.layers)
        while len(growing):
            inner, outer = (number * thickness[growing] for number in (layer[growing], layer[growing] + 1))
            found[growing] = search.nearest_enemies(growing, inner, outer, sets)
            growing = growing[~complete(found[growing])]
            layer[growing] += 1
            growing = growing[layer[growing] <= self.config.layers]
        return found, layer


class ShellSearch:
    """The random streams and model queries of both phases.

    ``centres`` (B, d): the middle of the shells of each factual, by default the factual itself, whose limits hold in any
    case.
    """

    def __init__(
        self,
        config: Config,
        model: Classifier,
        factuals: Factuals,
        context: Context,
        centres: FloatArray | None = None,
    ) -> None:
        self.config = config
        self.model = model
        self.factuals = factuals
        self.centres = factuals.vectors if centres is None else centres
        self.encoding = context.encoding
        self.streams = [context.generator(unit) for unit in factuals.units]
        self.free = int((~self.encoding.immutable).sum())
        self.limits = context.encoding.limits(factuals.vectors, config.ranges == "clip")
        self.low, self.high = self._limits()

    def nearest_enemies(
        self, members: IntArray, inner: FloatArray, outer: FloatArray, others: SpacedSets | None = None
    ) -> FloatArray:
        """(A, d) the nearest enemy among n points in the shell of each factual in ``members`` (A,), or NaN.

        inner, outer: (A,) the radii of the shells. others: the sets that have to admit the enemies.
        """
        found = np.full((len(members), self.encoding.width), np.nan)
        step = max(1, NUMBERS // (self.config.samples * self.encoding.width))
        for start in range(0, len(members), step):
            part = slice(start, start + step)
            points = self._draw(members[part], inner[part], outer[part])
            enemy = self._is_enemy(points, members[part])
            for at, factual in enumerate(members[part].tolist()):
                if others is not None and others.counts[factual]:
                    enemy[at] &= others.admits(points[at], factual)
            distances = ((points - self.centres[members[part], None]) ** 2).sum(axis=2)
            distances[~enemy] = np.inf
            nearest = distances.argmin(axis=1)
            hit = np.flatnonzero(np.isfinite(distances.min(axis=1)))
            found[start + hit] = points[hit, nearest[hit]]
        return found

    def undo_small_changes(self, enemies_found: FloatArray, others: SpacedSets | None = None) -> FloatArray:
        """Algorithm 2, for all counterfactuals (B, d) at once; rows of NaN are unchanged.

        others: the sets that have to admit them.
        """
        sparse = enemies_found.copy()
        starts = self._reset_groups()
        active = np.flatnonzero(complete(enemies_found))
        while len(active):
            squares = (sparse[active] - self.factuals.vectors[active]) ** 2
            sizes = np.add.reduceat(squares, starts, axis=1)
            sizes[sizes == 0] = np.inf
            smallest = sizes.argmin(axis=1)
            column_of_place = np.repeat(np.arange(len(starts)), np.diff([*starts, self.encoding.width]))
            undone = column_of_place[None, :] == smallest[:, None]
            tried = np.where(undone, self.factuals.vectors[active], sparse[active])
            enemy = predicted_classes(self.model, tried) != self.factuals.classes[active]
            if others is not None:
                enemy &= [
                    bool(others.admits(row, at)) for row, at in zip(tried, active.tolist(), strict=True)
                ]
            sparse[active[enemy]] = tried[enemy]
            active = active[enemy]
        return sparse

    def _draw(self, members: IntArray, inner: FloatArray, outer: FloatArray) -> FloatArray:
        n = self.config.samples
        points: FloatArray = np.empty((len(members), n, self.encoding.width))
        uniform = np.empty((len(members), n))
        for place, factual in enumerate(members):
            self.streams[factual].standard_normal(out=points[place])
            self.streams[factual].random(out=uniform[place])
        if self.encoding.immutable.any():
            points[:, :, self.encoding.immutable] = 0.0
        share = ((inner / outer) ** self.free)[:, None]
        radii = outer[:, None] * (share + (1 - share) * uniform) ** (1 / self.free)
        points *= (radii / np.sqrt(np.einsum("and,and->an", points, points)))[:, :, None]
        points += self.centres[members, None]
        if self.config.one_hot == "project":
            points = self.limits.projected(points, members)
        np.clip(points, self.low[members, None], self.high[members, None], out=points)
        return points

    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """(B, d) and (B, d): the lower and upper limits of the points."""
        low, high = self.encoding.allowed(self.factuals.vectors)
        bound = self.encoding.immutable
        if self.config.one_hot == "project":
            bound = bound | ~self.encoding.numeric
        if self.config.ranges == "clip":
            bound = bound | self.encoding.numeric
        return np.where(bound, low, -np.inf), np.where(bound, high, np.inf)

    def _is_enemy(self, points: FloatArray, members: IntArray) -> BoolArray:
        """(A, n) for points (A, n, d)."""
        classes = predicted_classes(self.model, points.reshape(-1, points.shape[2])).reshape(points.shape[:2])
        enemy: BoolArray = classes != self.factuals.classes[members, None]
        return enemy

    def _reset_groups(self) -> list[int]:
        """The first positions of the groups of positions that are reset together."""
        if self.config.one_hot == "ignore":
            return list(range(self.encoding.width))
        return [block.start for block in self.encoding.blocks]
