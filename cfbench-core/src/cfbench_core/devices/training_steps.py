"""Steps of a training whose batch need not fit into the memory of a device at once.

The batch of a training is part of the method, so it stays what it is. Where the memory does not suffice for all of it, its
members are taken in parts, whose gradients add up before the optimiser makes its one step. Up to rounding, that is the step
of the whole batch. Where the memory suffices, nothing is divided, and no number differs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Protocol

from cfbench_core.devices.batches import (
    DeviceMemoryError,
    is_device_memory_error,
    release_memory,
    shortage_of,
)
from cfbench_core.errors import ResultWarning

Loss = Callable[[slice], Any]
"""``loss(part)``: what the members ``part`` of a batch contribute to the loss of the batch, a torch scalar.

Over the parts of any division it adds up to the same, and a part may be computed more than once: so whatever is random is
drawn for the whole batch, and once. A term that cannot be divided belongs to the part that starts at 0.
"""


class Optimizer(Protocol):
    """As those of torch."""

    def zero_grad(self) -> Any:
        """Forgets the gradients."""

    def step(self) -> Any:
        """Moves the parameters."""


class TrainingSteps:
    """The steps of one training; remembers how many members of a batch fit.

    Args:
        name: of what is trained, for the note that batches were divided.
        smaller: what to make smaller if a batch of one does not fit: options, mostly.
    """

    def __init__(self, name: str, smaller: str) -> None:
        self._name, self._smaller = name, smaller
        self._most: int | None = None

    def take(self, optimizer: Optimizer, count: int, loss: Loss) -> float:
        """One step by the gradient of the loss of a batch of ``count`` members; returns that loss.

        Raises:
            DeviceMemoryError: if the memory does not suffice for a single member.
        """
        most = self._most
        while True:
            size = count if self._most is None else min(count, self._most)
            shortage, value = _gradients(optimizer, count, size, loss)
            if not shortage:
                break
            if size == 1:
                raise DeviceMemoryError(shortage, f"make {self._smaller} smaller")
            self._most = size // 2
            release_memory()
        optimizer.step()
        if self._most != most:
            message = (
                f"training {self._name}: the memory of the device did not suffice for a batch of {count}, so it was "
                f"computed {self._most} at a time; up to rounding, the steps are those of whole batches"
            )
            warnings.warn(message, ResultWarning, stacklevel=2)
        return value


def _gradients(optimizer: Optimizer, count: int, size: int, loss: Loss) -> tuple[str, float]:
    """Adds up the gradients of parts of ``size``. Why the memory did not suffice, "" if it did; and the loss."""
    optimizer.zero_grad()  # those of an attempt that failed, too
    total = 0.0
    try:
        for start in range(0, count, size):
            share = loss(slice(start, min(start + size, count)))
            share.backward()
            total += float(share.detach())
    except Exception as error:
        if not is_device_memory_error(error):
            raise
        return shortage_of(error), total  # no frame of it survives
    return "", total
