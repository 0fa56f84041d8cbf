"""Blocks: units that are processed together, and margins under fractional edits.

Every method chooses among the same *possible edits* of a unit: the edges in its scope, to be removed, and, where
the protocol lets edges be added, a bounded set of additions (see ``possible_edits.py``). Each has a number in
[0, 1] while a method optimises, the fraction of the edit: 0 leaves the edge as it is, 1 removes (adds) it. So there
is one parameter for each edge in scope, and the graph's normalisation and its gradient follow these numbers.

The margin of item i is s_i - (the score of the K-th best other candidate), seen items being no candidates: i
has left the top K when it is negative.

Numbers do not depend on the batch, bit by bit: each unit has its own parameters and columns, and what is computed for
several units together adds in an order that no other unit changes (``cfbench_recsys/batch_products.py``). Gradients are
given in units of each unit's largest component (scores of recommenders differ in scale by orders of magnitude), on a grid
of 2**-24, so that edges that are equal on paper tie.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_edits
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.graph_edits import MANY_EDGES
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.soft_edits import list_margins, per_unit_scale, seen_mask
from cfbench_recsys.targets import Answer, Context, Targets

UNITS_AT_ONCE = 64
CELLS_AT_ONCE = 4_000_000
"""Units of a block times nodes of the graph: what bounds the memory of one layer."""


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """What every method of this kind lets one set."""

    max_batch_edges: Annotated[
        int,
        Range(minimum=1),
        Help("units with more possible edits are processed one at a time, to bound memory"),
    ] = MANY_EDGES


class Block:
    """B units that are processed together, and the E edits that they may make.

    Attributes:
        targets: B units.
        possible: (B edits, E edges) everything that each unit may edit.
        sizes: (B,) number of possible edits, a tensor.
        rows: (E,) to which unit a possible edit belongs, a tensor.
        units: (B,), edges: (E,) where they stand in the block that this one was taken from.
        first_margins: (B, T) margins at the first step of a descent, the unit of the later ones; None before.
    """

    def __init__(
        self,
        targets: Targets,
        possible: Edits,
        context: Context,
        units: IntArray | None = None,
        edges: IntArray | None = None,
    ) -> None:
        import torch

        self.targets, self.possible, self.context = targets, possible, context
        self.units = np.arange(len(targets)) if units is None else units
        self.edges = np.arange(len(possible.rows)) if edges is None else edges
        self.rows = torch.as_tensor(possible.rows)
        self.sizes = torch.bincount(self.rows, minlength=len(targets))
        self.first_margins: Any = None
        self._edge_users = torch.as_tensor(possible.edge_users)
        self._edge_items = torch.as_tensor(possible.edge_items)
        self._signs = torch.as_tensor(possible.ops.astype(np.float64))
        self._users = torch.as_tensor(targets.users)
        self._real = torch.as_tensor(targets.items >= 0)
        self._items = torch.as_tensor(np.maximum(targets.items, 0))
        self._seen = torch.as_tensor(seen_mask(targets, context.interactions.shape[1]))

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, units: IntArray) -> Block:
        """The block of some of its units (ascending), which knows where they stood."""
        if len(units) == len(self):
            return copy(self)  # with the same tensors, whose places in the graph need not be looked up again
        marked = np.zeros(len(self), dtype=bool)
        marked[units] = True
        edges = np.flatnonzero(marked[self.possible.rows])
        part = Block(
            self.targets.take(units),
            self.possible.choose(units),
            self.context,
            self.units[units],
            self.edges[edges],
        )
        if self.first_margins is not None:
            part.first_margins = self.first_margins[units]
        return part

    def scores(self, made: Any) -> Any:
        """(B, items) logits, a tensor, when edit e is made as far as ``made`` (E,) in [0, 1] says."""
        return self.context.graph_gradients.score_weighted(
            self._users, self.rows, self._edge_users, self._edge_items, self._signs * made
        )

    def margins(self, made: Any) -> Any:
        """(B, T) margins under ``made`` (E,), a tensor; a place that holds no item has a very low one."""
        import torch

        margins = list_margins(self.scores(made), self._seen, self._items, self.targets.k)
        return torch.where(self._real, margins, -1e9)

    def log_shares(self, made: Any) -> Any:
        """(B, T) logarithms of the items' shares in a softmax over each user's candidates, under ``made`` (E,)."""
        import torch

        shares = self.scores(made).masked_fill(self._seen, -torch.inf).log_softmax(dim=1)
        return torch.where(self._real, shares.gather(1, self._items), 0.0)

    def relative_hinge(self, margins: Any, slack: float) -> Any:
        """(B,) mean over the T items of max(0, margin + slack), in units of the margins of the first call.

        0 once all items are out of the list by ``slack`` logits. The unit is at least ``slack``.
        """
        import torch

        if self.first_margins is None:
            self.first_margins = margins.detach()
        unit = self.first_margins.abs().clamp(min=max(slack, 1e-12))
        return torch.where(self._real, torch.relu(margins + slack) / unit, 0.0).mean(dim=1)

    def relative_margins(self, margins: Any) -> Any:
        """(B, T) ``margins`` in units of the mean size of a unit's margins in the first call; 0 where there is no item."""
        import torch

        if self.first_margins is None:
            self.first_margins = margins.detach()
        sizes = torch.where(self._real, self.first_margins.abs(), 0.0).sum(dim=1) / self._real.sum(dim=1)
        return torch.where(self._real, margins / sizes.clamp(min=1e-12)[:, None], 0.0)

    def sums(self, values: Any) -> Any:
        """(B,) sums of ``values`` (E,) over each unit's possible edits."""
        return values.new_zeros(len(self)).index_add_(0, self.rows, values)

    def normalised(self, gradient: Any) -> Any:
        """(E,) the gradient in units of each unit's largest component, on the grid."""
        return per_unit_scale(gradient, self.rows, len(self))

    def gradient(self, loss: Any, of: Any) -> Any:
        """(E,) what :meth:`normalised` makes of the gradient of ``loss`` (B,) in ``of`` (E,)."""
        import torch

        (gradient,) = torch.autograd.grad(loss.sum(), of)
        return self.normalised(gradient)

    def noise(self, *names: str | int) -> Any:
        """(E,) standard normal numbers, a tensor; each unit has its own stream, independent of the rest of the batch."""
        import torch

        draws = [
            self.generator(unit, *names).standard_normal(int(self.sizes[unit])) for unit in range(len(self))
        ]
        return torch.as_tensor(np.concatenate(draws) if draws else np.empty(0))

    def generator(self, unit: int, *names: str | int) -> np.random.Generator:
        """The random stream of a unit, by what it is for."""
        items = (int(item) for item in self.targets.items[unit])
        return self.context.generator(*names, int(self.targets.users[unit]), *items)

    def displaced(self, edits: Edits, of: IntArray) -> IntArray:
        """(P,) how many items of unit ``of[p]`` rank beyond K on the graph under edit p: the real model."""
        found: IntArray = self.outside(edits, of).sum(axis=1)
        return found

    def outside(self, edits: Edits, of: IntArray) -> BoolArray:
        """(P, T) which items of unit ``of[p]`` rank beyond K on the graph under edit p: the real model."""
        found = np.zeros((len(edits), self.targets.items.shape[1]), dtype=bool)
        for rows in _slices(len(edits), units_at_once(self.context)):
            block = self.targets.take(of[rows])
            scores = self.context.graph_model.score_edits(edits.take(rows.start, rows.stop))
            ranks = ranks_of(scores, block.items, *block.seen)
            found[rows] = ranks > block.k
        return found


