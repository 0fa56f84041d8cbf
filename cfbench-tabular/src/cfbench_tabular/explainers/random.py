"""Random: one column after another, in random order, is set to what a random training row has there.

Until the class changes. When all columns have been set and it has not, all over again, ``tries`` times at most.
A floor: what changes is chosen without looking at the model, so a method that does no better has not searched.
Values come from the margins of the training rows, so that each is one that its column can have. Ours; there is
no paper. Immutable columns stay, and a value that a one-way column must not take is passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_tabular.classifiers.base import Classifier, predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals, no_answers
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.table import FloatArray


@dataclass(frozen=True, kw_only=True)
class Config:
    tries: Annotated[int, Range(minimum=1), Help("times that all columns are set before giving up")] = 100


class Random:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        answers = no_answers(factuals)
        streams = [context.generator(unit) for unit in factuals.units]
        columns = len(context.encoding.columns)
        active = np.arange(len(factuals))
        for _ in range(self.config.tries):
            if len(active) == 0:
                break
            rows = factuals.vectors[active]
            order = np.stack([streams[place].permutation(columns) for place in active])
            rank = order.argsort(axis=1)[:, context.encoding.column_of]
            drawn = self._drawn(context, [streams[place] for place in active], rows)
            searching = np.ones(len(active), dtype=bool)
            for length in range(columns):
                going = np.flatnonzero(searching)
                tried = np.where(rank[going] <= length, drawn[going], rows[going])
                flipped = predicted_classes(model, tried) != factuals.classes[active[going]]
                answers[active[going[flipped]]] = tried[flipped]
                searching[going[flipped]] = False
                if not searching.any():
                    break
            active = active[searching]
        return answers

    def _drawn(self, context: Context, streams: list[np.random.Generator], rows: FloatArray) -> FloatArray:
        """(A, d) for each of the rows (A, d) a value for each column, that of a training row of its own."""
        encoding, (size, _) = context.encoding, context.background.shape
        donors = np.stack([stream.integers(size, size=len(encoding.columns)) for stream in streams])
        drawn = context.background[donors[:, encoding.column_of], np.arange(encoding.width)]
        return allowed_only(encoding, *encoding.allowed(rows), rows, drawn)
