"""MACE: the nearest counterfactual by satisfiability modulo theories, with a proof.

Karimi, Barthe, Balle & Valera 2020, "Model-agnostic counterfactual explanations for consequential decisions".
Is there a row of the other class within the distance delta of x? The network, the distance and the constraints
are a formula of linear arithmetic; a solver (z3) proves that there is none, or returns such a row. Bisection of delta
between the refuted and the reached distance ends when both are ``epsilon`` apart. With J columns and the distance of one
|c_j - x_j| / range_j (numbers) or [c_j != x_j] (categories), the distance of a row is, by ``norm``,

- ``l1``: the mean of these;  ``l0``: the share of the columns that change;  ``linf``: the largest.

The formula is exact: the weights are the rationals that the numbers in memory are, a hidden unit is
max(0, t) by cases, and class 1 is z1 > z0, class 0 the rest. (The adapter of CF-tabular explains the
last training row instead of the factual, and replaces the comparison of z0 and z1 by a ReLU.) The model predicts each
row: if a row is so near to the boundary that rounding decides, the search is repeated beyond a ``margin`` of the
log-odds, and if this finds none, it ends without a proof.

The formula is reduced without loss: for a delta it contains only what can move within delta and only the
hidden units that are neither always on nor always off there (extremes of a relaxation, widened for rounding);
a level implies the units that it determines. Distances that come in steps (``l0``, or no numbers) are bisected
by steps. The bisection starts from the nearest training row of the other class, its changes undone as far as
the class allows, where the paper starts from 1; so a counterfactual is always found where there is such a row.

Details: ``objective``, the distance of the counterfactual; ``bound``, within which there is none; ``proven``, 1 when they
are at most ``epsilon`` apart (or none exists at all), 0 if a limit was reached first: then the result is the
best so far. With ``seconds`` it depends on the machine, with ``work`` (units that z3 counts) it does not.

Constraints between columns are part of the formula (``smt_constraints.py``), unless the protocol has ``constraints:
check``; the proof is about rows that satisfy them. Products and ratios are linear by cases, but for those of two numbers
without steps, which z3 may not decide: then there is no proof.

Arithmetic with whole rationals is slow: see the sizes in the documentation, and use ``optimum`` for more.
Preset ``as-published``: the tolerance of the authors' code and no time limit; each answer is then proven, as theirs is.
Formulae go to z3 directly: the paper's pysmt would only translate them. Needs cfbench-tabular[mace].
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_tabular.classifier_contracts import LayeredClassifier
from cfbench_tabular.classifiers.base import predicted_classes, probabilities
from cfbench_tabular.constraints import Constraint
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.explainers.base import Context, Explanation, Factuals, no_counterfactuals
from cfbench_tabular.explainers.constrained_start import ConstrainedRows
from cfbench_tabular.explainers.constraint_forms import RawColumn, raw_columns
from cfbench_tabular.explainers.exact import Costs, Network, Reach, reach_of
from cfbench_tabular.explainers.smt_constraints import SMTConstraints
from cfbench_tabular.table import FloatArray

SPEC = ComponentSpec(
    id="tabular/explainer/mace",
    summary="The nearest counterfactual by satisfiability modulo theories, with a proof; needs [mace]",
    target=f"{__name__}:MACE",
    config=f"{__name__}:Config",
    provides={
        "columns": {"categorical", "numeric"},
        "constraints": {"between-columns", "immutable", "one-hot", "ranges"},
    },
    version="2",
    needs={"classifier": {"access": {"layers", "scores"}}},
    papers=("karimi2020mace",),
    presets="cfbench_tabular:presets/mace.yaml",
    details={"default": False},
)


SLACK = 1e-9
"""Widening of bounds computed in floating point, so that refutations are certain."""


@dataclass(frozen=True, kw_only=True)
class Config:
    norm: Annotated[Literal["l1", "l0", "linf"], Help("of the distances of the columns")] = "l1"
    epsilon: Annotated[float, Range(above=0), Help("maximum distance of the result from the optimum")] = 1e-3
    margin: Annotated[float, Range(above=0), Help("log-odds beyond the boundary where rounding decides")] = (
        1e-6
    )
    seconds: Annotated[
        float, Range(above=0), Help("time limit per factual; results under a limit depend on the machine")
    ] = 10.0
    work: Annotated[
        int | None,
        Range(minimum=1),
        Help("limit per factual in units of z3 (rlimit), the same on every machine; raise seconds with it"),
    ] = None


class MACE:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, model: LayeredClassifier, factuals: Factuals, context: Context) -> Explanation:
        found_rows = no_counterfactuals(factuals)
        details = np.full((len(factuals), 3), np.nan)
        network, costs = Network.of(model.layers()), costs_of(self.config.norm, context.encoding)
        seconds = min(self.config.seconds, context.seconds or np.inf)
        classes = predicted_classes(model, context.background)
        for place, row in enumerate(factuals.vectors):
            label = int(factuals.classes[place])
            reach = reach_of(costs, row)
            allowed = ConstrainedRows(model, reach, label, context.constraints)
            start = allowed.start(context.background[classes != label])
            budget = _Budget(time.monotonic() + seconds, self.config.work)
            search = _Bisection(self.config, allowed, network, budget)
            found, details[place, 0], details[place, 1] = search.run(start)
            if found is not None:
                found_rows[place] = found
                details[place, 2] = details[place, 0] - details[place, 1] <= self.config.epsilon
            else:
                details[place, 2] = np.isinf(details[place, 1])
        details[np.isinf(details)] = np.nan
        return Explanation(found_rows, dict(zip(("objective", "bound", "proven"), details.T, strict=True)))


def costs_of(norm: str, encoding: Encoding) -> Costs:
    """The normalised distances of the paper."""
    numeric = np.array([column.scalar for column in encoding.columns])
    span = np.where(encoding.high > encoding.low, encoding.high - encoding.low, 1.0)
    share = 1.0 if norm == "linf" else 1.0 / len(numeric)
    if norm == "l0":
        return Costs(encoding, np.zeros(len(numeric)), np.full(len(numeric), share))
    slope, fixed = np.where(numeric, share / span, 0.0), np.where(numeric, 0.0, share)
    return Costs(encoding, slope, fixed, largest=norm == "linf")


@dataclass
class _Budget:
    """What is left for one factual: until ``deadline`` (of ``time.monotonic``), and ``work`` units, None for any."""

    deadline: float
    work: int | None

    def exhausted(self) -> bool:
        return self._milliseconds() <= 0 or self.work == 0

    def check(self, solver: Any) -> Any:
        """z3's verdict; ``unknown`` when the budget ends first."""
        solver.set("timeout", self._milliseconds())
        if self.work is None:
            return solver.check()
        solver.set("rlimit", self.work)
        before = _work_of(solver)
        verdict = solver.check()
        self.work = max(self.work - (_work_of(solver) - before), 0)
        return verdict

    def _milliseconds(self) -> int:
        return int(1000 * (self.deadline - time.monotonic()))


