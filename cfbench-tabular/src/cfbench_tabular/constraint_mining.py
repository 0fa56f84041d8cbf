"""Search for constraints that every row of a table satisfies, for ``cfbench init --csv``.

A constraint says that one column is the product, ratio, sum or difference of two others. It must hold in every row
up to the rounding of the file, half a unit of the last decimal of the column, and the standard deviation of the
column must be at least ten times as large, so that it does not hold by chance. Of smaller numbers, such as those of persons
in a household, a sum or difference must hold exactly, and the probability that shuffled columns satisfy it must be at most
``CHANCE``. Of equivalent constraints (a = b * c,
b = a / c) the one is chosen whose column has the most decimals, because that column was probably computed; then
products before ratios.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np

from cfbench_tabular.constraints import Constraint, FloatArray, Relation

MOST_COLUMNS = 40
"""Numeric columns; wider tables are not searched, because the cost is cubic in their number."""
LEAST_ROWS = 20
CHANCE = 1e-6
"""Largest probability that any exact sum or difference of a table holds in every row by chance."""
SAMPLE = 50
"""Candidates must hold in these first rows before all rows are checked."""


def mine_constraints(columns: Mapping[str, Sequence[str]]) -> list[Constraint]:
    """The constraints that numeric columns, given as text, satisfy in every row, in the order of the columns."""
    if not 3 <= len(columns) <= MOST_COLUMNS or len(next(iter(columns.values()))) < LEAST_ROWS:
        return []
    values = {name: np.array([float(cell) for cell in cells]) for name, cells in columns.items()}
    decimals = {name: max(map(_decimals, cells)) for name, cells in columns.items()}
    found: dict[frozenset[str], tuple[int, Constraint]] = {}
    for constraint in _candidates(values, decimals):
        triple, weight = frozenset(constraint.columns), decimals[constraint.column]
        better = triple not in found or weight > found[triple][0]
        if better and constraint.holds(values).all() and _is_evident(constraint, values):
            found[triple] = weight, constraint
    order = list(columns)
    return sorted(
        (constraint for _, constraint in found.values()),
        key=lambda constraint: order.index(constraint.column),
    )


def _candidates(values: Mapping[str, FloatArray], decimals: Mapping[str, int]) -> Iterator[Constraint]:
    """The constraints that hold in the first rows."""
    names = list(values)
    first = {name: numbers[:SAMPLE] for name, numbers in values.items()}
    pairs: dict[Relation, list[tuple[str, str]]] = {
        "product": list(combinations_with_replacement(names, 2)),
        "sum": list(combinations(names, 2)),
        "ratio": list(permutations(names, 2)),
        "difference": list(permutations(names, 2)),
    }
    derived = {name: 0.5 * 10.0 ** -decimals[name] for name in names}
    for relation, every in pairs.items():
        for of in every:
            result = Constraint(column=of[0], relation=relation, of=of).expected(first)
            for name, half in derived.items():
                if name not in of and np.nanmax(np.abs(first[name] - result)) <= 1.01 * half:
                    yield Constraint(column=name, relation=relation, of=of, absolute=half)


def _is_evident(constraint: Constraint, values: Mapping[str, FloatArray]) -> bool:
    """Whether the numbers of the column (N,) vary so much that the constraint does not hold by chance."""
    own = values[constraint.column]
    if own.std() >= 10 * constraint.absolute:
        return True
    if constraint.relation not in ("sum", "difference"):
        return False
    expected = constraint.expected(values)
    if (np.abs(own - expected) > 1e-9 * np.maximum(1.0, np.abs(own))).any():
        return False
    levels, counts = np.unique(np.round(own, 9), return_counts=True)
    shares = dict(zip(levels.tolist(), (counts / len(own)).tolist(), strict=True))
    agreement = float(np.mean([shares.get(value, 0.0) for value in np.round(expected, 9).tolist()]))
    candidates = len(values) ** 3
    return bool(len(own) * np.log(agreement) + np.log(candidates) <= np.log(CHANCE))


def _decimals(cell: str) -> int:
    """The number of decimals: 2 for "0.25", also with floating-point noise (0.25000000000000006).

    0 for "1e-12", whose precision is unknown.
    """
    text = f"{float(cell):.10g}"
    return len(text.partition(".")[2]) if "e" not in text else 0
