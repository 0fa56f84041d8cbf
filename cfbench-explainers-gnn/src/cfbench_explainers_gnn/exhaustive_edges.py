"""Exhaustive over edges: the smallest counterfactual in a scope up to a size, by trying every set of edits.

All sets of one possible edit are made on the real model, then all of two, up to ``max_size``. The answer is the
first of the smallest sets that displace the most target items. With it goes a certificate, ``none_up_to``: no set of at
most so many edits displaces more items than the answer, nor as many with fewer edits. Where every set was tried, or
nothing can be better, the detail ``proven`` is 1. After ``budget`` sets of a unit the search ends, and the certificate
with the last size that was finished.

Not published elsewhere. A certified control for every explainer on graphs, where the scope is small: sets grow as the number
of edits to the power of their size. Where the protocol lets edges be added, these are tried too.
Cost: sum over s <= max_size of (E choose s) model queries for each unit with E possible edits, at most
``budget``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.best_answers import BestAnswers
from cfbench_explainers_gnn.blocks import Block, SearchConfig, in_blocks
from cfbench_explainers_gnn.possible_edits import AdditionsConfig
from cfbench_recsys.edits import Edits, IntArray
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/exhaustive-edges",
    summary="The smallest set of edits in a small scope, by exhaustive search, with a certificate",
    target=f"{__name__}:ExhaustiveEdges",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "edit": {"remove", "add"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="certified",
    certificate="no set of at most 'none_up_to' edits displaces more items than the answer, nor as many with "
    "fewer edits, of the removals in scope and, if the protocol allows additions, those that its "
    "options list; where the detail 'proven' is 1, no set at all does",
    details={"default": False},
)

SETS_AT_ONCE = 1024
"""Sets that are generated before the best of them is selected."""


@dataclass(frozen=True, kw_only=True)
class Config(AdditionsConfig, SearchConfig):
    max_size: Annotated[
        int, Range(minimum=1), Help("largest sets that are tried, within 'protocol.max_edits'")
    ] = 2
    budget: Annotated[int, Range(minimum=1), Help("sets tested for one explanation")] = 2_000


class ExhaustiveEdges:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits, with the size up to which nothing does better."""
        return in_blocks(targets, context, self.config, self._explain)

    def _explain(self, block: Block) -> Answer:
        best = BestAnswers(block)
        finished = np.array([self._search(best, unit) for unit in range(len(block))], dtype=np.int64)
        all_out = best.displaced == best.wanted
        none_up_to = np.where(all_out, best.size - 1, finished)
        proven = all_out | (finished >= block.possible.counts())
        answer = best.answer()
        certificate = {"none_up_to": none_up_to.astype(np.float64), "proven": proven.astype(np.float64)}
        return Answer(answer.edits, {**answer.details, **certificate})

    def _search(self, best: BestAnswers, unit: int) -> int:
        """Offers the sets of a unit to ``best``; returns the last size of which all were tried."""
        part = best.block.take(np.array([unit]))
        edits, left = len(part.edges), self.config.budget
        largest = min(self.config.max_size, part.targets.budget, edits)
        for size in range(1, largest + 1):
            for sets in _sets(edits, size):
                tried = sets[:left]
                displaced = part.displaced(_made(part, tried), np.zeros(len(tried), dtype=np.int64))
                best.queries[unit] += len(tried)
                first = int(displaced.argmax())
                chosen = np.zeros(edits, dtype=np.bool_)
                chosen[tried[first]] = True
                best.offer(part, chosen, displaced[[first]], size)
                left -= len(tried)
                if not best.could_be_better(size)[unit]:
                    return size - 1
                if left == 0:
                    return size if size == edits else size - 1
        return largest


def _sets(count: int, size: int) -> Iterator[IntArray]:
    """All sets of ``size`` of ``count`` edits in lexicographic order, (n, size) at a time."""
    every = combinations(range(count), size)
    while True:
        flat = np.fromiter(chain.from_iterable(islice(every, SETS_AT_ONCE)), dtype=np.int64)
        if not len(flat):
            return
        yield flat.reshape(-1, size)


def _made(part: Block, sets: IntArray) -> Edits:
    """An edit for each set (n, size) of a block's only unit."""
    possible, flat = part.possible, sets.ravel()
    return Edits(
        np.repeat(part.targets.users, len(sets)),
        np.repeat(np.arange(len(sets)), sets.shape[1]),
        possible.edge_users[flat],
        possible.edge_items[flat],
        possible.ops[flat],
    )
