"""What the parts of the chaos suite share: a trial, and how many of them there are to be."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Trial:
    """One attempt to make cfbench fail.

    Attributes:
        case: what was done; with the seed of the run enough to do it again.
        problem: what went wrong; empty if cfbench survived.
    """

    case: str
    problem: str = ""


@dataclass
class Budget:
    """What a part may use.

    Attributes:
        folder: an empty one, for everything that the part writes.
        seed: of its random choices.
        trials: after which it stops.
    """

    folder: Path
    seed: int
    trials: int
    random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
