"""Tree optimum: the nearest counterfactual of a random forest or of boosted trees, by constraint programming.

Certified like ``optimum``, with the same objectives (``l1``, ``l0``, ``madd``). The formulation is that of Parmentier &
Vidal 2021 ("Optimal counterfactual explanations in tree ensembles", ICML), solved by constraint programming on
Booleans (CP-SAT of OR-Tools) as the package OCEAN does:

- of each number, Booleans m_j say whether it lies above the j-th threshold of the ensemble, m_(j+1) => m_j. Only the
  value of each interval between thresholds that is nearest to the factual matters (``tree_boxes.py``), so its cost
  is a sum over the m_j. A category has one Boolean for each level, of which exactly one is true.
- of each tree exactly one leaf is reached; a leaf implies the Booleans on its path.
- the values of the reached leaves sum up to the other class, with at least ``margin`` beyond the boundary (votes of a
  forest, log-odds of boosted trees). Rows on the boundary, for example those for which half of a forest votes, are in
  class 0, or in the class that the classifier names (``boundary_class``): where that class is wanted, they count. If
  rounding puts the nearest of them into the other class, the search continues beyond the margin, and what it finds is
  only proven where it costs no more.

Reduced without loss: the nearest training row of the other class, with its changes undone as far as the class allows,
costs R. The search is for rows that cost at most R/8, then R/4, R/2 and R, until there is one: values and leaves that
cost more are left out, which makes the first programmes small, and each refuted budget is a lower bound.

Values of leaves and costs become whole numbers (values are rounded to a part of ``margin``, costs downwards to one part in
ten million of R), so that the solver is exact; ``bound`` is a lower bound of the objective of every row of the class that
rows on the boundary have, or of every row that is ``margin`` beyond the boundary in the other class. Trees compare 32-bit
numbers; the value above a threshold is the next such number, where a 64-bit number half a unit of rounding below it would
do.

Details: ``objective`` of the row that is returned; ``bound``, below which there is none; ``proven``, 1 where both agree to
one part in 10,000 (also if it is proven that no counterfactual exists), else 0. ``seconds`` limits the search for one
factual: then the result is the best so far, at worst that training row, and depends on the machine. One thread,
so that the result is the same each time. Needs cfbench-tabular[trees].

Constraints between columns are part of the programme (``tree_constraints.py``), unless the protocol has
``constraints: check``. The row that is returned satisfies them, and the proof is about rows that do. Numbers without steps
are only nearly in the programme then: the bound holds, but the row may cost more, and is then not proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import TreeClassifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.constrained_start import ConstrainedRows
from cfbench_tabular.explainers.exact import Reach, reach_of
from cfbench_tabular.explainers.optimum import TOLERANCE, costs_of
from cfbench_tabular.explainers.tree_boxes import EnsembleTests, Leaves
from cfbench_tabular.explainers.tree_constraints import TreeConstraints
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/tree-optimum",
    summary="The nearest counterfactual of a forest or boosted trees, with a proof; needs [trees]",
    target=f"{__name__}:TreeOptimum",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"between-columns", "immutable", "one-hot", "ranges"},
    },
    needs={"classifier": {"access": {"scores", "trees"}}},
    role="certified",
    version="3",
    certificate="where the detail 'proven' is 1: no row of the other class, within the observed ranges, the immutable and "
    "one-way columns, and the constraints between columns that the study searches with, has an objective below the detail "
    "'bound', to one part in 10,000",
    papers=("parmentier2021optimal",),
    details={"default": False},
)

SHARES = (0.125, 0.25, 0.5, 1.0)
"""Of the cost of the row to start from: the budgets of the programmes that are tried one after the other."""

COST_STEPS = 10_000_000
"""Whole numbers between 0 and the budget."""

FINE_COST_STEPS = 10**14
"""The same with constraints between columns, where each step of a column has a cost."""


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
        tested, costs = EnsembleTests.of(trees), costs_of(self.config.objective, context)
        seconds = min(self.config.seconds, context.seconds or np.inf)
        classes = predicted_classes(model, context.background)
        for place, row in enumerate(factuals.vectors):
            label = int(factuals.classes[place])
            reach = reach_of(costs, row)
            allowed = ConstrainedRows(model, reach, label, context.constraints)
            start = allowed.start(context.background[classes != label])
            most = np.inf if start is None else float(costs.of(start[None], row)[0]) * (1 + 1e-9) + 1e-12
            search = partial(_search, tested, reach, most, start=start, constraints=context.constraints)
            found, bound = self._nearest(search, model, label, offset, seconds)
            found = None if found is None else allowed.feasible(found)
            rows = [each for each in (start, found) if each is not None]
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

    def _nearest(
        self,
        search: Callable[[_Needed, float], tuple[FloatArray | None, float]],
        model: TreeClassifier,
        label: int,
        offset: float,
        seconds: float,
    ) -> tuple[FloatArray | None, float]:
        """The nearest row (d,) of the other class than ``label`` or None, and a lower bound of the objective."""
        end = time.perf_counter() + seconds
        ties = label != getattr(model, "boundary_class", 0)
        needed = _Needed(offset, self.config.margin, -1.0 if label else 1.0, ties)
        found, bound = search(needed, seconds)
        if found is None or not needed.ties or predicted_classes(model, found[None])[0] != label:
            return found, bound
        beyond, _ = search(replace(needed, ties=False), max(end - time.perf_counter(), 0.0))
        return beyond, bound


@dataclass(frozen=True)
class _Needed:
    """sign * (sum of the leaves + offset) must be at least ``margin``; with ``ties``, at least 0."""

    offset: float
    margin: float
    sign: float
    ties: bool

    def least(self, scale: float, trees: int) -> int:
        """What the leaves must sum up to, in parts of 1 / ``scale``, to which each of them is rounded."""
        if self.ties:
            return int(np.floor(-self.sign * self.offset * scale)) - trees
        return int(np.ceil((self.margin - self.sign * self.offset) * scale))


def _search(
    tested: EnsembleTests,
    reach: Reach,
    most: float,
    needed: _Needed,
    seconds: float,
    start: FloatArray | None,
    constraints: tuple[Constraint, ...] = (),
) -> tuple[FloatArray | None, float]:
    """A row (d,) or None, and a lower bound of the objective, infinite when there is no row within ``most``."""
    end, refuted = time.perf_counter() + seconds, 0.0
    for share in SHARES if np.isfinite(most) else (1.0,):
        left = end - time.perf_counter()
        if left <= 0:
            break
        programme = _Programme(tested, reach.within(share * most), needed, constraints)
        found, bound = programme.solve(start if share == 1.0 else None, left)
        if found is not None or (share == 1.0 and np.isinf(bound)):
            return found, max(bound, refuted)
        if np.isfinite(bound):
            break  # out of time
        refuted = share * most
    return None, refuted


class _Programme:
    """The constraint programme of one factual."""

    def __init__(
        self,
        tested: EnsembleTests,
        reach: Reach,
        needed: _Needed,
        constraints: tuple[Constraint, ...] = (),
    ) -> None:
        self.cp = _cp_model()
        self.model = self.cp.CpModel()
        self.tested, self.reach, self.needed = tested, reach, needed
        self.encoding = reach.encoding
        self.unit = reach.budget / COST_STEPS if 0 < reach.budget < np.inf else 1.0 / COST_STEPS
        if constraints:
            self.unit = _most(reach) / FINE_COST_STEPS or self.unit
        self.terms: list[tuple[Any, int]] = []  # of the objective: literals and their costs
        self.base = 0
        self.allowance = 0.0  # what columns without steps may cost less than their multiples
        self.cells = tested.cells(reach)
        self.true = self.model.new_constant(1)
        self.between = TreeConstraints(self.model, reach, constraints)
        self.literals: dict[int, list[Any]] = {}  # of each position, whether it is at least its c-th cell
        self.counts = np.array([len(self.cells[position].values) for position in sorted(tested.thresholds)])
        self._columns()
        self._trees()

    def solve(self, start: FloatArray | None, seconds: float) -> tuple[FloatArray | None, float]:
        """A row (d,) or None, and a lower bound of the objective, infinite when there is no row."""
        if not self.between.possible:
            return None, np.inf
        cost = sum(amount * literal for literal, amount in self.terms)
        self.model.minimize(cost)
        if start is not None:
            self._hint(start)
        solver = self.cp.CpSolver()
        solver.parameters.max_time_in_seconds = seconds
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        # With its presolve, CP-SAT 9.15 called rows optimal that were not: about 1 of 500 random programmes like those of
        # the tests. Without it, none of 3,327 was wrong, and the times on Adult are the same.
        solver.parameters.cp_model_presolve = False
        status = solver.solve(self.model)
        if status == self.cp.INFEASIBLE:
            return None, np.inf
        if status not in (self.cp.OPTIMAL, self.cp.FEASIBLE):
            return None, 0.0  # out of time before a first row: the solver has no bound to rely on
        bound = max(0.0, (solver.best_objective_bound + self.base) * self.unit - self.allowance)
        if bound > self.reach.budget * (1 + 1e-9) + self.unit:
            return None, np.inf  # the nearest row is beyond the budget
        row = self.reach.row.copy()
        for position, literals in self.literals.items():
            last = sum(solver.boolean_value(literal) for literal in literals[1:])
            row[position] = self.cells[position].values[last]
        return self.between.row_of(solver, row, self.cells, self.tested.thresholds), bound

    def _columns(self) -> None:
        """Literals and costs of all columns."""
        costs, row = self.reach.costs, self.reach.row
        for column, block in enumerate(self.encoding.blocks):
            if self.encoding.numeric[block.start]:
                if block.start in self.between.columns:
                    self._constrained(column, block.start)
                elif block.start in self.cells:
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

    def _constrained(self, column: int, position: int) -> None:
        """A number of constraints between columns, with the costs of its steps."""
        one, costs = self.between.columns[position], self.reach.costs
        if position in self.cells:
            self._ordered(position, np.zeros(len(self.cells[position].values)))
            self.between.link(
                position, self.cells[position], self.literals[position], self.tested.thresholds[position]
            )
        price = float(costs.slope[column]) * float(one.unit) / one.raw.scale
        self.terms.append((one.distance, int(price / self.unit)))
        self.terms.append((one.changed, int(costs.fixed[column] / self.unit)))
        self.allowance += 2 * float(one.off) * price

    def _ordered(self, position: int, paid: FloatArray) -> None:
        """Literals "at least the c-th cell", the first of which is true, with the costs (c,) of the cells."""
        steps = np.floor(paid / self.unit).astype(np.int64)
        literals = [self.true] + [self.model.new_bool_var("") for _ in steps[1:]]
        for lower, higher in pairwise(literals[1:]):
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
        needed, trees = self.needed, self.tested.trees
        leaves = Leaves.within(self.tested, self.reach, self.cells)
        scale = max(1e9, len(trees.roots) / needed.margin)
        values = np.rint(needed.sign * trees.value[leaves.node] * scale).astype(np.int64)
        ends = np.searchsorted(self.tested.tree[leaves.node], np.arange(len(trees.roots) + 1))
        terms: list[tuple[Any, int]] = []
        constant = 0
        for begin, end in pairwise(ends.tolist()):
            own = values[begin:end].tolist()
            if len(set(own)) == 1:  # whichever it is
                constant += own[0]
                continue
            reached = [self.model.new_bool_var("") for _ in own]
            self.model.add_exactly_one(reached)
            for leaf, literal in zip(range(begin, end), reached, strict=True):
                self._path(leaves, leaf, literal)
            terms += zip(reached, own, strict=True)
        least = needed.least(scale, len(trees.roots))
        self.model.add(sum(value * literal for literal, value in terms) + constant >= least)

    def _path(self, leaves: Leaves, leaf: int, literal: Any) -> None:
        """The leaf implies that each tested position is one of its cells, which are consecutive."""
        first, stop = leaves.first[leaf], leaves.stop[leaf]
        for index in np.flatnonzero((first > 0) | (stop < self.counts)).tolist():
            literals = self.literals[int(leaves.positions[index])]
            if first[index] > 0:
                self.model.add_implication(literal, literals[first[index]])
            if stop[index] < len(literals):
                self.model.add_implication(literal, ~literals[stop[index]])

    def _hint(self, start: FloatArray) -> None:
        """Where to begin: the cells of a known counterfactual."""
        for position, literals in self.literals.items():
            nearest = int(np.abs(self.cells[position].values - start[position]).argmin())
            for cell, literal in enumerate(literals[1:], start=1):
                self.model.add_hint(literal, int(cell <= nearest))


def _most(reach: Reach) -> float:
    """The budget, or what the largest changes of all columns cost."""
    if np.isfinite(reach.budget):
        return reach.budget
    room = np.where(reach.encoding.numeric, np.maximum(reach.high - reach.row, reach.row - reach.low), 0.0)
    widest = np.maximum.reduceat(room, [block.start for block in reach.encoding.blocks])
    return float((reach.costs.slope * widest + reach.costs.fixed).sum())


def _cp_model() -> Any:
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise UserError("tree-optimum needs OR-Tools: pip install 'cfbench-tabular[trees]'") from None
    return cp_model
