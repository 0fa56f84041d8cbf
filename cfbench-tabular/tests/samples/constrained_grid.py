"""Small tables with constraints between columns, all rows of which can be tried."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from cfbench_core.lifecycle.streams import generator
from cfbench_tabular.constraints import Constraint, constraints_hold
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Factuals
from cfbench_tabular.table import Column

RELATIONS = ("product", "ratio", "sum", "difference", "at_least", "at_most")


@dataclass
class Case:
    """All rows of a table, encoded, which of them satisfy the constraints, and one that does."""

    encoding: Encoding
    rows: np.ndarray
    possible: np.ndarray
    factual: np.ndarray

    def context(self) -> Context:
        background = self.rows[self.possible][::3]
        return Context(
            self.encoding, background, lambda unit: generator("test", unit), respects_constraints=True
        )

    def factuals(self, model) -> Factuals:
        rows = self.factual[None]
        return Factuals(rows, (model.predict_proba(rows)[:, 1] > 0.5).astype(np.int64), ("0",))


def constraint_of(draw: np.random.Generator, names: list[str], column: str) -> Constraint:
    relation = str(draw.choice(RELATIONS))
    others = [name for name in names if name != column]
    if relation in ("ratio", "difference"):
        of = draw.choice(others, size=2, replace=False)
    elif relation == "product":
        of = draw.choice(others, size=2, replace=bool(draw.integers(2)))
    else:
        of = draw.choice(others, size=draw.integers(1, len(others) + 1), replace=False)
    return Constraint(
        column=column,
        relation=relation,
        of=tuple(map(str, of)),
        factor=float(draw.choice([1.0, 1.0, 0.5, -1.0, 2.0])),
        absolute=float(draw.choice([0.0, 0.5, 1.0])),
        relative=float(draw.choice([0.0, 0.0, 0.1, 0.5])),
    )


def case_of(seed: int, numbers: int = 3, limits: bool = True) -> Case | None:
    """None where fewer than two rows satisfy the constraints."""
    draw = np.random.default_rng(seed)
    names = [f"x{place}" for place in range(numbers)]
    least = draw.integers(-3, 3, size=numbers)
    size = draw.integers(3, 10, size=numbers)
    steps = draw.choice([1.0, 1.0, 0.5, 0.1], size=numbers)
    raw = [np.round((low + np.arange(n)) * step, 6) for low, n, step in zip(least, size, steps, strict=True)]
    directions = (
        draw.choice(["any", "any", "any", "up", "down"], size=numbers) if limits else ["any"] * numbers
    )
    columns = (
        *(
            Column(name, step=float(step), direction=str(direction), immutable=limits and draw.random() < 0.1)
            for name, step, direction in zip(names, steps, directions, strict=True)
        ),
        Column("colour", "categorical", ("red", "green", "blue")),
        Column("smoker", "categorical", ("no", "yes")),
    )
    constraints = tuple(
        constraint_of(draw, names, str(column))
        for column in draw.choice(names, size=draw.integers(1, 3), replace=False)
    )
    mean = np.array([*(values.mean() + draw.normal() for values in raw), 0.0, 0.0])
    scale = np.array([*draw.uniform(0.3, 3.0, size=numbers), 1.0, 1.0])
    ends = np.array([[values[0], values[-1]] for values in raw])
    low, high = (np.append((ends[:, side] - mean[:-2]) / scale[:-2], [side, side]) for side in (0, 1))
    encoding = Encoding(columns, mean, scale, low, high, constraints)
    every = np.array(list(product(*raw)))
    satisfied = constraints_hold(constraints, {name: every[:, place] for place, name in enumerate(names)})
    if satisfied.sum() < 2:
        return None
    levels = [np.append(np.eye(3)[colour], smoker) for colour in range(3) for smoker in (0.0, 1.0)]
    vectors = (every - mean[:-2]) / scale[:-2]
    rows = np.concatenate([np.hstack([vectors, np.tile(level, (len(vectors), 1))]) for level in levels])
    possible = np.tile(satisfied, len(levels))
    factual = rows[draw.choice(np.flatnonzero(possible))]
    return Case(encoding, rows, possible, factual)
