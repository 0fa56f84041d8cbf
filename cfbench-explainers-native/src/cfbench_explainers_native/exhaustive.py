"""Exhaustive: the smallest counterfactual up to a size, by breadth-first search, with what it proves.

All sets of one interaction are removed, then all of two, up to ``max_size``; of one size in the order of the
history (lexicographic). The answer is

- item level: the first set with which the item has left the top K;
- list level: the first of the smallest sets that displace the most of i_1..i_K, as ``greedy`` has it.

With it goes a certificate, ``none_up_to``: no set of at most so many removals displaces more items than the answer,
nor as many with fewer removals. Where there is no answer, no such set displaces any; where nothing can displace
any, ``none_up_to`` is |I_u|. The detail ``proven`` is 1 where no set of any size does better: the answer is the
smallest, or no answer exists. At list level only the whole search or a bound can show this.

Each set is put to the recommender once for all units of the user. After ``budget`` sets of a user the search
ends, and the certificate with the last size that was finished. Where the logit is linear in the profile
(``access: weights``), sets are spared that cannot work: at item level the search runs on sums and gives up
partial sets as ``smallest_sets`` does; at list level the recommender is queried only with sets with which, by the
sums, more items may leave than have left before.

Not published elsewhere. A certified control for every explainer that only removes. Cost: sum over s <= max_size of
(|I_u| choose s) model queries for each user, at most ``budget``; item level on linear logits: |I_u| + 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Annotated

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.linear_sums import NEVER, QUICK, Recommender, Sums, sums_of_units
from cfbench_explainers_native.shared import certificate
from cfbench_explainers_native.smallest_sets import smallest_set
from cfbench_recsys.edits import REMOVE, BoolArray, Edits, IntArray
from cfbench_recsys.scoring import target_ranks
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/exhaustive",
    summary="The smallest counterfactual up to a size, with a certificate",
    target=f"{__name__}:Exhaustive",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    role="certified",
    certificate="no set of at most 'none_up_to' removals of the user's own interactions displaces more items "
    "than the answer, nor as many with fewer removals; where the detail 'proven' is 1, no set at all "
    "does",
)

FIRST_ROUND, LAST_ROUND = 64, 4096
"""How many sets of a user are tested together, at first and at most: twice as many in each round."""


@dataclass(frozen=True, kw_only=True)
class Config:
    max_size: Annotated[
        int, Range(minimum=1), Help("largest sets that are tried, within 'protocol.max_edits'")
    ] = 3
    budget: Annotated[int, Range(minimum=1), Help("sets tested for one user")] = 20_000


class Exhaustive:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """B edits, with the size up to which nothing does better."""
        config = dataclasses.replace(self.config, max_size=min(self.config.max_size, targets.budget))
        linear = context.linear
        if linear and targets.level == "item":
            return self._by_sums(targets, context, config)
        known = _LinearLists(targets, context, config.max_size) if linear else None
        return _Search(targets, context, known, config).run()

    def _by_sums(self, targets: Targets, context: Context, config: Config) -> Answer:
        removed = np.zeros(targets.history.shape, dtype=np.bool_)
        none_up_to, sets = np.zeros((2, len(targets)), dtype=np.int64)
        for unit, _, sums in sums_of_units(targets, context):
            recommender = Recommender(targets, unit, context)
            found, none_up_to[unit] = smallest_set(sums, recommender, config.max_size, config.budget)
            sets[unit] = recommender.sets
            if found is not None:
                removed[unit, found] = True
        edits = Edits.removals(targets.users, targets.history, removed)
        proof = certificate(removed.sum(axis=1) > 0, none_up_to, targets)
        return Answer(edits, {**proof, "sets": sets.astype(np.float64)})


class _LinearLists:
    """What sums show about the lists of a linear recommender without querying it.

    Attributes:
        at_least: (B, T) fewest removals with which an item could leave; NEVER for one that cannot.
        near: for each unit the sums of those that could leave by at most ``max_size``.
    """

    def __init__(self, targets: Targets, context: Context, max_size: int) -> None:
        self.at_least = np.full(targets.items.shape, NEVER)
        self.near: list[list[Sums]] = [[] for _ in range(len(targets))]
        for unit, place, sums in sums_of_units(targets, context):
            fewest = sums.fewest(max(QUICK, max_size))
            least = self.at_least[unit, place] = sums.at_least(fewest)
            if least <= max_size:
                self.near[unit].append(sums.among(np.flatnonzero(fewest <= max_size)))

    def at_most(self, unit: int, places: IntArray) -> IntArray:
        """(m,) how many items of the list may have left without the interactions at ``places`` (m, size)."""
        counts = np.zeros(len(places), dtype=np.int64)
        for sums in self.near[unit]:
            gains = np.ascontiguousarray(sums.gains.T)
            left = np.tile(sums.needed, (len(places), 1))
            for member in places.T:
                left -= gains[member]
            counts += np.count_nonzero(left <= sums.slack, axis=1) >= sums.k
        return counts


class _Search:
    """Breadth first; units that share their sets belong to one owner.

    On lists the sets that are spared depend on the list, so there each unit is an owner. At item level a user
    is one, and the items of all its units stand side by side, as if they were a list.
    """

    def __init__(
        self, targets: Targets, context: Context, known: _LinearLists | None, config: Config
    ) -> None:
        self.targets, self.context, self.config = targets, context, config
        self.known = known
        self.at_least = np.where(targets.items < 0, NEVER, 1) if known is None else known.at_least
        keys = targets.users if targets.level == "item" else np.arange(len(targets))
        _, first, self.owner = np.unique(keys, return_index=True, return_inverse=True)
        self.lengths = (~targets.padding).sum(axis=1)
        self.columns = _side_by_side(self.owner, targets.items.shape[1])
        items = np.full((len(first), int(self.columns.max(initial=0)) + 1), -1)
        items[self.owner[:, None], self.columns] = targets.items
        self.together = dataclasses.replace(targets.take(first), items=items)
        self.left = np.full(len(first), config.budget)
        self.stopped = np.zeros(len(first), dtype=np.bool_)
        self.most = np.zeros(len(targets), dtype=np.int64)  # displaced by the best set so far
        self.removed = np.zeros(targets.history.shape, dtype=np.bool_)

    def run(self) -> Answer:
        finished = np.zeros(len(self.targets), dtype=np.int64)  # every set up to this size failed
        for size in range(1, self.config.max_size + 1):
            self._look_at_all_of(size)
            going_on = self._could_do_better() & ~self.stopped[self.owner]
            finished[going_on] = np.minimum(size, self.lengths[going_on])
        sizes = self.removed.sum(axis=1)
        done = ~self._could_do_better()
        none_up_to = np.where(done, np.where(sizes > 0, sizes - 1, self.lengths), finished)
        edits = Edits.removals(self.targets.users, self.targets.history, self.removed)
        return Answer(edits, certificate(done & (sizes > 0), none_up_to, self.targets))

    def _could_do_better(self, size: int = NEVER - 1) -> BoolArray:
        """(B,) whether a set of at most that size might displace more than the best so far."""
        better: BoolArray = (self.at_least <= size).sum(axis=1) > self.most
        return better

    def _look_at_all_of(self, size: int) -> None:
        """All sets of a size, in rounds, for the owners of units that may gain by it."""
        open_units = self._could_do_better(size) & ~self.stopped[self.owner] & (self.lengths >= size)
        units_of = {
            owner: np.flatnonzero(self.owner == owner) for owner in set(self.owner[open_units].tolist())
        }
        sets = {
            owner: combinations(range(int(self.lengths[units_of[owner][0]])), size)
            for owner in sorted(units_of)
        }
        width = FIRST_ROUND
        while sets:
            proposed = {owner: _next(sets[owner], min(width, int(self.left[owner])), size) for owner in sets}
            self._test({owner: self._hopeful(owner, places) for owner, places in proposed.items()}, units_of)
            for owner, places in proposed.items():
                self.left[owner] -= len(places)
                if len(places) < width:  # all were tested, or the budget is spent
                    self.stopped[owner] = next(sets[owner], None) is not None
                    del sets[owner]
                elif not self._could_do_better(size)[units_of[owner]].any():
                    del sets[owner]
            width = min(2 * width, LAST_ROUND)

    def _hopeful(self, owner: int, places: IntArray) -> IntArray:
        """Those of the sets that may displace more than the best so far. On lists an owner is a unit."""
        if self.known is None:
            return places
        hopeful: IntArray = places[self.known.at_most(owner, places) > self.most[owner]]
        return hopeful

    def _test(self, proposed: Mapping[int, IntArray], units_of: Mapping[int, IntArray]) -> None:
        """Tests (m, size) places of each owner's history, and stores the first that displaces the most."""
        counts = [len(places) for places in proposed.values()]
        of = np.repeat(np.array(list(proposed), dtype=np.int64), counts)
        if not len(of):
            return
        every = np.concatenate(list(proposed.values()))
        rows, users = np.repeat(np.arange(len(of)), every.shape[1]), self.together.users[of]
        items = np.take_along_axis(self.together.history[of], every, axis=1).ravel()
        edits = Edits(users, rows, users[rows], items, np.full(len(rows), REMOVE, dtype=np.int8))
        ranks = target_ranks(self.context.model, edits, self.together, of, self.context.interactions)
        out = (ranks > self.targets.k) & (self.together.items[of] >= 0)
        start = 0
        for owner, places in proposed.items():
            rows_of = slice(start, start + len(places))
            start += len(places)
            for unit in units_of[owner] if len(places) else ():
                displaced = out[rows_of][:, self.columns[unit]].sum(axis=1)
                best = int(displaced.argmax())
                if displaced[best] > self.most[unit]:
                    self.most[unit] = displaced[best]
                    self.removed[unit] = False
                    self.removed[unit, places[best]] = True


def _next(sets: Iterator[tuple[int, ...]], count: int, size: int) -> IntArray:
    """(m, size) the next sets, at most ``count``."""
    flat = np.fromiter(chain.from_iterable(islice(sets, count)), dtype=np.int64)
    return flat.reshape(-1, size)


def _side_by_side(owner: IntArray, width: int) -> IntArray:
    """(B, width) columns for the items of each unit, next to those of the other units of its owner."""
    order = np.argsort(owner, kind="stable")
    counts = np.bincount(owner)
    nth = np.empty(len(owner), dtype=np.int64)
    nth[order] = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    return nth[:, None] * width + np.arange(width)
