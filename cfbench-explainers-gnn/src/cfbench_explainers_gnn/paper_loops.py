"""The loop that the published CF-GNNExplainer, CF2 and C2Explainer have in common: an optimiser of PyTorch on one unit.

A method gives the parameters at the start, the optimiser, a loss, and the edits that parameters stand for. The loop
takes the steps of the optimiser, on each unit alone: its random numbers are those of a stream of its own, so the answer
does not depend on the batch. Which edits are tested on the real model, those of each step or those of the last one,
is the method's choice, as in its authors' code. Of the tested ones the answer is the first that displaces most items with
the fewest edits, and no more of them than the protocol allows.

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

from typing import Any, Protocol

import numpy as np

from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_recsys.edits import Edits
from cfbench_recsys.targets import Answer, Context, Targets


class PaperMethod(Protocol):
    """What a method brings along; E is the number of possible edits of the unit."""

    queries: int
    """Model queries of ``loss``."""
    steps: int
    """Of the optimiser."""

    def start(self, block: Block) -> Any:
        """(..., E) parameters at the start, float64."""

    def optimiser(self, p: Any) -> Any:
        """The optimiser of the parameters."""

    def loss(self, block: Block, p: Any, inside: Any) -> Any:
        """() tensor, differentiable in ``p``. ``inside`` (T,): the items in the list under the edits tested last."""

    def chosen(self, block: Block, p: Any) -> Any:
        """(E,) boolean tensor: the edits that the parameters stand for."""

    def tested(self, step: int) -> bool:
        """Whether the edits are tested after ``step`` steps."""

    def finished(self, inside: Any) -> bool:
        """Whether all further steps would change nothing."""


def paper_answers(targets: Targets, context: Context, config: SearchConfig, method: PaperMethod) -> Answer:
    """What the published loop answers, unit by unit."""
    return in_blocks(targets, context, config, lambda block: _unit_by_unit(block, method))


def _unit_by_unit(block: Block, method: PaperMethod) -> Answer:
    found = []
    for unit in range(len(block)):
        possible = block.possible.take(unit, unit + 1)
        found.append(
            optimised(Block(block.targets.take(slice(unit, unit + 1)), possible, block.context), method)
        )
    if not found:
        return Answer(Edits.nothing(block.targets.users), {"queries": np.empty(0)})
    queries = np.concatenate([answer.details["queries"] for answer in found])
    return Answer(Edits.concatenate([answer.edits for answer in found]), {"queries": queries})


def optimised(block: Block, method: PaperMethod) -> Answer:
    """The answer for a block of one unit."""
    import torch

    best = BestAnswers(block)
    if not len(block.possible.rows):
        return best.answer()
    p = method.start(block).requires_grad_()
    optimiser = method.optimiser(p)
    for step in range(method.steps + 1):
        if method.tested(step):
            best.test(block, method.chosen(block, p.detach()).numpy(), step)
        inside = torch.from_numpy(best.inside[0])
        if step == method.steps or method.finished(inside):
            break
        optimiser.zero_grad()
        method.loss(block, p, inside).backward()
        optimiser.step()
        best.queries += method.queries
    return best.answer()


def mean_over_items(block: Block, values: Any, counted: Any | None = None) -> Any:
    """() the mean of ``values`` (T,) over the unit's items, those that are not ``counted`` (T,) as 0."""
    import torch

    real = torch.from_numpy(block.targets.items[0] >= 0)
    included = real if counted is None else real & counted
    return torch.where(included, values, 0.0).sum() / real.sum()