def _slices(count: int, width: int) -> Iterator[slice]:
    for start in range(0, count, width):
        yield slice(start, min(start + width, count))


def units_at_once(context: Context) -> int:
    """How many edited graphs are scored together."""
    nodes = int(sum(context.interactions.shape))
    return max(1, min(UNITS_AT_ONCE, CELLS_AT_ONCE // nodes))


def in_blocks(
    targets: Targets,
    context: Context,
    config: SearchConfig,
    answer: Callable[[Block], Answer],
) -> Answer:
    """What ``answer`` says about each block of units, put together in the order of ``targets``.

    Edges may be added where the protocol allows it and ``config`` says how many.
    """
    additions = config if targets.additions and isinstance(config, AdditionsConfig) else None
    found: dict[int, tuple[Edits, dict[str, float]]] = {}
    for rows in _slices(len(targets), units_at_once(context)):
        some = targets.take(rows)
        possible = possible_edits(some, context, additions)
        for units in _groups(possible, config.max_batch_edges):
            part = answer(Block(some.take(units), possible.choose(units), context))
            for place, unit in enumerate(units):
                numbers = {name: float(values[place]) for name, values in part.details.items()}
                found[rows.start + int(unit)] = (part.edits.take(place, place + 1), numbers)
    parts = [found[unit] for unit in range(len(targets))]
    if not parts:
        return Answer(Edits.nothing(targets.users))
    names = list(parts[0][1])
    details: dict[str, FloatArray] = {n: np.array([numbers[n] for _, numbers in parts]) for n in names}
    return Answer(Edits.concatenate([edits for edits, _ in parts]), details)


def places(strength: FloatArray, edges: Edits) -> IntArray:
    """(E,) the place of each edge among its unit's by descending ``strength`` (E,); of equal ones the first leads."""
    sizes = edges.counts()
    order = np.lexsort((-strength, edges.rows))
    found = np.empty(len(order), dtype=np.int64)
    found[order] = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return found


def _groups(possible: Edits, max_batch_edges: int) -> list[IntArray]:
    """Units that are processed together: those with many possible edits alone."""
    sizes = possible.counts()
    together = np.flatnonzero(sizes <= max_batch_edges)
    alone = [np.array([unit]) for unit in np.flatnonzero(sizes > max_batch_edges)]
    return [together, *alone] if len(together) else alone
