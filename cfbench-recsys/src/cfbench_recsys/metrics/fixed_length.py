"""What the metrics of Refined fidelity share: an explanation of fixed length K_e, one column for each K_e.

"Excluding contradictory elements" happens here: only interactions of positive importance count among the K_e
(``supporting_only``); in the published numbers all count. For a user with fewer, all of these are taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cfbench_core.config import Distinct, Help, Range
from cfbench_core.plan import Column

if TYPE_CHECKING:
    from typing import Literal

    from cfbench_recsys.edits import FloatArray


@dataclass(frozen=True, kw_only=True)
class FixedLengthConfig:
    """The defaults are those of the paper."""

    k_e: Annotated[tuple[int, ...], Range(minimum=1), Distinct(), Help("lengths of the explanation")] = (
        1,
        2,
        3,
        4,
        5,
    )
    supporting_only: Annotated[bool, Help("only positive importances count among the K_e")] = True


@dataclass(frozen=True, kw_only=True)
class ScoreConfig(FixedLengthConfig):
    """The paper divides by the score of the untouched profile; its code, and so the published numbers, do not."""

    normalize: Annotated[bool, Help("divide by the score of the untouched profile")] = True


def variant(name: str, config: FixedLengthConfig) -> str:
    """The name of a metric with its departures from the paper's text, for example "DEL-raw-all"."""
    raw = "" if getattr(config, "normalize", True) else "-raw"
    return name + raw + ("" if config.supporting_only else "-all")


def columns_by_length(
    name: str,
    config: FixedLengthConfig,
    direction: Literal["lower", "higher"],
    range: tuple[float, float] | None,
    question: str,
) -> tuple[Column, ...]:
    """A column for each K_e; ``{k_e}`` in ``question`` is replaced by it."""
    named = variant(name, config)
    return tuple(Column(f"{named}@{k_e}", direction, range, question.format(k_e=k_e)) for k_e in config.k_e)


def values_by_length(name: str, config: FixedLengthConfig, values: FloatArray) -> dict[str, FloatArray]:
    """The columns of :func:`columns_by_length` from ``values`` (B, S), S the number of lengths."""
    named = variant(name, config)
    return {f"{named}@{k_e}": values[:, s] for s, k_e in enumerate(config.k_e)}
