"""Operations on whole columns of encoded rows, shared by several explainers."""

from __future__ import annotations

import numpy as np

from cfbench_tabular.encoding import Encoding
from cfbench_tabular.table import FloatArray


def allowed_only(
    encoding: Encoding, low: FloatArray, high: FloatArray, rows: FloatArray, changed: FloatArray
) -> FloatArray:
    """(..., d) ``changed``, with each column that leaves its limits reset to its value in ``rows``.

    low, high: as returned by :meth:`~cfbench_tabular.encoding.Encoding.allowed`; all of them (..., d).
    """
    forbidden = (changed < low) | (changed > high)
    if not forbidden.any():
        return changed
    starts = [block.start for block in encoding.blocks]
    columns = np.logical_or.reduceat(forbidden, starts, axis=-1)
    return np.where(columns[..., encoding.column_of], rows, changed)
