"""The loop that the published CF-GNNExplainer, CF2 and C2Explainer have in common: an optimiser of PyTorch.

A method gives the parameters at the start, the optimiser, a loss, and the edits that parameters stand for. The loop
takes the steps of the optimiser for the units of a block together. Each unit has its own parameters, loss and random
numbers, and the optimisers work on each parameter alone, so the answer does not depend on the batch. Which edits are
tested on the real model, those of each step or those of the last one, is the method's choice, as in its authors' code. Of
the tested ones the answer is the first that displaces most items with the fewest edits, and no more of them than the
protocol allows.

The adaptation to recommendation, which the three have in common: the prediction "item i is in the top K" is the class
that is explained, and it flips when the margin

    m_i = s_i - (the score of the K-th best other candidate)

is no longer positive. What the published losses compute of the probabilities of classes is, where a method compares
two of them, that of the two classes "in the list" and "not in it", with logits s_i and the score of that other
candidate: sigmoid(m_i) is the probability of the first, which is predicted exactly where m_i is positive. With several
items, at list level, the losses are means over them. An edge out of scope stays as it is. The normalisation of the
graph follows the weights of the edges, as the recommender computes it, and so does the gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_recsys.edits import BoolArray, FloatArray
from cfbench_recsys.targets import Answer, Context, Targets


class PaperMethod(Protocol):
    """What a method brings along; B units have E possible edits, all together."""

    queries: int
    """Model queries of ``loss`` for each unit."""
    steps: int
    """Of the optimiser."""

    def start(self, block: Block) -> Any:
        """(..., E) parameters at the start, float64."""

    def optimiser(self, block: Block, p: Any) -> Any:
        """The optimiser of the parameters, which steps on each of them alone."""

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """(B,) tensor, differentiable in ``p``. ``inside`` (B, T): the items in the list under the edits tested last."""

    def chosen(self, block: Block, p: Any) -> Any:
        """(E,) boolean tensor: the edits that the parameters stand for."""

    def tested(self, step: int) -> bool:
        """Whether the edits are tested after ``step`` steps."""

    def finished(self, inside: BoolArray) -> BoolArray:
        """(B,) units for which all further steps would change nothing. Their state of the optimiser is dropped."""


def paper_answers(targets: Targets, context: Context, config: SearchConfig, method: PaperMethod) -> Answer:
    """What the published loop answers."""
    return in_blocks(targets, context, config, lambda block: optimised(block, method))


def optimised(block: Block, method: PaperMethod) -> Answer:
    """The answers for a block of units."""
    import torch

    best = BestAnswers(block)
    part = block.take(np.flatnonzero(block.possible.counts()))
    if not len(part):
        return best.answer()
    p = method.start(part).requires_grad_()
    optimiser = method.optimiser(part, p)
    for step in range(method.steps + 1):
        if method.tested(step):
            best.test(part, method.chosen(part, p.detach()).cpu().numpy(), step)
        finished = method.finished(best.inside[part.units])
        if step == method.steps or finished.all():
            break
        if finished.any():
            p, part = _left(part, p, ~finished)
            optimiser = method.optimiser(part, p)
        optimiser.zero_grad()
        inside = torch.as_tensor(best.inside[part.units])
        method.loss(part, p, inside).sum().backward()
        optimiser.step()
        best.queries[part.units] += method.queries
    return best.answer()


def _left(part: Block, p: Any, units: BoolArray) -> tuple[Any, Block]:
    """The parameters and the block of ``units`` (B,) only."""
    import torch

    edges = torch.as_tensor(units[part.possible.rows])
    return p.detach()[..., edges].requires_grad_(), part.take(np.flatnonzero(units))


def drawn(block: Block, name: str, draw: Callable[[np.random.Generator, tuple[int, int]], FloatArray]) -> Any:
    """(2, E) what ``draw`` takes from each unit's own stream for its edges in both directions, a tensor."""
    import torch

    parts = [
        draw(block.generator(unit, name), (2, int(edges))) for unit, edges in enumerate(block.sizes.tolist())
    ]
    return torch.as_tensor(np.concatenate(parts, axis=1))


def mean_over_items(block: Block, values: Any, counted: Any | None = None) -> Any:
    """(B,) means of ``values`` (B, T) over each unit's items, those that are not ``counted`` (B, T) as 0."""
    import torch

    real = torch.as_tensor(block.targets.items >= 0)
    included = real if counted is None else real & counted
    return torch.where(included, values, 0.0).sum(dim=1) / real.sum(dim=1)
