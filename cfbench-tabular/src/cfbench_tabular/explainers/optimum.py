"""Optimum: the nearest counterfactual of a ReLU network or a linear model, by mixed-integer programming.

Certified: no counterfactual has a smaller objective, which is one of

- ``l1``:   sum over the encoded positions |c_p - x_p|
- ``l0``:   the number of columns that change; of the rows with the same changed columns, levels and hidden units
  that are on, the one with the smallest l1
- ``madd``: mean over numeric positions |c_p - x_p| / MAD_p + mean over categorical positions [c_p != x_p], with MAD_p
  as in the metric MADD

Programme, for a factual x: a number is x_p + up_p - down_p within the range (and the limits of one-way and immutable
columns), up and down being whole steps where the column has a step; a category is exactly one level, a two-valued
column 0 or 1. A hidden unit a = max(0, t) whose t lies between l and u is linear where l >= 0 or u <= 0, and else
(Tjeng, Xiao & Tedrake 2019, "Evaluating robustness of neural networks with mixed integer programming")

    a >= t,   a <= t - l (1 - s),   a <= u s,   a >= 0,   s in {0, 1}

and the log-odds have to be at least ``margin`` (class 1) or at most minus that (class 0).

For speed, l and u are computed for each factual: the nearest training row of the other class, with its changes reset
as far as the class allows, costs R, so only rows within R of the factual matter; l and u are the extremes over that
ball with divisible levels (a knapsack), and intervals in deeper layers.

The solver (HiGHS, through SciPy) is exact to about 1e-6 only. So its row is made exact: levels and the hidden
units that are on are held as found, the network is linear there, and a linear programme gives the row, which
must be of the other class by the model itself; the margin is raised tenfold up to three times when it is not.

Details: ``objective`` of the row that is returned; ``bound``, below which there is none (with the margin);
``proven``, 1 where both agree to a part in 10,000 (also if it is proven that no counterfactual
exists), else 0. ``seconds`` limits the search for one factual, also without a proof: then the result
is the best so far, at worst that training row, and depends on the machine. Ours; there is no paper.

Constraints between columns are part of the programme (``mixed_integer_constraints.py``), unless the protocol has
``constraints: check``. The row that is returned satisfies them, and the proof is about rows that do. The product or ratio
of two numbers without steps is only nearly in the programme: the bound holds, but the row may cost more, and is then not
proven.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import LayeredClassifier
from cfbench_tabular.classifiers.base import predicted_classes
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.constrained_start import ConstrainedRows
from cfbench_tabular.explainers.constraint_forms import nearby_rows, raw_columns
from cfbench_tabular.explainers.exact import Costs, Network, Reach, reach_of
from cfbench_tabular.explainers.mixed_integer_constraints import Affine, ConstraintRows
from cfbench_tabular.explainers.quiet_solver import without_c_output
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/optimum",
    summary="The nearest counterfactual of a ReLU network, by mixed-integer programming, with a proof",
    target=f"{__name__}:Optimum",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"between-columns", "immutable", "one-hot", "ranges"},
    },
    needs={"classifier": {"access": {"layers", "scores"}}},
    role="certified",
    version="2",
    certificate="where the detail 'proven' is 1: no row of the other class, within the observed ranges, the immutable and "
    "one-way columns, and the constraints between columns that the study searches with, has an objective below the detail "
    "'bound', to one part in 10,000",
)


TOLERANCE, SOLVED = 1e-4, 1e-6
"""Share of the bound by which the objective of a proven counterfactual may exceed it, and the solver tolerance."""
MARGINS = (1.0, 10.0, 100.0, 1000.0)
"""Factors by which the margin is raised if the row misses the class because of rounding."""
TANGENTS = 4
"""How often products of numbers without steps are linearised, each time at the last row."""


@dataclass(frozen=True, kw_only=True)
class Config:
    objective: Annotated[Literal["l1", "l0", "madd"], Help("the minimised distance")] = "l1"
    margin: Annotated[float, Range(above=0), Help("log-odds beyond the boundary")] = 1e-6
    seconds: Annotated[
        float, Range(above=0), Help("time limit per factual; results under a limit depend on the machine")
    ] = 10.0


class Optimum:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: LayeredClassifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows = no_counterfactuals(factuals)
        details = np.full((len(factuals), 3), np.nan)
        network, costs = Network.of(model.layers()), costs_of(self.config.objective, context)
        seconds = min(self.config.seconds, context.seconds or np.inf)
        classes = predicted_classes(model, context.background)
        for place, row in enumerate(factuals.vectors):
            label = int(factuals.classes[place])
            reach = reach_of(costs, row)
            allowed = ConstrainedRows(model, reach, label, context.constraints)
            start = allowed.start(context.background[classes != label])
            within = reach if start is None else reach.within(_at_most(float(costs.of(start[None], row)[0])))
            programme = _Programme(network, within, label, self.config.margin, context.constraints)
            found, bound = programme.solve(seconds)
            rows = [start] if start is not None else []
            rows += [] if found is None else self._made_exact(allowed, network, within, found)
            if rows:
                objectives = costs.of(np.stack(rows), row)
                best = int(objectives.argmin())
                found_rows[place] = rows[best]
                bound = min(bound, float(objectives[best]))
                proven = objectives[best] <= bound * (1 + TOLERANCE) + SOLVED
                details[place] = objectives[best], bound, proven
            else:
                details[place, 2] = np.isinf(bound)
        return Explanation(found_rows, dict(zip(("objective", "bound", "proven"), details.T, strict=True)))

    def _made_exact(
        self, allowed: ConstrainedRows, network: Network, reach: Reach, found: FloatArray
    ) -> list[FloatArray]:
        """At most one row: the best one with the levels and the hidden units of ``found`` (d,)."""
        for times in MARGINS:
            row: FloatArray | None = found
            for _ in range(TANGENTS if allowed.constraints else 1):
                margin = times * self.config.margin
                row = _linear(network, reach, allowed.label, found, margin, allowed.constraints, row)
                if row is None:
                    break
                good = allowed.feasible(row)
                if good is not None:
                    return [good]
        row = allowed.feasible(found) if allowed.constraints else None
        return [] if row is None else [row]


def costs_of(objective: str, context: Context) -> Costs:
    """The costs of changes in the encoded space, by objective."""
    encoding = context.encoding
    numeric = np.array([column.scalar for column in encoding.columns])
    places = np.array([2.0 if block.stop - block.start > 1 else 1.0 for block in encoding.blocks])
    if objective == "l0":
        return Costs(encoding, np.zeros(len(numeric)), np.ones(len(numeric)))
    if objective == "l1":
        return Costs(encoding, np.where(numeric, 1.0, 0.0), np.where(numeric, 0.0, places))
    starts = [block.start for block in encoding.blocks]
    slope = 1 / (_spread(context)[starts] * max(1, numeric.sum()))
    fixed = places / max(1, (~encoding.numeric).sum())
    return Costs(encoding, np.where(numeric, slope, 0.0), np.where(numeric, 0.0, fixed))


def _spread(context: Context) -> FloatArray:
    """(d,) the median absolute deviation; where it is 0, as in the metric MADD."""
    deviations = np.abs(context.background - np.median(context.background, axis=0))
    low, high = context.encoding.bounds
    spread = np.ones(len(low))
    for narrower in (high - low, deviations.mean(axis=0), np.median(deviations, axis=0)):
        spread = np.where(narrower > 1e-12, narrower, spread)
    return spread


def _at_most(budget: float) -> float:
    """The budget with a tolerance for rounding errors."""
    return budget * (1 + 1e-6) + 1e-6


class _Programme:
    """The mixed-integer programme of one factual: variables by name, rows of constraints.

    Every quantity is an affine function of the variables: (V, k) coefficients and (k,) constants.
    """

    def __init__(
        self,
        network: Network,
        reach: Reach,
        label: int,
        margin: float,
        constraints: tuple[Constraint, ...] = (),
    ) -> None:
        self.reach = reach
        self.encoding = reach.encoding
        self.numeric = np.flatnonzero(self.encoding.numeric)
        self.levels = np.flatnonzero(~self.encoding.numeric)
        steps = reach.steps[self.numeric]
        self.whole = steps > 0  # numbers that move by whole steps
        self.unit = np.where(self.whole, steps, 1.0)
        self.fixed_costs = reach.costs.fixed[self.encoding.column_of[self.numeric]]
        hidden = sum(len(bias) for _, bias in network.hidden())
        n, c = len(self.numeric), len(self.levels)
        # up, down, changed (numbers); levels; activations and switches of hidden units
        self.up, self.down, self.changed = (np.arange(n) + at for at in (0, n, 2 * n))
        self.level = np.arange(c) + 3 * n
        self.active = np.arange(hidden) + 3 * n + c
        self.switch = self.active + hidden
        self.size = 3 * n + c + 2 * hidden
        self.low, self.high = np.zeros(self.size), np.full(self.size, np.inf)
        self.integral = np.zeros(self.size)
        self.rows: list[tuple[FloatArray, float, float]] = []
        self._inputs()
        output = self._forward(network)
        self._add(*output, low=margin) if label == 0 else self._add(*output, high=-margin)
        self.possible = self._constrain(constraints)

    def solve(self, seconds: float) -> tuple[FloatArray | None, float]:
        """A row (d,), exact to the solver's tolerance, or None; and a lower bound of the objective.

        The bound is infinite when there is no row.
        """
        if not self.possible:
            return None, np.inf
        prices, paid = self._objective()
        if np.isfinite(self.reach.budget):
            self._add(prices[:, None], np.array([paid]), high=self.reach.budget)
        matrix = np.zeros((len(self.rows), self.size))
        for place, (coefficients, _, _) in enumerate(self.rows):  # which were added before the last variables
            matrix[place, : len(coefficients)] = coefficients[:, 0]
        with without_c_output():  # HiGHS prints a line when it solves a solution again, even with disp=False
            result: Any = milp(
                prices,
                integrality=self.integral,
                bounds=Bounds(self.low, self.high),
                constraints=LinearConstraint(
                    matrix,
                    np.concatenate([np.atleast_1d(low) for _, low, _ in self.rows]),
                    np.concatenate([np.atleast_1d(high) for _, _, high in self.rows]),
                ),
                options={"time_limit": seconds, "mip_rel_gap": 1e-7},
            )
        if result.status == 2:
            return None, np.inf
        # Without integers it is a linear programme, for which SciPy returns no bound: its minimum is one.
        dual_bound = result.mip_dual_bound if self.integral.any() else result.fun
        bound = 0.0 if dual_bound is None else max(0.0, float(dual_bound) + paid)
        return (None if result.x is None else self._row(result.x)), bound

    def _inputs(self) -> None:
        """Bounds of the numbers and of the levels; one level of each group."""
        row, low, high = self.reach.row, self.reach.low, self.reach.high
        for moved, room in ((self.up, high - row), (self.down, row - low)):
            most = room[self.numeric] / self.unit
            self.high[moved] = np.where(self.whole, np.floor(most + 1e-6), most)
            self.integral[moved] = self.whole
        self.high[self.changed] = (self.fixed_costs > 0).astype(np.float64)
        self.integral[self.changed] = self.fixed_costs > 0
        for place in np.flatnonzero(self.fixed_costs > 0):
            for moved in (self.up[place], self.down[place]):
                self._add(*self._sum({moved: 1.0, self.changed[place]: -self.high[moved]}), high=0.0)
        self.low[self.level], self.high[self.level] = low[self.levels], high[self.levels]
        self.integral[self.level] = 1
        at = dict(zip(self.levels.tolist(), self.level.tolist(), strict=True))
        for group in self.encoding.groups:
            members = {at[place]: 1.0 for place in range(group.start, group.stop)}
            self._add(*self._sum(members), low=1.0, high=1.0)

    def _constrain(self, constraints: tuple[Constraint, ...]) -> bool:
        """Rows for the constraints between columns; False where no row satisfies them."""
        columns = raw_columns(self.reach, constraints)
        place = {int(position): index for index, position in enumerate(self.numeric)}
        numbers = {}
        for name, column in columns.items():
            if not column.fixed:
                at = place[column.position]
                ends = (float(end / column.unit) for end in (column.factual, column.low, column.high))
                numbers[name] = Affine({int(self.up[at]): 1.0, int(self.down[at]): -1.0}, *ends)
        return ConstraintRows(columns, numbers, self._variable, self._add_terms).constrain(constraints)

    def _variable(self, low: float, high: float, whole: bool) -> int:
        """The number of a further variable."""
        self.low, self.high = np.append(self.low, low), np.append(self.high, high)
        self.integral = np.append(self.integral, float(whole))
        self.size += 1
        return self.size - 1

    def _add_terms(self, terms: Mapping[int, float], low: float, high: float) -> None:
        self._add(*self._sum(terms), low=low, high=high)

    def _forward(self, network: Network) -> tuple[FloatArray, FloatArray]:
        """The log-odds, after constraints for every hidden unit that may be on or off."""
        coefficients = np.zeros((self.size, self.encoding.width))
        coefficients[self.up, self.numeric] = self.unit
        coefficients[self.down, self.numeric] = -self.unit
        coefficients[self.level, self.levels] = 1.0
        constants = np.where(self.encoding.numeric, self.reach.row, 0.0)
        units = iter(zip(self.active.tolist(), self.switch.tolist(), strict=True))
        for (weight, bias), (low, high) in zip(network.hidden(), self.reach.units(network), strict=True):
            coefficients, constants = coefficients @ weight, constants @ weight + bias
            for unit, (active, switch) in zip(range(len(bias)), units, strict=False):
                self.high[[active, switch]] = 0.0
                if high[unit] <= 0:
                    coefficients[:, unit], constants[unit] = 0.0, 0.0
                elif low[unit] < 0:
                    self._relu(coefficients[:, unit], constants[unit], active, switch, low[unit], high[unit])
                    coefficients[:, unit], constants[unit] = 0.0, 0.0
                    coefficients[active, unit] = 1.0
        return coefficients @ network.weights[-1], constants @ network.weights[-1] + network.biases[-1]

    def _relu(
        self, inner: FloatArray, constant: float, active: int, switch: int, low: float, high: float
    ) -> None:
        """active = max(0, inner + constant), which lies between low < 0 and high > 0."""
        self.high[active], self.high[switch], self.integral[switch] = high, 1.0, 1
        above = -inner[:, None].copy()
        above[active] += 1.0
        self._add(above, np.array([-constant]), low=0.0)
        above = above.copy()
        above[switch] -= low
        self._add(above, np.array([-constant]), high=-low)
        self._add(*self._sum({active: 1.0, switch: -high}), high=0.0)

    def _objective(self) -> tuple[FloatArray, float]:
        """(V,) coefficients of the costs, and a constant."""
        costs, encoding = self.reach.costs, self.encoding
        prices, paid = np.zeros(self.size), 0.0
        prices[self.up] = prices[self.down] = costs.slope[encoding.column_of[self.numeric]] * self.unit
        prices[self.changed] = self.fixed_costs
        for place, variable in zip(self.levels, self.level, strict=True):
            column = encoding.column_of[place]
            alone = encoding.blocks[column].stop - encoding.blocks[column].start == 1
            if self.reach.row[place] == 1.0:
                prices[variable] = -costs.fixed[column]
                paid += float(costs.fixed[column])
            elif alone:
                prices[variable] = costs.fixed[column]
        return prices, paid

    def _row(self, values: FloatArray) -> FloatArray:
        row = self.reach.row.copy()
        moved = (values[self.up] - values[self.down]) * self.unit
        row[self.numeric] += np.where(np.abs(moved) > 1e-9, moved, 0.0)
        row[self.levels] = values[self.level]
        projected: FloatArray = self.reach.limits.projected(row[None])[0]
        return projected

    def _sum(self, terms: Mapping[int, float]) -> tuple[FloatArray, FloatArray]:
        coefficients = np.zeros((self.size, 1))
        for variable, factor in terms.items():
            coefficients[variable] = factor
        return coefficients, np.zeros(1)

    def _add(
        self, coefficients: FloatArray, constant: FloatArray, low: float = -np.inf, high: float = np.inf
    ) -> None:
        """low <= variables @ coefficients (V, 1) + constant <= high."""
        self.rows.append((coefficients, low - float(constant[0]), high - float(constant[0])))


def _linear(
    network: Network,
    reach: Reach,
    label: int,
    found: FloatArray,
    margin: float,
    constraints: tuple[Constraint, ...] = (),
    near: FloatArray | None = None,
) -> FloatArray | None:
    """(d,) the best row where the levels, the units that are on, and what changes are those of ``found`` (d,).

    So are the numbers that move by whole steps. Constraints are linearised at the row ``near`` (d,).
    """
    continuous = reach.encoding.numeric & (reach.steps == 0)
    numeric = np.flatnonzero(continuous)
    if len(numeric) == 0:
        return found
    base = np.where(continuous, reach.row, found)
    slope = np.eye(reach.encoding.width)[numeric]  # of what is computed, by number
    sides = []
    for (weight, bias), on in zip(network.hidden(), network.signs(found), strict=True):
        base, slope = base @ weight + bias, slope @ weight
        sides += [(np.where(on, -slope, slope), np.where(on, base, -base))]  # sides @ change <= distance
        base, slope = base * on, slope * on
    output, sign = float((base @ network.weights[-1] + network.biases[-1])[0]), -1.0 if label == 0 else 1.0
    sides += [(sign * (slope @ network.weights[-1]), np.array([-sign * output - margin]))]
    rows = nearby_rows(constraints, reach, found if near is None else near, numeric)
    if rows is None:
        return None
    sides += [rows]
    columns = reach.encoding.column_of[numeric]
    free = (reach.costs.fixed[columns] == 0) | (found != reach.row)[numeric]
    matrix = np.concatenate([side for side, _ in sides], axis=1).T
    up, down = (reach.high - reach.row)[numeric] * free, (reach.row - reach.low)[numeric] * free
    prices = np.where(reach.costs.slope > 0, reach.costs.slope, 1.0)[columns]
    result: Any = linprog(
        np.concatenate([prices, prices]),
        A_ub=np.concatenate([matrix, -matrix], axis=1),
        b_ub=np.concatenate([distance for _, distance in sides]),
        bounds=np.stack([np.zeros(2 * len(numeric)), np.concatenate([up, down])], axis=1),
    )
    if result.status != 0:
        return None
    moved = result.x[: len(numeric)] - result.x[len(numeric) :]
    row = found.copy()
    row[numeric] = reach.row[numeric] + np.where(np.abs(moved) > 1e-9, moved, 0.0)
    snapped: FloatArray = reach.limits.snapped(np.clip(row, reach.low, reach.high)[None])[0]
    return snapped
