"""An encoding with further limits on counterfactuals: columns that must not change, and narrower ranges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from cfbench_core.errors import UserError, did_you_mean
from cfbench_tabular.encoding import Encoding


def constrained(
    encoding: Encoding, locked: Collection[str] = (), ranges: Mapping[str, tuple[float, float]] | None = None
) -> Encoding:
    """The same encoding whose ``allowed`` respects the limits; vectors and scales stay as they are.

    A factual outside of a range is still allowed to keep its value, as everywhere.

    Args:
        locked: columns that become immutable.
        ranges: least and greatest value of numeric columns, in their own unit.

    Raises:
        UserError: for a column that does not exist, or a range of one that is not numeric.
    """
    ranges = ranges or {}
    places = {column.name: place for place, column in enumerate(encoding.columns)}
    for name in (*locked, *ranges):
        if name not in places:
            raise UserError(f"there is no column {name!r}.{did_you_mean(name, places)}")
        if name in ranges and encoding.columns[places[name]].kind != "numeric":
            raise UserError(f"{name}: only a numeric column has a range")
    columns, low, high = list(encoding.columns), encoding.low.copy(), encoding.high.copy()
    for name in locked:
        columns[places[name]] = replace(columns[places[name]], immutable=True)
    for name, (least, most) in ranges.items():
        place = places[name]
        columns[place] = replace(columns[place], low=least, high=most)
        low[place] = (least - encoding.mean[place]) / encoding.scale[place]
        high[place] = (most - encoding.mean[place]) / encoding.scale[place]
    return replace(encoding, columns=tuple(columns), low=low, high=high)
