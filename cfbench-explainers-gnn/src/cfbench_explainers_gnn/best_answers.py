"""The best counterfactuals that a method has found: hard choices, tested on the edited graph.

Of each unit it is the one that displaces most items, then the one with the fewest edits; sets with more edits than
``targets.max_edits`` are no answers. A unit rests when its
answer cannot get better (all items displaced by one edit), or has not got better for some steps.
"""

from __future__ import annotations

import numpy as np

from cfbench_explainers_gnn.blocks import Block
from cfbench_recsys.edits import BoolArray, Edits, IntArray
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
        self._must_test: BoolArray = np.zeros(count, dtype=bool)
        self.inside: BoolArray = block.targets.items >= 0
        self.wanted = np.count_nonzero(block.targets.items >= 0, axis=1)

    def test(self, part: Block, chosen: BoolArray, step: int) -> IntArray:
        """Queries the real model with ``chosen`` (E of ``part``) and stores what is better.

        Only units whose choice differs from the one tested last are queried.

        Returns:
            (units of ``part``,) items displaced; -1 where the model was not queried.
        """
        units = self._changed(part, chosen)
        found = np.full(len(part), -1, dtype=np.int64)
        if len(units):
            edits = part.possible.where(chosen).choose(units)
            outside = part.outside(edits, units)
            found[units] = outside.sum(axis=1)
            self.inside[part.units[units]] = ~outside & (part.targets.items[units] >= 0)
            self.queries[part.units[units]] += 1
            self.offer(part, chosen, found, step)
        return found

    def test_in_turn(self, part: Block, choices: list[BoolArray]) -> None:
        """Queries the real model with ``choices`` (E of ``part``, each a larger set) of one unit, all at once.

        Stored is what :meth:`test` would store for one after the other, until an answer is met that the next could not
        better.
        """
        choices = [chosen for chosen in choices if len(self._changed(part, chosen))]
        if not choices:
            return
        edits = Edits.concatenate([part.possible.where(chosen) for chosen in choices])
        outside = part.outside(edits, np.zeros(len(choices), dtype=np.int64))
        self.queries[part.units] += len(choices)
        for chosen, found in zip(choices, outside, strict=True):
            if not self.could_be_better(int(chosen.sum()))[part.units].all():
                self._must_test[part.units] = True  # nothing was stored of what was scored last
                break
            self.inside[part.units] = ~found & (part.targets.items >= 0)
            self.offer(part, chosen, found.sum(keepdims=True), 0)

    def _changed(self, part: Block, chosen: BoolArray) -> IntArray:
        """Units of ``part`` whose choice differs from the one tested last, which it becomes."""
        changed = self._must_test[part.units].copy()
        changed[part.possible.rows[chosen != self._tested[part.edges]]] = True
        self._tested[part.edges], self._must_test[part.units] = chosen, False
        return np.flatnonzero(changed)

    def restricted(self, edges: BoolArray) -> Block:
        """The block with those of its possible edits alone that ``edges`` (E,) marks; the next tests must be of it."""
        rows = self.block.possible.rows
        self._must_test[rows[self._tested & ~edges]] = True
        self._tested &= edges
        return Block(
            self.block.targets,
            self.block.possible.where(edges),
            self.block.context,
            self.block.units,
            self.block.edges[edges],
        )

    def offer(self, part: Block, chosen: BoolArray, displaced: IntArray, step: int) -> None:
        """Stores of ``chosen`` (E of ``part``), seen to displace so many (units of ``part``,), what is better."""
        units, size = part.units, np.bincount(part.possible.rows[chosen], minlength=len(part))
        better = (displaced > 0) & (size <= part.targets.budget)
        better &= (displaced > self.displaced[units]) | (
            (displaced == self.displaced[units]) & (size < self.size[units])
        )
        if not better.any():
            return
        which = units[better]
        self.displaced[which], self.size[which] = displaced[better], size[better]
        self.improved_at[which] = step
        replaced = np.zeros(len(self.block), dtype=bool)
        replaced[which] = True
        # All of a unit's edits, of which the part may hold only some.
        self.chosen[replaced[self.block.possible.rows]] = False
        self.chosen[part.edges[better[part.possible.rows] & chosen]] = True

    def could_be_better(self, size: int | IntArray = 1) -> BoolArray:
        """(B,) whether ``size`` edits, a number or (B,), might make a better answer than the best so far."""
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
