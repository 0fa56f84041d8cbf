"""CF-GNNExplainer as published: ``variant: paper`` of ``cf-gnnexplainer``.

Lucic et al., "CF-GNNExplainer: Counterfactual Explanations for Graph Neural Networks", AISTATS 2022; read from the authors'
code (github.com/a-lucic/cf-gnnexplainer, commit cce5b2d), which is followed where it differs from the paper.

A parameter p_e for each edge e in scope, 1 at the start; the edge has weight sigmoid(p_e) while learning, and is removed
in the answer where sigmoid(p_e) < 0.5. With pi_i, the share of item i in a softmax of the scores of all candidates under
these weights, the loss of a unit with targets T is

    L = 1/|T| sum over i in T of 1[i in the top K under the hard mask] * log pi_i

which is the paper's (equation 5) without the distance: beta times the number of removed edges is in the value of the
authors' loss, but not in its gradient, because it is computed from the hard mask. Nor does its weight matter where the
examples that flip the prediction are compared by that value. Steps are those of stochastic gradient descent with
learning rate 0.1 (momentum, where it is set, is Nesterov's), after the gradient has been cut to a norm of at most 2;
500 steps. The hard mask is tested on the real model before each step. The answer is the first with the fewest removed
edges among those that flip the prediction, at list level those that displace most items.

Without momentum the first hard mask that displaces all items is also the last, since the gradient is 0 from there on: the
loop ends.

Adaptations to recommendation, in addition to those of ``paper_loops.py``:
- The classes of the likelihood are the candidates; the class counts as predicted while the item is in the top K. (With
  the two classes "in the list" and "not in it" the likelihood is close to 1 for the first places of a list, and its
  gradient so small that 500 steps do not remove an edge.)
- Item by item the prediction loss counts until the item has left.
- The authors treat the degrees as constants in the gradient. They belong to the recommender here, and so does their
  gradient.
- Of their three settings this is that of two (Tree-Cycles and Tree-Grid); for BA-Shapes they set ``learning_rate: 0.01`` and
  ``momentum: 0.9``.

Agreement with the authors' loop: ``benchmarks/authors_graph_masks.py`` runs their classes on the same recommender.
LightGCN with three layers, Amazon Fashion, k-hop 3, first item of the lists of 20 users: the same set of edges for 20 of
20 (PN-S 0.95, 4.8 edges). On small dense graphs a literal loop gives the same sets (``test_paper_loops.py``).

Cost: an evaluation with its gradient in each of at most 500 steps, and one for each new hard mask.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.paper_loops import mean_over_items
from cfbench_recsys.edits import BoolArray


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    steps: Annotated[int, Range(minimum=1), Help("of gradient descent")] = 500
    learning_rate: Annotated[float, Range(above=0), Help("of gradient descent")] = 0.1
    momentum: Annotated[float, Range(minimum=0, below=1), Help("of Nesterov; 0: none")] = 0.0
    clip: Annotated[float, Range(above=0), Help("maximum norm of a unit's gradient")] = 2.0
    start: Annotated[float, Help("value of every parameter at the start")] = 1.0


class PaperCFGNNExplainer:
    """See :class:`cfbench_explainers_gnn.paper_loops.PaperMethod`."""

    queries = 1

    def __init__(self, options: PaperOptions) -> None:
        self.options = options
        self.steps = options.steps

    def start(self, block: Block) -> Any:
        import torch

        return torch.full((len(block.rows),), self.options.start, dtype=torch.float64)

    def optimiser(self, block: Block, p: Any) -> Any:
        import torch

        options = self.options
        p.register_hook(lambda gradient: _clipped(gradient, block, options.clip))
        nesterov = options.momentum > 0
        return torch.optim.SGD([p], lr=options.learning_rate, momentum=options.momentum, nesterov=nesterov)

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        import torch

        return mean_over_items(block, block.log_shares(1 - torch.sigmoid(p)), inside)

    def chosen(self, block: Block, p: Any) -> Any:
        return p < 0

    def tested(self, step: int) -> bool:
        return step < self.steps  # the mask after the last step is not looked at

    def finished(self, inside: BoolArray) -> BoolArray:
        if self.options.momentum > 0:
            return np.zeros(len(inside), dtype=np.bool_)
        return np.logical_not(inside.any(axis=1))


def _clipped(gradient: Any, block: Block, norm: float) -> Any:
    """(E,) each unit's gradient as ``torch.nn.utils.clip_grad_norm_`` cuts it."""
    norms = block.sums(gradient**2).sqrt()
    return gradient * (norm / (norms + 1e-6)).clamp(max=1.0)[block.rows]
