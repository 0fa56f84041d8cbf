"""LORE: a decision tree of a genetic neighbourhood of the row, and its nearest rule of the other class.

Guidotti, Monreale, Giannotti, Pedreschi, Ruggieri & Turini 2019, "Factual and counterfactual explanations for
black box decision making" (first 2018 as "Local rule-based explanations of black box decision systems").

1. Two populations of ``population`` / 2 copies of x are bred for ``generations``, one for each fitness

       same class:   [M(z) = M(x)]  + 1 - d(x, z) - [z = x]
       other class:  [M(z) != M(x)] + 1 - d(x, z) - [z = x]   (P(other class | z) for [...] where that is 0)

   d = h/m (share of the h categories that differ) + (m - h)/m (root mean square of (x_j - z_j) / range_j over
   the m - h numbers). Each generation: tournaments of three, two-point crossover of neighbours with probability
   ``crossover``, and each column set with probability ``mutation`` to what a random training row has there.
2. A decision tree (entropy) is fitted to the predictions of the model for both populations.
3. Each leaf of the other class is a rule: the conditions on its path. Rules that x violates in the fewest columns come
   first (of those, the nearest). The counterfactual is x with these columns changed to satisfy the rule: a number moves
   to the threshold (the next value of its column that satisfies the rule), a category to the required level, or else to
   the most frequent one in the leaf.

The tree only approximates the model, so the model predicts each candidate. If the class does not change, the columns
of the rule take their values from the nearest row of the leaf; then the next rules are tried. Without a candidate in
the other class, no counterfactual is found. Classes are those of the model, p1 > p0 (the adapter of CF-tabular
truncates p to 0, which puts every row into one class).

Departures: while the other class is not reached its probability counts, since with the bare indicator nothing
leads there. The tree is scikit-learn's instead of C4.5, so it splits categories level by level. The paper gives
rules, rows are ours; where it takes many columns at once to change the class, the short rules of a tree do not,
and no counterfactual is found. The neighbourhood respects immutable and one-way columns, so no rule violates them.

Details: ``fidelity``, the share of the neighbourhood where tree and model agree; ``rule_length``, the number
of columns in the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/lore",
    summary="The nearest rule of the other class in a tree fitted to a genetic neighbourhood",
    target=f"{__name__}:LORE",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    papers=("guidotti2019factual",),
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of neighbours that are held in memory at once."""
TOURNAMENT = 3


@dataclass(frozen=True, kw_only=True)
class Config:
    population: Annotated[int, Range(minimum=8), Help("neighbours, half for each class")] = 1000
    generations: Annotated[int, Range(minimum=1), Help("of breeding")] = 10
    crossover: Annotated[float, Range(minimum=0, maximum=1), Help("probability for a pair")] = 0.5
    mutation: Annotated[float, Range(minimum=0, maximum=1), Help("probability for a column")] = 0.2
    leaf: Annotated[int, Range(minimum=1), Help("neighbours in a leaf of the tree at least")] = 2


