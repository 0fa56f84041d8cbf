"""One gradient: sort all edits by one exact gradient at the untouched graph, and make the first few.

With m_e in [0, 1] how far edit e of the scope is made and margin(i) = s_i - (the K-th best other candidate's score), the
edits are sorted by

    d/dm_e of sum over i in T of max(0, margin(i)),    at the untouched graph, degrees included,

the most negative first; ties go to the lower user, then the lower item. The answer is the shortest prefix of this order
that displaces the most items on the real model, among the edits with a negative derivative and up to the protocol's
number of edits (of more than 256, prefixes that grow by a twentieth); none: no answer.

Not published elsewhere. The baseline for every method that follows gradients for many steps: an explainer whose answers
are those of this one gains nothing by its further steps. It can be smaller than gradient-greedy's answer, which takes
the gradient anew after each edit.
Cost: one evaluation with its gradient, and one query for each prefix that is tested.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.descent import try_prefixes
from cfbench_explainers_gnn.gradient_greedy import margins_and_slopes
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/one-gradient",
    summary="The first edits in the order of one exact gradient, verified on the model",
    target=f"{__name__}:OneGradient",
    config=f"{__name__}:Config",
    version="2",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove", "add"},
    },
    needs={"recommender": {"access": {"gradients"}}},
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config(AdditionsConfig, SearchConfig):
    """The edges that may be added, and what bounds memory."""


class OneGradient:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        best = BestAnswers(block)
        part = block.take(np.flatnonzero(~best.finished()))
        strength = np.full(len(block.possible.rows), -np.inf)
        if len(part):
            _, slope = margins_and_slopes(part, np.zeros(len(part.possible.rows), dtype=bool))
            best.queries[part.units] += 1
            strength[part.edges] = np.where(slope < 0, -slope, -np.inf)
        try_prefixes(best, strength)
        return best.answer()
