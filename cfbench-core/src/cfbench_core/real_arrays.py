"""Numbers that a component returned, checked before anything is computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cfbench_core.errors import UserError

FloatArray = NDArray[np.float64]


def real_array(found: Any, *shapes: tuple[int, ...], what: str) -> FloatArray:
    """What a component returned, as float64 in one of the given shapes. NaN and infinity are left to the caller.

    Args:
        found: an array, a tensor on the CPU, or nested lists.
        shapes: any of which it may have.
        what: for the error: "my-method: importances".

    Raises:
        UserError: for another shape, and for complex numbers, text, dates or objects, which NumPy would convert.
    """
    try:
        values = np.asarray(found)
    except (ValueError, TypeError, RuntimeError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise UserError(f"{what} must be an array of real numbers: {reason}") from None
    if values.dtype.kind not in "biuf":
        raise UserError(f"{what} must hold real numbers, got {_kind(values)}")
    if values.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise UserError(f"{what} has shape {values.shape}, must be {wanted}")
    return values.astype(np.float64, copy=False)


def _kind(values: NDArray[Any]) -> str:
    if values.dtype.kind == "O":
        first = values.flat[0] if values.size else None
        return f"objects ({type(first).__name__})" if values.shape else type(first).__name__
    return {"c": "complex numbers", "U": "text", "S": "bytes", "M": "dates", "m": "durations"}.get(
        values.dtype.kind, str(values.dtype)
    )
