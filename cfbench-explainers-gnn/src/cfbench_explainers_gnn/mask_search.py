"""What methods share that look for edits of a graph: blocks of units, tests on the real model, gradient descent.

Every method chooses among the same *possible edits* of a unit: the edges in its scope, to be removed, and, where
the protocol lets edges be added, a bounded set of additions (see ``possible_edits.py``). Each has a number in
[0, 1] while a method learns, how far the edit is made: 0 leaves the edge as it is, 1 removes (adds) it. So there
is one parameter for each edge in scope, and the graph's normalisation and its gradient follow these numbers.

- :class:`Block`: units that are looked at together; margins under edits half made, differentiable.
- :class:`Search`: tests hard choices on the really edited graph and keeps the best of each unit: the one that
  displaces most items, then the one with the fewest edits. A unit rests when its answer cannot get better (all
  items displaced by one edit), or has not got better for ``patience`` steps. It counts each unit's evaluations.
- :func:`descend`: steps of gradient descent on what a method makes of these, with restarts. What parameters say
  beyond the hard choice is their order: as an option, its prefixes are tested at the end.
- :func:`in_blocks`: splits units into blocks and puts the answers together.

The margin of item i is s_i - (the score of the K-th best other candidate), seen items being no candidates: i
has left the top K when it is negative.

Numbers do not depend on the batch. Gradients are given in units of each unit's largest component (scores of
recommenders differ in scale by orders of magnitude), rounded to a grid of 2**-24, so that rounding noise, which
depends on the batch, cannot grow over the steps. Units that rest leave the block: what remains gets cheaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_explainers_gnn.possible_edits import AdditionsConfig, possible_edits
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.targets import Answer, Context, Targets

UNITS_AT_ONCE = 64
CELLS_AT_ONCE = 4_000_000
"""Units of a block times nodes of the graph: what bounds the memory of one layer."""

GRID = 2.0**24


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """What every method of this kind lets one set."""

    hops: Annotated[int, Range(minimum=1), Help("levels of the scope k-hop")] = 2
    alone_above: Annotated[
        int,
        Range(minimum=1),
        Help("units with more possible edits are looked at one at a time, to bound memory"),
    ] = 20_000


@dataclass(frozen=True, kw_only=True)
class DescentConfig(SearchConfig):
    """What every method lets one set that descends."""

    steps: Annotated[int, Range(minimum=1), Help("of the descent")] = 30
    patience: Annotated[
        int, Range(minimum=1), Help("steps without a better answer after which a unit rests")
    ] = 10
    restarts: Annotated[
        int, Range(minimum=1), Help("descents; all but the first start from parameters with noise")
    ] = 1
    spread: Annotated[float, Range(minimum=0), Help("of the noise on the parameters in a restart")] = 0.5
    prefixes: Annotated[
        int,
        Range(minimum=0),
        Help("of the strongest edits at the end the first 1, 2, ..., so many are tried"),
    ] = 0


class Block:
    """B units that are looked at together, and the E edits that they may make.

    Attributes:
        targets: B units.
        possible: (B edits, E edges) everything that each unit may edit.
        sizes: (B,) number of possible edits, a tensor.
        rows: (E,) to which unit a possible edit belongs, a tensor.
        units: (B,), edges: (E,) where they stand in the block that this one was taken from.
        first_margins: (B, T) margins that a descent met first, kept to measure later ones by; None before.
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
        self.rows = torch.from_numpy(possible.rows)
        self.sizes = torch.bincount(self.rows, minlength=len(targets))
        self.first_margins: Any = None
        self._graph = [torch.from_numpy(a) for a in (possible.edge_users, possible.edge_items)]
        self._signs = torch.from_numpy(possible.ops.astype(np.float64))
        self._users = torch.from_numpy(targets.users)
        self._real = torch.from_numpy(targets.items >= 0)
        self._items = torch.from_numpy(np.maximum(targets.items, 0))
        self._seen = torch.from_numpy(_seen(targets, context.interactions.shape[1]))

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, units: IntArray) -> Block:
        """The block of some of its units (ascending), which knows where they stood."""
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
        return self.context.model.score_weighted(self._users, self.rows, *self._graph, self._signs * made)

    def margins(self, made: Any) -> Any:
        """(B, T) margins under ``made`` (E,), a tensor; a place that holds no item has a very low one."""
        import torch

        scores = self.scores(made)
        candidates = scores.masked_fill(self._seen, -torch.inf)
        own = scores.gather(1, self._items)
        k, items = self.targets.k, candidates.shape[1]
        best = candidates.topk(min(k + 1, items), dim=1)
        # An item among the first K has the (K+1)-th for its K-th other. By index: a tie must not make it its own rival.
        among = (best.indices[:, None, :k] == self._items[:, :, None]).any(dim=2)
        last = best.values[:, -1:]
        before = best.values[:, -2:-1] if items > k else last
        other = torch.where(among, last, before).clamp(min=-1e9)
        return torch.where(self._real, own - other, -1e9)

    def relative_hinge(self, margins: Any, slack: float) -> Any:
        """(B,) mean over the T items of max(0, margin + slack), in units of the margins of the first call.

        0 once all items are out of the list by ``slack`` logits. The unit is at least ``slack``.
        """
        import torch

        if self.first_margins is None:
            self.first_margins = margins.detach()
        unit = self.first_margins.abs().clamp(min=max(slack, 1e-12))
        return torch.where(self._real, torch.relu(margins + slack) / unit, 0.0).mean(dim=1)

    def sums(self, values: Any) -> Any:
        """(B,) sums of ``values`` (E,) over each unit's possible edits."""
        import torch

        return torch.zeros(len(self), dtype=values.dtype).index_add_(0, self.rows, values)

    def normalised(self, gradient: Any) -> Any:
        """(E,) the gradient in units of each unit's largest component, on the grid."""
        import torch

        largest = torch.zeros(len(self), dtype=torch.float64)
        largest.scatter_reduce_(0, self.rows, gradient.abs(), "amax")
        return torch.round(gradient / largest.clamp(min=1e-300)[self.rows] * GRID) / GRID

    def gradient(self, loss: Any, of: Any) -> Any:
        """(E,) what :meth:`normalised` makes of the gradient of ``loss`` (B,) in ``of`` (E,)."""
        import torch

        (gradient,) = torch.autograd.grad(loss.sum(), of)
        return self.normalised(gradient)

    def noise(self, *names: str | int) -> Any:
        """(E,) standard normal numbers, a tensor; each unit's are its own, whoever stands beside it."""
        import torch

        draws = [
            self.generator(unit, *names).standard_normal(int(self.sizes[unit])) for unit in range(len(self))
        ]
        return torch.from_numpy(np.concatenate(draws) if draws else np.empty(0))

    def generator(self, unit: int, *names: str | int) -> np.random.Generator:
        """The random stream of a unit, by what it is for."""
        items = (int(item) for item in self.targets.items[unit])
        return self.context.generator(*names, int(self.targets.users[unit]), *items)

    def displaced(self, edits: Edits, of: IntArray) -> IntArray:
        """(P,) how many items of unit ``of[p]`` rank beyond K on the graph under edit p: the real model."""
        found = np.zeros(len(edits), dtype=np.int64)
        for rows in _slices(len(edits), units_at_once(self.context)):
            block = self.targets.take(of[rows])
            scores = self.context.model.score_edits(edits.take(rows.start, rows.stop))
            ranks = ranks_of(scores, block.items, block.history, block.padding)
            found[rows] = (ranks > block.k).sum(axis=1)
        return found


