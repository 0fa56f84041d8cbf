"""LightGCN: embeddings smoothed over the user-item graph, and nothing else.

He et al., "LightGCN: simplifying and powering graph convolution network for recommendation", SIGIR 2020. With
E (nodes, d) the embeddings of users and items and Ã = D^-1/2 A D^-1/2 the normalised graph (see
``bipartite_graph.py``),

    P = 1/(L+1) sum_{l=0..L} Ã^l,        F = P E,        s(u)_i = F_u . F_i.

Training as in the paper: BPR, -log sigmoid(s(u)_i - s(u)_j), with L2 on the embeddings E of a batch, Adam,
the whole graph propagated for each batch. Departs from it in the sampling: ``negatives`` items j are drawn
for a whole batch and serve all its (u, i), which is one matrix product; pairs (u, j) that are interactions
are left out. Batches are larger and so is the learning rate, because every step costs a propagation. The
epoch with the best NDCG@10 on validation data is kept.

Scores under an edit of the graph: E stays, Ã follows the edit, degrees included (papers 000's code keeps the
old degrees out of the gradient). Instead of smoothing d columns again for every edit, only one column is sent
there and back:

    p = P e_u          (nodes,)    one column, from the unit vector of u
    F_u = E^T p        (d,)
    s(u) = (P E F_u) restricted to the items,   one column again,

so B edits are B columns of one matrix, L sparse products there (the first is a look-up) and L back. Exact for
any edits: removals and additions, anybody's edges. Float64. An edit that changes nothing is scored from the
final embeddings. Cost: O(L (edges + edited edges)) for each edit, memory O(edges + B nodes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from scipy import sparse

from cfbench_core.config import Help, InputFile, Range
from cfbench_core.errors import UserError
from cfbench_recsys.edits import ADD, BoolArray, Edits, FloatArray
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.training import (
    Keep,
    State,
    Stopping,
    check_shapes,
    sample_of,
    torch_device,
    train,
)
from cfbench_recsys.splits import Split

USERS, ITEMS = "user_embedding.weight", "item_embedding.weight"


@dataclass(frozen=True, kw_only=True)
class Config:
    dimensions: Annotated[int, Range(minimum=1), Help("length of the embeddings")] = 64
    layers: Annotated[int, Range(minimum=1), Help("steps over the graph; the mean of 0..layers is taken")] = 3
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.03
    l2: Annotated[float, Range(minimum=0), Help("weight of the squared embeddings")] = 1e-3
    negatives: Annotated[int, Range(minimum=1), Help("items drawn for each batch")] = 64
    batch: Annotated[
        int | None,
        Range(minimum=1),
        Help("interactions in a batch; none: 2048, or a sixteenth of all if more"),
    ] = None
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 300
    patience: Annotated[
        int, Range(minimum=1), Help("looks without a better validation NDCG@10 before stopping")
    ] = 10
    every: Annotated[int, Range(minimum=1), Help("epochs between two looks at the validation data")] = 2
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Help("auto: cuda where there is one")] = "auto"


class LightGCN:
    def __init__(self, config: Config) -> None:
        self.config = config

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        keep: Keep | None = None,
    ) -> dict[str, Any]:
        """Trains on the graph ``split.train``, to score ``split.profiles``. Returns a summary.

        Raises:
            UserError: if there are users to recommend to whom training never sees.
        """
        unknown = (np.diff(split.profiles.indptr) > 0) & (np.diff(split.train.indptr) == 0)
        if unknown.any():
            raise UserError(
                f"lightgcn: {unknown.sum()} users have no training interactions, hence no embedding; "
                "use a split that divides the interactions, not the users"
            )
        training = _Training(split.train, self.config, generator)
        validation = sample_of(split.validation, generator("lightgcn", "validation"))

        def validate() -> Mapping[str, float]:
            users, items = training.final_embeddings()
            return ranking_quality(lambda rows: users[validation.users[rows]] @ items.T, validation)

        stopping = Stopping(self.config.epochs, self.config.patience, self.config.every)
        best, summary = train(training.epoch, validate, training.state, stopping, report, keep)
        self.load_state(best, split.profiles)
        return summary

    def state(self) -> State:
        """user_embedding.weight (users, d) and item_embedding.weight (items, d): E, before propagation."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: sparse.csr_matrix) -> None:
        """Takes up what :meth:`state` gave, to score the graph ``interactions`` (users, items).

        Raises:
            UserError: if there is not one embedding for each user and item, all of one length.
        """
        import torch

        from cfbench_recsys.bipartite_graph import BipartiteGraph, Propagation

        users, items = interactions.shape
        length = state[USERS].shape[-1] if USERS in state else self.config.dimensions
        check_shapes("lightgcn", state, {USERS: (users, length), ITEMS: (items, length)})
        self._state = dict(state)
        self._interactions = interactions
        self.device = torch_device(self.config.device)
        self._users, self._items = (
            torch.from_numpy(np.asarray(state[name], dtype=np.float64)).to(self.device)
            for name in (USERS, ITEMS)
        )
        self._graph = BipartiteGraph(interactions, self.device)
        propagation = Propagation(interactions, torch.float64, self.device)
        final = propagation.mean_of_layers(self._users, self._items, self.config.layers)
        self._final_users, self._final_items = (side.cpu().numpy() for side in final)

    def user_embeddings(self) -> FloatArray:
        """(users, d) final embeddings F: a logit is their product with those of the items."""
        return self._final_users.copy()

    def item_embeddings(self) -> FloatArray:
        """(items, d) final embeddings F."""
        return self._final_items.copy()

    def score_edits(self, edits: Edits) -> FloatArray:
        """(B, items) logits of ``edits.users``, each on its edited graph.

        Removing an edge that is not there, adding one that is, or naming an edge twice changes nothing.
        """
        import torch

        edits = edits.where(_effective(edits, self._interactions))
        edited = edits.counts() > 0
        scores: FloatArray = np.empty((len(edits), self._interactions.shape[1]))
        if not edited.all():
            scores[~edited] = (self._final_users[edits.users] @ self._final_items.T)[~edited]
        if edited.any():
            arrays = (edits.users, edits.rows, edits.edge_users, edits.edge_items)
            users, rows, edge_users, edge_items = (torch.from_numpy(a).to(self.device) for a in arrays)
            delta = torch.from_numpy(edits.ops.astype(np.float64)).to(self.device)
            with torch.no_grad():
                found = self.score_weighted(users, rows, edge_users, edge_items, delta)
            scores[edited] = found.cpu().numpy()[edited]
        return scores

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """(B, items) float64 logits as a torch tensor, differentiable in ``delta``, through the degrees too.

        users (B,); edges rows, edge_users, edge_items (E,): int64 tensors. delta (E,) float64: the weight of
        edge e in the graph of edit rows[e] is (1 if it exists else 0) + delta[e]; edges named twice add up.
        """
        graphs = self._graph.edited(len(users), rows, edge_users, edge_items, delta)
        layers = self.config.layers
        values, on_items = graphs.to_items_from(users), True  # layer 1; layer 0 is the unit vector of u
        item_sum, user_sum = values, None
        for _ in range(layers - 1):
            values = graphs.to_users(values) if on_items else graphs.to_items(values)
            on_items = not on_items
            if on_items:
                item_sum = item_sum + values
            else:
                user_sum = values if user_sum is None else user_sum + values
        embedding = self._users[users].T + self._items.T @ item_sum  # (d, B)
        if user_sum is not None:
            embedding = embedding + self._users.T @ user_sum
        embedding = embedding / (layers + 1)

        # Back by Horner's rule, v + Ã (v + Ã (v + ...)), on the side that ends at the items
        user_values, item_values = self._users @ embedding, self._items @ embedding
        on_items = layers % 2 == 0
        values = item_values if on_items else user_values
        for _ in range(layers):
            values = (
                user_values + graphs.to_users(values) if on_items else item_values + graphs.to_items(values)
            )
            on_items = not on_items
        return values.T / (layers + 1)


