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
returns the same set for 17 with the same random numbers, with a Jaccard index of .92 and PN-S 1.0 for both; with others for
7, with an index of .78 (``benchmarks/authors_graph_searches.py``, ``docs/results/authors-graph-searches.csv``).

Detail ``surrogate error``: the mean square of S - F without dropout, over the variance of F. Cost: ``surrogate_steps``
and ``steps`` passes over the subgraph for each unit, some seconds; a query for each set of removed edges.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_recsys.edits import REMOVE, Edits, FloatArray, IntArray
from cfbench_recsys.ranking import ranks_of
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.scoring import score_once
from cfbench_recsys.targets import Answer, Context, Targets

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code."""

    hidden: Annotated[int, Range(minimum=1), Help("units of the surrogate's hidden layer")] = 800
    dropout: Annotated[float, Range(minimum=0, below=1), Help("in the surrogate, in both phases")] = 0.8
    surrogate_steps: Annotated[int, Range(minimum=1), Help("of fitting the surrogate")] = 1666
    surrogate_learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.001
    weight_decay: Annotated[float, Range(minimum=0), Help("of Adam")] = 5e-4
    steps: Annotated[int, Range(minimum=1), Help("of the search")] = 360
    learning_rate: Annotated[float, Range(above=0), Help("of the search, by plain gradient descent")] = 0.1
    clip: Annotated[float, Range(above=0), Help("maximum norm of the gradient")] = 10.0


FIT_SHARE = 0.99
"""Of the nodes, on which the surrogate is fitted."""


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


class Subgraph:
    """The edges in scope of a unit and the nodes that they join; users come before items.

    Attributes:
        edges: (E, 2) user and item of each edge. ends: the same as two tensors of node numbers.
        features, labels: (n, d) float32 tensors X and F.
        user, items: the nodes of the unit's user and of its items.
    """

    def __init__(self, unit: Targets, context: Context, first: Any, final: Any) -> None:
        import torch

        scope = edges_in_scope(context.interactions, unit)
        wanted = unit.items[0][unit.items[0] >= 0]
        users = np.union1d(scope.users, unit.users)
        items = np.union1d(scope.items, wanted)
        order = np.lexsort((scope.items, scope.users))
        self.edges = np.stack([scope.users[order], scope.items[order]], axis=1)
        ends = np.searchsorted(users, self.edges[:, 0]), len(users) + np.searchsorted(items, self.edges[:, 1])
        self.ends = torch.as_tensor(ends[0]), torch.as_tensor(ends[1])
        self.size = len(users) + len(items)
        self.features, self.labels = (
            torch.as_tensor(np.concatenate([sides[0][users], sides[1][items]]).astype(np.float32))
            for sides in (first, final)
        )
        self.user = int(np.searchsorted(users, unit.users[0]))
        self.items = (len(users) + np.searchsorted(items, wanted)).tolist()

    def propagate(self, values: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """Â ``values`` (n, c), the edges having ``weights`` (E,); degrees are constants for gradients."""
        import torch

        left, right = self.ends
        fixed = weights.detach()
        degrees = torch.ones(self.size).index_add_(0, left, fixed).index_add_(0, right, fixed)
        scaled = values * degrees.rsqrt()[:, None]
        summed = scaled.index_add(0, left, weights[:, None] * scaled[right])
        summed = summed.index_add(0, right, weights[:, None] * scaled[left])
        return summed * degrees.rsqrt()[:, None]


class Surrogate:
    """The graph network of one unit."""

    def __init__(self, subgraph: Subgraph, options: PaperOptions, stream: np.random.Generator) -> None:
        import torch

        self.subgraph, self.options, self.stream = subgraph, options, stream
        self.draws = torch.Generator().manual_seed(int(stream.integers(2**62)))
        width = subgraph.features.shape[1]
        shapes = ((width, options.hidden), (options.hidden,), (options.hidden, width), (width,))
        self.parameters = [self._uniform(shape) for shape in shapes]

    def _uniform(self, shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        bound = 1 / math.sqrt(shape[-1])
        drawn = torch.rand(shape, generator=self.draws) * 2 * bound - bound
        return drawn.requires_grad_()

    def fit(self) -> float:
        """Fits W and b, which are constants afterwards; returns the relative error."""
        import torch

        options, subgraph = self.options, self.subgraph
        count = max(1, int(FIT_SHARE * subgraph.size))
        nodes = torch.as_tensor(self.stream.choice(subgraph.size, count, replace=False))
        optimizer = torch.optim.Adam(
            self.parameters, lr=options.surrogate_learning_rate, weight_decay=options.weight_decay
        )
        weights = torch.ones(len(subgraph.edges))
        smoothed = subgraph.propagate(subgraph.features, weights)
        wanted = subgraph.labels[nodes]
        for _ in range(options.surrogate_steps):
            optimizer.zero_grad()
            loss = (self._embeddings(smoothed, weights, dropout=True)[nodes] - wanted).square().mean()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        for parameter in self.parameters:
            parameter.requires_grad_(False)
        error = (self._embeddings(smoothed, weights, dropout=False) - subgraph.labels).square().mean()
        return float(error / subgraph.labels.var(correction=0).clamp(min=1e-30))

    def score(self, weights: torch.Tensor) -> torch.Tensor:
        """The sum of S_u . S_i over the items of the unit, with dropout."""
        smoothed = self.subgraph.propagate(self.subgraph.features, weights)
        found = self._embeddings(smoothed, weights, dropout=True)
        return (found[self.subgraph.items] @ found[self.subgraph.user]).sum()

    def _embeddings(self, smoothed: torch.Tensor, weights: torch.Tensor, dropout: bool) -> torch.Tensor:
        """(n, d) S, from Â X."""
        import torch

        weight1, bias1, weight2, bias2 = self.parameters
        hidden = torch.relu(smoothed @ weight1 + bias1)
        if dropout and self.options.dropout:
            chance = torch.rand(hidden.shape, generator=self.draws)
            hidden = hidden * (chance >= self.options.dropout) / (1 - self.options.dropout)
        return self.subgraph.propagate(hidden @ weight2, weights) + bias2


def masks(
    score: Any, edges: int, options: PaperOptions
) -> Iterator[np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """Yields of each step the edges (E,) that the mask removes; ``score`` (weights) is what is minimised."""
    import torch

    p = torch.ones(edges, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=options.learning_rate)
    for _ in range(options.steps):
        weights = torch.sigmoid(p)
        score(weights).backward()  # added to the gradients of the steps before
        torch.nn.utils.clip_grad_norm_([p], options.clip)
        removed = (weights.detach() < 0.5).cpu().numpy()
        optimizer.step()
        yield removed


def search(
    subgraph: Subgraph, surrogate: Surrogate, unit: Targets, context: Context, options: PaperOptions
) -> Edits:
    """The edges without which the items are gone; none: an edit without edges."""
    wanted = np.count_nonzero(unit.items >= 0)
    known: dict[frozenset[int], IntArray] = {}

    def ranks(edges: list[int]) -> IntArray:
        """(wanted,) ranks of the items on the real model, those beyond K as K + 1."""
        key = frozenset(edges)
        if key not in known:
            scores = score_once(context.model, _edits(subgraph, unit, sorted(edges)), context.interactions)
            found = ranks_of(scores, unit.items, unit.history, unit.padding)[0]
            known[key] = np.minimum(found[unit.items[0] >= 0], unit.k + 1)
        return known[key]

    removed: list[int] = []
    worst = int(ranks(removed).sum())
    if len(subgraph.edges):
        for mask in masks(surrogate.score, len(subgraph.edges), options):
            for edge in np.flatnonzero(mask).tolist():
                if edge in removed:
                    continue
                removed.append(edge)
                total = int(ranks(removed).sum())
                if total == wanted * (unit.k + 1):
                    return _edits(subgraph, unit, sorted(removed))
                if total < worst:
                    removed.pop()
                worst = max(worst, total)
    success = bool((ranks(removed) > unit.k).any())
    return _edits(subgraph, unit, sorted(removed) if success else [])


def _edits(subgraph: Subgraph, unit: Targets, edges: list[int]) -> Edits:
    pairs = subgraph.edges[np.array(edges, dtype=np.int64)]
    rows, ops = np.zeros(len(pairs), dtype=np.int64), np.full(len(pairs), REMOVE, dtype=np.int8)
    return Edits(unit.users, rows, pairs[:, 0], pairs[:, 1], ops)
