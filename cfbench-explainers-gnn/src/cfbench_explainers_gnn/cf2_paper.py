"""CF2 as published: ``variant: paper`` of ``cf2``.

Tan et al., "Learning and Evaluating Graph Neural Network Explanations based on Counterfactual and Factual Reasoning",
WWW 2022; read from the authors' code (github.com/chrisjtan/gnn_cff, commit 9020e74), which is followed where it differs
from the paper.

Two parameters for each edge e in scope, one for each direction; the mask M_e is the mean of their sigmoids. At the
start they are drawn from a normal distribution with mean 1 and standard deviation sqrt(2 / n), n being the number of
nodes that edges in scope join. With the probability sigmoid(m_i) that item i is in the list (see ``paper_loops.py``), the
loss of a unit with targets T is

    L = 2 sum over e of M_e  +  lambda * (alpha L_f + (1 - alpha) L_c)
    L_f = 1/|T| sum over i in T of max(0, gamma + 1/2 - sigmoid(m_i)), the edges of weight M_e      (factual)
    L_c = 1/|T| sum over i in T of max(0, gamma + sigmoid(m_i) - 1/2), of weight 1 - M_e            (counterfactual)

(the 2: both directions of an edge count in the norm). 500 steps of Adam with learning rate 0.05. The explanation is
{e : M_e > 0.5} after the last step; it is the answer if its removal displaces an item on the real model and it has no
more edges than the protocol allows. There is no test on the way, and none of smaller sets.

Loss and hyperparameters are those of the authors' graph classification (Mutagenicity), the case of two classes:
gamma 0.5, lambda 1000, alpha 0.6. With this gamma both hinges are active as long as probabilities are not 0 or 1.

Adaptations to recommendation, in addition to those of ``paper_loops.py``: for the factual part the edges in scope have
weight M_e and the others 1. CFExpRec (sec. 3.4.2) uses the counterfactual part alone, ``alpha: 0``. Edges only:
recommenders on a graph of ids have no features to mask.

Agreement with the authors' loop: ``benchmarks/authors_graph_masks.py`` runs their classes on the same recommender. From the
same start, on LightGCN with three layers and Amazon Fashion, k-hop 3, first item of the lists of 20 users: the same set of
edges for 20 of 20 (PN-S 1.00, 20 edges).

Cost: two evaluations with their gradients in each of 500 steps, and one for the explanation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.blocks import Block
from cfbench_explainers_gnn.paper_loops import drawn, mean_over_items
from cfbench_recsys.edits import BoolArray, IntArray


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    steps: Annotated[int, Range(minimum=1), Help("of Adam")] = 500
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.05
    strength: Annotated[float, Range(minimum=0), Help("lambda, weight of the two hinges")] = 1000.0
    alpha: Annotated[float, Range(minimum=0, maximum=1), Help("share of the factual part; CFExpRec: 0")] = 0.6
    gamma: Annotated[float, Range(minimum=0), Help("margin of the hinges, as a probability")] = 0.5
    threshold: Annotated[
        float, Range(minimum=0, maximum=1), Help("of the mask, above which an edge is removed")
    ] = 0.5


class PaperCF2:
    """See :class:`cfbench_explainers_gnn.paper_loops.PaperMethod`."""

    def __init__(self, options: PaperOptions) -> None:
        self.options = options
        self.steps = options.steps
        self.queries = 1 if options.alpha in (0.0, 1.0) else 2

    def start(self, block: Block) -> Any:
        import torch

        deviations = torch.as_tensor(np.sqrt(2.0 / _nodes(block)))[block.rows]
        return 1.0 + deviations * drawn(block, "cf2", lambda stream, shape: stream.standard_normal(shape))

    def optimiser(self, block: Block, p: Any) -> Any:
        import torch

        return torch.optim.Adam([p], lr=self.options.learning_rate)

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        import torch

        options, mask = self.options, _mask(p)
        loss = 2 * block.sums(mask)
        if options.alpha > 0:
            upheld = torch.sigmoid(block.margins(1 - mask))
            factual = mean_over_items(block, torch.relu(options.gamma + 0.5 - upheld))
            loss = loss + options.strength * options.alpha * factual
        if options.alpha < 1:
            left = torch.sigmoid(block.margins(mask))
            flipped = mean_over_items(block, torch.relu(options.gamma + left - 0.5))
            loss = loss + options.strength * (1 - options.alpha) * flipped
        return loss

    def chosen(self, block: Block, p: Any) -> Any:
        return _mask(p) > self.options.threshold

    def tested(self, step: int) -> bool:
        return step == self.steps

    def finished(self, inside: BoolArray) -> BoolArray:
        return np.zeros(len(inside), dtype=np.bool_)


def _nodes(block: Block) -> IntArray:
    """(B,) how many users and items the possible edits of each unit join."""
    possible, count = block.possible, np.zeros(len(block), dtype=np.int64)
    for nodes in (possible.edge_users, possible.edge_items):
        units, _ = np.unique(np.stack([possible.rows, nodes]), axis=1)
        count += np.bincount(units, minlength=len(block))
    return count


def _mask(p: Any) -> Any:
    """(E,)"""
    import torch

    return torch.sigmoid(p).mean(dim=0)
