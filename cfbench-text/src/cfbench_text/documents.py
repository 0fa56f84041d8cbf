"""What a judge compares a statement with."""

from __future__ import annotations

from dataclasses import dataclass

from cfbench_text.triplets import Triplet


@dataclass(frozen=True)
class Document:
    """A text that a statement is compared with, and the statements in it."""

    text: str
    triplets: tuple[Triplet, ...]
