"""Constraints between columns as polynomials of raw numbers, for explainers that solve a programme.

``optimum``, ``mace`` and ``tree-optimum`` contain the constraints of a table in their programmes. This module writes each
constraint as *alternatives*, of which one has to hold; an alternative is a list of polynomials that must be at most 0:

- sum, difference, ``at_least``, ``at_most``: linear;
- product: c - f a b, a polynomial with the monomial a b;
- ratio: for a positive divisor, c b - f a, and the same with the other sign for a negative one;
- a tolerance that is relative to an expected value of unknown sign: one alternative for each sign.

Columns that cannot change are replaced by their values, so a monomial of two columns is often linear. How the others are
made linear is the business of the programmes. Coefficients are exact fractions of the decimals in the schema.

Both sides of a constraint may differ by a rounding error (``constraints.SLACK``); with ``slack`` the polynomials contain
it, and no row that satisfies the constraint is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from cfbench_tabular.column_types import OFF
from cfbench_tabular.constraints import SLACK, Constraint
from cfbench_tabular.explainers.exact import Reach
from cfbench_tabular.table import FloatArray, IntArray

Monomial = tuple[str, ...]
"""The names of the columns that are multiplied, sorted; () is the constant 1."""

Polynomial = dict[Monomial, Fraction]
Interval = tuple[Fraction, Fraction]

ROUNDING = Fraction(1, 10**9)
"""Share of a standard deviation by which limits of numbers without steps are widened."""

CORRECTIONS = 4
"""How often numbers without steps are corrected for rounding errors of a solver."""


@dataclass(frozen=True)
class RawColumn:
    """A number of the factual and the limits of its counterfactuals, raw.

    Attributes:
        position: in the encoded row.
        step: between two values; 0 for any number.
        scale: raw units of an encoded one.
    """

    name: str
    position: int
    factual: Fraction
    low: Fraction
    high: Fraction
    step: Fraction
    scale: float

    @property
    def fixed(self) -> bool:
        return self.low == self.high

    @property
    def unit(self) -> Fraction:
        """One step, or a standard deviation."""
        return self.step or Fraction(self.scale)

    @property
    def count(self) -> int:
        """Steps between its limits."""
        return int((self.high - self.low) / self.step)

    def at(self, number: Fraction) -> RawColumn:
        return replace(self, low=number, high=number)


def raw_columns(reach: Reach, constraints: Sequence[Constraint]) -> dict[str, RawColumn]:
    """The columns of the constraints, with the limits of ``reach``."""
    encoding, found = reach.encoding, {}
    places = {column.name: place for place, column in enumerate(encoding.columns)}
    for name in dict.fromkeys(name for one in constraints for name in one.columns):
        place = places[name]
        position = encoding.blocks[place].start
        ends = np.array([reach.row[position], reach.low[position], reach.high[position]])
        factual, low, high = map(exact, encoding.decode_number(place, ends).tolist())
        scale, step = float(encoding.scale[place]), Fraction(0)
        if reach.low[position] == reach.high[position]:
            low = high = factual
        elif reach.steps[position] > 0:
            step = exact(encoding.columns[place].spacing or 1.0)
            room = [(low - factual) / step, (high - factual) / step]
            off = Fraction(OFF)
            low = factual + step * -((-(room[0] - off)) // 1)
            high = factual + step * ((room[1] + off) // 1)
            low, high = min(low, factual), max(high, factual)
        else:
            low, high = low - ROUNDING * Fraction(scale), high + ROUNDING * Fraction(scale)
        found[name] = RawColumn(name, position, factual, low, high, step, scale)
    return found


def exact(number: float) -> Fraction:
    """The decimal fraction that a floating-point number is written as: 1/10 for 0.1."""
    return Fraction(repr(float(number)))


# Polynomials


def monomial(*names: str) -> Monomial:
    return tuple(sorted(names))


def total(*parts: tuple[Fraction | int, Polynomial]) -> Polynomial:
    """The sum of factors times polynomials."""
    found: Polynomial = {}
    for factor, polynomial in parts:
        for key, value in polynomial.items():
            found[key] = found.get(key, Fraction(0)) + factor * value
    return {key: value for key, value in found.items() if value}


def times(polynomial: Polynomial, name: str) -> Polynomial:
    return {monomial(*key, name): value for key, value in polynomial.items()}


def interval_of_monomial(names: Monomial, columns: Mapping[str, RawColumn]) -> Interval:
    low = high = Fraction(1)
    for name in dict.fromkeys(names):
        column, power = columns[name], names.count(name)
        ends = [column.low**power, column.high**power]
        if power % 2 == 0 and column.low < 0 < column.high:
            ends.append(Fraction(0))
        products = [a * b for a in (low, high) for b in (min(ends), max(ends))]
        low, high = min(products), max(products)
    return low, high


def interval_of(polynomial: Polynomial, columns: Mapping[str, RawColumn]) -> Interval:
    """Between what its value lies; its monomials taken by themselves."""
    low = high = Fraction(0)
    for names, factor in polynomial.items():
        ends = [factor * end for end in interval_of_monomial(names, columns)]
        low, high = low + min(ends), high + max(ends)
    return low, high


def substituted(polynomial: Polynomial, columns: Mapping[str, RawColumn]) -> Polynomial:
    """The same with the values of columns that cannot change."""
    parts = []
    for names, factor in polynomial.items():
        for name in names:
            factor *= columns[name].low if columns[name].fixed else 1
        parts.append((factor, {tuple(name for name in names if not columns[name].fixed): Fraction(1)}))
    return total(*parts)


# Constraints


def alternatives(
    constraint: Constraint, columns: Mapping[str, RawColumn], slack: bool
) -> list[list[Polynomial]]:
    """Lists of polynomials that must be at most 0; one of the lists has to hold. No list: no row satisfies it."""
    found = []
    for left, expected, absolute, conditions in _sides(constraint, columns):
        for sign, known in _signs(expected, columns, branch=constraint.relative > 0):
            size = _size(expected, columns) if sign == 0 else total((sign, expected))
            tolerance = total((1, absolute), (exact(constraint.relative), size))
            if slack:
                rounding = total((exact(SLACK), _size(left, columns)), (exact(SLACK), size))
                tolerance = total((1, tolerance), (1, rounding))
            needed = list(conditions) if known else [*conditions, total((-sign, expected))]
            if constraint.relation != "at_most":
                needed.append(total((1, expected), (-1, left), (-1, tolerance)))
            if constraint.relation != "at_least":
                needed.append(total((1, left), (-1, expected), (-1, tolerance)))
            simple = [substituted(one, columns) for one in needed]
            if all(interval_of(one, columns)[0] <= 0 for one in simple):
                found.append([one for one in simple if interval_of(one, columns)[1] > 0])
    return found


def _sides(
    constraint: Constraint, columns: Mapping[str, RawColumn]
) -> Iterator[tuple[Polynomial, Polynomial, Polynomial, list[Polynomial]]]:
    """The constrained side, the expected one, the absolute tolerance, and polynomials that are at most 0.

    Those of a ratio are multiplied by the size of the divisor.
    """
    one, factor = Fraction(1), exact(constraint.factor)
    left: Polynomial = {(constraint.column,): one}
    absolute: Polynomial = {(): exact(constraint.absolute)}
    if constraint.relation != "ratio":
        if constraint.relation == "product":
            parts = [(factor, {monomial(*constraint.of): one})]
        elif constraint.relation == "difference":
            parts = [(factor, {(constraint.of[0],): one}), (-factor, {(constraint.of[1],): one})]
        else:
            parts = [(factor, {(name,): one}) for name in constraint.of]
        yield left, total(*parts), absolute, []
        return
    part, divisor = constraint.of
    column = columns[divisor]
    for sign in (1, -1):
        most = column.high if sign > 0 else -column.low
        if most <= 0:
            continue
        least = column.step or Fraction(0)  # of the size of the divisor, which is not 0
        positive = total((1, {(): least}), (-sign, {(divisor,): one}))
        yield (
            total((sign, times(left, divisor))),
            total((sign * factor, {(part,): one})),
            total((sign, times(absolute, divisor))),
            [positive],
        )


def _signs(polynomial: Polynomial, columns: Mapping[str, RawColumn], branch: bool) -> list[tuple[int, bool]]:
    """The signs that it may have, and whether that is certain; the sign 0 for unknown without ``branch``."""
    low, high = interval_of(polynomial, columns)
    if low >= 0 or high <= 0:
        return [(1 if low >= 0 else -1, True)]
    return [(1, False), (-1, False)] if branch else [(0, True)]


def _size(polynomial: Polynomial, columns: Mapping[str, RawColumn]) -> Polynomial:
    """A polynomial that is at least its absolute value: itself where the sign is known, else a number."""
    low, high = interval_of(polynomial, columns)
    if low >= 0 or high <= 0:
        return total((1 if low >= 0 else -1, polynomial))
    return {(): max(-low, high)}


# Rows


def values_at(columns: Mapping[str, RawColumn], reach: Reach, row: FloatArray) -> dict[str, Fraction]:
    """The raw numbers of an encoded row (d,)."""
    places, found = reach.encoding.column_of, {}
    for name, column in columns.items():
        number = reach.encoding.decode_number(int(places[column.position]), row[[column.position]])
        found[name] = exact(float(number[0]))
    return found


def value_of(polynomial: Polynomial, values: Mapping[str, Fraction]) -> Fraction:
    found = Fraction(0)
    for names, factor in polynomial.items():
        for name in names:
            factor *= values[name]
        found += factor
    return found


def linear_near(
    constraints: Sequence[Constraint],
    columns: Mapping[str, RawColumn],
    values: Mapping[str, Fraction],
    free: set[str],
) -> list[Polynomial] | None:
    """Linear polynomials of the columns ``free``, at most 0, the others having their ``values``.

    Of alternatives, those that the values violate least. Products of two free columns are linearised at the values. None
    where an alternative does not exist.
    """
    held = {name: one if name in free else one.at(values[name]) for name, one in columns.items()}
    found = []
    for constraint in constraints:
        options = alternatives(constraint, held, slack=False)
        if not options:
            return None
        found += min(
            options, key=lambda part: max((value_of(one, values) for one in part), default=Fraction(0))
        )
    return [_tangent(one, values) for one in found]


def _tangent(polynomial: Polynomial, values: Mapping[str, Fraction]) -> Polynomial:
    """The linear polynomial with the same value and slopes at ``values``."""
    parts: list[tuple[Fraction | int, Polynomial]] = []
    for names, factor in polynomial.items():
        if len(names) < 2:
            parts.append((factor, {names: Fraction(1)}))
            continue
        parts.append((factor * (1 - len(names)), {(): value_of({names: Fraction(1)}, values)}))
        for place, name in enumerate(names):
            rest = names[:place] + names[place + 1 :]
            parts.append((factor, {(name,): value_of({rest: Fraction(1)}, values)}))
    return total(*parts)


def nearby_rows(
    constraints: Sequence[Constraint], reach: Reach, found: FloatArray, positions: IntArray
) -> tuple[FloatArray, FloatArray] | None:
    """(f, r) and (r,): where constraints hold near ``found`` (d,), the changes from the factual of the numbers at
    ``positions`` (f,) times the first are at most the second.

    Other numbers are those of ``found``. None where these violate a constraint whatever the changes are.
    """
    if not constraints:
        return np.zeros((len(positions), 0)), np.zeros(0)
    columns = raw_columns(reach, constraints)
    place = {int(position): index for index, position in enumerate(positions)}
    free = {name for name, column in columns.items() if column.position in place and not column.fixed}
    polynomials = linear_near(constraints, columns, values_at(columns, reach, found), free)
    if polynomials is None:
        return None
    slopes, distances = np.zeros((len(positions), len(polynomials))), np.zeros(len(polynomials))
    for row, polynomial in enumerate(polynomials):
        moving = {names[0]: factor for names, factor in polynomial.items() if names}
        here = value_of(polynomial, {name: columns[name].factual for name in moving})
        steepness = {name: float(factor) * columns[name].scale for name, factor in moving.items()}
        size = max(map(abs, steepness.values()), default=1.0)
        for name, slope in steepness.items():
            slopes[place[columns[name].position], row] = slope / size
        distances[row] = -float(here) / size
    return slopes, distances


def corrected(
    constraints: Sequence[Constraint], columns: Mapping[str, RawColumn], reach: Reach, row: FloatArray
) -> FloatArray:
    """The row (d,) with numbers without steps moved by the rounding errors of a solver, where constraints miss.

    The row itself is returned where none does.
    """
    found = row
    for _ in range(CORRECTIONS):
        if reach.encoding.constraints_hold(found[None])[0]:
            return found
        values = values_at(columns, reach, found)
        free = {name for name, one in columns.items() if not one.fixed and not one.step}
        polynomials = linear_near(constraints, columns, values, free) or []
        violated = [one for one in polynomials if value_of(one, values) > 0]
        if not violated:
            return found
        found = found.copy()
        for polynomial in violated:
            _correct(polynomial, columns, reach, found)
    return found


def _correct(polynomial: Polynomial, columns: Mapping[str, RawColumn], reach: Reach, row: FloatArray) -> None:
    """Moves one number of the row so that the linear polynomial is 0: the one that moves least, within its limits."""
    excess = value_of(polynomial, values_at(columns, reach, row))
    if excess <= 0:
        return
    slopes = {
        names[0]: float(factor) * columns[names[0]].scale for names, factor in polynomial.items() if names
    }
    for name in sorted(slopes, key=lambda one: -abs(slopes[one])):
        position = columns[name].position
        moved = row[position] - float(excess) / slopes[name]
        if reach.low[position] <= moved <= reach.high[position]:
            row[position] = moved
            return
