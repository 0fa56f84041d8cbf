"""Exhaustive: the smallest number of changed columns, by enumeration. Certified for L0.

All sets of one column with all their levels are tried, then all sets of two, ..., until one changes the class; of the
counterfactuals with that many changes, the nearest (L2, encoded) is returned, and of equally near ones the first.
No counterfactual changes fewer columns. A method of cfbench; there is no paper.

The cost grows with the product of the numbers of levels, so it suits small categorical data. Before each size the
number of rows to try is computed; when the total exceeds ``limit``, the search ends without a counterfactual.
Details:

- ``proven``: 1 if no smaller set was left out, also if all sets were tried without success; else 0;
- ``bound``: no counterfactual changes fewer columns than this.

Numbers are unchanged unless ``values`` sets how many of their observed training values each may take (spread evenly
over the sorted distinct ones). Then nothing is proven, because not all values are tried. Immutable and one-way
columns are respected.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/exhaustive",
    summary="The fewest categories that have to change, by enumeration, with a proof",
    target=f"{__name__}:Exhaustive",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores"}}},
    role="certified",
    certificate="where the detail 'proven' is 1: no change of fewer columns than the detail 'bound' changes the "
    "class; numeric columns unchanged",
)


NUMBERS = 4_000_000
"""Maximum number of coordinates of candidate rows that are held in memory at once."""

Parts = list[FloatArray]


@dataclass(frozen=True, kw_only=True)
class Config:
    limit: Annotated[int, Range(minimum=1), Help("maximum number of rows tried for a factual")] = 1_000_000
    values: Annotated[
        int, Range(minimum=0), Help("observed values that a number may take; 0: numbers are unchanged")
    ] = 0


class Exhaustive:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: Classifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows = no_counterfactuals(factuals)
        proven, bound = np.zeros(len(factuals)), np.zeros(len(factuals))
        parts = self._values(context)
        low, high = context.encoding.allowed(factuals.vectors)
        for place, row in enumerate(factuals.vectors):
            options = _alternatives(context.encoding, parts, row, low[place], high[place])
            label = int(factuals.classes[place])
            found_rows[place], proven[place], bound[place] = self._search(model, context, row, label, options)
        untried = ((high > low) & context.encoding.numeric).any(axis=1)  # not all values of numbers are tried
        proven[untried], bound[untried] = 0.0, np.nan
        return Explanation(found_rows, {"proven": proven, "bound": bound})

    def _search(
        self, model: Classifier, context: Context, row: FloatArray, label: int, options: Parts
    ) -> tuple[FloatArray, float, float]:
        """The counterfactual (d,) or NaN, whether it is proven, and the size below which there is none."""
        counts = _rows_of_size([len(part) for part in options])
        tried = 0
        for size in range(1, len(options) + 1):
            tried += counts[size]
            if tried > self.config.limit:
                return np.full_like(row, np.nan), 0.0, float(size)
            best, nearest = None, np.inf
            for rows in _of_size(context.encoding, row, options, size):
                enemies = rows[predicted_classes(model, rows) != label]
                # Rounded, so that ties are broken equally on every machine.
                distances = np.round(((enemies - row) ** 2).sum(axis=1), 9)
                if len(enemies) and distances.min() < nearest:
                    best, nearest = enemies[distances.argmin()], distances.min()
            if best is not None:
                return best, 1.0, float(size)
        return np.full_like(row, np.nan), 1.0, np.nan

    def _values(self, context: Context) -> Parts:
        """For each column, (K, width) its candidate values."""
        parts = []
        for column, block in zip(context.encoding.columns, context.encoding.blocks, strict=True):
            if column.scalar:
                seen = np.unique(context.background[:, block.start])
                places = np.linspace(0, len(seen) - 1, min(self.config.values, len(seen)))
                parts.append(seen[np.round(places).astype(np.int64)][:, None])
            elif block.stop - block.start == 1:
                parts.append(np.array([[0.0], [1.0]])[: len(column.levels)])
            else:
                parts.append(np.eye(len(column.levels)))
        return parts


def _alternatives(
    encoding: Encoding, parts: Parts, row: FloatArray, low: FloatArray, high: FloatArray
) -> Parts:
    """Of ``parts``, the values that differ from the row (d,) and lie within the limits."""
    left = []
    for part, block in zip(parts, encoding.blocks, strict=True):
        allowed = ((part >= low[block]) & (part <= high[block])).all(axis=1)
        left.append(part[allowed & (part != row[block]).any(axis=1)])
    return left


def _rows_of_size(alternatives: list[int]) -> list[int]:
    """The number of rows that differ in exactly 0, 1, 2, ... columns: the coefficients of prod_j (1 + a_j t)."""
    counts = [1]
    for number in alternatives:
        counts = [a + number * b for a, b in zip([*counts, 0], [0, *counts], strict=True)]
    return counts


def _of_size(encoding: Encoding, row: FloatArray, options: Parts, size: int) -> Iterator[FloatArray]:
    """Blocks (n, d) of the rows that differ from ``row`` (d,) in exactly ``size`` columns."""
    step = max(1, NUMBERS // encoding.width)
    waiting: list[FloatArray] = []
    free = [place for place, part in enumerate(options) if len(part)]
    for chosen in combinations(free, size):
        shape = [len(options[place]) for place in chosen]
        total = int(np.prod(shape))
        for start in range(0, total, step):
            index = np.unravel_index(np.arange(start, min(total, start + step)), shape)
            rows = np.tile(row, (len(index[0]), 1))
            for place, which in zip(chosen, index, strict=True):
                rows[:, encoding.blocks[place]] = options[place][which]
            waiting.append(rows)
            if sum(map(len, waiting)) >= step:
                yield np.concatenate(waiting)
                waiting = []
    if waiting:
        yield np.concatenate(waiting)
