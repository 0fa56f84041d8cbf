"""Random: sets one column after another, in random order, to the value of a random training row.

It stops when the class changes. If all columns have been set without success, it starts again, up to ``tries`` times.
A baseline: the changes do not depend on the model, so a method that is no better gains nothing from its search.
Values come from the marginal distributions of the training rows, so that each is possible for its column. A method
of cfbench; there is no paper. Immutable columns are unchanged, and values against the direction of a column are
skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Factuals, no_counterfactuals
from cfbench_tabular.explainers.columns import allowed_only
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/random",
    summary="Random training values in one random column after another",
    target=f"{__name__}:Random",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    tries: Annotated[int, Range(minimum=1), Help("maximum number of passes over all columns")] = 100


class Random:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> FloatArray:
        counterfactuals_found = no_counterfactuals(factuals)
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
                open_ = np.flatnonzero(searching)
                tried = np.where(rank[open_] <= length, drawn[open_], rows[open_])
                flipped = predicted_classes(model, tried) != factuals.classes[active[open_]]
                counterfactuals_found[active[open_[flipped]]] = tried[flipped]
                searching[open_[flipped]] = False
                if not searching.any():
                    break
            active = active[searching]
        return counterfactuals_found

    def _drawn(self, context: Context, streams: list[np.random.Generator], rows: FloatArray) -> FloatArray:
        """(A, d) for each of the rows (A, d) values drawn from training rows, independently for each column."""
        encoding, (size, _) = context.encoding, context.background.shape
        donors = np.stack([stream.integers(size, size=len(encoding.columns)) for stream in streams])
        drawn = context.background[donors[:, encoding.column_of], np.arange(encoding.width)]
        return allowed_only(encoding, *encoding.allowed(rows), rows, drawn)