def _effective(edits: Edits, interactions: sparse.csr_matrix) -> BoolArray:
    """(E,) the edges whose weight really changes; of an edge named twice in one edit, the last one counts."""
    users, items = interactions.shape
    edge = edits.edge_users * items + edits.edge_items
    exists = np.asarray(interactions[edits.edge_users, edits.edge_items] != 0).ravel()
    changes: BoolArray = exists != (edits.ops == ADD)
    _, last = np.unique((edits.rows * (users * items) + edge)[::-1], return_index=True)
    unique = np.zeros(len(changes), dtype=np.bool_)
    unique[len(changes) - 1 - last] = True
    return changes & unique


class _Training:
    """Embeddings and optimiser."""

    def __init__(
        self, interactions: sparse.csr_matrix, config: Config, generator: Callable[..., np.random.Generator]
    ) -> None:
        import torch

        from cfbench_recsys.bipartite_graph import Propagation

        self.torch = torch
        self.config = config
        self.device = torch_device(config.device)
        self.random = generator("lightgcn", "fit")
        self.propagation = Propagation(interactions, torch.float32, self.device)
        self.by_item = interactions.tocsc()
        self.pairs = np.stack(interactions.nonzero()).astype(np.int64)
        self.batch = config.batch or max(2048, -(-interactions.nnz // 16))
        self.users, self.items = (
            self._parameter(0.1 * self.random.standard_normal((count, config.dimensions), dtype=np.float32))
            for count in interactions.shape
        )
        self.optimizer = torch.optim.Adam([self.users, self.items], lr=config.learning_rate)

    def _parameter(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    def epoch(self) -> float:
        """Once over all interactions; the mean loss."""
        total = 0.0
        order = self.random.permutation(self.pairs.shape[1])
        for start in range(0, len(order), self.batch):
            users, items = self.pairs[:, order[start : start + self.batch]]
            loss = self._loss(users, items)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += float(loss.detach()) * len(users)
        return total / max(1, len(order))

    def _loss(self, users: np.ndarray, items: np.ndarray) -> Any:
        torch = self.torch
        count = self.by_item.shape[1]
        drawn = self.random.choice(count, size=min(self.config.negatives, count), replace=False)
        seen = torch.from_numpy(self.by_item[:, drawn].toarray() > 0).to(self.device)
        user, item, negative = (torch.from_numpy(index).to(self.device) for index in (users, items, drawn))

        final_users, final_items = self.propagation.mean_of_layers(self.users, self.items, self.config.layers)
        own = final_users[user]
        positives = (own * final_items[item]).sum(1, keepdim=True)
        losses = torch.nn.functional.softplus(own @ final_items[negative].T - positives)
        bpr = losses.masked_fill(seen[user], 0.0).mean()
        squares = (self.users[user] ** 2).sum(1).mean() + (self.items[item] ** 2).sum(1).mean()
        squares = squares + (self.items[negative] ** 2).sum(1).mean()
        return bpr + self.config.l2 * squares / 2

    def final_embeddings(self) -> tuple[FloatArray, FloatArray]:
        """F (users, d) and (items, d), float64."""
        with self.torch.no_grad():
            final = self.propagation.mean_of_layers(self.users, self.items, self.config.layers)
        users, items = (side.cpu().numpy().astype(np.float64) for side in final)
        return users, items

    def state(self) -> State:
        """Copies, as :meth:`LightGCN.state`."""
        return {
            USERS: self.users.detach().cpu().numpy().copy(),
            ITEMS: self.items.detach().cpu().numpy().copy(),
        }
