"""What the suite asks of a metric, and how metrics are computed together.

A metric is a pure function whose arguments are named after observations (``observations.py``), and a small
class around it that says, before anything is computed, which columns it will fill.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from cfbench_core.plan import Column
    from cfbench_recsys.edits import FloatArray


class Metric(Protocol):
    """Made from its configuration, None where there is nothing to set. Importing it must not import torch."""

    def columns(self, k: int, level: Literal["item", "list"]) -> tuple[Column, ...]:
        """What it will report for lists of length k."""

    def compute(self, seen: Any) -> Mapping[str, FloatArray]:
        """Column name -> (B,) values. ``seen``: Implicit- or ExplicitObservations, as its spec's needs say.

        NaN where the metric says nothing about a unit, for example the size of an answer that failed.
        """


def compute_metrics(metrics: Iterable[Metric], seen: Any) -> dict[str, FloatArray]:
    """All columns of ``metrics``, (B,) each, in order. A column that two metrics share is computed once."""
    import numpy as np

    units = len(seen.targets)
    results: dict[str, FloatArray] = {}
    for metric in metrics:
        declared = [column.name for column in metric.columns(seen.k, seen.targets.level)]
        found = metric.compute(seen)
        if set(found) != set(declared):
            raise ValueError(f"{type(metric).__name__} declared {declared}, but computed {sorted(found)}")
        for name in declared:
            results[name] = np.asarray(found[name], dtype=np.float64)
            if results[name].shape != (units,):
                raise ValueError(
                    f"{type(metric).__name__}: {name} has shape {results[name].shape}, not ({units},)"
                )
    return results
