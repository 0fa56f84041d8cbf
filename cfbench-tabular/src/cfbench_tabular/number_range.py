"""A range of a predicted number, as the target class of a data set. Imports NumPy for type checking only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_tabular.constraints import BoolArray, FloatArray


@dataclass(frozen=True)
class NumberRange:
    """From ``low`` to ``high``, both included; None: no limit. ``column``: what is predicted."""

    low: float | None
    high: float | None
    column: str = ""

    @property
    def inside(self) -> str:
        """The name of the class of numbers in the range."""
        if self.high is None:
            return f"at least {self.low:,.12g}"
        return (
            f"at most {self.high:,.12g}"
            if self.low is None
            else f"from {self.low:,.12g} to {self.high:,.12g}"
        )

    @property
    def outside(self) -> str:
        """The name of the class of the other numbers."""
        if self.high is None:
            return f"below {self.low:,.12g}"
        return (
            f"above {self.high:,.12g}"
            if self.low is None
            else f"not from {self.low:,.12g} to {self.high:,.12g}"
        )

    def contains(self, numbers: FloatArray) -> BoolArray:
        """(n,) which of the numbers (n,) are in the range."""
        found: BoolArray = numbers == numbers
        if self.low is not None:
            found &= numbers >= self.low
        if self.high is not None:
            found &= numbers <= self.high
        return found
