"""SEDC as in the code of its authors (Fernández-Loría, Provost & Han 2020): ``loop: published``.

Positions of the encoded vector are replaced by their means, one-hot positions too, so that a replaced category is no
level. The set with the lowest probability of the class of the factual is taken from the queue; if it explains, it is
pruned and returned, else it is extended by every other position. A set explains when it is taken, not when it is put
into the queue, and equal sets are tried again. Pruning tries the subsets of at least two positions, larger ones first.
"""

from __future__ import annotations

import heapq
from itertools import combinations, count

import numpy as np

from cfbench_tabular.classifier_contracts import Classifier
from cfbench_tabular.classifiers.base import probabilities
from cfbench_tabular.table import FloatArray, IntArray

Positions = tuple[int, ...]


def published_rows(
    model: Classifier, factuals: FloatArray, classes: IntArray, typical: FloatArray, iterations: int
) -> FloatArray:
    """(n, d) counterfactuals of factuals (n, d), or NaN; ``typical`` (d,) are the replacements."""
    found = np.full_like(factuals, np.nan)
    for place, (row, own) in enumerate(zip(factuals, classes, strict=True)):
        positions = _explanation(model, row, int(own), typical, iterations)
        if positions is not None:
            found[place] = _replaced(row, typical, [positions])[0]
    return found


def _explanation(
    model: Classifier, row: FloatArray, own: int, typical: FloatArray, iterations: int
) -> Positions | None:
    """The positions to replace; None if no set explains within the iterations."""
    relevant = np.flatnonzero(row != typical).tolist()
    turn = count()
    queue: list[tuple[float, int, Positions]] = [(1.0, next(turn), ())]
    for _ in range(iterations):
        if not queue:
            return None
        probability, _, positions = heapq.heappop(queue)
        if probability < 0.5:
            return _pruned(model, row, own, typical, positions)
        wider = [tuple(sorted({*positions, new})) for new in relevant if new not in positions]
        if wider:
            chances = _chances(model, row, own, typical, wider)
            for chance, one in zip(chances.tolist(), wider, strict=True):
                heapq.heappush(queue, (chance, next(turn), one))
    return None


def _pruned(
    model: Classifier, row: FloatArray, own: int, typical: FloatArray, positions: Positions
) -> Positions:
    size = len(positions) - 1
    while size >= 2:
        # In the order of the binary numbers whose bits are the positions, as in the code.
        subsets = sorted(combinations(positions, size), key=lambda subset: subset[::-1])
        explaining = np.flatnonzero(_chances(model, row, own, typical, subsets) < 0.5)
        if len(explaining):
            positions = subsets[explaining[0]]
        size -= 1
    return positions


def _chances(
    model: Classifier, row: FloatArray, own: int, typical: FloatArray, sets: list[Positions]
) -> FloatArray:
    """(S,) the probability of the class of the factual with the positions of each set replaced."""
    found: FloatArray = probabilities(model, _replaced(row, typical, sets))[:, own]
    return found


def _replaced(row: FloatArray, typical: FloatArray, sets: list[Positions]) -> FloatArray:
    """(S, d) the row with the positions of each set replaced."""
    rows = np.repeat(row[None], len(sets), axis=0)
    for place, positions in enumerate(sets):
        rows[place, list(positions)] = typical[list(positions)]
    return rows
