"""DiCE by random sampling: random values in one column, then in two, and so on. For any classifier.

The method "random" of the library of Mothilal, Sharma & Tan 2020, "Explaining machine learning classifiers through
diverse counterfactual explanations" (dice-ml); the paper has only the descent, which is ``dice``. For m = 1, 2, ...:

1. Draw ``samples`` rows that differ from x in m random columns: numbers are uniform in their range, categories have
   another level.
2. Collect those that the model puts into the other class.
3. From m = 2 on, stop as soon as the collected rows contain k that are ``minimum_distance`` apart.

k of the collected rows, chosen one after the other, minimise cost / k - diversity det(K), where the cost is
proximity dist(c, x) / d + changes (share of changed columns), with dist and K as in ``dice``. They are made sparse as
a set: no column is reset that would bring two of them closer than ``minimum_distance``,
and what contains the changes of another one is replaced or left out (:mod:`dominance <.dominance>`).

Departures from the library: the columns of a row are drawn anew for each m and without repetition (the library keeps
the row and draws one more column, which may be one that was drawn before); the k rows are chosen by the objective of
the paper (the library draws them); categories are reset, too (``restored: numbers`` is as in the library); the set
stays diverse. Immutable and one-way columns, ranges, steps and constraints are respected. Each row has its own
random stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.explainers.black_box_sets import SetOptions, SetSearch
from cfbench_tabular.table import FloatArray, IntArray

SPEC = ComponentSpec(
    id="tabular/explainer/dice-random",
    summary="Several diverse counterfactuals among random changes of few columns",
    target=f"{__name__}:DiCERandom",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"immutable", "one-hot", "ranges"},
        "counterfactuals": {"several"},
    },
    needs={"classifier": {"access": {"scores"}}},
    papers=("mothilal2020dice",),
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of sampled rows that are held in memory at once."""


@dataclass(frozen=True, kw_only=True)
class Config(SetOptions):
    samples: Annotated[int, Range(minimum=1), Help("rows drawn for each number of columns")] = 500


class DiCERandom:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        """(B, k, d), the closest first."""
        search = SetSearch(self.config, model, factuals, context)
        pools: list[FloatArray] = [np.empty((0, search.encoding.width)) for _ in factuals.units]
        active = np.arange(len(factuals))
        for number in range(1, int(search.free.sum()) + 1):
            self._sample(search, pools, active, number)
            if number > 1:
                incomplete = [
                    len(search.subset(pools[place], place)) < search.size for place in active.tolist()
                ]
                active = active[np.array(incomplete, dtype=bool)]
            if len(active) == 0:
                break
        return search.results(pools)

    def _sample(self, search: SetSearch, pools: list[FloatArray], active: IntArray, number: int) -> None:
        """Adds to the pools of the factuals ``active`` the valid ones of random rows with ``number`` changes."""
        count, width = self.config.samples, search.encoding.width
        step = max(1, NUMBERS // (count * width))
        for start in range(0, len(active), step):
            part = active[start : start + step]
            rows = np.concatenate([self._rows(search, place, number) for place in part.tolist()])
            owner = np.repeat(part, count)
            valid = search.valid(rows, owner)
            for index, place in enumerate(part.tolist()):
                own = slice(index * count, (index + 1) * count)
                pools[place] = np.concatenate([pools[place], rows[own][valid[own]]])

    def _rows(self, search: SetSearch, place: int, number: int) -> FloatArray:
        """(samples, d) random rows that differ from factual ``place`` in at most ``number`` columns."""
        count, free = self.config.samples, np.flatnonzero(search.free)
        drawn = search.random_rows(place, count)
        order = search.streams[place].random((count, len(free))).argsort(axis=1)
        varied = np.zeros((count, len(search.free)), dtype=np.bool_)
        varied[:, free] = order < number
        return np.where(varied[:, search.encoding.column_of], drawn, search.factuals.vectors[place])
