"""Random streams: the only way to draw.

The stream of a draw is named by the run's seed, its purpose, the dataset, and the names of what it is for (a user, a
row), and by nothing else: not by a key, a version, a chunk or a position in a batch. So the same seed and dataset give the
same split and the same explained units for all models and all versions of the code, in every process and order.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def seed_of(*names: str | int) -> int:
    """A 128-bit seed for a tuple of names; equal names, equal seed, on every machine."""
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(*names: str | int) -> np.random.Generator:
    """A NumPy generator of its own for ``(run seed, purpose, dataset, ...)``."""
    import numpy as np

    return np.random.default_rng(seed_of(*names))


@dataclass(frozen=True)
class Streams:
    """The streams of one run on one dataset.

    Attributes:
        seed: the run's.
        dataset: the name of the dataset's component.
    """

    seed: int
    dataset: str

    def generator(self, purpose: str, *names: str | int) -> np.random.Generator:
        """A stream for a purpose ("split", "fit", "explain") and what it is for: ``generator("explain", user)``."""
        return generator(self.seed, purpose, self.dataset, *names)

    def integer_seed(self, purpose: str, *names: str | int) -> int:
        """A 63-bit seed, for libraries that need an integer."""
        return seed_of(self.seed, purpose, self.dataset, *names) >> 65
