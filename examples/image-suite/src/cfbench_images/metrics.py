"""Four metrics of counterfactual images."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cfbench_core.plan import Column
from cfbench_core.specs import ComponentSpec
from cfbench_images.contracts import Observed

SPECS = (
    ComponentSpec(
        id="images/metric/validity", summary="Does the class change?", target=f"{__name__}:Validity"
    ),
    ComponentSpec(
        id="images/metric/distance", summary="How far is the image?", target=f"{__name__}:Distance"
    ),
)


class Validity:
    """Whether the class changes."""

    def __init__(self, config: None) -> None: ...

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return (Column("validity", "higher", (0, 1), "Does the class change?"),)

    def compute(self, observed: Observed) -> Mapping[str, Any]:
        return {"validity": observed.changed.astype(float)}


class Distance:
    """Pixels that differ, and the L1 and L2 norm of the difference; NaN without an answer."""

    def __init__(self, config: None) -> None: ...

    def columns(self, point: Mapping[str, str | int]) -> Sequence[Column]:
        return tuple(
            Column(name, "lower", None, f"{name} of the difference") for name in ("pixels", "L1", "L2")
        )

    def compute(self, observed: Observed) -> Mapping[str, Any]:
        difference = observed.counterfactuals - observed.originals
        given = ~np.isnan(difference).any(axis=1)
        pixels = np.where(given, np.count_nonzero(difference, axis=1), np.nan)
        norms = {f"L{p}": np.linalg.norm(difference, p, axis=1) for p in (1, 2)}
        return {"pixels": pixels, **norms}
