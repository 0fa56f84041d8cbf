"""DiCE by a genetic search for sets of counterfactuals. For any classifier.

The method "genetic" of the library of Mothilal, Sharma & Tan 2020, "Explaining machine learning classifiers through
diverse counterfactual explanations" (dice-ml; the library follows Schleich et al. 2021, "GeCo"); the paper has only the
descent, which is ``dice``. A population of ``population`` rows starts with training rows of the other class nearest to
x, and random changes of x. In each generation:

1. The loss of a row is hinge + cost: hinge(c) = max(0, p_own(c) - p_other(c)); the cost is
   proximity dist(c, x) / d + changes (share of changed columns), with dist as in ``dice``.
2. k rows survive. Chosen one after the other, they minimise loss / k - diversity det(K).
3. The others are children of two parents out of the better half, by loss, of the different rows. Each column comes
   from the first parent with probability ``inherited`` / 2 (0.4), from the second with the same probability, and is
   else a random value or, with equal probability, the factual's.

It ends after ``generations``, or after ``patience`` of them without a better set. Of all valid rows that it met, k are
chosen by the objective of 2 and made sparse as a set: no column is reset that would bring two of them closer than
``minimum_distance``, and what contains the changes of another one is replaced or left out (:mod:`dominance <.dominance>`).

Departures from the library: its fitness has no diversity; it draws mutated numbers from an interval whose two ends are
both the least value of the column, here they are uniform in the range; half of the mutations return to the factual, so
that the search can become sparse; all valid rows count, not only those of the last generation; the set stays diverse.
Immutable and one-way columns, ranges, steps and constraints are respected. Each row has its own random stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.black_box_sets import SetOptions, SetSearch
from cfbench_tabular.explainers.counterfactual_sets import diversity
from cfbench_tabular.explainers.descent import CLEAR
from cfbench_tabular.table import BoolArray, FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/dice-genetic",
    summary="Several diverse counterfactuals by genetic search",
    target=f"{__name__}:DiCEGenetic",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("mothilal2020dice",),
)


@dataclass(frozen=True, kw_only=True)
class Config(SetOptions):
    population: Annotated[int, Range(minimum=4), Help("rows of a generation")] = 60
    generations: Annotated[int, Range(minimum=1), Help("at most")] = 40
    patience: Annotated[int, Range(minimum=1), Help("generations without a better set")] = 8
    inherited: Annotated[
        float, Range(minimum=0, maximum=1), Help("probability that a column comes from one of the parents")
    ] = 0.8


class DiCEGenetic:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), the closest first."""
        search = SetSearch(self.config, model, factuals, context)
        width = search.encoding.width
        pools: list[FloatArray] = [np.empty((0, width)) for _ in factuals.units]
        population = self._first(search, predicted_classes(model, context.background))
        best, since = np.full(len(factuals), np.inf), np.zeros(len(factuals))
        active = np.arange(len(factuals))
        for _ in range(self.config.generations):
            if len(active) == 0:
                break
            rows = population[active].reshape(-1, width)
            owner = np.repeat(active, population.shape[1])
            hinges, valid = _evaluated(search, rows, owner)
            for index, place in enumerate(active.tolist()):
                own = slice(index * population.shape[1], (index + 1) * population.shape[1])
                pools[place] = np.concatenate([pools[place], rows[own][valid[own]]])
                survivors = search.subset(rows[own], place, hinges[own])
                found = _objective(search, rows[own][survivors], place, hinges[own][survivors])
                since[place] = 0 if found < best[place] - 1e-9 else since[place] + 1
                best[place] = min(best[place], found)
                population[place] = self._next(search, rows[own], hinges[own], survivors, place)
            active = active[since[active] < self.config.patience]
        return search.results(pools)

    def _first(self, search: SetSearch, classes: IntArray) -> FloatArray:
        """(B, P, d): half of each population from training rows with ``classes`` (n,), half random."""
        size, width = self.config.population, search.encoding.width
        population = np.empty((len(search.factuals), size, width))
        for place, own in enumerate(search.factuals.vectors):
            enemies = search.admissible(search.background[classes != search.factuals.classes[place]], place)
            nearest = ((enemies - own) ** 2).sum(axis=1).argsort(kind="stable")[: size // 2]
            drawn = search.random_rows(place, size - len(nearest))
            stream = search.streams[place]
            share = stream.random((len(drawn), 1))  # of the columns that vary, different from row to row
            varied = stream.random((len(drawn), len(search.free))) < share
            drawn = np.where(varied[:, search.encoding.column_of], drawn, own)
            population[place] = np.concatenate([enemies[nearest], drawn])
        return population

    def _next(
        self, search: SetSearch, rows: FloatArray, hinges: FloatArray, survivors: list[int], place: int
    ) -> FloatArray:
        """(P, d) the survivors among the rows (P, d), and children of the better half."""
        stream, columns = search.streams[place], len(search.free)
        survivors = survivors[: len(rows) - 1]
        different = np.unique(rows, axis=0, return_index=True)[1]
        order = different[(search.costs(rows, place) + hinges)[different].argsort(kind="stable")]
        parents = rows[order[: max(2, len(order) // 2)]]
        count = len(rows) - len(survivors)
        one, two = parents[stream.integers(len(parents), size=(2, count))]
        draws = stream.random((count, columns))[:, search.encoding.column_of]
        inherited = self.config.inherited
        mutated = search.random_rows(place, count)
        children = np.where(draws < inherited / 2, one, np.where(draws < inherited, two, mutated))
        returns = draws >= (1 + inherited) / 2
        children = np.where(returns, search.factuals.vectors[place], children)
        return np.concatenate([rows[survivors], children])


def _evaluated(search: SetSearch, rows: FloatArray, owner: IntArray) -> tuple[FloatArray, BoolArray]:
    """(r,) the hinges of the rows (r, d), and whether they are valid."""
    found = probabilities(search.model, rows)
    classes, each = search.factuals.classes[owner], np.arange(len(rows))
    lead = found[each, 1 - classes] - found[each, classes]
    holds = search.encoding.constraints_hold(rows)
    # A broken constraint counts as much as a certain prediction of the factual's class.
    return np.maximum(0.0, -lead) + ~holds, holds & (lead > CLEAR)


def _objective(search: SetSearch, rows: FloatArray, place: int, hinges: FloatArray) -> float:
    """loss - diversity det(K) of the set (k, d); a missing row counts as much as a far one."""
    losses = search.costs(rows, place) + hinges
    missing = search.size - len(rows)
    worth = search.options.diversity * float(diversity(rows[None], search.weights)[0])
    return float(losses.sum()) / search.size + missing - worth
