"""A data frame as text for people: four significant digits, names as they are."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MISSING = "–"
INTERVAL = "95% interval"


@dataclass(frozen=True)
class Cells:
    """What stands in each place.

    Attributes:
        heads: names of columns; ``numbers`` says which are set to the right.
        common: columns that say one thing in every row, and what; they are not among the others.
        left_out: how many rows are not shown.
    """

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    common: tuple[tuple[str, str], ...] = ()
    left_out: int = 0

    def without(self, places: Collection[int]) -> Cells:
        """Without some columns."""
        chosen = [place for place in range(len(self.heads)) if place not in places]
        return dataclasses.replace(
            self,
            heads=tuple(self.heads[place] for place in chosen),
            numbers=tuple(self.numbers[place] for place in chosen),
            rows=tuple(tuple(row[place] for place in chosen) for row in self.rows),
        )

    def follows(self) -> list[int]:
        """Columns of text that follow from another one, as the role does from the explainer; the last ones first."""
        found: list[int] = []
        for place in reversed(range(len(self.heads))):
            texts = [o for o in range(len(self.heads)) if not self.numbers[o] and o not in found]
            if place in texts and any(self._tells(other, place) for other in texts if other != place):
                found.append(place)
        return found

    def _tells(self, one: int, other: int) -> bool:
        """Whether a column that has values more than once has one value of another with each of them."""
        pairs = {(row[one], row[other]) for row in self.rows}
        values = {row[one] for row in self.rows}
        return len(pairs) == len(values) < len(self.rows)

    @property
    def in_every_row(self) -> str:
        """ "Same for all rows: dataset debian-python, k 5", or nothing."""
        known = ", ".join(f"{name} {value}" for name, value in self.common if value not in ("", MISSING))
        return f"Same for all rows: {known}." if known else ""


def cells(frame: pd.DataFrame, most: int | None = None) -> Cells:
    """The frame without its index; of more than ``most`` rows the first ones. Ends of intervals share a column."""
    import pandas as pd

    frame = _with_intervals(frame)
    shown = frame if most is None else frame.iloc[:most]
    columns = [
        [formatted(value) for value in shown.iloc[:, place].tolist()] for place in range(frame.shape[1])
    ]
    varies = [place for place in range(len(columns)) if _varies(frame.iloc[:, place], columns[place])]
    numbers = [
        name == INTERVAL or (pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind))
        for name, kind in frame.dtypes.items()
    ]
    rows = list(zip(*(columns[place] for place in varies), strict=True))
    return Cells(
        heads=tuple(str(frame.columns[place]) for place in varies),
        numbers=tuple(numbers[place] for place in varies),
        rows=tuple(rows),
        common=tuple(
            (str(frame.columns[place]), column[0])
            for place, column in enumerate(columns)
            if place not in varies
        ),
        left_out=len(frame) - len(rows),
    )


def _varies(values: pd.Series[Any], shown: Sequence[str]) -> bool:
    """Whether a column looks different in some rows; ``shown``: the first values as text."""
    if len(values) < 2 or len(set(shown)) > 1:
        return True
    return len(shown) < len(values) and len({formatted(value) for value in values.tolist()}) > 1


def _with_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """``ci_low`` and ``ci_high`` as one column of text, "0.28 to 0.34"."""
    if not {"ci_low", "ci_high"} <= {*frame.columns}:
        return frame
    ends = [
        (formatted(low), formatted(high)) for low, high in zip(frame["ci_low"], frame["ci_high"], strict=True)
    ]
    texts = [MISSING if MISSING in pair else " to ".join(pair) for pair in ends]
    place = [*frame.columns].index("ci_low")
    shown = frame.drop(columns=["ci_low", "ci_high"])
    shown.insert(place, INTERVAL, texts)
    return shown


def formatted(value: Any) -> str:
    """ "0.3142", "12,346", "–" for what is missing, "yes" and "no"."""
    if type(value) is str:  # most values
        return value
    import numpy as np
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return MISSING
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if isinstance(value, (tuple, list, set, frozenset, np.ndarray)):
        return ", ".join(formatted(inner) for inner in value)
    return MISSING if value is None or value is pd.NA or value is pd.NaT else str(value)
