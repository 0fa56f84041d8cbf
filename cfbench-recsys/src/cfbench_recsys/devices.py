"""Where tensors are made: on the device of the recommender that is explained."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def on_device_of(model: Any) -> AbstractContextManager[Any]:
    """Makes new tensors (``torch.zeros``, ``torch.as_tensor``, ...) where ``model`` computes, inside of the ``with`` block.

    A model without an attribute ``device``, or with the CPU, changes nothing and does not import torch. ``torch.from_numpy``
    is not affected: code that may be given a model on a GPU uses ``torch.as_tensor``.
    """
    device = getattr(model, "device", None)
    if device is None or str(device) == "cpu":
        return nullcontext()
    import torch

    return torch.device(device)
