"""The smallest set of removals that puts one item out of the list, for a logit that is linear in the profile.

Bound from below: what each rival would need alone (see ``linear_sums``). Bound from above: beam search on the
sums. Where they differ, a search in depth over sets of exactly s interactions decides, s ascending: a partial
set is given up when fewer than K rivals could still get ahead, each with the largest gains that it finds among
what may still be added. Where that takes too long, an integer programme continues from there:

    min sum_i x_i   such that   sum_i gain_ir x_i >= needed_r z_r + low_r (1 - z_r),   sum_r z_r >= K,

x_i = 1 for a removed interaction, z_r = 1 for a rival that has to be ahead, low_r a lower limit of the sum. Its
bounds hold within the tolerances of the solver (HiGHS: 1e-6, rows scaled to numbers of at most 1).
"""

from __future__ import annotations

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_explainers_native.linear_sums import NEVER, QUICK, Recommender, Sums
from cfbench_recsys.edits import FloatArray, IntArray

QUERY_COST = 1_000
"""The cost of a query to the recommender, in units of the budget; matters where very many items tie."""

NUMBERS_AT_ONCE = 500_000
"""Gaps (partial sets x rivals) that one step of the search holds."""

PROGRAMME = 20_000
"""Gains (rivals x interactions) of the largest integer programme that is tried: its nodes are no limit to the
time that a large one takes before the first of them."""


def smallest_set(
    sums: Sums, recommender: Recommender, largest: int, budget: int, width: int = 0, nodes: int = 0
) -> tuple[IntArray | None, int]:
    """Places of the smallest set that succeeds, and the size up to which there is none.

    Args:
        largest: size after which the search ends.
        budget: partial sets that it tests; after these the set is the smallest found.
        width: of the beam that finds a set to start from; 0: without.
        nodes: of the integer programme that continues where the search had to stop; 0: without.
    """
    fewest = sums.fewest()
    least = sums.at_least(fewest)
    if least == NEVER:
        return None, sums.gains.shape[1]
    largest = min(largest, sums.gains.shape[1])
    found = _start(sums, fewest, least, recommender, width) if width else None
    size = min(least, largest + 1)
    while size <= largest and (found is None or size < len(found)):
        if size > QUICK:
            fewest = sums.fewest(size)
        search = Search(sums.among(np.flatnonzero(fewest <= size)), size, budget, recommender)
        try:
            better = search.run()
        except OutOfBudgetError:
            largest = largest if found is None else len(found) - 1
            near = sums.among(np.flatnonzero(sums.fewest(largest) <= largest))
            if not nodes or near.gains.size > PROGRAMME:
                return found, size - 1
            better, none = programme(near, size, largest, nodes)
            if better is None:
                return found, none
            if succeeds(sums, sums.gaps(better), better, recommender):
                return better, none
            return found, min(none, len(better) - 1)
        if better is not None:
            return better, size - 1
        budget, size = search.left, size + 1
    return found, size - 1


def _start(sums: Sums, fewest: IntArray, least: int, recommender: Recommender, width: int) -> IntArray | None:
    """A set that succeeds: found among the rivals that are near, or else among all that could be."""
    interactions = sums.gains.shape[1]
    near = sums.among(np.flatnonzero(fewest <= least + 3))
    found = beam(near, width, min(interactions, 4 * least + 8), recommender)
    return found if found is not None else beam(sums, 1, interactions, recommender)


def beam(sums: Sums, width: int, steps: int, recommender: Recommender) -> IntArray | None:
    """The places of a set that succeeds, by beam search on the K-th smallest gap; None if none is found."""
    interactions = sums.gains.shape[1]
    sets = np.zeros((1, interactions), dtype=np.bool_)
    gaps, gains = sums.needed[None], np.ascontiguousarray(sums.gains.T)
    for _ in range(min(steps, interactions)):
        rows, places = np.nonzero(~sets)
        recommender.sets += len(rows)
        left = gaps[rows] - gains[places]
        worst = np.partition(left, sums.k - 1, axis=1)[:, sums.k - 1]
        # The same set comes once for each of its members; copies are neighbours, or nearly so.
        order = np.argsort(worst, kind="stable")[: 4 * width]
        grown = sets[rows[order]]
        grown[np.arange(len(order)), places[order]] = True
        _, first = np.unique(np.packbits(grown, axis=1), axis=0, return_index=True)
        retained = np.sort(first)[:width]
        sets, gaps = grown[retained], left[order[retained]]
        for row in np.flatnonzero(worst[order[retained]] <= sums.slack):
            chosen = np.flatnonzero(sets[row])
            if succeeds(sums, gaps[row], chosen, recommender):
                return chosen
    return None


def succeeds(sums: Sums, gaps: FloatArray, places: IntArray, recommender: Recommender) -> bool:
    """Whether the set at ``places`` succeeds, which leaves the gaps (R,); queries only where the sums do not decide."""
    if np.count_nonzero(gaps <= -sums.slack) >= sums.k:
        return True
    return bool(np.count_nonzero(gaps <= sums.slack) >= sums.k) and recommender.displaces(places)


class OutOfBudgetError(Exception):
    """The search had to stop before it was decided."""


