"""Smallest: the smallest counterfactual there is, proven, for recommenders with a linear logit.

The item leaves the top K when K rivals are ahead of it. For a logit that is linear in the profile this is a
matter of sums of W[i, y] - W[i, r] over the removed interactions, and the smallest set is found by bounds from
both sides, and between them a search in depth, then an integer programme: see ``smallest_sets``. What is proven
is reported with the answer,

    none_up_to: no set of at most so many removals puts the item out of the list,

so an answer with ``none_up_to`` + 1 edits is the smallest, and no answer with ``none_up_to`` = |I_u| means that
the item stays whatever is removed. Where the search runs out of its budget, the answer is the smallest found.

Not published elsewhere. A lower bound on the size for every explainer that only removes, at item level (several
items that are to leave together have no such order of sums). Needs ``access: weights`` for linearity; the weights
themselves are read off single removals, one batch of scores for all items, which is exact to rounding and faster
than looking them up. Cost: |I_u| + 1 model queries for each user, however many items are explained, then
arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.linear_sums import Recommender, sums_of_units
from cfbench_explainers_native.shared import certificate
from cfbench_explainers_native.smallest_sets import smallest_set
from cfbench_recsys.edits import Edits
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/smallest",
    summary="The smallest counterfactual of any size, proven, where the logit is linear",
    target=f"{__name__}:Smallest",
    config=f"{__name__}:Config",
    provides={"format": {"explicit"}, "level": {"item"}, "scope": {"user-vector"}, "edit": {"remove"}},
    needs={"recommender": {"access": {"scores", "weights"}}},
    version="2",
    role="certified",
    certificate="no set of at most 'none_up_to' removals from the user's profile puts the item out of the top K; "
    "where the detail 'proven' is 1, the answer is the smallest, or there is none",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    budget: Annotated[int, Range(minimum=0), Help("partial sets tested for one explanation")] = 300_000
    nodes: Annotated[
        int, Range(minimum=0), Help("of the integer programme that continues where these do not suffice")
    ] = 20_000
    width: Annotated[int, Range(minimum=1), Help("of the beam that searches for an initial answer")] = 8


class Smallest:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits, with the size up to which there is none, and how many partial sets were tested."""
        removed = np.zeros(targets.history.shape, dtype=np.bool_)
        none_up_to, sets = np.zeros((2, len(targets)), dtype=np.int64)
        for unit, _, sums in sums_of_units(targets, context):
            recommender = Recommender(targets, unit, context)
            found, none_up_to[unit] = smallest_set(
                sums,
                recommender,
                largest=min(targets.history.shape[1], targets.budget),
                budget=self.config.budget,
                width=self.config.width,
                nodes=self.config.nodes,
            )
            sets[unit] = recommender.sets
            if found is not None and len(found) <= targets.budget:
                removed[unit, found] = True
        sizes = removed.sum(axis=1)
        edits = Edits.removals(targets.users, targets.history, removed)
        proof = certificate((sizes > 0) & (sizes == none_up_to + 1), none_up_to, targets)
        return Answer(edits, {**proof, "sets": sets.astype(np.float64)})