def _work_of(solver: Any) -> int:
    """Units counted so far in the solver's context; absent before the first."""
    return next((int(value) for name, value in solver.statistics() if name == "rlimit count"), 0)


class _Bisection:
    """The search for one factual."""

    def __init__(self, config: Config, allowed: ConstrainedRows, network: Network, budget: _Budget) -> None:
        self.config, self.allowed, self.network, self.budget = config, allowed, network, budget
        self.reach, self.label = allowed.reach, allowed.label

    def run(self, best: FloatArray | None) -> tuple[FloatArray | None, float, float]:
        """The row (d,), its distance, and that within which there is none; infinite where there is none at all."""
        refuted, reached = 0.0, np.inf if best is None else self._distance(best)
        step = self._step()
        while reached - refuted > self.config.epsilon:
            tried = 1.0 if np.isinf(reached) else (refuted + reached) / 2
            if step:  # the largest possible distance below the middle, but not what is refuted already
                tried = max(np.floor(tried / step + SLACK), np.ceil(refuted / step - SLACK)) * step
            verdict, row = self._query(tried)
            if verdict == "unknown":
                break
            if row is not None:
                best, reached = row, self._distance(row)
            elif np.isinf(reached):
                return None, np.inf, np.inf
            else:
                refuted = min(reached, tried + step)
        return best, reached, refuted

    def _distance(self, row: FloatArray) -> float:
        return float(self.reach.costs.of(row[None], self.reach.row)[0])

    def _step(self) -> float:
        """Of what the distances are multiples; 0 where they can be any number."""
        costs, encoding = self.reach.costs, self.reach.encoding
        moving = (self.reach.high > self.reach.low) & encoding.numeric
        return 0.0 if moving.any() and costs.slope.any() else float(costs.fixed.max())

    def _query(self, distance: float) -> tuple[str, FloatArray | None]:
        """ "yes" and a row (d,), "no", or "unknown"."""
        reach = self.reach.within(distance + SLACK)
        for margin in (0.0, self.config.margin):
            formula = _Formula(self.network, reach, self.label, margin, self.allowed.constraints)
            verdict, row = formula.solve(self.budget)
            if row is None:
                return ("unknown" if margin else verdict), None
            if self.allowed.constraints:
                row = self.allowed.feasible(row)
            if row is None or self._distance(row) > distance + self.config.epsilon / 8:
                continue  # so near to the boundary or to a constraint that rounding decides
            chances = probabilities(self.allowed.model, row[None])[0]
            if chances[1 - self.label] - chances[self.label] > self.config.margin / 4:
                return "yes", row
        return "unknown", None


