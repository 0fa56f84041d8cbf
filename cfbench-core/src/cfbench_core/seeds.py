"""Random streams by name, so that a unit's numbers do not depend on who computes it, when, or beside whom."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def seed_of(*names: str | int) -> int:
    """A 128-bit seed for a tuple of names; equal names, equal seed, on every machine."""
    text = "\x1f".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


def generator(*names: str | int) -> np.random.Generator:
    """A NumPy generator of its own for ``(run seed, stage key, unit id, ...)``."""
    import numpy as np

    return np.random.default_rng(seed_of(*names))
