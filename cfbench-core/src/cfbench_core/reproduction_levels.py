"""How far a component is the method of its paper, with the evidence: ``reproduction.toml`` of its package.

One table per component, named ``kind/name``::

    ["explainer/lime-rs"]
    level = "agrees with the code"
    variant = "variant: paper"
    evidence = "100 of 100 answers of its authors' code on 20 users of MovieLens 100K (docs/results/authors-native.csv)"

The levels are about the method as its authors published it: the options in ``variant``, or the default where that is
empty. The printed numbers are those of the papers that cfbench repeats (``cfbench reproduce``), mostly comparisons of
methods by others than their authors. They are *compared* if the stored replication decides them: confirmed, refuted or
undecided; not if it found them not comparable or not reproducible.

- ``as published``: it agrees with its authors' code, or a well-known library; of the printed numbers that were compared
  more than half are confirmed, and none is refuted;
- ``agrees with the code``: it agrees with the code; no printed number was compared;
- ``agrees with the code, not with the paper``: it agrees with the code; printed numbers were compared, and one or more are
  refuted, or half of them or fewer confirmed. The code of the comparison, its recommenders or its data may be the reason;
- ``ours only``: follows the description in the paper; no code of its authors was compared;
- ``not reproduced``: the method of the paper is not here; the evidence says why.
"""

from __future__ import annotations

import functools
import importlib.util
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cfbench_core.specs import ComponentSpec

FILE = "reproduction.toml"
AS_PUBLISHED = "as published"
LEVELS = (
    AS_PUBLISHED,
    "agrees with the code",
    "agrees with the code, not with the paper",
    "ours only",
    "not reproduced",
)
"""All levels, from the strongest evidence to the weakest."""


@dataclass(frozen=True, kw_only=True)
class ReproductionLevel:
    """How far a component is the method of its paper.

    Attributes:
        level: one of ``LEVELS``.
        evidence: what was compared, with the result, in a sentence.
        variant: the options that make it the published method; empty if the default is.
    """

    level: str
    evidence: str
    variant: str = ""

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {self.level!r}")
        if not self.evidence:
            raise ValueError(f"the level {self.level!r} needs evidence")


def level_of(spec: ComponentSpec) -> ReproductionLevel | None:
    """The level of a component, or None if its package states none.

    Raises:
        ValueError: if the file of its package is damaged; names the file.
    """
    package = spec.target.partition(":")[0].partition(".")[0]
    return levels_of_package(package).get(f"{spec.kind}/{spec.name}")


@functools.cache
def levels_of_package(package: str) -> Mapping[str, ReproductionLevel]:
    """The levels by ``kind/name``; none if the package has no such file or cannot be found."""
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return {}
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / FILE
        if path.is_file():
            return _read(path)
    return {}


def _read(path: Path) -> Mapping[str, ReproductionLevel]:
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    levels = {}
    for name, table in tables.items():
        try:
            levels[name] = ReproductionLevel(**table)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {name}: {error}") from None
    return levels