@dataclass(frozen=True)
class _Move:
    """A change of one column: ``amount`` times ``step`` (d,) is added to the factual.

    Attributes:
        whole: the amount is 0 or 1 (a level).
        stepped: the amount is a whole number, of steps of the column.
        most: the largest amount.
        price: of an amount of 1.
    """

    column: int
    step: FloatArray
    whole: bool
    most: float
    price: float
    stepped: bool = False


def _moves(reach: Reach) -> list[_Move]:
    encoding, costs, found = reach.encoding, reach.costs, []
    for column, block in enumerate(encoding.blocks):
        here = reach.row[block]
        unit = np.eye(encoding.width)[block]
        if encoding.columns[column].scalar:
            step = float(reach.steps[block.start])
            size = step or 1.0
            price = float(costs.slope[column]) * size
            for sign, room in ((size, reach.high - reach.row), (-size, reach.row - reach.low)):
                most = float(room[block][0]) / size
                most = float(np.floor(most + 1e-6)) if step else most
                if most > 0:
                    found.append(_Move(column, sign * unit[0], False, most, price, stepped=step > 0))
        elif block.stop - block.start == 1:
            if reach.high[block][0] > reach.low[block][0]:
                found.append(
                    _Move(column, (1 - 2 * here[0]) * unit[0], True, 1.0, float(costs.fixed[column]))
                )
        else:
            for level in np.flatnonzero((here == 0) & (reach.high[block] > 0)):
                step = unit[level] - here @ unit
                found.append(_Move(column, step, True, 1.0, float(costs.fixed[column])))
    return found


