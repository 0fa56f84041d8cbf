"""Vectors of users and items from the interactions: LightGCN.

He et al., "LightGCN: simplifying and powering graph convolution network for recommendation", SIGIR 2020. With E the
(users + items, d) trained embeddings and A~ = D^-1/2 A D^-1/2 the normalised adjacency of the training rows,

    F = 1/(L+1) sum_{l=0..L} A~^l E,        s(u, i) = F_u . F_i.

E minimises -log sigmoid(s(u, i) - s(u, j)) (BPR), with L2 on the embeddings of the batch; j is drawn for each (u, i)
in each epoch from the items that u has not reviewed in training. As in the paper, ratings are ignored.

After every ``EVERY`` epochs the same loss is computed on the validation pairs with fixed negative items. The best E is
selected, and training stops after ``patience`` evaluations without improvement. Without validation pairs it runs all
epochs. (The suite ``recsys`` has a LightGCN as well; suites do not import each other.)

With ``published`` F is the sum over the layers, E is drawn uniformly, and the L2 is on F of the batch, not divided by its
size: the encoder of XRec's authors (github HKUDS/XRec), who select the epoch by the recall of the validation pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

Pairs = np.ndarray[Any, np.dtype[np.int64]]
"""(N, 2) numbers of users and items, from 0."""

EVERY = 5
DRAWN = 20
"""Negative items for each validation pair."""


@dataclass(frozen=True)
class Settings:
    dimensions: int
    layers: int
    epochs: int
    learning_rate: float
    patience: int
    l2: float = 1e-4
    batch: int = 1024
    published: bool = False
    """Sum, start and L2 of the encoder of XRec's authors."""


@dataclass(frozen=True)
class Seen:
    """Which items a user has reviewed, to draw negative items."""

    users: int
    items: int
    codes: Pairs
    """Sorted, user * items + item."""

    @staticmethod
    def of(pairs: Pairs, users: int, items: int) -> Seen:
        return Seen(users, items, np.unique(pairs[:, 0] * items + pairs[:, 1]))

    @property
    def pairs(self) -> Pairs:
        """Each once."""
        return np.stack(np.divmod(self.codes, self.items), axis=1)

    def with_others(self, pairs: Pairs) -> Pairs:
        """The pairs whose user has not reviewed all items."""
        counts = np.bincount(self.codes // self.items, minlength=self.users)
        return pairs[counts[pairs[:, 0]] < self.items]

    def draw(self, users: Pairs, draw: np.random.Generator) -> Pairs:
        """For each user an item that the user has not reviewed, uniformly distributed."""
        found = draw.integers(self.items, size=len(users))
        again = np.flatnonzero(self._theirs(users, found))
        while len(again):
            found[again] = draw.integers(self.items, size=len(again))
            again = again[self._theirs(users[again], found[again])]
        return found

    def _theirs(self, users: Pairs, items: Pairs) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.isin(users * self.items + items, self.codes)


def graph_of(seen: Seen, device: Any) -> Tensor:
    """The sparse symmetric A~; users first, then items."""
    import torch

    users, items = seen.pairs.T
    size = seen.users + seen.items
    rows, columns = np.concatenate([users, items + seen.users]), np.concatenate([items + seen.users, users])
    degrees = np.bincount(rows, minlength=size).astype(np.float64)
    values = 1.0 / np.sqrt(degrees[rows] * degrees[columns])
    places = torch.from_numpy(np.stack([rows, columns]))
    found = torch.sparse_coo_tensor(
        places, torch.from_numpy(values).float(), (size, size), check_invariants=True
    )
    return found.coalesce().to(device)


def propagated(graph: Tensor, first: Tensor, layers: int, published: bool = False) -> Tensor:
    """F, the mean of E after 0 to L steps over the graph; the sum with ``published``."""
    import torch

    total = step = first
    for _ in range(layers):
        step = torch.sparse.mm(graph, step)
        total = total + step
    return total if published else total / (layers + 1)


def bpr(vectors: Tensor, seen: Seen, pairs: Pairs, others: Pairs) -> Tensor:
    """The mean loss of (user, item) against (user, other item)."""
    import torch
    from torch.nn.functional import softplus

    u, i, j = (
        vectors[torch.from_numpy(numbers).to(vectors.device)]
        for numbers in (pairs[:, 0], seen.users + pairs[:, 1], seen.users + others)
    )
    return softplus(-(u * (i - j)).sum(dim=1)).mean()


def learned_vectors(
    train: Pairs,
    validation: Pairs,
    shape: tuple[int, int],
    settings: Settings,
    draw: np.random.Generator,
    device: Any,
    report: Callable[[float], None] = lambda loss: None,
) -> tuple[Tensor, Tensor]:
    """F of the users (U, d) and of the items (I, d).

    Torch is seeded by the caller.

    Args:
        shape: numbers of users and items.
        report: receives the validation loss at each evaluation.
    """
    import torch

    seen = Seen.of(train, *shape)
    graph = graph_of(seen, device)
    first = torch.empty(sum(shape), settings.dimensions)
    if settings.published:
        for part in (first[: shape[0]], first[shape[0] :]):
            torch.nn.init.xavier_uniform_(part)
    else:
        torch.nn.init.xavier_normal_(first)
    first = first.to(device).requires_grad_()
    pairs, judged = seen.with_others(seen.pairs), seen.with_others(validation).repeat(DRAWN, axis=0)
    others = seen.draw(judged[:, 0], draw)
    optimizer = torch.optim.Adam([first], lr=settings.learning_rate)
    best, best_vectors, since = math.inf, first.detach().clone(), 0
    for epoch in range(settings.epochs):
        order = draw.permutation(len(pairs))
        for start in range(0, len(order), settings.batch):
            batch = pairs[order[start : start + settings.batch]]
            _step(optimizer, first, graph, seen, batch, seen.draw(batch[:, 0], draw), settings)
        if len(judged) and (epoch + 1) % EVERY == 0:
            with torch.no_grad():
                vectors = propagated(graph, first, settings.layers, settings.published)
                loss = float(bpr(vectors, seen, judged, others))
            report(loss)
            since += 1
            if loss < best:
                best, best_vectors, since = loss, first.detach().clone(), 0
            if since >= settings.patience:
                break
    with torch.no_grad():
        chosen = best_vectors if best < math.inf else first
        found = propagated(graph, chosen, settings.layers, settings.published)
    return found[: shape[0]], found[shape[0] :]


def _step(
    optimizer: Any, first: Tensor, graph: Tensor, seen: Seen, pairs: Pairs, others: Pairs, settings: Settings
) -> None:
    optimizer.zero_grad()
    step_loss(first, graph, seen, pairs, others, settings).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def step_loss(
    first: Tensor, graph: Tensor, seen: Seen, pairs: Pairs, others: Pairs, settings: Settings
) -> Tensor:
    """The loss of a batch of (user, item) against (user, other item), with L2."""
    import torch

    vectors = propagated(graph, first, settings.layers, settings.published)
    loss = bpr(vectors, seen, pairs, others)
    used = np.concatenate([pairs[:, 0], seen.users + pairs[:, 1], seen.users + others])
    places = torch.from_numpy(used).to(first.device)
    if settings.published:
        return loss + settings.l2 * vectors[places].square().sum()
    return loss + settings.l2 * first[places].square().sum() / len(pairs) / 2
