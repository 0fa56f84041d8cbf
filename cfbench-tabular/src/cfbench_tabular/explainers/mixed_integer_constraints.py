"""Constraints between columns in a mixed-integer programme.

A monomial of columns that can change is not linear. One of its columns, x, is written as binary digits,

    x = low + sum_k 2^k step s_k,   s_k in {0, 1}

and each product s_k y with the rest y of the monomial is a variable v_k, which is exact (McCormick 1976):

    y_low s_k <= v_k <= y_high s_k,   y - y_high (1 - s_k) <= v_k <= y - y_low (1 - s_k)

So products are exact if all of their columns but one have steps. Of a column without steps, or with more than
2^``MOST_DIGITS`` of them, the first ``DIGITS`` digits are written out, and the product with the rest of the number lies
within the same envelope: the programme then contains all rows that satisfy the constraint and, between two digits, some
that nearly do. Its bound holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.constraint_forms import (
    Monomial,
    Polynomial,
    RawColumn,
    alternatives,
    interval_of,
    interval_of_monomial,
)

DIGITS = 18
"""Binary digits of a column without steps in a product."""

MOST_DIGITS = 20
"""Binary digits of a column with steps in a product."""

WIDEST = 1e6
"""Most that a coefficient of a row exceeds another by, before the smaller ones count for less."""


@dataclass(frozen=True)
class Affine:
    """A sum of variables, by their numbers, times factors, and a constant; it lies between ``low`` and ``high``."""

    terms: Mapping[int, float]
    constant: float
    low: float
    high: float


class ConstraintRows:
    """Adds variables and rows for constraints to a programme.

    Columns are measured in units: steps, or standard deviations.
    """

    def __init__(
        self,
        columns: Mapping[str, RawColumn],
        numbers: Mapping[str, Affine],
        variable: Callable[[float, float, bool], int],
        add: Callable[[Mapping[int, float], float, float], None],
    ) -> None:
        """numbers: each column that can change, in units. variable(low, high, whole): the number of a new variable.
        add(terms, low, high): a new row."""
        self.columns, self.variable, self.add = columns, variable, add
        self.monomials: dict[Monomial, Affine] = {(name,): number for name, number in numbers.items()}
        self.monomials[()] = Affine({}, 1.0, 1.0, 1.0)
        self.digits: dict[str, tuple[list[tuple[int, float]], tuple[int, float] | None]] = {}

    def constrain(self, constraints: Sequence[Constraint]) -> bool:
        """Adds all constraints; False where no row satisfies one of them."""
        for constraint in constraints:
            options = alternatives(constraint, self.columns, slack=True)
            if not options:
                return False
            chosen: list[int | None] = [None]
            if len(options) > 1:
                flags = [self.variable(0.0, 1.0, True) for _ in options]
                self.add(dict.fromkeys(flags, 1.0), 1.0, float("inf"))
                chosen = list(flags)
            for option, flag in zip(options, chosen, strict=True):
                for polynomial in option:
                    self._at_most_zero(polynomial, flag)
        return True

    def _at_most_zero(self, polynomial: Polynomial, flag: int | None) -> None:
        """The polynomial is at most 0, where the variable ``flag`` is 1."""
        factors = {names: float(factor * self._unit(names)) for names, factor in polynomial.items()}
        sizes = [abs(factor) for names, factor in factors.items() if names]
        scale = max(min(sizes), max(sizes) / WIDEST)
        terms: dict[int, float] = {}
        constant = 0.0
        for names, factor in factors.items():
            product = self._monomial(names)
            constant += factor / scale * product.constant
            for variable, slope in product.terms.items():
                terms[variable] = terms.get(variable, 0.0) + factor / scale * slope
        if flag is not None:
            most = float(interval_of(polynomial, self.columns)[1]) / scale
            terms[flag] = terms.get(flag, 0.0) + most
            constant -= most
        self.add(terms, float("-inf"), -constant)

    def _unit(self, names: Monomial) -> Fraction:
        found = Fraction(1)
        for name in names:
            found *= self.columns[name].unit
        return found

    def _monomial(self, names: Monomial) -> Affine:
        """The product of the columns, in units."""
        if names not in self.monomials:
            least = min(names, key=lambda name: self._cost(self.columns[name]))
            rest = list(names)
            rest.remove(least)
            self.monomials[names] = self._product(least, tuple(rest), names)
        return self.monomials[names]

    def _cost(self, column: RawColumn) -> tuple[bool, float]:
        """What it costs to write a column as digits: those without steps last."""
        return column.step == 0, float((column.high - column.low) / column.unit)

    def _product(self, name: str, rest: Monomial, names: Monomial) -> Affine:
        other, column = self._monomial(rest), self.columns[name]
        digits, remainder = self._digits(name)
        least = float(column.low / column.unit)
        terms = {variable: least * slope for variable, slope in other.terms.items()}
        constant = least * other.constant
        for digit, weight in digits:
            self._gather(terms, self._times_digit(digit, other), weight)
        if remainder is not None:
            self._gather(terms, self._times_number(*remainder, other), 1.0)
        low, high = (float(end / self._unit(names)) for end in interval_of_monomial(names, self.columns))
        return Affine(terms, constant, low, high)

    def _gather(self, terms: dict[int, float], variable: int, weight: float) -> None:
        terms[variable] = terms.get(variable, 0.0) + weight

    def _digits(self, name: str) -> tuple[list[tuple[int, float]], tuple[int, float] | None]:
        """Variables of the digits with their weights, in units; and that of the remainder with its upper limit."""
        if name not in self.digits:
            column, number = self.columns[name], self.monomials[(name,)]
            width = float((column.high - column.low) / column.unit)
            whole = column.step > 0 and column.count < 2**MOST_DIGITS
            if whole:
                weights = [float(2**place) for place in range(column.count.bit_length())]
            else:
                weights = [width / 2 ** (place + 1) for place in range(DIGITS)]
            digits = [(self.variable(0.0, 1.0, True), weight) for weight in weights]
            remainder = None if whole else (self.variable(0.0, weights[-1], False), weights[-1])
            terms = dict(number.terms)
            for digit, weight in digits:
                terms[digit] = -weight
            if remainder is not None:
                terms[remainder[0]] = -1.0
            rest = float(column.low / column.unit) - number.constant
            self.add(terms, rest, rest)
            self.digits[name] = digits, remainder
        return self.digits[name]

    def _times_digit(self, digit: int, other: Affine) -> int:
        """A variable that is ``digit * other``."""
        found = self.variable(min(0.0, other.low), max(0.0, other.high), False)
        self.add({found: 1.0, digit: -other.high}, float("-inf"), 0.0)
        self.add({found: 1.0, digit: -other.low}, 0.0, float("inf"))
        away = {variable: -slope for variable, slope in other.terms.items()}
        self.add({**away, found: 1.0, digit: -other.high}, other.constant - other.high, float("inf"))
        self.add({**away, found: 1.0, digit: -other.low}, float("-inf"), other.constant - other.low)
        return found

    def _times_number(self, number: int, most: float, other: Affine) -> int:
        """A variable near ``number * other``, the number being between 0 and ``most``: within the envelope."""
        ends = (most * other.low, most * other.high, 0.0)
        found = self.variable(min(ends), max(ends), False)
        self.add({found: 1.0, number: -other.low}, 0.0, float("inf"))
        self.add({found: 1.0, number: -other.high}, float("-inf"), 0.0)
        away = {variable: -most * slope for variable, slope in other.terms.items()}
        moved = most * other.constant
        self.add({**away, found: 1.0, number: -other.high}, moved - most * other.high, float("inf"))
        self.add({**away, found: 1.0, number: -other.low}, float("-inf"), moved - most * other.low)
        return found