class Search:
    """Sets of exactly ``size`` interactions, in depth.

    Only for a size of which all smaller sets are known to fail. Then every member of a set that succeeds helps
    some rival, or else it would work without; where the recommender had to be queried, because sums did not
    decide, this is not assumed.
    """

    def __init__(self, sums: Sums, size: int, budget: int, recommender: Recommender) -> None:
        helpful = (sums.gains > 0).any(axis=0)
        useful = np.flatnonzero(helpful | (recommender.queries > 0))
        shares = np.maximum(sums.gains[:, useful], 0.0) / np.maximum(np.abs(sums.needed), sums.slack)[:, None]
        self.places = useful[np.argsort(-shares.mean(axis=0), kind="stable")]
        self.gains = np.ascontiguousarray(sums.gains[:, self.places].T)  # (n, R)
        self.sums, self.size, self.left, self.recommender = sums, size, budget, recommender

    def run(self) -> IntArray | None:
        """The places of a set that succeeds; None: there is none.

        Raises:
            OutOfBudgetError: after ``budget`` partial sets.
        """
        if len(self.places) < self.size:
            return None
        self.reach = self._reach()
        empty = np.empty((1, 0), dtype=np.int64)
        return self._extend(self.sums.needed[None], empty)

    def _reach(self) -> FloatArray:
        """(size, n + 1, R): the sum of the t largest positive gains among the interactions from j on."""
        count, rivals = self.gains.shape
        reach = np.zeros((self.size, count + 1, rivals))
        best = np.zeros((self.size, rivals))  # the largest so far, descending
        for place in range(count - 1, -1, -1):
            best[-1] = np.maximum(best[-1], self.gains[place])
            best = -np.sort(-best, axis=0)
            reach[1:, place] = np.cumsum(best, axis=0)[: self.size - 1]
        return reach

    def _extend(self, gaps: FloatArray, chosen: IntArray) -> IntArray | None:
        """gaps (N, R) and members (N, d) of partial sets; the first completion that succeeds."""
        count, rivals = self.gains.shape
        more = self.size - chosen.shape[1] - 1  # still to be added after the next
        start = chosen[:, -1] + 1 if chosen.shape[1] else np.zeros(1, dtype=np.int64)
        counts = np.maximum(count - more - start, 0)
        rows = np.repeat(np.arange(len(gaps)), counts)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts) + start[rows]
        at_once = max(1, NUMBERS_AT_ONCE // rivals)
        for low in range(0, len(rows), at_once):
            row, place = rows[low : low + at_once], places[low : low + at_once]
            self.left -= len(row)
            self.recommender.sets += len(row)
            if self.left < 0:
                raise OutOfBudgetError
            left = gaps[row] - self.gains[place]
            hopeful = np.count_nonzero(left - self.reach[more, place + 1] <= self.sums.slack, axis=1)
            good = np.flatnonzero(hopeful >= self.sums.k)
            if not good.size:
                continue
            members = np.column_stack([chosen[row[good]], place[good]])
            found = self._extend(left[good], members) if more else self._decide(left[good], members)
            if found is not None:
                return found
        return None

    def _decide(self, gaps: FloatArray, members: IntArray) -> IntArray | None:
        for gap, member in zip(gaps, members, strict=True):
            places, before = np.sort(self.places[member]), self.recommender.queries
            if succeeds(self.sums, gap, places, self.recommender):
                return places
            self.left -= QUERY_COST * (self.recommender.queries - before)
            if self.left < 0:
                raise OutOfBudgetError
        return None


def programme(sums: Sums, smallest: int, largest: int, nodes: int) -> tuple[IntArray | None, int]:
    """Places of a smallest set of ``smallest`` to ``largest`` interactions that succeeds, and the size up to which
    there is none, if there is none of less than ``smallest``: what ``nodes`` nodes of the programme prove."""
    from scipy import optimize  # at the top it would slow down every plan

    needed = sums.needed - sums.slack
    scale = np.maximum(np.abs(sums.gains).max(axis=1), np.maximum(np.abs(needed), sums.slack))
    gains, needed = sums.gains / scale[:, None], needed / scale
    rivals, interactions = gains.shape
    low = np.minimum(0.0, np.sort(gains, axis=1)[:, :largest]).sum(axis=1)
    ahead = scipy.sparse.hstack(
        [scipy.sparse.csr_matrix(gains), scipy.sparse.diags(low - needed)], format="csr"
    )
    count = np.repeat([[1.0, 0.0], [0.0, 1.0]], [interactions, rivals], axis=1)
    solution = optimize.milp(
        count[0],
        integrality=np.ones(interactions + rivals),
        bounds=optimize.Bounds(0, 1),
        constraints=[
            optimize.LinearConstraint(ahead, low, np.inf),
            optimize.LinearConstraint(count, [smallest, sums.k], [largest, rivals]),
        ],
        options={"node_limit": nodes},
    )
    if solution.status == _INFEASIBLE:
        return None, largest
    bound = solution.mip_dual_bound
    none = smallest - 1 if bound is None else max(smallest, int(np.ceil(bound - 1e-6))) - 1
    return (None if solution.x is None else np.flatnonzero(solution.x[:interactions] > 0.5)), none


_INFEASIBLE = 2  # a status of scipy.optimize.milp
