"""Training on a device with little memory, simulated.

with memory_for(8):
    model.fit(...)      # batches of more than 8 members do not fit
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch

from cfbench_core.devices.training_steps import Loss, Optimizer, TrainingSteps

SHORT = "CUDA out of memory. Tried to allocate 2.00 GiB"
"""What torch says, its first line."""


@contextmanager
def memory_for(most: int) -> Iterator[list[int]]:
    """Inside of the ``with`` block a part of a batch of more than ``most`` members is one too many.

    The memory ends late, when gradients have been added up and everything random has been drawn: what such an attempt leaves
    behind must not count. Yields the sizes of the parts that did fit, in the order in which they were computed.
    """
    whole, sizes = TrainingSteps.take, list[int]()

    def take(self: TrainingSteps, optimizer: Optimizer, count: int, loss: Loss) -> float:
        def limited(part: slice) -> Any:
            share = loss(part)
            if part.stop - part.start > most:
                share.backward()
                raise torch.OutOfMemoryError(f"{SHORT}\nand more lines")
            sizes.append(part.stop - part.start)
            return share

        return whole(self, optimizer, count, limited)

    with patch.object(TrainingSteps, "take", take):
        yield sizes
