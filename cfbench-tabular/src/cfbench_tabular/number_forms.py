"""How people write numbers that are not plain: negative ones of accounts, limits such as <5, and mixed decimal marks.

``cfbench init --csv`` detects these forms and writes them into the configuration (``negatives``, ``censored``); a run reads
them by its schema. Only a column is changed in which then every cell that is not missing looks like a number, so that
levels such as ``(a)`` or ``<18`` among other text stay what they are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Literal

from cfbench_tabular.file_format import MONEY, UNITS, ZERO, digits_apart, has_points_between_thousands

Negatives = Literal["minus", "parentheses", "trailing"]
Censored = Literal["error", "limit", "missing"]

MINUS = re.compile("[\u2212\u2013]")
"""The minus sign of typography, for which people usually type a hyphen, and the dash that word processors make of it."""

NUMBER = re.compile(r"[+-]?\s*(?:\d[\d.,' ]*|[.,]\d+)(?:[eE][+-]?\d+)?")
"""A number with any marks."""

IN_PARENTHESES = re.compile(
    r"([^()+\-\d.,<>]{0,4}?)\s*\(\s*([^()+\-]*\d[^()+\-]*?)\s*\)\s*([^()+\-\d.,<>]{0,6})"
)
"""(5), and with a unit $ (5) and (5) €."""
TRAILING = re.compile(r"([^()+\-]*\d(?:[^()+\-]*[^()+\-.,\s])?)\s*-")
"""5- and 5 €-, but not 5,- in which the hyphen stands for the missing cents."""

LIMIT = re.compile(r"(?:[<>]=?|[≤≥])\s*(.+)|(\d[\d.,' ]*)\s*\+")
LEAST_NUMBERS = 10
"""Distinct numbers next to limits such as <5, or negative ones; with fewer, these are levels of a category."""

LONG = 3
"""Digits of a number that is rather an amount than a grade."""

COMMA = re.compile(r"[+-]?(?:\d*,\d{1,2}|\d*,\d{4,}|0?,\d+|\d{1,3}(?:\.\d{3})+,\d*)")
POINT = re.compile(r"[+-]?(?:\d*\.\d{1,2}|\d*\.\d{4,}|0?\.\d+|\d{1,3}(?:,\d{3})+\.\d*)")
CODE = re.compile(r"0\d+|\d+[eE]\d+")
"""What may be a code, of a post office or a product, rather than a number: 01067 and 1E5."""
INDIAN = re.compile(r"(?<![\d.,])[1-9]\d?(?:,\d{2})+,\d{3}(?![\d,])")
"""A number in groups of two digits but for the last three: 12,34,567.89."""
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
"""A number with one thousands mark, or with three decimals."""
THREE_DECIMALS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")


def negatives_of(columns: Mapping[str, Sequence[str]], marks: Iterable[str]) -> Negatives:
    """How the negative numbers of these columns are written; ``minus`` unless a column is numbers otherwise only."""
    votes: Counter[Negatives] = Counter()
    for cells in columns.values():
        distinct = _distinct(cells, marks)
        options: tuple[Negatives, ...] = ("parentheses", "trailing")
        hyphens = _signed(distinct, "minus", declared=False)
        votes.update(o for o in options if _signed(distinct, o, declared=False) not in ({}, hyphens))
    return votes.most_common(1)[0][0] if votes else "minus"


def with_signs(
    columns: Mapping[str, Sequence[str]],
    marks: Iterable[str],
    negatives: Negatives,
    declared: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """The columns whose negative numbers were not written with a hyphen in front, with one; ``declared``: numeric ones."""
    found = {}
    for name, cells in columns.items():
        joined = "".join(cells)
        if not (MINUS.search(joined) or (negatives != "minus" and ("(" in joined or "-" in joined))):
            continue
        signed = _signed(_distinct(cells, marks), negatives, name in declared)
        if signed:
            found[name] = tuple(signed.get(cell, cell) for cell in cells)
    return found


def _signed(distinct: set[str], negatives: Negatives, declared: bool) -> dict[str, str]:
    """The changed cells with a hyphen; none if not all cells are numbers then, perhaps with a unit.

    Codes and grades are no negative numbers: a column in which every number is in parentheses, or with few numbers, or in
    which only short numbers such as 2- have a minus behind them.
    """
    found = {cell: with_hyphen(cell, negatives) for cell in distinct}
    changed = {cell: text for cell, text in found.items() if cell != text}
    if not changed or not (declared or _may_be_negative(found, changed, negatives)):
        return {}
    parts = {digits_apart(text) for text in found.values() if not ZERO.fullmatch(text)}
    front, back = parts.pop() if parts else ("", "")
    return changed if not parts and _is_unit(front, back) and all(map(_has_digit, found.values())) else {}


def _may_be_negative(found: Mapping[str, str], changed: Mapping[str, str], negatives: Negatives) -> bool:
    if negatives == "minus":
        return len(found) > 2
    if len(found) < LEAST_NUMBERS or len(changed) == len(found):
        return False
    return negatives != "trailing" or any(sum(map(str.isdigit, cell)) >= LONG for cell in changed)


def with_hyphen(cell: str, negatives: Negatives) -> str:
    """A number with a hyphen in front of it, if it is written as a negative one; other text unchanged."""
    cell = MINUS.sub("-", cell)
    if negatives == "parentheses" and (parts := in_parentheses(cell)):
        front, inside, back = parts
        return f"-{front}{inside} {back}".rstrip()
    if negatives == "trailing" and (found := TRAILING.fullmatch(cell)):
        return f"-{found[1].strip()}"
    return cell


def in_parentheses(cell: str) -> tuple[str, str, str] | None:
    """What stands before, in and behind the parentheses of (5), $ (5) and (5) €; None for other text."""
    found = IN_PARENTHESES.fullmatch(cell)
    if found is None or not _is_unit(found[1].strip(), found[3].strip()):
        return None
    return found[1].strip(), found[2].strip(), found[3].strip()


def _is_unit(front: str, back: str) -> bool:
    """Whether these may stand in front of a number and behind it."""
    return front in ("", *MONEY) and back in ("", *UNITS)


def _has_digit(text: str) -> bool:
    return any(character.isdigit() for character in text)


def limits_of(cells: Sequence[str], marks: Iterable[str], declared: bool = False) -> dict[str, str]:
    """The cells such as <5, >= 100 and 80+ of a column that is numbers otherwise, with their limit; else none."""
    distinct = _distinct(cells, marks)
    limits = {cell: (found[1] or found[2]).strip() for cell in distinct if (found := LIMIT.fullmatch(cell))}
    plain = distinct - set(limits)
    if not limits or (len(plain) < LEAST_NUMBERS and not declared):
        return {}
    return limits if all(NUMBER.fullmatch(text) for text in (*plain, *limits.values())) else {}


def without_limits(
    columns: Mapping[str, Sequence[str]],
    marks: Sequence[str],
    censored: Censored,
    declared: Collection[str] = (),
) -> dict[str, tuple[str, ...]]:
    """The columns with limits such as <5, in which they are read as the number or as missing."""
    found: dict[str, tuple[str, ...]] = {}
    for name, cells in columns.items() if censored != "error" else ():
        limits = limits_of(cells, marks, name in declared)
        if censored == "missing":
            limits = dict.fromkeys(limits, marks[0])
        if limits:
            found[name] = tuple(limits.get(cell, cell) for cell in cells)
    return found


def mixed_marks(cells: Sequence[str]) -> tuple[int, int] | None:
    """The places of a number with a decimal point and of one with a decimal comma, in a column that mixes them."""
    if not all(NUMBER.fullmatch(cell) for cell in set(cells)):
        return None
    points = [place for place, cell in enumerate(cells) if POINT.fullmatch(cell)]
    commas = [place for place, cell in enumerate(cells) if COMMA.fullmatch(cell)]
    return (points[0], commas[0]) if points and commas else None


def may_be_thousands(cells: Collection[str]) -> bool:
    """Whether all numbers with a point look like 1.234, which may also be one thousand two hundred and thirty-four."""
    with_point = [cell for cell in cells if "." in cell]
    small = all(len(cell.lstrip("+-")) <= 3 for cell in cells if "." not in cell)
    return bool(with_point) and small and all(THREE_DECIMALS.fullmatch(cell) for cell in with_point)


def hint_on(cell: str) -> str:
    """What a cell may be that is not a plain number: the end of a sentence, or ""."""
    if in_parentheses(cell):
        return "; set 'negatives: parentheses' if it is a negative number"
    if TRAILING.fullmatch(cell):
        return "; set 'negatives: trailing' if it is a negative number"
    limit = LIMIT.fullmatch(cell)
    if limit and NUMBER.fullmatch((limit[1] or limit[2]).strip()):
        return "; set 'censored: limit' to read it as its limit, or 'censored: missing'"
    if COMMA.fullmatch(cell) or POINT.fullmatch(cell):
        return "; its decimal mark is not that of the schema (decimal)"
    return ""


def remark_on(
    written: Sequence[str],
    bare: Sequence[str],
    missing: Collection[str],
    plain: Sequence[str],
    thousands: str | None,
) -> str:
    """What a reader should know of the numbers of a column: cells that are not read as they look; "" for none.

    written, bare, plain: the cells as in the file, without their unit, and as they are read, in the same order.
    """
    remarks = []
    pairs = {cell: text for cell, text in zip(written, plain, strict=True) if cell not in missing}
    signed = next((cell for cell in pairs if _is_signed(cell)), None)
    if signed is not None:
        remarks.append(f"{signed!r} is read as {pairs[signed]}")
    code = next((cell for cell in pairs if CODE.fullmatch(cell)), None)
    if code is not None:
        remarks.append(
            f"{code!r} is read as {float(pairs[code]):.0f}: if it is a code, list the levels, or drop the column"
        )
    counts = Counter(cell for cell in written if LIMIT.fullmatch(cell))
    for cell, count in counts.most_common(2):
        rows = "1 row" if count == 1 else f"{count:,} rows"
        remarks.append(f"{cell!r} in {rows} is read as {pairs.get(cell, cell)}")
    own = {cell: text for cell, text in zip(bare, plain, strict=True) if cell not in missing}
    return "; ".join([*remarks, *_on_thousands(own, thousands)])


def _on_thousands(pairs: Mapping[str, str], thousands: str | None) -> Iterator[str]:
    """Remarks on numbers without their unit, and as they are read, that may be a thousand times larger or smaller."""
    point = next((cell for cell in pairs if "." in cell), None)
    if thousands is None and may_be_thousands(pairs):
        yield f"{point!r} may also mean {str(point).replace('.', '')}: then set thousands to '.'"
    grouped = next((cell for cell in pairs if GROUPED.fullmatch(cell) and not LIMIT.fullmatch(cell)), None)
    if thousands in (",", ".") and grouped is not None and thousands in grouped:
        decimals = [cell for cell in pairs if (COMMA if thousands == "." else POINT).fullmatch(cell)]
        remark = f"{grouped!r} is read as {pairs[grouped]}"
        decimals += [cell for cell in pairs if INDIAN.search(cell)]
        sure = decimals or (thousands == "." and has_points_between_thousands(pairs))
        yield remark if sure else f"{remark}: if it has decimals, set decimal to '{thousands}'"
    indian = next((cell for cell in pairs if INDIAN.search(cell)), None)
    if indian is not None and thousands == ",":
        yield f"{indian!r} is read as {pairs[indian]}: digits in groups of two, as in India"


def _is_signed(cell: str) -> bool:
    return bool(MINUS.search(cell)) or bool(in_parentheses(cell) or TRAILING.fullmatch(cell))


def _distinct(cells: Sequence[str], marks: Iterable[str]) -> set[str]:
    return set(cells) - set(marks)
