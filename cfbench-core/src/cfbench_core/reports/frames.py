"""A data frame as text for people: four significant digits, names as they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MISSING = "–"


@dataclass(frozen=True)
class Cells:
    """What stands in each place; ``numbers`` says which columns are set to the right."""

    heads: tuple[str, ...]
    numbers: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


def cells(frame: pd.DataFrame, most: int | None = None) -> Cells:
    """The frame without its index; of more than ``most`` rows the first ones."""
    import pandas as pd

    shown = frame if most is None else frame.head(most)
    numbers = tuple(
        pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind) for kind in frame.dtypes
    )
    rows = tuple(tuple(told(value) for value in row) for row in shown.itertuples(index=False, name=None))
    return Cells(tuple(str(name) for name in frame.columns), numbers, rows, len(frame) - len(shown))


def told(value: Any) -> str:
    """ "0.3142", "12,346", "–" for what is missing, "yes" and "no"."""
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
        return ", ".join(told(inner) for inner in value)
    return MISSING if value is None or value is pd.NA or value is pd.NaT else str(value)
