"""A linear graph convolution fitted to a recommender's embeddings, in closed form, around a user and its targets.

With F (nodes, d) the final embeddings of users and items and Ã the normalised graph,

    F ~ S = sum_{l=1..L} Ã^l F W_l,        W = argmin |F - S|^2 over the nodes near the unit + ridge |W|^2,

W_l (d, d): ridge regression of a node's embedding on those of its neighbours, its neighbours' neighbours, ... A
node's own embedding (l = 0) is left out: it would explain itself, and no edge would matter. The ridge is in
units of the mean square of the L d features.

Under a mask of edges Ã follows the mask, degrees included, and with it S and the logits S_u . S_i, one column of
the graph for each unit as in ``cfbench_recsys.recommenders.graph_convolution``: O(L edges) for a unit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.targets import Targets

if TYPE_CHECKING:
    import torch


class Neighbourhood:
    """The features Ã F, Ã^2 F, ... of all nodes, from which surrogates are fitted."""

    def __init__(
        self, interactions: scipy.sparse.csr_matrix, users: FloatArray, items: FloatArray, layers: int
    ) -> None:
        import torch

        from cfbench_recsys.bipartite_graph import BipartiteGraph, normalized

        self.interactions, self.transposed = interactions, interactions.T.tocsr()
        self.users, self.items, self.layers = users, items, layers
        self.graph = BipartiteGraph(interactions, torch.get_default_device())
        link = normalized(interactions)
        user_layers, item_layers = [users], [items]
        for _ in range(layers):
            smoothed = link @ item_layers[-1], link.T @ user_layers[-1]
            user_layers.append(smoothed[0])
            item_layers.append(smoothed[1])
        self.user_features = np.hstack(user_layers[1:])
        self.item_features = np.hstack(item_layers[1:])

    def fit(self, targets: Targets, hops: int, ridge: float) -> Surrogate:
        """One surrogate for each unit, fitted on the nodes within ``hops`` of its user and targets."""
        near_users, near_items = self.within(targets, hops)
        return Surrogate(
            self, np.stack([self._weights(*near, ridge) for near in zip(near_users, near_items, strict=True)])
        )

    def within(self, targets: Targets, hops: int) -> tuple[BoolArray, BoolArray]:
        """(B, users) and (B, items): the nodes at most ``hops`` steps from the user or a target of each unit."""
        users = np.zeros((len(targets), self.interactions.shape[0]))
        items = np.zeros((len(targets), self.interactions.shape[1]))
        rows, places = np.nonzero(targets.items >= 0)
        users[np.arange(len(targets)), targets.users] = 1.0
        items[rows, targets.items[rows, places]] = 1.0
        for _ in range(hops):
            from_items, from_users = (self.interactions @ items.T).T, (self.transposed @ users.T).T
            users, items = ((users + from_items) > 0).astype(float), ((items + from_users) > 0).astype(float)
        return users > 0, items > 0

    def _weights(self, users: BoolArray, items: BoolArray, ridge: float) -> FloatArray:
        """(L, d, d) the ridge regression on some nodes."""
        features = np.vstack([self.user_features[users], self.item_features[items]])
        wanted = np.vstack([self.users[users], self.items[items]])
        gram = features.T @ features
        gram[np.diag_indices(len(gram))] += ridge * max(np.trace(gram) / len(gram), 1e-12)
        weights: FloatArray = np.asarray(np.linalg.solve(gram, features.T @ wanted), dtype=np.float64)
        return weights.reshape(self.layers, -1, wanted.shape[1])


class Surrogate:
    """Scores of B surrogates, each on its own masked graph.

    Attributes:
        weights: (B, L, d, d) W_l of each unit.
    """

    def __init__(self, neighbourhood: Neighbourhood, weights: FloatArray | torch.Tensor) -> None:
        import torch

        self.neighbourhood, self.graph = neighbourhood, neighbourhood.graph
        self.weights = torch.as_tensor(weights)
        self.plain = [layer.contiguous() for layer in self.weights.unbind(1)]  # W_l, (B, d, d) each
        self.turned = [layer.mT.contiguous() for layer in self.plain]
        self.sides = torch.as_tensor(neighbourhood.users), torch.as_tensor(neighbourhood.items)
        self.across = tuple(side.T.contiguous() for side in self.sides)

    def choose(self, units: IntArray) -> Surrogate:
        """Those of the units ``units``."""
        import torch

        return Surrogate(self.neighbourhood, self.weights[torch.as_tensor(units)])

    def score_weighted(
        self,
        users: torch.Tensor,
        rows: torch.Tensor,
        edge_users: torch.Tensor,
        edge_items: torch.Tensor,
        delta: torch.Tensor,
    ) -> torch.Tensor:
        """(B, items) logits, differentiable in ``delta``: see ``cfbench_recsys.recommenders.base``."""
        from cfbench_recsys.batch_products import column_product

        graphs = self.graph.edited(len(users), rows, edge_users, edge_items, delta)
        layers = self.weights.shape[1]
        values, embedding = None, 0.0
        for layer in range(layers):  # the layers of the unit vector of u: on items, on users, on items, ...
            on_items = layer % 2 == 0
            values = (
                graphs.to_items_from(users)
                if values is None
                else graphs.to_items(values)
                if on_items
                else graphs.to_users(values)
            )
            gathered = column_product(self.across[on_items], values, self.sides[on_items])  # (d, B)
            embedding = embedding + self._times(layer, gathered.T, transposed=True)
        moved: Any = 0.0
        for layer in reversed(range(layers)):  # Horner's rule, ending at the items
            on_items = layer % 2 == 1
            turned = self._times(layer, embedding, transposed=False).T
            moved = moved + column_product(self.sides[on_items], turned, self.across[on_items])
            moved = graphs.to_users(moved) if on_items else graphs.to_items(moved)
        scores: torch.Tensor = moved.T
        return scores

    def _times(self, layer: int, vectors: Any, transposed: bool) -> Any:
        """(B, d) W_l v, or W_l^T v, for the vectors v (B, d) of the units."""
        from cfbench_recsys.batch_products import rows_product

        plain, turned = self.plain[layer], self.turned[layer]
        return rows_product(turned, plain, vectors) if transposed else rows_product(plain, turned, vectors)
