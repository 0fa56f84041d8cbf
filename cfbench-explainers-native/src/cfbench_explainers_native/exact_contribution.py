"""Exact contribution: the weights of a recommender whose score is linear in the profile, as importances.

For s(x)_y = b_y + sum_i x_i W[i, y], removing item i lowers the score of y by exactly W[i, y]. The importance of i is
W[i, y]; at list level it is the mean over the listed items, the decrease of their mean score.

A reference, since how good it is depends on what is measured and configured. At item level, where the link of the
recommender increases with the score alone (sigmoid, identity), and the importances are W[:, y] (target ``logit``, the
default there; with the link sigmoid the order of ``probability`` is the same), the order is optimal for DEL@k and INS@k at
every k: no other k interactions lower the score more, or retain more of it. Nothing is proven about

- a link ``softmax``, where f(x)_y depends on the scores of all items;
- the target ``margin``, which orders by the effect of single removals, and these do not add up;
- explicit answers, POS-P and NEG-P, which depend on rivals: see ``smallest`` for a certificate;
- the list level, where a link is applied to each score before the mean.

``target`` (see ``target_functions.py``): with ``probability`` and ``margin`` the contribution of i is the decrease of
that function when i is removed alone, computed from s(x) - W[i, :]: leave-one-out without its queries.

Not published elsewhere. Needs ``access: weights`` (MF, EASE). Cost: one look-up for each interaction and
target; with ``probability`` and ``margin`` one query for each user, and the scores of all items for each interaction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import mean_over_targets, rounded
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.scoring import BLOCK, score_blocks
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/exact-contribution",
    summary="Weights of a linear score, the optimal order for DEL and INS",
    target=f"{__name__}:ExactContribution",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores", "weights"}}},
    role="reference",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    target: Annotated[
        Target | None,
        Help("what is explained; none: logit, or margin where the recommender's link is softmax"),
    ] = None


class ExactContribution:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) contribution of each interaction, the mean over the T items of each unit."""
        function = TargetFunction.of(self.config.target, context.model, "exact-contribution")
        if function.target != "logit":
            return _without_each(function, targets, context)
        weights = context.linear_model.weights(targets.history[:, :, None], targets.items[:, None, :])
        return np.where(targets.padding, 0.0, mean_over_targets(weights))


def _without_each(function: TargetFunction, targets: Targets, context: Context) -> FloatArray:
    """(B, H) decrease of the function when an interaction is removed, its scores computed from the weights."""
    users, owners = np.unique(targets.users, return_inverse=True)
    found = np.zeros(targets.history.shape)
    for block, untouched in score_blocks(context.model, Edits.nothing(users), context.interactions):
        for owner, scores in zip(range(block.start, block.stop), untouched, strict=True):
            units = np.flatnonzero(owners == owner)
            before = function.values(scores[None], np.zeros_like(units), units, targets)
            history = targets.history[units[0], ~targets.padding[units[0]]]
            every = np.arange(scores.shape[0])
            for start in range(0, len(history), BLOCK):
                removed = history[start : start + BLOCK]
                after = scores - context.linear_model.weights(removed[:, None], every[None])
                rows, which = (part.ravel() for part in np.indices((len(removed), len(units))))
                drops = before[which] - function.values(after, rows, units[which], targets)
                found[units[which], start + rows] = mean_over_targets(drops)
    return rounded(found)
