"""SPINRec: integrated gradients along paths from sampled profiles; of several paths the most faithful one.

Barkan et al., "Fidelity-aware recommendation explanations via stochastic path integration", 2025. With x the profile of
the user and b the profile of another user, drawn at random from those who are not explained, the path from b to x is
divided into S steps, and

    I_b(i) = (x_i - b_i) * 1/S sum_{s=1..S} d f(b + s/S (x - b))_y / dx_i       for i in the history

where f is the value of the recommender, its link applied to the scores (``cfbench_recsys/links.py``). This is done for
``samples`` profiles b. Of the candidates I_b the most faithful one is the answer: that with the smallest mean of f_y
while the history is removed in ten steps, the most important interactions first (the deletion curve of
``LXR-DEL-P``); of equal ones the first. At list level f_y is the mean over the listed items.

An interaction that the other user has as well (b_i = 1) has importance 0 on that path. ``baseline: empty`` integrates
from the empty profile once, without any choice; on a recommender with linear scores and the link identity this is the
exact contribution.

Departs from the published code: it evaluates each metric with the candidate that is best for this user by this very
metric, so that a row of its tables mixes up to ten explanations of each user. An explanation here is one: it is chosen
by the deletion curve alone. Importances and curves are rounded to the grid of 2**-30.
Agreement with the published code, of whose explanations the one with the best DEL is compared
(benchmarks/authors_native.py): on ml-100k with MF, VAE and NCF, 20 users, K = 5, all 300 answers.
Cost for each user: ``samples`` * ``steps`` gradients, shared by all explained items but for the backward pass; then
10 * ``samples`` model queries for each unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.config.component import not_default
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import mean_over_targets, rounded
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.links import link_of, values
from cfbench_recsys.observations import ImplicitObservations
from cfbench_recsys.targets import Context, Targets

if TYPE_CHECKING:
    import torch

SPEC = ComponentSpec(
    id="recsys/explainer/spinrec",
    summary="Integrated gradients from sampled profiles; of several paths the most faithful",
    target=f"{__name__}:SPINRec",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    papers=("barkan2025spinrec",),
    details={"default": False},
)

REMOVAL_STEPS = 10
"""Steps in which the history is removed to compare candidates, as in the metrics of LXR."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The defaults are those of the published code."""

    steps: Annotated[int, Range(minimum=1), Help("steps of a path")] = 10
    samples: Annotated[int, Range(minimum=1), Help("profiles from which a path starts")] = 10
    baseline: Annotated[
        Literal["training-user", "empty"],
        Help("where paths start: at profiles of users who are not explained, or once at the empty one"),
    ] = "training-user"

    def __post_init__(self) -> None:
        if self.baseline == "empty" and "samples" in not_default(self):
            raise UserError("samples: has no effect with baseline: empty, from which there is one path")


class SPINRec:
    def __init__(self, config: Config) -> None:
        self.config = config

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) importances along the most faithful path of each unit."""
        candidates = self._candidates(targets, context)
        chosen = np.zeros(len(targets), dtype=np.int64)
        if len(candidates) > 1:
            chosen = _deletion_curves(candidates, targets, context).argmin(axis=0)
        best: FloatArray = candidates[chosen, np.arange(len(chosen))]
        return best

    def _candidates(self, targets: Targets, context: Context) -> FloatArray:
        """(M, B, H) importances of each unit along each path."""
        link = link_of(context.model)
        paths = 1 if self.config.baseline == "empty" else self.config.samples
        found = np.zeros((paths, *targets.history.shape))
        for user in np.unique(targets.users):
            units = np.flatnonzero(targets.users == user)
            profile = context.interactions[[user]].toarray()[0].astype(np.float64)
            starts = self._starts(int(user), context)
            slopes = self._mean_gradients(profile, starts, targets.items[units], context, link)
            changes = profile - starts
            for place, unit in enumerate(units):
                held = ~targets.padding[unit]
                items = targets.history[unit, held]
                found[:, unit, held] = slopes[place][:, items] * changes[:, items]
        return rounded(found)

    def _starts(self, user: int, context: Context) -> FloatArray:
        """(M, items) the profiles where the paths of a user start."""
        width = context.interactions.shape[1]
        if self.config.baseline == "empty":
            return np.zeros((1, width))
        others = np.flatnonzero(np.diff(context.training.indptr))
        if not len(others):
            raise UserError(
                "spinrec: baseline training-user needs users who are not explained, and there are none; "
                "explain fewer ('protocol.users') or use baseline: empty"
            )
        drawn = context.generator("spinrec", user).choice(others, self.config.samples)
        profiles: FloatArray = context.training[drawn].toarray().astype(np.float64)
        return profiles

    def _mean_gradients(
        self, profile: FloatArray, starts: FloatArray, wanted: IntArray, context: Context, link: Link
    ) -> list[FloatArray]:
        """(M, items) for each unit of one user, whose items are ``wanted`` (U, T): the mean gradient along each path.

        All points of all paths are one batch, whose shape does not depend on how the units were divided.
        """
        import torch

        steps = self.config.steps
        shares = (np.arange(1, steps + 1) / steps)[:, None]
        points = starts[:, None] + shares * (profile - starts)[:, None]
        inputs = torch.as_tensor(points.reshape(-1, points.shape[-1])).requires_grad_()
        outputs = _linked(context.profile_gradients.score_dense(inputs), link)
        found = []
        for items in wanted:
            value = outputs[:, torch.as_tensor(items)].sum() / len(items)
            (gradient,) = torch.autograd.grad(value, inputs, retain_graph=True)
            found.append(gradient.cpu().numpy().reshape(points.shape).mean(axis=1))
        return found


def _linked(scores: torch.Tensor, link: Link) -> torch.Tensor:
    """f(x) (P, items) from the scores."""
    if link == "identity":
        return scores
    return scores.sigmoid() if link == "sigmoid" else scores.softmax(dim=1)


def _deletion_curves(candidates: FloatArray, targets: Targets, context: Context) -> FloatArray:
    """(M, B) the mean of f_y over the removals, for each candidate."""
    paths, units = candidates.shape[:2]
    repeated = targets.take(np.tile(np.arange(units), paths))
    observed = ImplicitObservations(
        context.model, repeated, candidates.reshape(paths * units, -1), context.interactions
    )
    linked = observed.scores_without_most_important(REMOVAL_STEPS)
    means = mean_over_targets(values(linked, observed.link)).mean(axis=1)
    return rounded(means.reshape(paths, units))
