"""The units of a chunk, read by range: row groups of ``units.parquet`` that hold none of them are not read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 10_000
"""Of one row group."""


def read_range(path: Path, start: int, stop: int) -> pa.Table:
    """The rows whose ``group`` is in ``[start, stop)``. Groups ascend, so these rows follow each other.

    Raises:
        OSError, pyarrow.ArrowException: when the file cannot be read.
    """
    import pyarrow.compute as pc
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        place = file.schema_arrow.get_field_index("group")
        groups = [
            n
            for n in range(file.num_row_groups)
            if _may_hold(file.metadata.row_group(n).column(place).statistics, start, stop)
        ]
        rows = file.read_row_groups(groups, use_threads=False)
    group = rows["group"]
    wanted = pc.and_(pc.greater_equal(group, start), pc.less(group, stop))
    return rows.filter(wanted)


def _may_hold(bounds: object, start: int, stop: int) -> bool:
    if bounds is None or not bounds.has_min_max:  # type: ignore[attr-defined]
        return True
    return bool(bounds.min < stop and bounds.max >= start)  # type: ignore[attr-defined]
