"""Leave-one-out: how far the target falls when one interaction is removed, alone, on the real model.

I(i) = g(x)_y - g(x without i)_y; at list level the mean over the listed items. g is the ``target``: the logit, the
log-probability or the margin to the K-th best other candidate (see ``target_functions.py``); by default the logit, and
the margin where the recommender's link is softmax. On a linear logit this is the exact contribution; elsewhere it sees
no joint effects, and is the best that a look at single interactions can give.

Ours as a control; leave-one-out as such is folklore. Differences are rounded to the grid of 2**-30 on which
scores are compared, so that an interaction without effect counts 0, and ties do not hang on rounding noise.
Cost: |I_u| + 1 model queries for each user, however many items are explained.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import SingleRemovals, mean_over_targets, rounded
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/leave-one-out",
    summary="Decrease of the target when one interaction is removed",
    target=f"{__name__}:LeaveOneOut",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    target: Annotated[
        Target | None,
        Help("what is explained; none: logit, or margin where the recommender's link is softmax"),
    ] = None


class LeaveOneOut:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) decrease of the target function (mean over T) without each interaction."""
        model, interactions = context.model, context.interactions
        function = TargetFunction.of(self.config.target, model, "leave-one-out")
        before = np.empty(targets.items.shape)
        for rows, scores in score_blocks(model, Edits.nothing(targets.users), interactions):
            units = np.arange(rows.start, rows.stop)
            before[rows] = function.values(scores, units - rows.start, units, targets)
        removals = SingleRemovals.of(targets)
        drops = np.zeros(targets.history.shape)
        for rows, scores in score_blocks(model, removals.edits, interactions):
            pairs = removals.readers.within(rows)
            edits, units = removals.readers.edits[pairs], removals.readers.units[pairs]
            after = function.values(scores, edits - rows.start, units, targets)
            drops[units, removals.positions[edits]] = mean_over_targets(before[units] - after)
        return rounded(drops)
