"""Gradient greedy: again and again the edit that the exact gradient says lowers the margin most.

With m_e in [0, 1] how far edit e of the scope is made and margin(i) = s_i - (the K-th best other candidate's score),
each step makes the edit e (not yet made) with the most negative

    d/dm_e of sum over i in T of max(0, margin(i)),    at the graph as edited so far,

degrees included, asks the real model whether the target has left, and computes the gradient anew. It ends when all
targets have left, after ``max_edits`` edits, or when the gradient says that no edit helps. The answer is the shortest
prefix that displaces the most items; ties go to the lower user, then the lower item; none: no answer.

Ours; there is no paper. A bound for every method that follows gradients: it follows the exact one at a real graph,
never at a mixture of graphs. It is not the smallest: a gradient is what an infinitely small part of an edit does.
Where the protocol lets edges be added, these are among the edits (see ``possible_edits.py``).
Cost: in each step one evaluation with its gradient and one without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.mask_search import Block, Search, SearchConfig, in_blocks
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.targets import Answer, Context, Targets


@dataclass(frozen=True, kw_only=True)
class Config(SearchConfig, AdditionsConfig):
    max_edits: Annotated[int, Range(minimum=1), Help("after which the search gives up")] = 20


class GradientGreedy:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """One edit for each target; without edges where none was found."""
        return in_blocks(targets, context, self.config, self._explain, self.config)

    def _explain(self, block: Block) -> Answer:
        search = Search(block)
        part = block.take(np.flatnonzero(~search.finished()))
        made = np.zeros(len(part.possible.rows), dtype=bool)
        for step in range(self.config.max_edits):
            if not len(part):
                break
            slope = _slope(part, made)
            search.evaluations[part.units] += 1
            slope[made] = np.inf
            units, edges = _least(slope, part.possible.rows, len(part))
            helps = slope[edges] < 0
            made[edges[helps]] = True
            displaced = search.test(part, made, step)
            wanted = np.count_nonzero(part.targets.items >= 0, axis=1)
            goes_on = np.zeros(len(part), dtype=bool)
            goes_on[units[helps]] = True
            goes_on &= displaced < wanted
            if not goes_on.all():
                made = made[goes_on[part.possible.rows]]
                part = part.take(np.flatnonzero(goes_on))
        return search.answer()


def _slope(block: Block, made: BoolArray) -> FloatArray:
    """(E,) derivative of the margins that are left, in each edit, in units of each unit's steepest one."""
    import torch

    m = torch.from_numpy(made.astype(np.float64)).requires_grad_()
    left = torch.relu(block.margins(m) + SLACK).sum(dim=1)
    slope: FloatArray = block.gradient(left, m).numpy()
    return slope


SLACK = 1e-9
"""An item whose score ties with the K-th best other candidate's may still be in the list."""


def _least(values: FloatArray, rows: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Units (of ``count``) that have any value, and where each has its smallest, the first of equal ones."""
    order = np.lexsort((values, rows))
    first = np.searchsorted(rows[order], np.arange(count))
    units = np.flatnonzero(np.bincount(rows, minlength=count))
    return units, order[first[units]]
