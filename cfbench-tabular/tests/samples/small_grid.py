"""A table of two whole numbers, a category and an immutable number, whose rows can all be listed."""

from itertools import product

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import Column

COLUMNS = (
    Column("rooms", step=1.0),
    Column("floor", step=1.0, direction="up"),
    Column("heating", "categorical", ("gas", "oil", "wood")),
    Column("age", step=1.0, immutable=True),
)
ENCODING = Encoding(
    COLUMNS,
    np.array([2.0, 2.0, 0.0, 2.0]),
    np.array([1.5, 2.0, 1.0, 1.0]),
    np.array([-2 / 1.5, -1.0, 0.0, -2.0]),
    np.array([3 / 1.5, 2.0, 1.0, 2.0]),
)


def row(rooms, floor, heating, age):
    """(6,) encoded."""
    one_hot = [float(heating == level) for level in ("gas", "oil", "wood")]
    return np.array([(rooms - 2) / 1.5, (floor - 2) / 2.0, *one_hot, age - 2.0])


EVERY_ROW = np.array(
    [row(*values) for values in product(range(6), range(7), ("gas", "oil", "wood"), range(5))]
)
FACTUAL = row(1, 2, "gas", 1)


class Blocks:
    """Piecewise constant, as trees are: class 1 for many rooms, or on a high floor without gas."""

    def predict_proba(self, vectors):
        rooms, floor = vectors[:, 0] * 1.5 + 2, vectors[:, 1] * 2 + 2
        one = ((rooms > 3.5) | ((floor > 3.5) & (vectors[:, 2] < 0.5))).astype(float)
        return np.stack([0.9 - 0.8 * one, 0.1 + 0.8 * one], axis=1)


def admissible():
    """The rows that the constraints of FACTUAL allow."""
    same_age = EVERY_ROW[:, 5] == FACTUAL[5]
    return EVERY_ROW[same_age & (EVERY_ROW[:, 1] >= FACTUAL[1])]


def valid():
    """The admissible rows of class 1."""
    rows = admissible()
    return rows[Blocks().predict_proba(rows)[:, 1] > 0.5]


def answers(explainer, size, background=EVERY_ROW, factual=FACTUAL):
    """(size, 6) the counterfactuals of one factual of class 0."""
    factuals = Factuals(factual[None], np.zeros(1, dtype=np.int64), ("0",))
    context = Context(ENCODING, background, lambda unit: generator("test", unit), size)
    return explainer.counterfactuals(Blocks(), factuals, context)[0]


def is_row_of(rows, candidates):
    """Whether each of the rows (n, d) is one of the candidates (m, d)."""
    return np.isclose(rows[:, None], candidates[None], rtol=0, atol=1e-9).all(axis=2).any(axis=1)


def changed_columns(rows):
    """(n,) the number of columns in which the rows (n, 6) differ from FACTUAL."""
    different = ~np.isclose(rows, FACTUAL)
    return different[:, [0, 1, 5]].sum(axis=1) + different[:, 2:5].any(axis=1)


def cost(rows, background, proximity, changes):
    """(n,) proximity dist / d + changes (share of changed columns), literally."""
    total = np.zeros(len(rows))
    for position in range(6):
        weight = 1.0
        if position in (0, 1, 5):
            values = background[:, position]
            weight = 1 / np.median(np.abs(values - np.median(values)))
        total += weight * np.abs(rows[:, position] - FACTUAL[position])
    return proximity * total / 6 + changes * changed_columns(rows) / 4
