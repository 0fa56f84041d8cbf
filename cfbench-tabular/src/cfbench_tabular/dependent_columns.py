"""Columns that follow from others by a constraint, such as area = height * length, and their repair in encoded rows.

The repair changes the column of each violated constraint (the left side) to the nearest value that satisfies it:
within the tolerance, and at the steps of the column. Constraints whose columns appear in others come first. Where this value
is outside of the limits of the column, the column gets its limit, and the first of the other columns the value that
follows from it: a share of at most 1 limits the part to the whole. A row that satisfies all constraints is unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

import numpy as np

from cfbench_tabular.column_types import OFF, nearest_multiple
from cfbench_tabular.constraints import Constraint, constraints_hold
from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import BoolArray, FloatArray

PASSES = 2
"""How often columns that are outside of their limits are brought back."""

SLACK = 1e-9
"""By how much a limit may be missed, in standard deviations, because of rounding."""

INSIDE = 1e-9
"""Share of a value that the repair stays within the tolerance of a constraint, because encoding rounds."""


class DependentColumns:
    """The constraints of an encoding, in the order of their repair, and the limits of its columns.

    Attributes:
        low, high: of the columns in constraints, by name; raw numbers.
    """

    def __init__(self, encoding: Encoding, low: FloatArray, high: FloatArray) -> None:
        """low, high: (d,) the limits, encoded."""
        self.encoding = encoding
        self._places = {column.name: place for place, column in enumerate(encoding.columns)}
        self._constraints = _ordered(encoding.constraints)
        self._names = tuple(dict.fromkeys(name for one in self._constraints for name in one.columns))
        slack = {name: SLACK * float(encoding.scale[self._places[name]]) for name in self._names}
        self.low = {name: float(self._raw(low[None], name)[0]) - slack[name] for name in self._names}
        self.high = {name: float(self._raw(high[None], name)[0]) + slack[name] for name in self._names}

    def repaired(self, vectors: FloatArray) -> tuple[FloatArray, BoolArray]:
        """The encoded rows (n, d) with the columns of violated constraints changed, and (n,) whether that succeeded.

        It does not succeed where no value satisfies a constraint (a division by zero, or no step within its tolerance),
        or none within the limits of the constrained columns. Rows are the same object if none has to change.
        """
        given = {name: self._raw(vectors, name) for name in self._names}
        values = dict(given)
        self._derive(values)
        for _ in range(PASSES):
            outside = {one.column: self._outside(values, one.column) for one in self._constraints}
            if not any(rows.any() for rows in outside.values()):
                break
            for constraint in reversed(self._constraints):
                rows = outside[constraint.column]
                if rows.any():
                    self._limit(values, constraint, rows)
            self._derive(values)
        good = constraints_hold(self._constraints, values)
        for constraint in self._constraints:
            good &= ~self._outside(values, constraint.column)
        found = vectors
        for name in self._names:
            changed = values[name] != given[name]
            if changed.any():  # in other rows, encoding the decoded numbers could round
                found = vectors.copy() if found is vectors else found
                numbers = self.encoding.encode_number(self._places[name], values[name][changed])
                found[changed, self._position(name)] = numbers
        return found, good

    def _derive(self, values: dict[str, FloatArray]) -> None:
        """Changes the column of each violated constraint in ``values``, (n,) by column."""
        for constraint in self._constraints:
            violated = ~constraint.holds(values)
            if violated.any():
                at = {name: values[name][violated] for name in constraint.columns}
                self._set(values, violated, constraint.column, self._nearest(constraint, at))

    def _limit(self, values: dict[str, FloatArray], constraint: Constraint, rows: BoolArray) -> None:
        """Sets the constrained column to its limit in ``rows`` (n,), and the first other column to match."""
        name, first = constraint.column, constraint.of[0]
        self._set(values, rows, name, np.clip(values[name][rows], self.low[name], self.high[name]))
        at = {name: values[name][rows] for name in constraint.columns}
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = np.clip(_solved(constraint, at), self.low[first], self.high[first])
        self._set(values, rows, first, np.where(np.isfinite(numbers), numbers, at[first]))

    def _outside(self, values: Mapping[str, FloatArray], name: str) -> BoolArray:
        found: BoolArray = (values[name] < self.low[name]) | (values[name] > self.high[name])
        return found

    def pulled_back(self, gradients: FloatArray, vectors: FloatArray, repaired: FloatArray) -> FloatArray:
        """(n, d) derivatives with respect to the rows (n, d), from those with respect to the repaired rows (n, d).

        By the chain rule, last constraint first: a column that was changed depends on the columns ``of`` its constraint,
        and no longer on its own value. Limits of tolerances and steps count as constant.
        """
        found = gradients.copy()
        for constraint in reversed(self._constraints):
            own = self._position(constraint.column)
            changed = np.flatnonzero(vectors[:, own] != repaired[:, own])
            if len(changed) == 0:
                continue
            flow, found[changed, own] = found[changed, own].copy(), 0.0
            terms = [self._raw(repaired[changed], name) for name in constraint.of]
            scale = self.encoding.scale[self._places[constraint.column]]
            for name, slope in zip(constraint.of, _slopes(constraint, terms), strict=True):
                share = slope * self.encoding.scale[self._places[name]] / scale
                found[changed, self._position(name)] += flow * np.nan_to_num(share, posinf=0.0, neginf=0.0)
        return found

    def _set(self, values: dict[str, FloatArray], rows: BoolArray, name: str, numbers: FloatArray) -> None:
        """Replaces numbers by those that encoding and decoding gives, at the steps of the column."""
        place = self._places[name]
        step = self.encoding.columns[place].spacing
        if step is not None:
            numbers = nearest_multiple(numbers, step)
        else:
            numbers = self.encoding.decode_number(place, self.encoding.encode_number(place, numbers))
        values[name] = values[name].copy()
        values[name][rows] = numbers

    def _position(self, name: str) -> int:
        return int(self.encoding.blocks[self._places[name]].start)

    def _raw(self, vectors: FloatArray, name: str) -> FloatArray:
        return self.encoding.decode_number(self._places[name], vectors[:, self._position(name)])

    def _nearest(self, constraint: Constraint, values: dict[str, FloatArray]) -> FloatArray:
        """(n,) the values of the constrained column nearest to its own (n,) that satisfy the constraint."""
        own, expected = values[constraint.column], constraint.expected(values)
        with np.errstate(invalid="ignore"):
            width = constraint.absolute + (constraint.relative - INSIDE) * np.abs(expected)
            width = np.maximum(width, 0.0)
            low = expected - width if constraint.relation != "at_most" else np.full_like(own, -np.inf)
            high = expected + width if constraint.relation != "at_least" else np.full_like(own, np.inf)
            found: FloatArray = np.clip(own, low, high)
            step = self.encoding.columns[self._places[constraint.column]].spacing
            if step is not None:
                first, last = np.ceil(low / step - OFF), np.floor(high / step + OFF)
                found = step * np.clip(np.rint(found / step), first, np.maximum(first, last))
        return np.where(np.isfinite(expected), found, own)


def _solved(constraint: Constraint, values: Mapping[str, FloatArray]) -> FloatArray:
    """(n,) the value of the first of the columns ``of`` for which the constrained column has its expected value."""
    first = constraint.of[0]
    expected = values[constraint.column] / constraint.factor
    times = constraint.of.count(first)  # radius * radius
    others = [values[name] for name in constraint.of if name != first]
    if constraint.relation == "ratio":
        return np.asarray(expected * values[constraint.of[1]])
    if constraint.relation == "difference":
        return np.asarray(expected + values[constraint.of[1]])
    if constraint.relation == "product":
        power = expected / np.prod([np.ones_like(expected), *others], axis=0)
        sign = np.sign(power) if times % 2 else np.sign(values[first])
        return np.asarray(sign * np.abs(power) ** (1 / times))
    return np.asarray((expected - np.sum([np.zeros_like(expected), *others], axis=0)) / times)


def _slopes(constraint: Constraint, terms: Sequence[FloatArray]) -> list[FloatArray]:
    """(n,) each: the derivative of the expected value with respect to each of its terms (n,)."""
    one = np.ones_like(terms[0])
    with np.errstate(divide="ignore", invalid="ignore"):
        if constraint.relation == "product":
            others = [[*terms[:at], *terms[at + 1 :]] for at in range(len(terms))]
            slopes = [np.prod([one, *rest], axis=0) for rest in others]
        elif constraint.relation == "ratio":
            slopes = [1 / terms[1], -terms[0] / terms[1] ** 2]
        elif constraint.relation == "difference":
            slopes = [one, -one]
        else:
            slopes = [one for _ in terms]
    return [constraint.factor * slope for slope in slopes]


def _ordered(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Constraints after those whose columns they need; as given where they need each other."""
    after = {place: {other for other, one in enumerate(constraints) if one.column in constraint.of}
             for place, constraint in enumerate(constraints)}  # fmt: skip
    try:
        return tuple(constraints[place] for place in TopologicalSorter(after).static_order())
    except CycleError:
        return tuple(constraints)
