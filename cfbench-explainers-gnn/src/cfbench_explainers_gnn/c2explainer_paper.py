"""C2Explainer as published: ``variant: paper`` of ``c2explainer``.

Ma, "C2Explainer: Customizable Mask-based Counterfactual Explanation for Graph Neural Networks", 2025; read from the
author's code (github.com/kano5266/C2Explainer, commit 86f3e8c), which is followed where it differs from the paper.

Two parameters for each edge that may be removed or added, one for each direction, drawn uniformly from [-1, 1] at the
start. With q_e, the mean of their sigmoids, the edge is in the graph if q_e > 0.5: of the edges in scope about one half
is removed at the start, and of those that may be added one half is there. The gradient in this decision is taken for that
in q_e (straight-through estimator). With the probability sigmoid(m_i) that item i is in the list (see ``paper_loops.py``),
the loss of a unit with targets T is

    L = - 1/|T| sum over i in T of log(1 - sigmoid(m_i))  +  beta * sum over edges and directions of |sigmoid(p) - o_e|

the cross entropy of the class that comes next, and the distance of the *soft* masks from the graph: o_e = 1 for an edge
in scope, 0 for one that may be added. 1000 steps of Adam with learning rate 0.1, beta 1. The edits are tested on the
real model after each step; the answer is the first with the fewest edits among those that flip the prediction, at
list level those that displace most items.

Adaptations to recommendation, in addition to those of ``paper_loops.py``: additions are the bounded set of
``possible_edits.py`` in place of all pairs of nodes near the target.

Agreement with the authors' loop: ``benchmarks/authors_graph_masks.py`` runs their class on the same recommender. LightGCN
with three layers, Amazon Fashion, k-hop 3, first item of the lists of 20 users: from the same start the same set of
edges for 20 of 20 (PN-S 0.25, 83 edges), from another start for 12 of 20 (PN-S 0.30). On small dense graphs a literal
loop gives the same sets (``test_paper_loops.py``).

Cost: an evaluation with its gradient in each of 1000 steps, and one for each new set of edits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.paper_loops import drawn, mean_over_items
from cfbench_recsys.edits import REMOVE, BoolArray


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the author's code."""

    steps: Annotated[int, Range(minimum=1), Help("of Adam")] = 1000
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.1
    beta: Annotated[float, Range(minimum=0), Help("weight of the distance from the graph")] = 1.0


class PaperC2Explainer:
    """See :class:`cfbench_explainers_gnn.paper_loops.PaperMethod`."""

    queries = 1

    def __init__(self, options: PaperOptions) -> None:
        self.options = options
        self.steps = options.steps

    def start(self, block: Block) -> Any:
        return 2 * drawn(block, "c2explainer", lambda stream, shape: stream.random(shape)) - 1

    def optimiser(self, block: Block, p: Any) -> Any:
        import torch

        return torch.optim.Adam([p], lr=self.options.learning_rate)

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        import torch

        weights, before = torch.sigmoid(p), self._before(block)
        soft = (weights.mean(dim=0) - before).abs()
        made = self.chosen(block, p.detach()).to(p.dtype) + (soft - soft.detach())
        left = torch.nn.functional.softplus(block.margins(made))
        distance = block.sums((weights - before).abs().sum(dim=0))
        return mean_over_items(block, left) + self.options.beta * distance

    def chosen(self, block: Block, p: Any) -> Any:
        import torch

        there = torch.sigmoid(p).mean(dim=0) > 0.5
        return there != (self._before(block) > 0)

    def tested(self, step: int) -> bool:
        return step > 0

    def finished(self, inside: BoolArray) -> BoolArray:
        return np.zeros(len(inside), dtype=np.bool_)

    def _before(self, block: Block) -> Any:
        """(E,) 1 for edges that there are, 0 for those that may be added."""
        import torch

        return torch.as_tensor((block.possible.ops == REMOVE).astype(np.float64))
