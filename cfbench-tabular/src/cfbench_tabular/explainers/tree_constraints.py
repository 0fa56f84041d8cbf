"""Constraints between columns in the constraint programme of an ensemble of trees.

Without them, only one value of each interval between thresholds matters: the one nearest to the factual. With them, others
do. So each column of a constraint becomes a whole number, its multiple of a step, which the Booleans of its cells limit,
and which has its own cost. Constraints are polynomials of these numbers with whole coefficients.

A column without steps gets many of them (``FINENESS``) between its limits. That the true number lies up to half a step
away is allowed for everywhere (limits of cells, constraints, costs), so that each row is near to a solution of the
programme: the bound holds. Where coefficients are too large for the solver, they are rounded in the same way; a product
that is too large all the same is left out with its constraint, and the bound still holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, lcm, prod
from typing import Any

import numpy as np
from scipy.optimize import linprog

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.constraint_forms import (
    Monomial,
    Polynomial,
    RawColumn,
    alternatives,
    exact,
    nearby_rows,
    raw_columns,
)
from cfbench_tabular.explainers.exact import Reach
from cfbench_tabular.explainers.tree_boxes import Cells, ends_of_interval, interval_of
from cfbench_tabular.table import FloatArray, IntArray

FINENESS, FINENESS_IN_PRODUCTS = 26, 19
"""Binary logarithm of the number of steps of a column without steps."""

TANGENTS = 4
"""How often products of numbers without steps are linearised, each time at the last row."""

LARGEST = 2**60
"""Whole numbers that the solver adds up stay below this."""

SINGLE = 2.0**-22
"""Share of a threshold that 32-bit rounding may change."""

INSIDE = 1e-8
"""By how much numbers without steps stay inside of their cells, so that rounding does not lead out of them."""


@dataclass(frozen=True)
class GridColumn:
    """A column that can change as whole multiples of ``unit``.

    Attributes:
        raw: the column.
        number: the variable of the multiple, from ``first`` to ``last``.
        changed: a Boolean that is true if it differs from the factual.
        distance: a variable, at least its difference from the factual's multiple.
        off: by how many multiples a row may be away from a solution; 0 for a column with steps.
    """

    raw: RawColumn
    unit: Fraction
    first: int
    last: int
    number: Any
    changed: Any
    distance: Any

    @property
    def off(self) -> Fraction:
        return Fraction(0) if self.raw.step else Fraction(1, 2)

    @property
    def largest(self) -> Fraction:
        """Its largest absolute value, raw."""
        return max(abs(self.first), abs(self.last)) * self.unit


class TreeConstraints:
    """The columns of the constraints and the constraints in a model of CP-SAT.

    Attributes:
        columns: by position, those that can change.
        possible: False if no row satisfies the constraints.
    """

    def __init__(self, model: Any, reach: Reach, constraints: Sequence[Constraint]) -> None:
        self.model, self.reach, self.constraints = model, reach, constraints
        raw = raw_columns(reach, constraints)
        options = [alternatives(constraint, raw, slack=True) for constraint in constraints]
        self._multiplied = {
            name
            for option in options
            for part in option
            for polynomial in part
            for names in polynomial
            for name in names
            if len(names) > 1
        }
        self.columns = {one.position: self._column(one) for one in raw.values() if not one.fixed}
        self._by_name = {one.raw.name: one for one in self.columns.values()}
        self._products: dict[Monomial, Any] = {(name,): one.number for name, one in self._by_name.items()}
        self.possible = all(options)
        for option in options:
            self._one_of(option)

    def _column(self, raw: RawColumn) -> GridColumn:
        fineness = FINENESS_IN_PRODUCTS if raw.name in self._multiplied else FINENESS
        unit = raw.step or (raw.high - raw.low) / 2**fineness
        first, last = (
            (round(raw.low / unit), round(raw.high / unit))
            if raw.step
            else (floor(raw.low / unit), ceil(raw.high / unit))
        )
        factual = round(raw.factual / unit)
        number = self.model.new_int_var(first, last, "")
        distance = self.model.new_int_var(0, max(last - factual, factual - first), "")
        self.model.add(distance >= number - factual)
        self.model.add(distance >= factual - number)
        changed = self.model.new_bool_var("")
        self.model.add(distance <= (0 if raw.step else 1)).only_enforce_if(~changed)
        return GridColumn(raw, unit, first, last, number, changed, distance)

    # Cells

    def link(self, position: int, cells: Cells, literals: Sequence[Any], thresholds: FloatArray) -> None:
        """The number is in the cell that the Booleans "at least the c-th cell" say."""
        column = self.columns[position]
        ends = self._stepped_ends if column.raw.step else self._ends
        for literal, (last, first) in zip(
            literals[1:], ends(column, cells.intervals.tolist(), thresholds), strict=True
        ):
            self.model.add(column.number <= last).only_enforce_if(~literal)
            self.model.add(column.number >= first).only_enforce_if(literal)

    def _stepped_ends(
        self, column: GridColumn, intervals: list[int], thresholds: FloatArray
    ) -> list[tuple[int, int]]:
        """Of each two neighbouring cells, the last multiple of the lower and the first of the higher."""
        found = []
        for interval in intervals[1:]:
            low, high = column.first, column.last + 1  # by bisection: the first multiple in it or above
            while low < high:
                middle = (low + high) // 2
                above = interval_of(self._encoded(column, np.array([middle])), thresholds)[0] >= interval
                low, high = (low, middle) if above else (middle + 1, high)
            found.append((low - 1, low))
        return found

    def _ends(
        self, column: GridColumn, intervals: list[int], thresholds: FloatArray
    ) -> list[tuple[int, int]]:
        """The same for a column without steps, with an allowance for rounding."""
        found = []
        for lower, higher in pairwise(intervals):
            ends = np.array([thresholds[lower], thresholds[higher - 1]])
            ends += np.abs(ends) * [SINGLE, -SINGLE]
            last, first = (exact(end) / column.unit for end in self._raw(column, ends))
            found.append((min(ceil(last) + 1, column.last), max(floor(first) - 1, column.first)))
        return found

    def _encoded(self, column: GridColumn, multiples: FloatArray) -> FloatArray:
        grid = self.reach.encoding.grid
        at = int(np.flatnonzero(grid.positions == column.raw.position)[0])
        every = grid.at(np.repeat(multiples[:, None].astype(np.float64), len(grid), axis=1))
        return np.asarray(every[:, at])

    def _raw(self, column: GridColumn, encoded: FloatArray) -> list[float]:
        place = int(self.reach.encoding.column_of[column.raw.position])
        scaled: FloatArray = encoded * column.raw.scale + self.reach.encoding.mean[place]
        return [float(value) for value in scaled]

    # Constraints

    def _one_of(self, options: list[list[Polynomial]]) -> None:
        """One of the lists of polynomials is at most 0."""
        flags = [self.model.new_bool_var("") for _ in options] if len(options) > 1 else [None] * len(options)
        if len(options) > 1:
            self.model.add_at_least_one(flags)
        for option, flag in zip(options, flags, strict=True):
            for polynomial in option:
                self._at_most_zero(polynomial, flag)

    def _at_most_zero(self, polynomial: Polynomial, flag: Any) -> None:
        """The polynomial is at most 0 (where ``flag`` is true), up to what rounding of its numbers may add."""
        weights = {names: factor * self._unit(names) for names, factor in polynomial.items() if names}
        sizes = {names: self._largest(names) for names in weights}
        if any(size > LARGEST for size in sizes.values()):
            return
        most = -polynomial.get((), Fraction(0))
        most += sum((abs(polynomial[names]) * self._excess(names) for names in weights), start=Fraction(0))
        factor = Fraction(lcm(most.denominator, *(one.denominator for one in weights.values())))
        spent = sum((abs(one) * sizes[names] for names, one in weights.items()), start=abs(most))
        rounding = Fraction(0)
        if spent * factor > LARGEST:
            factor = LARGEST / spent
            rounding = sum((Fraction(size, 2) for size in sizes.values()), start=Fraction(1))
        terms = [round(one * factor) * self._product(names) for names, one in weights.items()]
        added = self.model.add(sum(terms) <= floor(most * factor + rounding))
        if flag is not None:
            added.only_enforce_if(flag)

    def _unit(self, names: Monomial) -> Fraction:
        found = Fraction(1)
        for name in names:
            found *= self._by_name[name].unit
        return found

    def _largest(self, names: Monomial) -> int:
        """The largest absolute value of a product of multiples."""
        columns = [self._by_name[name] for name in names]
        return prod(max(abs(one.first), abs(one.last), 1) for one in columns)

    def _excess(self, names: Monomial) -> Fraction:
        """By how much the product of the columns of a row may differ from that of the nearest multiples, raw."""
        without, with_it = Fraction(1), Fraction(1)
        for name in names:
            column = self._by_name[name]
            without *= column.largest
            with_it *= column.largest + column.off * column.unit
        return with_it - without

    def _product(self, names: Monomial) -> Any:
        if names not in self._products:
            largest = self._largest(names)
            found = self.model.new_int_var(-largest, largest, "")
            factors = [self._product(names[:-1]), self._by_name[names[-1]].number]
            self.model.add_multiplication_equality(found, factors)
            self._products[names] = found
        return self._products[names]

    # Rows

    def row_of(
        self, solver: Any, row: FloatArray, cells: dict[int, Cells], thresholds: dict[int, FloatArray]
    ) -> FloatArray:
        """The row (d,), whose other columns are set, with the columns of constraints as the solver found them.

        Columns without steps get the values nearest to the factual for which the constraints hold in the same cells.
        """
        found, free, ends = row.copy(), [], []
        for position, column in self.columns.items():
            multiple = solver.value(column.number)
            if column.raw.step:
                same = multiple == round(column.raw.factual / column.unit)
                own = self.reach.row[position]
                found[position] = own if same else self._encoded(column, np.array([multiple]))[0]
                continue
            low, high = float(self.reach.low[position]), float(self.reach.high[position])
            if position in cells:
                nearest = int(np.abs(cells[position].values - row[position]).argmin())
                interval = int(cells[position].intervals[nearest])
                inside = ends_of_interval(thresholds[position], interval)
                low, high = max(low, inside[0]), min(high, inside[1])
            if not solver.value(column.changed) and low <= self.reach.row[position] <= high:
                low = high = float(self.reach.row[position])
            place = int(self.reach.encoding.column_of[position])
            number = self.reach.encoding.encode_number(place, np.array([float(multiple * column.unit)]))[0]
            found[position] = np.clip(number, low, high)
            free.append(position)
            ends.append((low, high))
        for _ in range(TANGENTS if free else 0):
            closer = self._nearest(found, np.array(free), np.array(ends))
            if closer is None or (np.abs(closer - found) < INSIDE / 10).all():
                break
            found = closer
        return found

    def _nearest(self, found: FloatArray, free: IntArray, ends: FloatArray) -> FloatArray | None:
        """The row with the numbers at ``free`` (f,), between their ``ends`` (f, 2), nearest to the factual."""
        rows = nearby_rows(self.constraints, self.reach, found, free)
        if rows is None:
            return None
        slope = self.reach.costs.slope[self.reach.encoding.column_of[free]]
        prices = np.where(slope > 0, slope, 1.0)
        room = ends - self.reach.row[free][:, None]
        wide = (room[:, 1] - room[:, 0] > 4 * INSIDE)[:, None]
        room = np.where(wide & (room != 0.0), room + np.array([INSIDE, -INSIDE]), room)
        # change = up - down, and the distance is up + down
        up = np.stack([np.maximum(room[:, 0], 0.0), np.maximum(room[:, 1], 0.0)], axis=1)
        down = np.stack([np.maximum(-room[:, 1], 0.0), np.maximum(-room[:, 0], 0.0)], axis=1)
        result: Any = linprog(
            np.concatenate([prices, prices]),
            A_ub=np.concatenate([rows[0].T, -rows[0].T], axis=1),
            b_ub=rows[1],
            bounds=np.concatenate([up, down]),
        )
        if result.status != 0:
            return None
        changed = found.copy()
        changed[free] = self.reach.row[free] + result.x[: len(free)] - result.x[len(free) :]
        return changed
