"""Arrays of real numbers, as a recommender's weights must be: from tensors of torch, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line


def array_of_tensor(tensor: Any, name: str, label: object) -> np.ndarray:
    """A copy of a tensor of torch; bfloat16, which NumPy does not have, as float32, which has all of its numbers.

    Raises:
        UserError: if it is sparse, quantised, or of another type that NumPy does not have. ``label`` says where it stands.
    """
    import torch

    if not isinstance(tensor, torch.Tensor):  # what a module returns as its get_extra_state
        raise UserError(f"{label}: {one_line(name)} is no tensor but {type(tensor).__name__}")
    numbers = tensor.float() if tensor.dtype == torch.bfloat16 else tensor
    try:
        return np.array(numbers.detach().numpy())
    except (TypeError, RuntimeError) as error:
        sparse = "" if tensor.layout == torch.strided else f" and layout {tensor.layout}"
        raise UserError(
            f"{label}: {one_line(name)} is no dense tensor of numbers, has the type {tensor.dtype}{sparse}: "
            f"{one_line(str(error), 200)}"
        ) from None


def check_real(arrays: Mapping[str, np.ndarray], label: object) -> None:
    """Refuses arrays of anything but real numbers of at most 64 bits.

    Raises:
        UserError: which names the first such array and its type. ``label`` says where it stands.
    """
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise UserError(f"{label}: {one_line(name)} must be real numbers, has the type {array.dtype}")
        if array.dtype.itemsize > 8:  # no file of weights has them
            raise UserError(
                f"{label}: {one_line(name)} must be numbers of at most 64 bits, has the type {array.dtype}"
            )
