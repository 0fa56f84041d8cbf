"""How the metrics of a cell are computed together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfbench_recsys.contracts import Metric
    from cfbench_recsys.edits import FloatArray
    from cfbench_recsys.observations import ExplicitObservations, ImplicitObservations


def compute_metrics(
    metrics: Iterable[Metric], observed: ImplicitObservations | ExplicitObservations
) -> dict[str, FloatArray]:
    """All columns of ``metrics``, (B,) each, in order. A column that two metrics share is computed once.

    Raises:
        ValueError: if a metric does not fill exactly the columns that it declares, or not with (B,) values.
    """
    import numpy as np

    units = len(observed.targets)
    point = {"k": observed.k, "level": observed.targets.level}
    results: dict[str, FloatArray] = {}
    for metric in metrics:
        declared = [column.name for column in metric.columns(point)]
        found = metric.compute(observed)
        if set(found) != set(declared):
            raise ValueError(f"{type(metric).__name__} declared {declared}, but computed {sorted(found)}")
        for name in declared:
            results[name] = np.asarray(found[name], dtype=np.float64)
            if results[name].shape != (units,):
                raise ValueError(
                    f"{type(metric).__name__}: {name} has shape {results[name].shape}, not ({units},)"
                )
    return results
