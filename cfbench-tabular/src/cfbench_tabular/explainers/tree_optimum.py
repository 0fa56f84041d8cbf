"""Tree optimum: the nearest counterfactual of a random forest or of boosted trees, by constraint programming.

Certified like ``optimum``, with the same objectives (``l1``, ``l0``, ``madd``). The formulation is that of Parmentier & Vidal
2021 ("Optimal counterfactual explanations in tree ensembles", ICML), solved by constraint programming on Booleans
(CP-SAT of OR-Tools) as the package OCEAN does:

- of each number, Booleans m_j say whether it lies above the j-th threshold of the ensemble, m_(j+1) => m_j. Only the
  value of each interval between thresholds that is nearest to the factual matters (``tree_boxes.py``), so its cost
  is a sum over the m_j. A category has one Boolean for each level, of which exactly one is true.
- of each tree exactly one leaf is reached; a leaf implies the Booleans on its path.
- the values of the reached leaves sum up to the other class, with at least ``margin`` beyond the boundary (votes of a
  forest, log-odds of boosted trees).

Reduced without loss: the nearest training row of the other class, with its changes undone as far as the class allows,
costs R. Values that cost more than R are cut off, and so are leaves that cannot be reached for R.

Values of leaves and costs become whole numbers (values are rounded to a part of ``margin``, costs downwards to one part in
ten million of R), so that the solver is exact; ``bound`` is a lower bound of the objective of every row that is ``margin``
beyond the boundary. Trees compare 32-bit numbers; the value above a threshold is the next such number, where a 64-bit
number half a unit of rounding below it would do.

Details: ``objective`` of the row that is returned; ``bound``, below which there is none; ``proven``, 1 where both agree to
one part in 10,000 (also if it is proven that no counterfactual exists), else 0. ``seconds`` limits the search for one
factual: then the result is the best so far, at worst that training row, and depends on the machine. One thread,
so that the result is the same each time. Rules between columns are not part of the programme. Needs
cfbench-tabular[trees].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import TreeClassifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.exact import Reach, nearby, reach_of
from cfbench_tabular.explainers.optimum import TOLERANCE, costs_of
from cfbench_tabular.explainers.tree_boxes import Cells, Leaves
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/tree-optimum",
    summary="The nearest counterfactual of a forest or boosted trees, with a proof; needs [trees]",
    target=f"{__name__}:TreeOptimum",
    config=f"{__name__}:Config",
    provides={"columns": {"categorical", "numeric"}, "constraints": {"immutable", "one-hot", "ranges"}},
    needs={"classifier": {"access": {"scores", "trees"}}},
    role="certified",
    certificate="where the detail 'proven' is 1: no row of the other class, within the observed ranges and the "
    "immutable and one-way columns, has an objective below the detail 'bound', to one part in 10,000",
    papers=("parmentier2021optimal",),
    details={"default": False},
)

COST_STEPS = 10_000_000
"""Whole numbers between 0 and the budget."""


@dataclass(frozen=True, kw_only=True)
class Config:
    objective: Annotated[Literal["l1", "l0", "madd"], Help("the minimised distance")] = "l1"
    margin: Annotated[
        float, Range(above=0), Help("beyond the boundary: votes of a forest, log-odds of boosted trees")
    ] = 1e-6
    seconds: Annotated[
        float, Range(above=0), Help("time limit per factual; results under a limit depend on the machine")
    ] = 10.0


class TreeOptimum:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: TreeClassifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows = no_counterfactuals(factuals)
        details = np.full((len(factuals), 3), np.nan)
        trees, offset = model.ensemble()
        leaves, costs = Leaves.of(trees), costs_of(self.config.objective, context)
        seconds = min(self.config.seconds, context.seconds or np.inf)
        classes = predicted_classes(model, context.background)
        for place, row in enumerate(factuals.vectors):
            label = int(factuals.classes[place])
            reach = reach_of(costs, row)
            start = nearby(model, reach, label, context.background[classes != label])
            if start is not None:
                reach = reach.within(float(costs.of(start[None], row)[0]) * (1 + 1e-9) + 1e-12)
            needed = _Needed(offset, self.config.margin, -1.0 if label else 1.0)
            found, bound = _Programme(leaves, reach, needed).solve(start, seconds)
            rows = [each for each in (start, found) if each is not None]
            rows = [each for each in rows if predicted_classes(model, each[None])[0] != label]
            if rows:
                objectives = costs.of(np.stack(rows), row)
                best = int(objectives.argmin())
                found_rows[place] = rows[best]
                bound = min(bound, float(objectives[best]))
                proven = objectives[best] <= bound * (1 + TOLERANCE) + 1e-9
                details[place] = objectives[best], bound, proven
            else:
                details[place, 2] = np.isinf(bound)
        return Explanation(found_rows, dict(zip(("objective", "bound", "proven"), details.T, strict=True)))


@dataclass(frozen=True)
class _Needed:
    """sign * (sum of the leaves + offset) must be at least ``margin``."""

    offset: float
    margin: float
    sign: float


class _Programme:
    """The constraint programme of one factual."""

    def __init__(self, leaves: Leaves, reach: Reach, needed: _Needed) -> None:
        self.cp = _cp_model()
        self.model = self.cp.CpModel()
        self.leaves, self.reach, self.needed = leaves, reach, needed
        self.encoding = reach.encoding
        self.unit = reach.budget / COST_STEPS if 0 < reach.budget < np.inf else 1.0 / COST_STEPS
        self.terms: list[tuple[Any, int]] = []  # of the objective: literals and their costs
        self.base = 0
        self.cells = self._cells()
        self.true = self.model.new_constant(1)
        self.literals: dict[int, list[Any]] = {}  # of each position, whether it is at least its c-th cell
        self._columns()
        self._trees()

    def solve(self, start: FloatArray | None, seconds: float) -> tuple[FloatArray | None, float]:
        """A row (d,) or None, and a lower bound of the objective, infinite when there is no row."""
        cost = sum(amount * literal for literal, amount in self.terms)
        if np.isfinite(self.reach.budget):
            self.model.add(cost <= int(np.ceil(self.reach.budget / self.unit)) - self.base)
        self.model.minimize(cost)
        if start is not None:
            self._hint(start)
        solver = self.cp.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        status = solver.solve(self.model)
        if status == self.cp.INFEASIBLE:
            return None, np.inf
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, 0.0  # out of time before a first row: the solver has no bound to rely on
        bound = max(0.0, (solver.best_objective_bound + self.base) * self.unit)
        row = self.reach.row.copy()
        for position, literals in self.literals.items():
            last = sum(solver.boolean_value(literal) for literal in literals[1:])
            row[position] = self.cells[position].values[last]
        return row, bound

    def _cells(self) -> dict[int, Cells]:
        """The values that matter of each position that the trees test, and of all positions of categories."""
        reach, tested = self.reach, {int(p): index for index, p in enumerate(self.leaves.positions)}
        cells = {}
        for position in range(self.encoding.width):
            thresholds = (
                self.leaves.thresholds(tested[position]) if position in tested else np.empty(0)
            )
            low, high = float(reach.low[position]), float(reach.high[position])
            if not self.encoding.numeric[position]:
                cells[position] = Cells.of_level(low, high, thresholds)
            elif position in tested:
                cells[position] = Cells.of(float(reach.row[position]), low, high, thresholds)
        return cells

    def _columns(self) -> None:
        """Literals and costs of all columns."""
        costs, row = self.reach.costs, self.reach.row
        for column, block in enumerate(self.encoding.blocks):
            if self.encoding.numeric[block.start]:
                if block.start in self.cells:
                    values = self.cells[block.start].values
                    changes = np.abs(values - row[block.start])
                    paid = costs.slope[column] * changes + costs.fixed[column] * (changes > 0)
                    self._ordered(block.start, paid)
                continue
            fixed = float(costs.fixed[column])
            if block.stop - block.start == 1:
                values = self.cells[block.start].values
                self._ordered(block.start, fixed * (values != row[block.start]))
                continue
            for position in range(block.start, block.stop):
                values = self.cells[position].values
                # the current level is free, every other one costs the change of the column
                self._ordered(position, fixed * (values > 0) * (row[position] == 0))
            self.model.add_exactly_one(self._is_one(position) for position in range(block.start, block.stop))

    def _ordered(self, position: int, paid: FloatArray) -> None:
        """Literals "at least the c-th cell", the first of which is true, with the costs (c,) of the cells."""
        steps = np.floor(paid / self.unit).astype(np.int64)
        literals = [self.true] + [self.model.new_bool_var("") for _ in steps[1:]]
        for lower, higher in zip(literals[1:], literals[2:], strict=False):
            self.model.add_implication(higher, lower)
        self.literals[position] = literals
        self.base += int(steps[0])
        self.terms += [
            (literal, int(step)) for literal, step in zip(literals[1:], np.diff(steps), strict=True) if step
        ]

    def _is_one(self, position: int) -> Any:
        """The literal of a level: that its value is 1."""
        values = self.cells[position].values
        if len(values) == 2:
            return self.literals[position][1]
        return self.true if values[0] == 1.0 else ~self.true

    def _trees(self) -> None:
        """Of each tree one leaf that can be reached, and the sum of their values."""
        reachable = self._within_budget()
        leaves, needed = self.leaves, self.needed
        trees = int(leaves.tree.max()) + 1
        scale = max(1e9, trees / needed.margin)
        terms, constant = [], 0
        for tree in range(trees):
            own = np.flatnonzero((leaves.tree == tree) & reachable)
            values = np.rint(needed.sign * leaves.value[own] * scale).astype(np.int64)
            if len(np.unique(values)) == 1:  # whichever it is
                constant += int(values[0])
                continue
            reached = [self.model.new_bool_var("") for _ in own]
            self.model.add_exactly_one(reached)
            for leaf, literal in zip(own.tolist(), reached, strict=True):
                self._path(leaf, literal)
            terms += zip(reached, values.tolist(), strict=True)
        least = int(np.ceil((needed.margin - needed.sign * needed.offset) * scale))
        self.model.add(sum(value * literal for literal, value in terms) + constant >= least)

    def _within_budget(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """(L,) which leaves have a row whose changes in the tested positions cost no more than the budget."""
        leaves, costs, row = self.leaves, self.reach.costs, self.reach.row
        reachable = np.ones(len(leaves.value), dtype=np.bool_)
        price = np.zeros((len(leaves.value), len(self.encoding.columns)))
        self.inside: dict[int, np.ndarray[Any, np.dtype[np.bool_]]] = {}
        for index, position in enumerate(leaves.positions.tolist()):
            cells, column = self.cells[position], int(self.encoding.column_of[position])
            inside = cells.inside(leaves.low[:, index], leaves.high[:, index])
            self.inside[position] = inside
            reachable &= inside.any(axis=1)
            changes = np.abs(cells.values - row[position])
            paid = costs.slope[column] * changes + costs.fixed[column] * (changes > 0)
            cheapest = np.where(inside, paid, np.inf).min(axis=1)
            price[:, column] = np.maximum(price[:, column], cheapest)
        reachable &= price.sum(axis=1) <= self.reach.budget * (1 + 1e-9) + 1e-12
        return reachable

    def _path(self, leaf: int, literal: Any) -> None:
        """The leaf implies that each tested position is one of its cells, which are consecutive."""
        for position, inside in self.inside.items():
            cells = np.flatnonzero(inside[leaf])
            first, last = int(cells[0]), int(cells[-1])
            literals = self.literals[position]
            if first > 0:
                self.model.add_implication(literal, literals[first])
            if last + 1 < len(literals):
                self.model.add_implication(literal, ~literals[last + 1])

    def _hint(self, start: FloatArray) -> None:
        """Where to begin: the cells of a known counterfactual."""
        for position, literals in self.literals.items():
            nearest = int(np.abs(self.cells[position].values - start[position]).argmin())
            for cell, literal in enumerate(literals[1:], start=1):
                self.model.add_hint(literal, int(cell <= nearest))


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise UserError("tree-optimum needs OR-Tools: pip install 'cfbench-tabular[trees]'") from None
    return cp_model
