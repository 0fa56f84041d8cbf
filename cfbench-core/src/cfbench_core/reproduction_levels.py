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

import dataclasses
import functools
import importlib.util
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cfbench_core.errors import did_you_mean
from cfbench_core.plain_text import one_line
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
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, str):
                raise ValueError(f"{name} must be text, not {value!r}")
        if self.level not in LEVELS:
            known = ", ".join(map(repr, LEVELS))
            hint = did_you_mean(self.level, LEVELS)
            raise ValueError(f"level must be one of {known}, not {self.level!r}.{hint}".removesuffix("."))
        if not self.evidence:
            raise ValueError(f"the level {self.level!r} needs evidence")


def level_of(spec: ComponentSpec) -> ReproductionLevel | None:
    """The level of a component, or None if its package states none.

    Raises:
        ValueError: if the file of its package is damaged; names the file.
    """
    return levels_of_package(package_of(spec)).get(f"{spec.kind}/{spec.name}")


def package_of(spec: ComponentSpec) -> str:
    """The package that a component is part of, by name."""
    return spec.target.partition(":")[0].partition(".")[0]


def level_or_problem(spec: ComponentSpec) -> tuple[ReproductionLevel | None, str]:
    """As :func:`level_of`, with what is wrong with the file in one line instead of an error; empty if nothing is."""
    try:
        return level_of(spec), ""
    except ValueError as error:
        return None, one_line(str(error))


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
            levels[name] = _level(table)
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from None
    return levels


def _level(table: object) -> ReproductionLevel:
    """Raises ValueError: for what is no table, for unknown keys and for those that are missing."""
    if not isinstance(table, dict):
        raise ValueError('must be a table named by a component, such as ["explainer/lime-rs"]')
    known = [field.name for field in dataclasses.fields(ReproductionLevel)]
    for key in table:
        if key not in known:
            raise ValueError(
                f"{key}: unknown key.{did_you_mean(key, known) or ' Known: ' + ', '.join(known)}"
            )
    missing = [key for key in ("level", "evidence") if key not in table]
    if missing:
        raise ValueError(f"lacks {' and '.join(missing)}")
    return ReproductionLevel(**table)
