"""What the tests of searches have in common: a study of the toy suite, and options of every kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from cfbench_core.config import Range, Search


def study(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "toy",
        "data": {"name": "numbers", "count": 20},
        "models": "times",
        "explainers": ["digits"],
        "executor": "inline",
        **changes,
    }


@dataclass(frozen=True)
class Inner:
    rate: Annotated[float, Search(0.1, 1)] = 0.5


@dataclass(frozen=True)
class Everything:
    rate: Annotated[float, Range(above=0), Search(1e-4, 1, log=True)] = 0.1
    size: Annotated[int | None, Range(minimum=1), Search(4, 64)] = None
    kind: Annotated[Literal["a", "b"], Search()] = "a"
    quick: Annotated[bool, Search()] = True
    layers: Annotated[tuple[int, ...], Search(choices=((8,), (16, 8)))] = (8,)
    inner: Inner = field(default_factory=Inner)
    epochs: int = 100
