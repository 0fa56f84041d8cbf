"""GREASE as published: a graph network fitted to each unit's subgraph, and descent on its edge mask.

Chen et al., "GREASE: Generate Factual and Counterfactual Explanations for GNN-based Recommendations", 2022
(arXiv:2208.04222), counterfactual part. Read from the authors' code (github.com/Mewtwo1996/GREASE, commit 965ff3f,
``Perturb_Sep.py``), which is followed where it differs from the paper. ``variant: paper`` of ``grease``.

With Â the adjacency matrix of the unit's subgraph with self-loops, symmetrically normalised, the surrogate is

    S = Â dropout(relu(Â X W1 + b1)) W2 + b2,

X the recommender's embeddings before propagation. W and b, uniform in +-1/sqrt(outputs) at first, are fitted by Adam
with weight decay: ``surrogate_steps`` steps on the mean square of S - F over 99% of the nodes, drawn once, F the
recommender's final embeddings; with dropout. Then they are constants, and each edge e has a parameter p_e = 1 and the
weight sigmoid(p_e) in Â. A step of the search:

1. g <- clip(g + d(S_u . S_i)/dp, norm 10): gradients are added up from step to step, as the published loop never sets
   them back, the degrees count as constants, and dropout is active.
2. The edges with sigmoid(p_e) < 1/2 that are not removed yet are removed from the recommender's graph, one by one
   in the order of user and item. If the item has left the top K, the removed edges are the answer. If its rank has become
   better than the worst so far, the edge is restored.
3. p <- p - learning_rate g.

The published loss has the number of removed edges, too; it has no gradient, as it is computed from the hard mask, so it
is left out here. Without a success within ``steps`` there is no answer. All numbers of the surrogate are float32, and
each unit is processed alone with a random stream of its own.

Adaptations:
- The subgraph is the edges in scope, in place of all edges among the nodes within two steps of user and item.
- Success is rank > K of the protocol, in place of 20. Items that the user has seen are no candidates, as published.
- At list level, which the authors do not have, S_u . S_i is summed over the items, ranks beyond K count as K + 1, and
  their sum takes the place of the rank. Without a complete success the edges removed at the end are the answer, if an
  item left.
- X is F where the recommender has no embeddings before propagation.
- An answer with more edges than the protocol allows is none.

Agreement with the authors' networks: on the first items of 20 users of Amazon Fashion (LightGCN, K = 5, k-hop 3) it
returns the same set for 19 with the same random numbers, with a Jaccard index of .995 and PN-S 1.0 for both; with others for
12, with an index of .92 (``benchmarks/authors_graph_searches.py``, ``docs/results/authors-graph-searches.csv``).

Detail ``surrogate error``: the mean square of S - F without dropout, over the variance of F. Cost: ``surrogate_steps``
and ``steps`` passes over the subgraph for each unit, some seconds; a query for each set of removed edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from cfbench_explainers_native.grease_surrogate import PaperOptions, Slopes, Subgraph, Surrogate
from cfbench_recsys.edits import REMOVE, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.scoring import score_once
from cfbench_recsys.targets import Answer, Context, Targets

if TYPE_CHECKING:
    import torch


def paper_answer(targets: Targets, context: Context, options: PaperOptions) -> Answer:
    """One edit for each unit, and the error of its surrogate."""
    first, final = embeddings(context)
    found: list[Edits] = []
    errors = np.empty(len(targets))
    for unit in range(len(targets)):
        one = targets.take(slice(unit, unit + 1))
        subgraph = Subgraph(one, context, first, final)
        items = (int(item) for item in one.items[0])
        stream = context.generator("grease", int(one.users[0]), *items)
        surrogate = Surrogate(subgraph, options, stream)
        errors[unit] = surrogate.fit()
        found.append(search(subgraph, surrogate, one, context, options))
    return Answer(targets.within_budget(Edits.concatenate(found)), {"surrogate error": errors})


def embeddings(context: Context) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
    """The recommender's (users, d) and (items, d) before propagation, and after it."""
    model = context.graph_embedding_model
    final = model.user_embeddings(), model.item_embeddings()
    state = model.state() if hasattr(model, "state") else {}
    if USERS in state and ITEMS in state:
        return (state[USERS], state[ITEMS]), final
    return final, final


def masks(
    slope: Callable[[torch.Tensor], torch.Tensor], edges: int, options: PaperOptions
) -> Iterator[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Yields of each step the edges (E,) that the mask removes; ``slope`` (weights) is the gradient of what is minimised."""
    import torch

    p, gradient = torch.ones(edges), torch.zeros(edges)
    for _ in range(options.steps):
        weights = torch.sigmoid(p)
        gradient += slope(weights) * weights * (1 - weights)  # added to the gradients of the steps before
        gradient *= (options.clip / (gradient.norm() + 1e-6)).clamp(max=1.0)
        p -= options.learning_rate * gradient
        yield (weights < 0.5).cpu().numpy()


def search(
    subgraph: Subgraph, surrogate: Surrogate, unit: Targets, context: Context, options: PaperOptions
) -> Edits:
    """The edges without which the items are gone; none: an edit without edges."""
    import torch

    wanted = np.count_nonzero(unit.items >= 0)
    known: dict[frozenset[int], IntArray] = {}

    def ranks(edges: list[int]) -> IntArray:
        """(wanted,) ranks of the items on the real model, those beyond K as K + 1."""
        key = frozenset(edges)
        if key not in known:
            scores = score_once(context.model, _edits(subgraph, unit, sorted(edges)), context.interactions)
            found = ranks_of(scores, unit.items, *unit.seen)[0]
            known[key] = np.minimum(found[unit.items[0] >= 0], unit.k + 1)
        return known[key]

    removed: list[int] = []
    worst = int(ranks(removed).sum())
    if len(subgraph.edges):
        slopes = Slopes(surrogate, torch.sigmoid(torch.ones(len(subgraph.edges))))
        for mask in masks(slopes.of, len(slopes.edges), options):
            for edge in slopes.edges[mask].tolist():
                if edge in removed:
                    continue
                removed.append(edge)
                total = int(ranks(removed).sum())
                if total == wanted * (unit.k + 1):
                    return _edits(subgraph, unit, sorted(removed))
                if total < worst:
                    removed.pop()
                elif len(removed) > unit.budget:
                    return Edits.nothing(unit.users)  # none of them is restored any more
                worst = max(worst, total)
    success = bool((ranks(removed) > unit.k).any())
    return _edits(subgraph, unit, sorted(removed) if success else [])


def _edits(subgraph: Subgraph, unit: Targets, edges: list[int]) -> Edits:
    pairs = subgraph.edges[np.array(edges, dtype=np.int64)]
    rows, ops = np.zeros(len(pairs), dtype=np.int64), np.full(len(pairs), REMOVE, dtype=np.int8)
    return Edits(unit.users, rows, pairs[:, 0], pairs[:, 1], ops)