class _Formula:
    """Is there a row of the other class within reach?"""

    def __init__(
        self,
        network: Network,
        reach: Reach,
        label: int,
        margin: float,
        constraints: tuple[Constraint, ...] = (),
    ) -> None:
        self.z3 = _z3()
        self.network, self.reach, self.moves = network, reach, _moves(reach)
        stepped = any(move.stepped for move in self.moves)
        self.context = self.z3.Context()  # what was solved before in this process has no influence
        columns = raw_columns(reach, constraints)
        between = SMTConstraints(self.z3, self.context, columns, constraints)
        logic = ("QF_LIRA" if stepped else "QF_LRA") if between.linear else "QF_NRA"
        self.solver = (
            self.z3.Solver(ctx=self.context)
            if stepped and not between.linear
            else self.z3.SolverFor(logic, ctx=self.context)
        )
        self.amounts = [
            self.z3.ToReal(self.z3.Int(f"move{place}", self.context))
            if move.stepped
            else self.z3.Real(f"move{place}", self.context)
            for place, move in enumerate(self.moves)
        ]
        self._constrain()
        self.solver.add(*between.build(self._raw(columns)))
        output = self._output()
        beyond = output > self._exact(margin) if margin or label == 0 else output <= 0
        self.solver.add(beyond if label == 0 or not margin else output < self._exact(-margin))

    def solve(self, budget: _Budget) -> tuple[str, FloatArray | None]:
        """ "yes" and a row (d,), "no", or "unknown" when the budget ends."""
        if budget.exhausted():
            return "unknown", None
        verdict = budget.check(self.solver)
        if verdict != self.z3.sat:
            return ("no" if verdict == self.z3.unsat else "unknown"), None
        model, row = self.solver.model(), self.reach.row.copy()
        for amount, move in zip(self.amounts, self.moves, strict=True):
            value = model.eval(amount, model_completion=True)
            value = value if self.z3.is_rational_value(value) else value.approx(20)  # a root, of a product
            row += float(value.as_fraction()) * move.step
        row = np.clip(row, self.reach.low, self.reach.high)
        return "yes", self.reach.limits.snapped(row[None])[0]

    def _constrain(self) -> None:
        """Amounts within their room, one level of a category, the distance within the budget."""
        z3, costs, paid = self.z3, self.reach.costs, []
        of_column: dict[int, list[Any]] = {}
        for amount, move in zip(self.amounts, self.moves, strict=True):
            self.solver.add(amount >= 0, amount <= self._exact(move.most))
            of_column.setdefault(move.column, []).append(amount)
            if move.whole:
                self.solver.add(z3.Or(amount <= 0, amount >= 1))
            if move.price:
                paid.append(self._exact(move.price) * amount)
        for column, amounts in of_column.items():
            number = self.reach.encoding.columns[column].scalar
            for one, other in combinations(amounts, 2):  # up or down, this level or that
                self.solver.add(z3.Or(one <= 0, other <= 0))
            if number and costs.fixed[column] > 0:
                changed = z3.Real(f"changed{column}", self.context)
                self.solver.add(changed >= 0, z3.Or(changed >= 1, *[z3.And(*[a <= 0 for a in amounts])]))
                paid.append(self._exact(float(costs.fixed[column])) * changed)
        if paid and not costs.largest:
            self.solver.add(z3.Sum(paid) <= self._exact(self.reach.budget))

    def _raw(self, columns: Mapping[str, RawColumn]) -> dict[str, Any]:
        """The numbers of constraints, raw: the factual's, and the moves in steps or standard deviations."""
        places, found = self.reach.encoding.column_of, {}
        for name, column in columns.items():
            terms = [self._exact(column.factual)]
            for amount, move in zip(self.amounts, self.moves, strict=True):
                if move.column == places[column.position]:
                    sign = 1 if move.step[column.position] > 0 else -1
                    terms.append(self._exact(sign * column.unit) * amount)
            found[name] = self.z3.Sum(terms)
        return found

    def _output(self) -> Any:
        """The log-odds, after constraints for each hidden unit that can be on or off."""
        values: list[Any] = []
        decided = self._decided()
        for layer, ((weight, bias), (low, high)) in enumerate(
            zip(self.network.hidden(), _wider(self.reach.units(self.network)), strict=True)
        ):
            inner = [self._sum(layer, values, weight[:, unit], bias[unit]) for unit in range(len(bias))]
            values = []
            for unit, before in enumerate(inner):
                if high[unit] <= 0:
                    values.append(None)
                elif low[unit] >= 0:
                    values.append(before)
                else:
                    values.append(
                        self._relu(f"{layer}_{unit}", before, decided.get(unit, []) if layer == 0 else [])
                    )
        last = len(self.network.weights) - 1
        return self._sum(last, values, self.network.weights[-1][:, 0], self.network.biases[-1][0])

    def _relu(self, name: str, before: Any, decided: list[tuple[Any, bool]]) -> Any:
        """max(0, before); ``decided``: moves that leave the unit no choice, and whether they turn it on."""
        z3 = self.z3
        active, on = z3.Real(f"active{name}", self.context), z3.Bool(f"on{name}", self.context)
        self.solver.add(active >= 0, active >= before)
        self.solver.add(z3.Or(on, z3.And(before <= 0, active <= 0)))
        self.solver.add(z3.Or(z3.Not(on), z3.And(before >= 0, active <= before)))
        for amount, turns_on in decided:
            self.solver.add(z3.Or(amount <= 0, on if turns_on else z3.Not(on)))
        return active

    def _decided(self) -> dict[int, list[tuple[Any, bool]]]:
        """For units of the first layer: the levels that decide them, whatever else may change then."""
        found: dict[int, list[tuple[Any, bool]]] = {}
        if len(self.network.weights) == 1:
            return found
        for amount, move in zip(self.amounts, self.moves, strict=True):
            if not move.whole:
                continue
            there = self.reach.row + move.step
            here = self.reach.encoding.column_of == move.column
            rest = replace(
                self.reach,
                row=there,
                low=np.where(here, there, self.reach.low),
                high=np.where(here, there, self.reach.high),
                budget=max(0.0, self.reach.budget - move.price),
            )
            ((low, high),) = _wider([rest.extremes(self.network.weights[0], self.network.biases[0])])
            for unit in np.flatnonzero((low >= 0) | (high <= 0)).tolist():
                found.setdefault(unit, []).append((amount, bool(low[unit] >= 0)))
        return found

    def _sum(self, layer: int, values: list[Any], weight: FloatArray, bias: float) -> Any:
        """bias + weight . (the units of the layer before, or the row for the first)."""
        z3 = self.z3
        if layer == 0:
            exact = [Fraction(float(number)) for number in weight]
            here = sum(
                (w * Fraction(float(x)) for w, x in zip(exact, self.reach.row, strict=True) if x),
                Fraction(float(bias)),
            )
            terms = [
                self._exact(sum(exact[p] * Fraction(float(move.step[p])) for p in np.flatnonzero(move.step)))
                * amount
                for amount, move in zip(self.amounts, self.moves, strict=True)
            ]
            return z3.Sum([self._exact(here), *terms])
        terms = [self._exact(float(w)) * v for w, v in zip(weight, values, strict=True) if v is not None]
        return z3.Sum([self._exact(float(bias)), *terms])

    def _exact(self, number: float | Fraction) -> Any:
        return self.z3.RealVal(str(Fraction(number)), self.context)


def _wider(bounds: list[tuple[FloatArray, FloatArray]]) -> list[tuple[FloatArray, FloatArray]]:
    slack = [SLACK * (1 + np.abs(low) + np.abs(high)) for low, high in bounds]
    return [(low - s, high + s) for (low, high), s in zip(bounds, slack, strict=True)]


def _z3() -> Any:
    try:
        import z3
    except ImportError:
        raise UserError("mace needs z3: pip install 'cfbench-tabular[mace]'") from None
    return z3