def _slices(count: int, width: int) -> Iterator[slice]:
    for start in range(0, count, width):
        yield slice(start, min(start + width, count))


def _seen(targets: Targets, items: int) -> BoolArray:
    """(B, items) True for the interactions of the user, which are no candidates."""
    seen = np.zeros((len(targets), items), dtype=bool)
    rows, columns = np.nonzero(~targets.padding)
    seen[rows, targets.history[rows, columns]] = True
    return seen


class Search:
    """The best answers of a block's units, and what they cost.

    Attributes:
        block: all the units.
        chosen: (E,) the edits of the best answers.
        displaced: (B,) items that the best answer displaces, 0 where there is none.
        size: (B,) its edits.
        improved_at: (B,) the step at which it was found.
        evaluations: (B,) how often the model was asked for the unit.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        count = len(block)
        self.chosen: BoolArray = np.zeros(len(block.possible.rows), dtype=bool)
        self.displaced = np.zeros(count, dtype=np.int64)
        self.size = np.full(count, np.iinfo(np.int64).max)
        self.improved_at = np.zeros(count, dtype=np.int64)
        self.evaluations = np.zeros(count)
        self._tested: BoolArray = np.zeros(len(block.possible.rows), dtype=bool)
        self._wanted = np.count_nonzero(block.targets.items >= 0, axis=1)

    def test(self, part: Block, chosen: BoolArray, step: int) -> IntArray:
        """Asks the real model about ``chosen`` (E of ``part``) and keeps what is better.

        Only units whose choice is not the one tested last are asked about.

        Returns:
            (units of ``part``,) items displaced; -1 where it was not asked.
        """
        changed = np.zeros(len(part), dtype=bool)
        changed[part.possible.rows[chosen != self._tested[part.edges]]] = True
        self._tested[part.edges] = chosen
        units = np.flatnonzero(changed)
        found = np.full(len(part), -1, dtype=np.int64)
        if len(units):
            edits = part.possible.where(chosen).choose(units)
            found[units] = part.displaced(edits, units)
            self.evaluations[part.units[units]] += 1
            self.offer(part, chosen, found, step)
        return found

    def offer(self, part: Block, chosen: BoolArray, displaced: IntArray, step: int) -> None:
        """Keeps of ``chosen`` (E of ``part``), seen to displace so many (units of ``part``,), what is better."""
        units, size = part.units, np.bincount(part.possible.rows[chosen], minlength=len(part))
        better = displaced > 0
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
        better: BoolArray = (self.displaced < self._wanted) | (self.size > size)
        return better

    def finished(self) -> BoolArray:
        """(B,) units whose answer cannot get better, or that have nothing to edit."""
        finished: BoolArray = ~self.could_be_better() | (self.block.possible.counts() == 0)
        return finished

    def resting(self, step: int, patience: int) -> BoolArray:
        """(B,) units that are finished, or have an answer that did not get better for a while."""
        return self.finished() | ((self.displaced > 0) & (step - self.improved_at >= patience))

    def answer(self) -> Answer:
        """The best edits; the detail ``evaluations``."""
        return Answer(self.block.possible.where(self.chosen), {"evaluations": self.evaluations})


class Descent(Protocol):
    """What a method brings along: parameters p, one for each possible edit, and what is to become smaller."""

    evaluations: int
    """How often ``loss`` asks the model for each unit."""

    def start(self, block: Block, noise: Any | None) -> Any:
        """(E,) parameters to start from, float64; with ``noise`` (E,) standard normal in a restart."""

    def loss(self, block: Block, p: Any) -> Any:
        """(B,) tensor, differentiable in ``p`` (E,)."""

    def step(self, p: Any, gradient: Any) -> Any:
        """(E,) the parameters after a step; ``gradient`` (E,) is in units of its largest component."""

    def chosen(self, p: Any) -> Any:
        """(E,) boolean tensor: the edits that the parameters stand for."""


def descend(block: Block, method: Descent, config: DescentConfig, name: str) -> Search:
    """The best answers met on ``config.restarts`` descents. ``name`` is that of the random streams."""
    search = Search(block)
    for restart in range(config.restarts):
        search.improved_at[:] = 0
        part = block.take(np.flatnonzero(~search.finished()))
        noise = part.noise(name, "restart", restart) if restart else None
        p = method.start(part, noise)
        strength = np.full(len(block.possible.rows), -np.inf)
        for step in range(config.steps):
            if not len(part):
                break
            p = p.detach().requires_grad_()
            gradient = part.gradient(method.loss(part, p), p)
            p = method.step(p.detach(), gradient)
            search.evaluations[part.units] += method.evaluations
            search.test(part, method.chosen(p).numpy(), step)
            strength[part.edges] = p.numpy()
            awake = ~search.resting(step + 1, config.patience)[part.units]
            if not awake.all():
                p = p[awake[part.possible.rows]]
                part = part.take(np.flatnonzero(awake))
        if config.prefixes:
            try_prefixes(search, strength, config.prefixes)
    return search


def try_prefixes(search: Search, strength: FloatArray, most: int) -> None:
    """Tests the 1, 2, ..., ``most`` strongest edits of each unit, as long as that could be a better answer.

    strength: (E of the search's block,); of equal ones the first counts as stronger.
    """
    block = search.block
    rows, sizes = block.possible.rows, block.possible.counts()
    order = np.lexsort((-strength, rows))
    place = np.empty(len(rows), dtype=np.int64)
    place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for length in range(1, most + 1):
        units = np.flatnonzero((sizes >= length) & search.could_be_better(length))
        if not len(units):
            break
        part = block.take(units)
        search.test(part, place[part.edges] < length, 0)


def units_at_once(context: Context) -> int:
    """How many edited graphs are looked at together."""
    nodes = int(sum(context.interactions.shape))
    return max(1, min(UNITS_AT_ONCE, CELLS_AT_ONCE // nodes))


def in_blocks(
    targets: Targets,
    context: Context,
    config: SearchConfig,
    answer: Callable[[Block], Answer],
    additions: AdditionsConfig | None = None,
) -> Answer:
    """What ``answer`` says about each block of units, put together in the order of ``targets``.

    Edges may be added where the protocol allows it and ``additions`` says how many.
    """
    found: dict[int, tuple[Edits, dict[str, float]]] = {}
    for rows in _slices(len(targets), units_at_once(context)):
        some = targets.take(rows)
        possible = possible_edits(some, context, config.hops, additions if targets.additions else None)
        for units in _groups(possible, config.alone_above):
            told = answer(Block(some.take(units), possible.choose(units), context))
            for place, unit in enumerate(units):
                numbers = {name: float(values[place]) for name, values in told.details.items()}
                found[rows.start + int(unit)] = (told.edits.take(place, place + 1), numbers)
    parts = [found[unit] for unit in range(len(targets))]
    if not parts:
        return Answer(Edits.nothing(targets.users))
    names = list(parts[0][1])
    details: dict[str, FloatArray] = {n: np.array([numbers[n] for _, numbers in parts]) for n in names}
    return Answer(Edits.concatenate([edits for edits, _ in parts]), details)


def _groups(possible: Edits, alone_above: int) -> list[IntArray]:
    """Units that are looked at together: those with many possible edits alone."""
    sizes = possible.counts()
    together = np.flatnonzero(sizes <= alone_above)
    alone = [np.array([unit]) for unit in np.flatnonzero(sizes > alone_above)]
    return [together, *alone] if len(together) else alone
