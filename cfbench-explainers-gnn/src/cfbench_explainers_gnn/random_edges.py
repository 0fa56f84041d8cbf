"""Random edges: edges of the scope in random order, until the target has left the list.

The answer is the shortest prefix of a random order that displaces the most target items, of at most ``max_edits``
edits; each prefix is tested on the real model. If none displaces any, there is no counterfactual.

Not published elsewhere. The baseline for explanations on a graph: what chance achieves with this number of tries in
this scope. Where the protocol lets edges be added, these are drawn too (see ``possible_edits.py``).
Cost: at most ``max_edits`` model queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/random-edges",
    summary="Random edges of the scope until the target leaves the list",
    target=f"{__name__}:RandomEdges",
    config=f"{__name__}:Config",
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
    max_edits: Annotated[int, Range(minimum=1), Help("after which the search ends")] = 20


class RandomEdges:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        best = BestAnswers(block)
        starts = np.searchsorted(block.possible.rows, np.arange(len(block)))
        places = np.full(len(block.possible.rows), self.config.max_edits)  # in the random order
        for unit, size in enumerate(block.possible.counts()):
            drawn = block.generator(unit, "random-edges").permutation(size)[: self.config.max_edits]
            places[starts[unit] + drawn] = np.arange(len(drawn))
        part = block
        for length in range(1, self.config.max_edits + 1):
            displaced = best.test(part, places[part.edges] < length, length)
            goes_on = (displaced >= 0) & (displaced < best.wanted[part.units])  # -1: it has no more edges
            if not goes_on.any():
                break
            part = part.take(np.flatnonzero(goes_on))
        return best.answer()
