"""PRINCE: the fewest of a user's interactions without which random walks prefer another item.

Ghazimatin, Balalau, Saha Roy & Weikum, "PRINCE: Provider-side Interpretability with Counterfactual
Explanations in Recommender Systems", WSDM 2020. Its question is about a recommender that is Personalised
PageRank; CFExpRec (section 3.4.1) applies it to any recommender, with PageRank on the interactions as a stand-in.

A walker starts at user u, goes to one of the remaining interactions S \\ A of u, and on over the graph, stopping at
each node with probability alpha; a walker that returns to u leaves along S \\ A again. Let q(i, v) be the
probability to stop at v, from item i, without coming back to u. Then (the idea of the paper, in our terms)

    PPR(u, v; A) = g(A) sum over i in S \\ A of q(i, v),        g(A) > 0 the same for all v,

so the replacement c passes the explained y if and only if sum_{i in S \\ A} (q(i, y) - q(i, c)) < 0. The smallest
such A takes the largest differences first: sort, and stop when the sum changes sign. That is done for each of
``candidates`` replacements, the items that the recommender itself ranks at K+1, K+2, ...

q follows from Personalised PageRank pi among training users (``personalised_pagerank.py``), which is the same
for all explained users. For u, each item i in S has one more neighbour, u, where walks end:

    (1 + pi_SS diag(1 / (alpha d_i))) q_S = pi_Sv          d_i training users of i; q(i, v) = 0 where there are none.

PageRank is not the recommender. The sets that PageRank calls successful are tried on the recommender, the
smallest first (then that of the better ranked replacement), at most ``attempts`` of them; the first with which
y leaves the top K is the answer, if it has no more edits than the protocol allows. The detail ``ppr_success`` says
whether PageRank had any set to offer.

As in the paper, an action is an edge that leaves u: what leads from items to u stays when it is removed.
Departs from the paper: the graph holds training users and the explained user, but no other explained user.
A replacement that PageRank prefers before anything is removed says nothing of removals, and is passed over;
where PageRank prefers all of them, or the user has no interactions, there is no answer. Removing the whole history
leaves no walk, which is no success. No self-loop at u: it would only scale g.

``variant: paper`` returns what the authors' code (repository azinmatin/prince, commit 570e5e2) returns: one set, the
smallest, whether the recommender agrees or not; among equally small ones, that which gives the replacement the largest lead.
There PageRank is the recommender, so that nothing needs to be tried. On a generated graph of 60 users and 40 items, with
the same candidates, 10 of 10 answers are identical, and 26 of 30 of the sets that ``variant: cfbench`` tries first
(``docs/results/authors-native.csv``). Theirs never removes the whole history
either, and allows for the error of its push.

Cost: one model query for each user, and at most ``attempts`` for each unit (``variant: paper``: none); the proximity of
all items once (beyond 6000 items, of those in question once for each batch), and for each user a system as large as
the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import scipy  # scipy.linalg is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.personalised_pagerank import EXACT_UP_TO, PUSH_ERROR, ItemProximity
from cfbench_recsys.answers import count_displaced
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.targets import Answer, Context, Targets

SPEC = ComponentSpec(
    id="recsys/explainer/prince",
    summary="The fewest interactions without which random walks prefer another item",
    target=f"{__name__}:Prince",
    config=f"{__name__}:Config",
    provides={
        "format": {"explicit"},
        "level": {"item"},
        "scope": {"user-vector", "user-only"},
        "edit": {"remove"},
    },
    needs={"recommender": {"access": {"scores"}}},
    papers=("ghazimatin2020prince",),
    presets="cfbench_explainers_native:presets/prince.yaml",
)

GRID = 2.0**44
"""Differences of probabilities are compared in whole steps of 1 / GRID: sums of them are exact, ties are ties."""


ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[
        Variant, Help("cfbench: the first set with which the recommender agrees; paper: one set, not tried")
    ] = "cfbench"
    alpha: Annotated[
        float, Range(above=0, below=1), Search(0.05, 0.5), Help("probability that a walk stops at a node")
    ] = 0.15
    eps: Annotated[
        float | None,
        Range(above=0),
        Help("error of reverse local push; none: no error up to 6000 items, beyond that 1e-7"),
    ] = None
    candidates: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(5, 10, 20, 50)),
        Help("replacements: so many of the recommender's next items, from rank K+1 on"),
    ] = 20
    attempts: Annotated[
        int, Range(minimum=1), Help("variant cfbench: sets tried on the recommender, the smallest first")
    ] = ATTEMPTS

    def __post_init__(self) -> None:
        if self.variant == "paper" and self.attempts != ATTEMPTS:
            raise UserError("attempts: is an option of variant: cfbench; variant: paper tries no set")


class Prince:
    def __init__(self, config: Config) -> None:
        self.config = config

    def counterfactuals(self, targets: Targets, context: Context) -> Answer:
        """For each unit a set of its own interactions, and whether PageRank had one."""
        proposals = self._proposals(targets, context)
        if self.config.variant == "paper":
            chosen = np.zeros(targets.history.shape, dtype=np.bool_)
            for unit, own in enumerate(proposals):
                chosen[unit, own[0] if own else []] = True
        else:
            chosen = self._first_that_works(proposals, targets, context)
        succeeded = np.array([float(len(own) > 0) for own in proposals])
        edits = targets.within_budget(Edits.removals(targets.users, targets.history, chosen))
        return Answer(edits, {"ppr_success": succeeded})

    def _proposals(self, targets: Targets, context: Context) -> list[list[IntArray]]:
        """For each unit the sets of PageRank, smallest first, as positions in its history."""
        by_lead = self.config.variant == "paper"
        users, first, owners = np.unique(targets.users, return_index=True, return_inverse=True)
        next_items = self._next_items(targets.take(first), context)
        fixed = np.array(targets.fixed, dtype=np.int64)
        wanted = np.concatenate(
            [targets.history[~targets.padding], fixed, targets.items.ravel(), next_items.ravel()]
        )
        proximity = self._proximity(wanted[wanted >= 0], context)
        popularity = np.bincount(context.training.indices, minlength=context.training.shape[1])
        units_of = np.argsort(owners, kind="stable")
        starts = np.searchsorted(owners[units_of], np.arange(len(users) + 1))
        found: list[list[IntArray]] = [[] for _ in range(len(targets))]
        for user, unit in enumerate(first):
            units = units_of[starts[user] : starts[user + 1]]
            history = targets.history[unit][~targets.padding[unit]]
            others = next_items[user][next_items[user] >= 0]
            items = np.concatenate([targets.items[units, 0], others])
            starts_of_walks = np.append(history, fixed)
            q = without_return(
                proximity, starts_of_walks, items, popularity[starts_of_walks], self.config.alpha
            )
            for place, own in enumerate(units):
                differences = q[:, place, None] - q[:, len(units) :]
                found[own] = smallest_sets(differences[: len(history)], differences[len(history) :], by_lead)
        return found

    def _proximity(self, wanted: IntArray, context: Context) -> ItemProximity:
        """Of all items once, where that is possible; else of those that are wanted."""
        alpha, eps = self.config.alpha, self.config.eps
        if eps is None and context.training.shape[1] <= EXACT_UP_TO:
            return context.cached("proximity", lambda: ItemProximity.exact(context.training, alpha))
        return ItemProximity.pushed(context.training, wanted, alpha, eps or PUSH_ERROR)

    def _next_items(self, targets: Targets, context: Context) -> IntArray:
        """(B, candidates) the items that the recommender ranks behind the top K, -1 where there are no more."""
        count = targets.k + self.config.candidates
        lists = np.empty((len(targets), count), dtype=np.int64)
        untouched = Edits.nothing(targets.users)
        seen, absent = targets.seen
        for rows, scores in score_blocks(context.model, untouched, context.interactions):
            lists[rows] = top_k(scores, seen[rows], absent[rows], count)
        return lists[:, targets.k :]

    def _first_that_works(
        self, proposals: list[list[IntArray]], targets: Targets, context: Context
    ) -> BoolArray:
        """(B, H) the first set of each unit, if any, with which its item leaves the top K."""
        chosen = np.zeros(targets.history.shape, dtype=np.bool_)
        searching = np.arange(len(targets))
        for attempt in range(self.config.attempts):
            searching = np.array([u for u in searching if len(proposals[u]) > attempt], dtype=np.int64)
            if not len(searching):
                break
            removed = np.zeros((len(searching), chosen.shape[1]), dtype=np.bool_)
            for row, unit in enumerate(searching):
                removed[row, proposals[unit][attempt]] = True
            edits = Edits.removals(targets.users[searching], targets.history[searching], removed)
            succeeds = count_displaced(context.model, targets, edits, searching, context.interactions) > 0
            chosen[searching[succeeds]] = removed[succeeds]
            searching = searching[~succeeds]
        return chosen


def without_return(
    proximity: ItemProximity, history: IntArray, items: IntArray, popularity: IntArray, alpha: float
) -> FloatArray:
    """(H, len(items)) q(i, v), for a user with ``history`` who is added to the training users.

    popularity (H,): training users of each item of the history. ``items`` are not in the history.
    """
    q = np.zeros((len(history), len(items)))
    known = np.flatnonzero(popularity)
    if len(known):
        sources = history[known]
        system = proximity.between(sources, sources) / (alpha * popularity[known])
        system[np.diag_indices(len(known))] += 1.0
        q[known] = scipy.linalg.solve(system, proximity.between(sources, items), check_finite=False)
    return q


def smallest_sets(
    differences: FloatArray, staying: FloatArray | None = None, by_lead: bool = False
) -> list[IntArray]:
    """The smallest set of rows for each column whose removal makes the column's sum negative, smallest first.

    differences (H, C); staying (F, C): further rows, which cannot be removed. Columns with a negative sum to begin with, and
    those that no removal makes negative, have none. Equal sets are named once; equally large ones in the order of the
    columns, or ``by_lead``: the lowest sum first. No rows, no sets.
    """
    if not len(differences):
        return []
    steps = np.rint(differences * GRID)
    order = np.argsort(-steps, axis=0, kind="stable")
    whole = steps.sum(axis=0)
    if staying is not None:
        whole = whole + np.rint(staying * GRID).sum(axis=0)
    left = whole - np.cumsum(np.take_along_axis(steps, order, axis=0), axis=0)
    negative = left < 0
    sizes = np.where(negative.any(axis=0) & (whole >= 0), negative.argmax(axis=0) + 1, 0)
    lead = left[np.maximum(sizes - 1, 0), np.arange(len(sizes))] if by_lead else np.zeros(len(sizes))
    columns = [c for c in np.lexsort((lead, sizes)) if sizes[c]]
    sets = {tuple(np.sort(order[: sizes[c], c])): None for c in columns}
    return [np.array(chosen) for chosen in sets]
