"""Constraints between columns in a formula of linear arithmetic.

Everything is exact, in fractions. A monomial of columns that can change is linear where all of them but one have steps: one
with steps is written as binary digits, and the product of a digit and the rest of the monomial is a number by cases (the
rest where the digit is 1, else 0). A product of two columns without steps stays a product: the formula is no longer linear
then, and the solver may have to give up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from cfbench_tabular.constraints import Constraint
from cfbench_tabular.explainers.constraint_forms import Monomial, Polynomial, RawColumn, alternatives


class SMTConstraints:
    """The constraints of one factual as conditions of z3.

    Attributes:
        linear: False if there is a product of two columns without steps.
    """

    def __init__(
        self, z3: Any, context: Any, columns: Mapping[str, RawColumn], constraints: Sequence[Constraint]
    ) -> None:
        self.z3, self.context, self.columns = z3, context, columns
        self.options = [alternatives(one, columns, slack=True) for one in constraints]
        self.monomials: dict[Monomial, Any] = {}
        self.digits: dict[str, list[tuple[Any, Fraction]]] = {}
        self.conditions: list[Any] = []
        self.linear = all(
            sum(columns[name].step == 0 for name in names) < 2
            for option in self.options
            for part in option
            for polynomial in part
            for names in polynomial
        )

    def build(self, numbers: Mapping[str, Any]) -> list[Any]:
        """The conditions; ``numbers``: each column that can change, raw."""
        z3 = self.z3
        self.monomials = {(name,): number for name, number in numbers.items()}
        self.conditions = []
        for option in self.options:
            parts = [[self._at_most_zero(one) for one in part] for part in option]
            self.conditions.append(z3.Or([z3.And([*part, z3.BoolVal(True, self.context)]) for part in parts]))
        return [z3.BoolVal(False, self.context)] if not all(self.options) else self.conditions

    def _at_most_zero(self, polynomial: Polynomial) -> Any:
        terms = [self._exact(factor) * self._monomial(names) for names, factor in polynomial.items() if names]
        constant = self._exact(polynomial.get((), Fraction(0)))
        return self.z3.Sum([constant, *terms]) <= 0

    def _monomial(self, names: Monomial) -> Any:
        if names not in self.monomials:
            stepped = [name for name in names if self.columns[name].step]
            chosen = min(stepped, key=lambda name: self.columns[name].count) if stepped else names[0]
            rest = list(names)
            rest.remove(chosen)
            other = self._monomial(tuple(rest))
            self.monomials[names] = (
                self._product(chosen, other, names) if stepped else other * self._monomial((chosen,))
            )
        return self.monomials[names]

    def _product(self, name: str, other: Any, names: Monomial) -> Any:
        """The column as binary digits times another number."""
        z3, parts = self.z3, [self._exact(self.columns[name].low) * other]
        for digit, weight in self._digits(name):
            part = z3.Real(f"part{'*'.join(names)}.{weight}", self.context)
            self.conditions.append(z3.Or(digit, part == 0))
            self.conditions.append(z3.Or(z3.Not(digit), part == other))
            parts.append(self._exact(weight) * part)
        return z3.Sum(parts)

    def _digits(self, name: str) -> list[tuple[Any, Fraction]]:
        """Booleans of the digits, and their weights, raw."""
        if name not in self.digits:
            z3, column = self.z3, self.columns[name]
            places = range(column.count.bit_length())
            found = [
                (z3.Bool(f"digit{name}.{place}", self.context), column.step * 2**place) for place in places
            ]
            zero = self._exact(Fraction(0))
            values = [z3.If(digit, self._exact(weight), zero) for digit, weight in found]
            number = z3.Sum([self._exact(column.low), *values])
            self.conditions.append(self.monomials[(name,)] == number)
            self.digits[name] = found
        return self.digits[name]

    def _exact(self, number: Fraction) -> Any:
        return self.z3.RealVal(str(number), self.context)
