"""Explicit answers: made from importances, verified on the real model, and pruned.

Everything here counts what an edit *displaces*: the items of a target that rank beyond K under the edit. The
recommender decides, not the explainer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.contracts import ScoringModel
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.removals import ImportanceOrder, OrderedRemovals
from cfbench_recsys.scoring import BLOCK, Scorable, target_ranks
from cfbench_recsys.targets import Targets

FIRST_ROUND = 8
"""How many prefixes, or edits to take back, are tried at first; then twice as many, and so on."""


def count_displaced(
    model: ScoringModel,
    targets: Targets,
    edits: Scorable,
    of: IntArray,
    interactions: scipy.sparse.csr_matrix,
) -> IntArray:
    """(B,) how many items of target ``of[b]`` rank beyond K under edit b."""
    ranks = target_ranks(model, edits, targets, of, interactions)
    displaced: IntArray = np.count_nonzero(ranks > targets.k, axis=1)
    return displaced


def derived(
    model: ScoringModel,
    targets: Targets,
    importances: FloatArray,
    interactions: scipy.sparse.csr_matrix,
    how: str,
) -> Edits:
    """Edits made of importances; ``how``: "threshold" or "smallest-prefix". None has more than ``targets.max_edits``."""
    if how == "threshold":
        return targets.within_budget(threshold(targets, importances))
    return smallest_prefix(model, targets, importances, interactions)


def postprocessed(
    model: ScoringModel,
    targets: Targets,
    edits: Edits,
    interactions: scipy.sparse.csr_matrix,
    settings: Mapping[str, object],
) -> Edits:
    """Edits verified and pruned as ``settings`` ("verify", "prune") request."""
    if settings["verify"]:
        edits = verify(model, targets, edits, interactions)
    return prune(model, targets, edits, interactions) if settings["prune"] else edits


def threshold(targets: Targets, importances: FloatArray, above: float = 0.5) -> Edits:
    """Removes every interaction whose importance exceeds ``above`` (CFExpRec's explicit form of LXR)."""
    return Edits.removals(targets.users, targets.history, (importances > above) & ~targets.padding)


def smallest_prefix(
    model: ScoringModel, targets: Targets, importances: FloatArray, interactions: scipy.sparse.csr_matrix
) -> Edits:
    """Removes the c most important interactions, with the smallest c that displaces all items of the target.

    Where no c displaces all (list level), the smallest of those that displace the most; where none displaces
    anything, no answer. What a prefix displaces is not monotone in c, so bisection may miss the smallest: all
    are tried, in rounds of growing size, until the unit is done. c is at most ``targets.max_edits``.
    """
    order = ImportanceOrder.of(targets, importances)
    longest = np.minimum(order.lengths, targets.budget)
    all_of_it = np.count_nonzero(targets.items >= 0, axis=1)
    most, prefix = np.zeros(len(targets), dtype=np.int64), np.zeros(len(targets), dtype=np.int64)
    tried, width = 0, FIRST_ROUND
    while (searching := np.flatnonzero((most < all_of_it) & (longest > tried))).size:
        lengths = np.arange(tried + 1, tried + width + 1)
        row, column = np.nonzero(lengths <= longest[searching, None])
        units = searching[row]
        removals = OrderedRemovals(order, units, np.zeros_like(units), lengths[column])
        displaced = np.zeros((len(searching), width), dtype=np.int64)
        displaced[row, column] = count_displaced(model, targets, removals, units, interactions)
        best = displaced.argmax(axis=1)
        better = displaced.max(axis=1) > most[searching]
        prefix[searching[better]] = lengths[best[better]]
        most[searching[better]] = displaced.max(axis=1)[better]
        tried, width = tried + width, 2 * width
    units = np.arange(len(targets))
    return OrderedRemovals(order, units, np.zeros_like(units), prefix).edits()


def verify(
    model: ScoringModel, targets: Targets, edits: Edits, interactions: scipy.sparse.csr_matrix
) -> Edits:
    """The same edits; one that displaces nothing on the real model becomes "no answer"."""
    displaced = count_displaced(model, targets, edits, np.arange(len(targets)), interactions)
    return edits.where(displaced[edits.rows] > 0)


def prune(
    model: ScoringModel, targets: Targets, edits: Edits, interactions: scipy.sparse.csr_matrix
) -> Edits:
    """Takes edges back, one at a time in their order, as long as no fewer items are displaced.

    Goes round and round until no single edge can be taken back. An edit that displaces nothing is left as it
    is (that is for :func:`verify`). All units take their turns together; when few are left, each tries
    several edges ahead at once, and the first that can be taken back is, as if they had been tried one after
    the other.
    """
    displaced = count_displaced(model, targets, edits, np.arange(len(targets)), interactions)
    place = np.zeros(len(targets), dtype=np.int64)  # which of its edges a unit tries next
    in_vain = np.zeros(len(targets), dtype=np.int64)  # how many it has tried since it last took one back
    while (trying := np.flatnonzero((displaced > 0) & (in_vain < edits.counts()))).size:
        lengths = edits.counts()[trying]
        first = np.searchsorted(edits.rows, trying)
        width = max(1, BLOCK // len(trying))
        row, ahead = np.nonzero(np.arange(width) < (lengths - in_vain[trying])[:, None])
        edge = first[row] + (place[trying[row]] + ahead) % lengths[row]
        trials = _AllButOne(edits, trying[row], edge)
        now = np.zeros((len(trying), width), dtype=np.int64)
        now[row, ahead] = count_displaced(model, targets, trials, trying[row], interactions)

        good = now >= displaced[trying, None]
        best, found = good.argmax(axis=1), good.any(axis=1)
        back = (place[trying] + best) % lengths  # the place of the edge that is taken back, if one is
        place[trying] = np.where(found, back, place[trying] + width)
        in_vain[trying] = np.where(found, 0, in_vain[trying] + width)
        displaced[trying] = np.where(found, now[np.arange(len(trying)), best], displaced[trying])
        retained = np.ones(len(edits.rows), dtype=bool)
        retained[(first + back)[found]] = False
        edits = edits.where(retained)
    return edits


def can_take_one_back(
    model: ScoringModel,
    targets: Targets,
    edits: Edits,
    displaced: IntArray,
    interactions: scipy.sparse.csr_matrix,
) -> BoolArray:
    """(B,) whether some single edge of edit b can be taken back while ``displaced[b]`` items stay displaced.

    False where ``displaced`` is 0. Edges are tried in rounds of growing size, until one is found or all are
    tried.
    """
    found = np.zeros(len(targets), dtype=bool)
    first, lengths = np.searchsorted(edits.rows, np.arange(len(targets))), edits.counts()
    tried, width = 0, FIRST_ROUND
    while (searching := np.flatnonzero(~found & (displaced > 0) & (lengths > tried))).size:
        places = np.arange(tried, tried + width)
        row, column = np.nonzero(places < lengths[searching, None])
        units = searching[row]
        trials = _AllButOne(edits, units, first[units] + places[column])
        enough = count_displaced(model, targets, trials, units, interactions) >= displaced[units]
        found[units[enough]] = True
        tried, width = tried + width, 2 * width
    return found


@dataclass(frozen=True)
class _AllButOne:
    """P edits, made when they are scored: edit ``which[p]`` of ``whole`` without its edge ``edge[p]``."""

    whole: Edits
    which: IntArray
    edge: IntArray

    def __len__(self) -> int:
        return len(self.which)

    def choose(self, which: IntArray) -> _AllButOne:
        return _AllButOne(self.whole, self.which[which], self.edge[which])

    def edits(self) -> Edits:
        chosen = self.whole.choose(self.which)
        first = np.searchsorted(chosen.rows, np.arange(len(self)))
        retained = np.ones(len(chosen.rows), dtype=bool)
        retained[first + self.edge - np.searchsorted(self.whole.rows, self.which)] = False
        return chosen.where(retained)

    def profiles(self, interactions: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
        return self.edits().profiles(interactions)
