"""Exact contribution: the best possible ordering for a recommender whose logit is linear in the profile.

For s(x)_y = b_y + sum_i x_i W[i, y], removing item i lowers the logit of y by exactly W[i, y]; so the history
sorted by W[:, y] is optimal for DEL@k and INS@k at every k: no explainer can do better. At list level the
mean over the listed items, W[i, :] . 1/T, is the drop of their mean logit.

Not published elsewhere. Needs ``access: weights`` (MF, EASE). Cost: one look-up for each interaction and
target.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import mean_over_targets
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/exact-contribution",
    summary="Optimal ordering for recommenders with a linear logit",
    target=f"{__name__}:ExactContribution",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores", "weights"}}},
    role="certified",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    """There are no options."""


class ExactContribution:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) W[history, item], the mean over the T items of each unit."""
        weights = context.linear_model.weights(targets.history[:, :, None], targets.items[:, None, :])
        return np.where(targets.padding, 0.0, mean_over_targets(weights))
