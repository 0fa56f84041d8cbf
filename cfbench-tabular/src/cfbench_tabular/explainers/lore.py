"""LORE: a decision tree of a genetic neighbourhood of the row, and its nearest rule of the other class.

Guidotti, Monreale, Giannotti, Pedreschi, Ruggieri & Turini 2019, "Factual and counterfactual explanations for
black box decision making" (first 2018 as "Local rule-based explanations of black box decision systems").

1. Two populations of ``population`` / 2 rows are bred for ``generations``, one for each fitness

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

In the paper the populations begin as copies of x (``start: copies``), have 1,000 rows and are bred for ten
generations. By default the first generation is a mixture (``start: enemies``): of the other class, x with a random share
of the columns of one of the 50 nearest among 1,000 random training rows of that class; of the same class, x with
mutations. Half of the rows and one generation then give counterfactuals as near with a tenth of the queries. Factuals
without a counterfactual are searched again with the paper's numbers (``again``).

The preset ``as-published`` follows the authors' code instead (``loop: published``, :mod:`lore_published`), which differs
from the paper, and gives one counterfactual.

Departures of the default: while the other class is not reached its probability counts, since with the bare indicator nothing
leads there. The tree is scikit-learn's instead of C4.5, so it splits categories level by level. The paper gives
rules, rows are ours; where it takes many columns at once to change the class, the short rules of a tree do not,
and no counterfactual is found. The neighbourhood respects immutable and one-way columns, so no rule violates them.

Several counterfactuals: each further rule gives one, unless it is closer than ``minimum_distance`` to an earlier one,
or contains the changes of another one.

Details: ``fidelity``, the share of the neighbourhood where tree and model agree; ``rule_length``, the number
of columns in the rule of the first counterfactual.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Explanation, Factuals
from cfbench_tabular.explainers.lore_neighbourhood import Neighbourhoods
from cfbench_tabular.explainers.lore_published import PublishedSearch
from cfbench_tabular.explainers.lore_rules import Candidates, candidates_in_turn, rules_of
from cfbench_tabular.explainers.spaced_sets import MinimumDistance, SpacedSets
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/lore",
    summary="The nearest rule of the other class in a tree fitted to a genetic neighbourhood",
    target=f"{__name__}:LORE",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("guidotti2019factual",),
    presets="cfbench_tabular:presets/lore.yaml",
)


NUMBERS = 500_000
"""Maximum number of coordinates of neighbours that are bred at once: few enough for the processor's cache."""

LONG_SEARCH: Mapping[str, Any] = {"start": "copies", "population": 1000, "generations": 10}


@dataclass(frozen=True, kw_only=True)
class Config:
    loop: Annotated[
        Literal["cfbench", "published"],
        Help(
            "published: as in the authors' code, with population, generations, crossover and mutation alone"
        ),
    ] = "cfbench"
    start: Annotated[
        Literal["enemies", "copies"],
        Help("first generation: mixed with near rows of the other class, or copies of the factual"),
    ] = "enemies"
    population: Annotated[int, Range(minimum=8), Help("neighbours, half for each class")] = 500
    generations: Annotated[int, Range(minimum=1), Help("of breeding")] = 1
    again: Annotated[bool, Help("search longer, from copies, where no counterfactual was found")] = True
    crossover: Annotated[float, Range(minimum=0, maximum=1), Help("probability for a pair")] = 0.5
    mutation: Annotated[float, Range(minimum=0, maximum=1), Help("probability for a column")] = 0.2
    leaf: Annotated[int, Range(minimum=1), Help("neighbours in a leaf of the tree at least")] = 2
    minimum_distance: MinimumDistance = 0.5


class LORE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        """(B, k, d), those of the rules that take the fewest columns first; (B, d) for k = 1, or as published."""
        if self.config.loop == "published":
            return _published(self.config, model, context).explanation(factuals)
        rows, fidelity, length = _searched(self.config, model, factuals, context)
        left = np.flatnonzero(np.isnan(length))
        if self.config.again and len(left):
            longer = replace(self.config, **LONG_SEARCH)
            found = _searched(longer, model, _some(factuals, left), context)
            rows[left], fidelity[left], length[left] = found
        return Explanation(rows, {"fidelity": fidelity, "rule_length": length})


def _published(config: Config, model: Classifier, context: Context) -> PublishedSearch:
    return PublishedSearch(
        model,
        context,
        population=config.population,
        generations=config.generations,
        crossover=config.crossover,
        mutation=config.mutation,
    )


def _some(factuals: Factuals, which: IntArray) -> Factuals:
    units = tuple(factuals.units[place] for place in which.tolist())
    return Factuals(factuals.vectors[which], factuals.classes[which], units)


def _searched(
    config: Config, model: Classifier, factuals: Factuals, context: Context
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(B, k, d) or (B, d) counterfactuals or NaN, and the details (B,)."""
    width, size = context.encoding.width, context.counterfactuals_per_instance
    sets = SpacedSets(factuals.vectors, size, context.encoding, config.minimum_distance)
    fidelity, length = (np.full(len(factuals), np.nan) for _ in range(2))
    half = config.population // 4 * 2  # even, for pairs
    step = max(1, NUMBERS // (2 * half * width))
    neighbourhoods = Neighbourhoods(config, model, context, half)
    for start in range(0, len(factuals), step):
        part = slice(start, start + step)
        streams = [context.generator(unit) for unit in factuals.units[part]]
        bred = neighbourhoods.bred(factuals.vectors[part], factuals.classes[part], streams)
        for place, (rows, labels, stream) in enumerate(zip(*bred, streams, strict=True), start):
            row, label = factuals.vectors[place], int(factuals.classes[place])
            tree, leaf = _tree(config, rows, labels, stream)
            enemies = labels != label
            other, total = (np.bincount(part, minlength=tree.node_count) for part in (leaf[enemies], leaf))
            fidelity[place] = np.maximum(other, total - other).sum() / len(rows)
            rules = rules_of(tree, np.flatnonzero(2 * other > total), row, context.encoding)
            groups = candidates_in_turn(rules, row, rows[enemies], leaf[enemies], context.encoding)
            for candidate, columns in _valid(groups, model, label):
                if sets.add(place, candidate) and np.array_equal(sets.rows[place, 0], candidate):
                    length[place] = columns
                if sets.full(place):
                    break
    return sets.results(), fidelity, length


def _valid(
    groups: Iterable[list[Candidates]], model: Classifier, label: int
) -> Iterator[tuple[FloatArray, int]]:
    """The first candidate of each rule that the model does not give the class ``label``, and the rule's columns."""
    for group in groups:
        tried = np.stack([candidates.rows for candidates in group])
        other = predicted_classes(model, tried.reshape(-1, tried.shape[-1])) != label
        for candidates, good in zip(group, other.reshape(tried.shape[:2]), strict=True):
            if good.any():
                yield candidates.rows[good.argmax()], candidates.length


def _tree(
    config: Config, rows: FloatArray, labels: IntArray, stream: np.random.Generator
) -> tuple[Any, IntArray]:
    """The fitted tree of scikit-learn, and the leaf of each of the rows (N, d)."""
    from sklearn import config_context
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(
        criterion="entropy", min_samples_leaf=config.leaf, random_state=int(stream.integers(2**31))
    )
    single = rows.astype(np.float32)  # what trees compare
    with config_context(skip_parameter_validation=True, assume_finite=True):  # a fifth of the time of a fit
        tree.fit(single, labels, check_input=False)
    return tree.tree_, tree.tree_.apply(single)
