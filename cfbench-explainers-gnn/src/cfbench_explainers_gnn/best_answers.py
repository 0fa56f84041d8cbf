"""The best counterfactuals that a method has found: hard choices, tested on the edited graph.

Of each unit it is the one that displaces most items, then the one with the fewest edits; sets with more edits than
``targets.max_edits`` are no answers. A unit rests when its
answer cannot get better (all items displaced by one edit), or has not got better for some steps.
"""

from __future__ import annotations

import numpy as np

from cfbench_explainers_gnn.blocks import Block
from cfbench_recsys.edits import BoolArray, IntArray
from cfbench_recsys.targets import Answer


class BestAnswers:
    """Of a block's units, and what they cost.

    Attributes:
        block: all the units.
        chosen: (E,) the edits of the best answers.
        wanted: (B,) items that should leave.
        displaced: (B,) items that the best answer displaces, 0 where there is none.
        size: (B,) its edits.
        improved_at: (B,) the step at which it was found.
        queries: (B,) model queries for the unit.
        inside: (B, T) the items that the edits tested last leave in the list.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        count = len(block)
        self.chosen: BoolArray = np.zeros(len(block.possible.rows), dtype=bool)
        self.displaced = np.zeros(count, dtype=np.int64)
        self.size = np.full(count, np.iinfo(np.int64).max)
        self.improved_at = np.zeros(count, dtype=np.int64)
        self.queries = np.zeros(count)
        self._tested: BoolArray = np.zeros(len(block.possible.rows), dtype=bool)
        self.inside: BoolArray = block.targets.items >= 0
        self.wanted = np.count_nonzero(block.targets.items >= 0, axis=1)

    def test(self, part: Block, chosen: BoolArray, step: int) -> IntArray:
        """Queries the real model with ``chosen`` (E of ``part``) and stores what is better.

        Only units whose choice differs from the one tested last are queried.

        Returns:
            (units of ``part``,) items displaced; -1 where the model was not queried.
        """
        changed = np.zeros(len(part), dtype=bool)
        changed[part.possible.rows[chosen != self._tested[part.edges]]] = True
        self._tested[part.edges] = chosen
        units = np.flatnonzero(changed)
        found = np.full(len(part), -1, dtype=np.int64)
        if len(units):
            edits = part.possible.where(chosen).choose(units)
            outside = part.outside(edits, units)
            found[units] = outside.sum(axis=1)
            self.inside[part.units[units]] = ~outside & (part.targets.items[units] >= 0)
            self.queries[part.units[units]] += 1
            self.offer(part, chosen, found, step)
        return found

    def offer(self, part: Block, chosen: BoolArray, displaced: IntArray, step: int) -> None:
        """Stores of ``chosen`` (E of ``part``), seen to displace so many (units of ``part``,), what is better."""
        units, size = part.units, np.bincount(part.possible.rows[chosen], minlength=len(part))
        better = (displaced > 0) & (size <= part.targets.budget)
        better &= (displaced > self.displaced[units]) | (
            (displaced == self.displaced[units]) & (size < self.size[units])
        )
        which = units[better]
        self.displaced[which], self.size[which] = displaced[better], size[better]
        self.improved_at[which] = step
        of_better = better[part.possible.rows]
        self.chosen[part.edges[of_better]] = chosen[of_better]

    def could_be_better(self, size: int = 1) -> BoolArray:
        """(B,) whether ``size`` edits might make a better answer than the best so far."""
        better: BoolArray = (self.displaced < self.wanted) | (self.size > size)
        return better

    def finished(self) -> BoolArray:
        """(B,) units whose answer cannot get better, or that have nothing to edit."""
        finished: BoolArray = ~self.could_be_better() | (self.block.possible.counts() == 0)
        return finished

    def resting(self, step: int, patience: int) -> BoolArray:
        """(B,) units that are finished, or have an answer that did not get better for a while."""
        return self.finished() | ((self.displaced > 0) & (step - self.improved_at >= patience))

    def answer(self) -> Answer:
        """The best edits; the detail ``queries``."""
        return Answer(self.block.possible.where(self.chosen), {"queries": self.queries})
