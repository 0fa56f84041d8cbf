"""The training of embeddings that a graph propagates: see ``graph_convolution.py``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.cuda import torch_device
from cfbench_core.devices.training_steps import Loss, TrainingSteps
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.graph_layers import Weights, weighted_layers
from cfbench_recsys.recommenders.training import State

USERS, ITEMS = "user_embedding.weight", "item_embedding.weight"

LossOf = Callable[["Training", np.ndarray, np.ndarray], Loss]
"""Draws what is random for a batch of interactions (users[b], items[b]); its loss, by parts."""


@dataclass(eq=False)
class Training:
    """Embeddings and optimiser.

    Attributes:
        interactions: the graph.
        config: as of ``GraphConvolution``.
        weights: of the layers.
        random: the one stream that everything random is drawn from.
        users, items: E, torch parameters (users, d) and (items, d), float32.
    """

    interactions: scipy.sparse.csr_matrix
    config: Any
    weights: Weights
    random: np.random.Generator

    def __post_init__(self) -> None:
        import torch

        from cfbench_recsys.bipartite_graph import Propagation

        interactions, config = self.interactions, self.config
        self.torch = torch
        self.device = torch_device(config.device)
        self.propagation = Propagation(interactions, torch.float32, self.device)
        self.by_item = interactions.tocsc()
        self.pairs = np.stack(interactions.nonzero())  # by user, so that a batch is read in order
        self.batch = config.batch or max(2048, -(-interactions.nnz // 16))
        self.users, self.items = (
            self._parameter(0.1 * self.random.standard_normal((count, config.dimensions), dtype=np.float32))
            for count in interactions.shape
        )
        self.optimizer = Adam([self.users, self.items], config.learning_rate)

    def _parameter(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    def epoch(self, loss_of: LossOf, steps: TrainingSteps) -> float:
        """Once over all interactions; the mean loss."""
        total = 0.0
        order = self.random.permutation(self.pairs.shape[1])
        for start in range(0, len(order), self.batch):
            users, items = self.pairs[:, np.sort(order[start : start + self.batch])]
            loss = loss_of(self, users, items)
            total += steps.take(self.optimizer, len(users), loss) * len(users)
        return total / max(1, len(order))

    def bpr(self, users: np.ndarray, items: np.ndarray) -> Callable[[Any, Any, slice], Any]:
        """BPR of a batch of interactions under F (users, d) and (items, d), by parts of the batch; a torch scalar.

        The mean over the pairs (u, i) and over ``negatives`` items j, drawn for the whole batch, of
        -log sigmoid(s(u)_i - s(u)_j); 0 where (u, j) is an interaction. To it comes l2/2 times the mean squared
        length of the embeddings E_u, E_i, E_j that take part.
        """
        from cfbench_recsys.ranking_loss import bpr

        count = self.by_item.shape[1]
        drawn = self.random.choice(count, size=min(self.config.negatives, count), replace=False)
        seen = self.by_item[:, drawn].tocoo()

        def of(final_users: Any, final_items: Any, part: slice) -> Any:
            own = users[part], items[part]
            user, item, negative, *owned = (self.index(array) for array in (*own, drawn, seen.row, seen.col))
            loss = bpr(final_users, final_items, user, item, negative, tuple(owned))
            squares = self._mean_square(self.users, own[0]) + self._mean_square(self.items, own[1])
            loss = loss + self.config.l2 * (squares + self._mean_square(self.items, drawn)) / 2
            return loss * (len(own[0]) / len(users))

        return of

    def _mean_square(self, embeddings: Any, named: np.ndarray) -> Any:
        """Mean over ``named`` (rows, perhaps repeated) of their squared lengths."""
        counts = np.bincount(named, minlength=len(embeddings)).astype(np.float32)
        weights = self.torch.from_numpy(counts / max(1, len(named))).to(self.device)
        return weights @ (embeddings**2).sum(1)

    def index(self, numbers: np.ndarray) -> Any:
        """As an int64 tensor on the device."""
        return self.torch.from_numpy(numbers.astype(np.int64)).to(self.device)

    def final(self) -> tuple[Any, Any]:
        """F (users, d) and (items, d), torch."""
        return weighted_layers(self.propagation, self.users, self.items, self.weights)

    def step(self, users: Any, items: Any) -> tuple[Any, Any]:
        """Ã x for x = ``users`` (users, d), ``items`` (items, d)."""
        return self.propagation.to_users(items), self.propagation.to_items(users)

    def layers(self) -> list[tuple[Any, Any]]:
        """Ã^l E on users and items, for l = 0..L."""
        found = [(self.users, self.items)]
        for _ in self.weights[1:]:
            found.append(self.step(*found[-1]))
        return found

    def final_embeddings(self) -> tuple[FloatArray, FloatArray]:
        """F (users, d) and (items, d), float64."""
        with self.torch.no_grad():
            final = self.final()
        users, items = (side.cpu().numpy().astype(np.float64) for side in final)
        return users, items

    def state(self) -> State:
        """Copies, as :meth:`GraphConvolution.state`."""
        return {
            USERS: self.users.detach().cpu().numpy().copy(),
            ITEMS: self.items.detach().cpu().numpy().copy(),
        }
