"""How accounts write amounts: a dash for zero, and a unit next to each number, which some columns mix.

``cfbench init --csv`` detects both. The dash is written into the configuration (``zero`` of the column); a column that mixes
units is never read as numbers, because 5 € and 5 $ are not the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from cfbench_tabular.file_format import MONEY, UNITS, ZERO, digits_apart
from cfbench_tabular.number_forms import LEAST_NUMBERS, NUMBER, in_parentheses, with_hyphen

DASH = re.compile("-|\u2013|\u2014|\u2212")
"""A hyphen, a dash of either width, or a minus sign."""
LEAST_AMOUNTS = 3
"""Distinct amounts next to a dash that has a currency."""


def without_money(cell: str) -> str:
    """A cell without the currency in front of it or behind it: - of "$ -"."""
    for unit in MONEY:
        if cell.startswith(unit) or cell.endswith(unit):
            return cell.removeprefix(unit).removesuffix(unit).strip()
    return cell


def zero_of(cells: Iterable[str], marks: Collection[str]) -> str:
    """The dash that means 0 in a column of amounts, as spreadsheets show it; "" if there is none.

    It does where it has a currency ("$ -"), or where negative amounts are in parentheses and no cell is 0. Any other dash
    is rather a missing value.
    """
    counts = Counter(cell for cell in cells if cell not in marks)
    dashes = {cell: bare for cell in counts if DASH.fullmatch(bare := without_money(cell))}
    amounts = [cell for cell in counts if cell not in dashes]
    if len(set(dashes.values())) != 1 or not all(map(is_amount, amounts)):
        return ""
    dash = next(iter(dashes.values()))
    if dash not in dashes or len(dashes) > 1:
        return dash if len(amounts) >= LEAST_AMOUNTS else ""
    negative = any(map(in_parentheses, amounts))
    has_zero = any(ZERO.fullmatch(without_money(cell)) for cell in amounts)
    return dash if negative and not has_zero and len(amounts) >= LEAST_NUMBERS else ""


def with_zeros(
    columns: Mapping[str, Sequence[str]], zeros: Mapping[str, str], units: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """The columns with a text that means 0, with 0 in its place; it may have the unit of the column or a currency."""
    found = {}
    for name, zero in zeros.items():
        own = {zero, *(f"{unit}{zero}" for unit in units_of(name, units))}
        own |= {f"{zero}{unit}" for unit in units_of(name, units)}
        cells = columns.get(name, ())
        if any("".join(cell.split()) in own for cell in set(cells)):
            found[name] = tuple("0" if "".join(cell.split()) in own else cell for cell in cells)
    return found


def units_of(name: str, units: Mapping[str, str]) -> tuple[str, ...]:
    """What may stand next to the zero of a column."""
    return (units[name],) if units.get(name) else MONEY


def is_amount(cell: str) -> bool:
    """Whether a cell is a number, perhaps in parentheses and with a known unit."""
    return _unit_and_number(cell) is not None


def _unit_and_number(cell: str) -> str | None:
    """The unit of a number, "" for none; None for other text."""
    text = with_hyphen(cell, "parentheses")
    front, back = digits_apart(text)
    if front not in ("", *MONEY) or back not in ("", *UNITS) or (front and back):
        return None
    unit = front or back
    number = text.replace(unit, "", 1).strip() if unit else text
    return unit if NUMBER.fullmatch(number.replace("- ", "-")) else None


def mixed_units(cells: Sequence[str]) -> tuple[int, int] | None:
    """The places of two numbers with different units, or of one with a unit and one without; None for other columns."""
    units: dict[str, str] = {}
    for cell in dict.fromkeys(cells):
        unit = _unit_and_number(cell)
        if unit is None:
            return None
        if not ZERO.fullmatch(cell):  # which is 0 in any unit
            units.setdefault(unit, cell)
    if len(units) < 2:
        return None
    first, second = list(units.values())[:2]
    return cells.index(first), cells.index(second)


def on_dashes(written: Sequence[str], missing: Collection[str], zero: str) -> str:
    """Of a column of numbers: what a dash in it is read as; "" without one."""
    counts = Counter(cell for cell in written if DASH.fullmatch(without_money(cell)))
    if not counts:
        return ""
    dash, count = counts.most_common(1)[0]
    rows = "1 row" if count == 1 else f"{count:,} rows"
    if zero:
        return (
            f"{dash!r} in {rows} is read as 0, as accounts write it; if it means a missing value, remove zero"
        )
    if dash not in missing:
        return ""
    return f"{dash!r} in {rows} counts as missing; if it means 0, set zero: '{dash}'"
