"""Rules that a table seems to keep: one column is the product, ratio, sum or difference of two others in every row.

For the draft of ``cfbench init --csv``. What is looked for is what the file rounds to: within half a unit of the
column's last decimal, in every row, over a spread of at least ten such halves, so that nothing holds by chance.
Of the ways to say the same (a = b * c, b = a / c) the one is taken whose column has the most decimals, as that
one was computed; then a product before a ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, permutations

import numpy as np

from cfbench_tabular.rules import FloatArray, Relation, Rule

MOST_COLUMNS = 40
"""Of numbers; a table with more is not searched, because there are three of them in a rule."""
LEAST_ROWS = 20
SAMPLE = 50
"""Rows that are looked at first; what holds there is asked of all."""


def rules_in(columns: Mapping[str, Sequence[str]]) -> list[Rule]:
    """The rules that numeric columns, given as text, keep in every row; by the order of their columns."""
    if not 3 <= len(columns) <= MOST_COLUMNS or len(next(iter(columns.values()))) < LEAST_ROWS:
        return []
    values = {name: np.array([float(cell) for cell in cells]) for name, cells in columns.items()}
    decimals = {name: max(map(_decimals, cells)) for name, cells in columns.items()}
    found: dict[frozenset[str], tuple[int, Rule]] = {}
    for rule in _candidates(values, decimals):
        triple, weight = frozenset(rule.columns), decimals[rule.column]
        better = triple not in found or weight > found[triple][0]
        if better and rule.holds(values).all():
            found[triple] = weight, rule
    order = list(columns)
    return sorted((rule for _, rule in found.values()), key=lambda rule: order.index(rule.column))


def _candidates(values: Mapping[str, FloatArray], decimals: Mapping[str, int]) -> Iterator[Rule]:
    """Rules that hold in the first rows."""
    names = list(values)
    first = {name: numbers[:SAMPLE] for name, numbers in values.items()}
    pairs: dict[Relation, list[tuple[str, str]]] = {
        "product": list(combinations_with_replacement(names, 2)),
        "sum": list(combinations(names, 2)),
        "ratio": list(permutations(names, 2)),
        "difference": list(permutations(names, 2)),
    }
    derived = {name: 0.5 * 10.0 ** -decimals[name] for name in names}
    derived = {name: half for name, half in derived.items() if values[name].std() >= 10 * half}
    for relation, every in pairs.items():
        for of in every:
            result = Rule(column=of[0], relation=relation, of=of).wanted(first)
            for name, half in derived.items():
                if name not in of and np.nanmax(np.abs(first[name] - result)) <= 1.01 * half:
                    yield Rule(column=name, relation=relation, of=of, absolute=half)


def _decimals(cell: str) -> int:
    """How many stand behind the point: 2 for "0.25", also where arithmetic left its traces (0.25000000000000006).

    0 for "1e-12", whose precision nobody knows.
    """
    text = f"{float(cell):.10g}"
    return len(text.partition(".")[2]) if "e" not in text else 0
