"""Random edges: edges of the scope in random order, until the target has left the list.

The answer is the shortest prefix of a random order that displaces the most target items, of at most as many edits as the
protocol allows; each prefix is tested on the real model (of more than 256 edits, prefixes that grow by a twentieth). If
none displaces any, there is no counterfactual.

Not published elsewhere. The baseline for explanations on a graph: what chance achieves with this number of tries in
this scope. Where the protocol lets edges be added, these are drawn too (see ``possible_edits.py``).
Cost: at most ``protocol.max_edits`` model queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.descent import try_prefixes
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/random-edges",
    summary="Random edges of the scope until the target leaves the list",
    target=f"{__name__}:RandomEdges",
    config=f"{__name__}:Config",
    version="2",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove", "add"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="baseline",
)


@dataclass(frozen=True, kw_only=True)
class Config(AdditionsConfig, SearchConfig):
    """The edges that may be added, and what bounds memory."""


class RandomEdges:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        best = BestAnswers(block)
        starts = np.searchsorted(block.possible.rows, np.arange(len(block)))
        strength = np.empty(len(block.possible.rows))  # the first in the random order is the strongest
        for unit, size in enumerate(block.possible.counts()):
            drawn = block.generator(unit, "random-edges").permutation(size)
            strength[starts[unit] + drawn] = -np.arange(size)
        try_prefixes(best, strength)
        return best.answer()