class LORE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows = no_counterfactuals(factuals)
        fidelity, length = (np.full(len(factuals), np.nan) for _ in range(2))
        half = self.config.population // 4 * 2  # even, for pairs
        step = max(1, NUMBERS // (2 * half * context.encoding.width))
        for start in range(0, len(factuals), step):
            part = slice(start, start + step)
            streams = [context.generator(unit) for unit in factuals.units[part]]
            breeding = _Breeding(self.config, model, context, streams, half)
            found, classes = breeding.neighbours(factuals.vectors[part], factuals.classes[part])
            for place, stream in enumerate(streams, start):
                rows, labels = found[place - start], classes[place - start]
                tree = self._tree(rows, labels, stream)
                fidelity[place] = float((tree.predict(rows) == labels).mean())
                label = int(factuals.classes[place])
                leaf = tree.apply(rows)
                rules = _rules(tree, context.encoding, factuals.vectors[place], label, rows, labels, leaf)
                tried = np.array([row for rule in rules for row in rule.rows]).reshape(-1, rows.shape[1])
                good = np.flatnonzero(predicted_classes(model, tried) != label)
                if len(good):
                    found_rows[place] = tried[good[0]]
                    length[place] = rules[good[0] // 2].length
        return Explanation(found_rows, {"fidelity": fidelity, "rule_length": length})

    def _tree(self, rows: FloatArray, labels: IntArray, stream: np.random.Generator) -> Any:
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(
            criterion="entropy", min_samples_leaf=self.config.leaf, random_state=int(stream.integers(2**31))
        )
        return tree.fit(rows, labels)


class _Breeding:
    """The two populations of A factuals: (A, 2, H, d), those for the same class first."""

    def __init__(
        self,
        config: Config,
        model: Classifier,
        context: Context,
        streams: Sequence[np.random.Generator],
        half: int,
    ) -> None:
        self.config, self.model, self.context, self.streams, self.half = config, model, context, streams, half
        self.encoding = context.encoding
        self.starts = [block.start for block in self.encoding.blocks]

    def neighbours(self, rows: FloatArray, classes: IntArray) -> tuple[FloatArray, IntArray]:
        """(A, N, d) and the classes (A, N) that the model gives them."""
        current = np.tile(rows[:, None, None], (1, 2, self.half, 1))
        low, high = (side[:, None, None] for side in self.encoding.allowed(rows))
        found = self._predicted(current)
        for _ in range(self.config.generations):
            bred = self._crossed(self._selected(current, self._fitness(current, rows, classes, found)))
            current = allowed_only(self.encoding, low, high, rows[:, None, None], self._mutated(bred))
            found = self._predicted(current)
        labels = (found[..., 1] > found[..., 0]).astype(np.int64)
        return current.reshape(len(rows), -1, rows.shape[1]), labels.reshape(len(rows), -1)

    def _predicted(self, current: FloatArray) -> FloatArray:
        """(A, 2, H, 2) probabilities of class 0 and class 1."""
        flat = current.reshape(-1, current.shape[-1])
        return probabilities(self.model, flat).reshape(*current.shape[:-1], 2)

    def _fitness(
        self, current: FloatArray, rows: FloatArray, classes: IntArray, found: FloatArray
    ) -> FloatArray:
        """(A, 2, H)."""
        distance = self._distance(current, rows[:, None, None])
        wanted = np.stack([classes, 1 - classes], axis=1)[:, :, None]
        reached = (found[..., 1] > found[..., 0]) == (wanted == 1)
        chance = np.where(wanted == 1, found[..., 1], found[..., 0])
        return np.asarray(np.where(reached, 1.0, chance) + 1 - distance - (distance == 0))

    def _distance(self, current: FloatArray, rows: FloatArray) -> FloatArray:
        encoding = self.encoding
        low, high = encoding.bounds
        numeric = encoding.numeric
        span = np.where(high > low, high - low, 1.0)[numeric]
        numbers = (((current - rows)[..., numeric] / span) ** 2).sum(axis=-1)
        categories = len(encoding.columns) - numeric.sum()
        distance = np.sqrt(numbers * numeric.sum()) / len(encoding.columns)
        if categories:
            changed = np.logical_or.reduceat(current != rows, self.starts, axis=-1)
            distance += changed[..., ~numeric[self.starts]].sum(axis=-1) / len(encoding.columns)
        return np.asarray(distance)

    def _selected(self, current: FloatArray, fitness: FloatArray) -> FloatArray:
        """Tournament selection: the fittest of three random neighbours."""
        shape = (2, self.half, TOURNAMENT)
        drawn = np.stack([stream.integers(self.half, size=shape) for stream in self.streams])
        who, kind = np.arange(len(current))[:, None, None], np.arange(2)[None, :, None]
        best = fitness[who[..., None], kind[..., None], drawn].argmax(axis=-1)
        winner = np.take_along_axis(drawn, best[..., None], axis=-1)[..., 0]
        return np.asarray(current[who, kind, winner])

    def _crossed(self, current: FloatArray) -> FloatArray:
        """Neighbours exchange the columns between two cuts."""
        columns = len(self.starts)
        shape = (2, self.half // 2)
        cuts = np.stack([s.integers(columns + 1, size=(*shape, 2)) for s in self.streams])
        cuts.sort(axis=-1)
        crossing = np.stack([s.random(shape) for s in self.streams]) < self.config.crossover
        number = np.arange(columns)
        between = (number >= cuts[..., :1]) & (number < cuts[..., 1:]) & crossing[..., None]
        exchanged = np.repeat(between, 2, axis=2)[..., self.encoding.column_of]
        partner = np.arange(self.half) ^ 1
        return np.where(exchanged, current[:, :, partner], current)

    def _mutated(self, current: FloatArray) -> FloatArray:
        background, columns = self.context.background, len(self.starts)
        shape = (2, self.half, columns)
        changed = np.stack([s.random(shape) for s in self.streams]) < self.config.mutation
        donors = np.stack([s.integers(len(background), size=shape) for s in self.streams])
        who, kind, which, column = np.nonzero(changed)
        mutated = current.copy()
        for number, block in enumerate(self.encoding.blocks):
            here = column == number
            places = who[here], kind[here], which[here]
            mutated[(*places, block)] = background[donors[(*places, number)], block]
        return mutated


@dataclass(frozen=True)
class _Rule:
    """A leaf of the other class: two rows that satisfy it, and its conditions.

    Attributes:
        rows: (2, d) one at its thresholds, one with the values of its nearest neighbour.
        violated, length: the number of columns in which the factual violates the rule, and of columns in the rule.
    """

    rows: FloatArray
    violated: int
    length: int
    distance: float


def _rules(
    tree: Any,
    encoding: Encoding,
    row: FloatArray,
    label: int,
    rows: FloatArray,
    labels: IntArray,
    leaf: IntArray,
) -> list[_Rule]:
    """The rules of the other class, in the order in which they are tried."""
    rules, limits = [], encoding.limits(row[None])
    for node, low, high in _leaves(tree.tree_, len(row)):
        inside = leaf == node
        members = rows[inside & (labels != label)]
        if 2 * len(members) <= inside.sum():
            continue
        used = ~np.isinf(low) | ~np.isinf(high)
        violated = (row <= low) | (row > high)
        columns, wrong = (np.unique(encoding.column_of[places]) for places in (used, violated))
        moved = limits.snapped(_satisfied(encoding, row, low, high, members, wrong.tolist())[None])[0]
        nearest = members[((members - row) ** 2).sum(axis=1).argmin()]
        taken = np.where(np.isin(encoding.column_of, wrong), nearest, row)
        distance = float(np.linalg.norm(moved - row))
        rules.append(_Rule(np.stack([moved, taken]), len(wrong), len(columns), distance))
    return sorted(rules, key=lambda rule: (rule.violated, rule.distance))


def _leaves(tree: Any, width: int) -> list[tuple[int, FloatArray, FloatArray]]:
    """Each leaf with the limits of its path: low (d,) < value <= high (d,)."""
    found: list[tuple[int, FloatArray, FloatArray]] = []
    waiting: list[tuple[int, FloatArray, FloatArray]] = [(0, np.full(width, -np.inf), np.full(width, np.inf))]
    while waiting:
        node, low, high = waiting.pop()
        if tree.children_left[node] < 0:
            found.append((node, low, high))
            continue
        place, threshold = tree.feature[node], tree.threshold[node]
        below, above = high.copy(), low.copy()
        below[place], above[place] = min(high[place], threshold), max(low[place], threshold)
        waiting.append((int(tree.children_right[node]), above, high))
        waiting.append((int(tree.children_left[node]), low, below))
    return found


def _rounded(encoding: Encoding, position: int, value: float, down: bool) -> float:
    """The next value of the column that still satisfies the condition; the same without a step."""
    grid = encoding.grid
    at = np.flatnonzero(grid.positions == position)
    if not len(at):
        return value
    multiples = np.zeros(len(grid))
    multiples[at] = grid.multiples(np.full(len(grid), value))[at]
    return float(grid.at(np.floor(multiples) if down else np.ceil(multiples))[at[0]])


def _satisfied(
    encoding: Encoding,
    row: FloatArray,
    low: FloatArray,
    high: FloatArray,
    members: FloatArray,
    wrong: list[int],
) -> FloatArray:
    """(d,) the row with the columns ``wrong`` moved to where the rule low < value <= high holds."""
    moved = row.copy()
    for column in wrong:
        block = encoding.blocks[column]
        if encoding.columns[column].scalar:
            step = 1e-6 * max(1.0, abs(low[block][0]))  # thresholds are compared in single precision
            down = bool(row[block][0] > high[block][0])
            moved[block] = high[block] if down else low[block] + step
            moved[block] = _rounded(encoding, block.start, float(moved[block.start]), down)
        elif block.stop - block.start == 1:
            moved[block] = 1 - row[block]
        else:
            fits = (low[block] < 1) & (high[block] >= 1)
            level = np.where(fits, members[:, block].sum(axis=0), -1.0).argmax()
            moved[block] = np.eye(len(fits))[level]
    return moved
