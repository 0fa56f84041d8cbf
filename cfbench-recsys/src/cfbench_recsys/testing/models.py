"""Two recommenders small enough to see through: one linear in the profile, one on the graph, both with gradients.

They are not trained: their numbers follow from the planted data. A bias for one item makes it unmovable.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.specs import Capabilities
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import Edits, FloatArray, IntArray
from cfbench_recsys.testing.world import ITEMS, TASTES, streams


@dataclass(frozen=True)
class LinearModel:
    """Logit ``bias[y] + sum_i x_i coefficients[i, y]``.

    Attributes:
        coefficients: (items, items); bias: (items,).
    """

    link: ClassVar[Link] = "sigmoid"
    coefficients: FloatArray
    bias: FloatArray

    @staticmethod
    def planted(graph: scipy.sparse.csr_matrix) -> LinearModel:
        """Cosine similarity of items by their users, with a little noise against ties."""
        both = (graph.T @ graph).toarray()
        sizes = np.maximum(np.diag(both), 1.0)
        cosine = both / np.sqrt(sizes[:, None] * sizes[None, :])
        np.fill_diagonal(cosine, 0.0)
        draw = streams("linear model")
        return LinearModel(cosine + draw.normal(0, 0.02, cosine.shape), draw.normal(0, 0.1, cosine.shape[0]))

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        scores: FloatArray = profiles @ self.coefficients + self.bias
        return scores

    def score_dense(self, profiles: Any) -> Any:
        import torch

        return profiles @ torch.from_numpy(self.coefficients) + torch.from_numpy(self.bias)

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        return self.coefficients[rows, columns]

    def favouring(self, item: int) -> LinearModel:
        """The same, with an item that is recommended to every user, whatever is removed."""
        return dataclasses.replace(self, bias=_raised(self.bias, item))


@dataclass(frozen=True)
class GraphModel:
    """Two rounds of light graph convolution over fixed vectors, dense, degrees following the edit.

    Attributes:
        graph: (users, items); user_vectors (users, D); item_vectors (items, D); bias (items,).
    """

    link: ClassVar[Link] = "softmax"
    graph: FloatArray
    user_vectors: FloatArray
    item_vectors: FloatArray
    bias: FloatArray

    @staticmethod
    def planted(graph: scipy.sparse.csr_matrix) -> GraphModel:
        """Vectors that point at the tastes, with noise."""
        users, items = graph.shape
        draw = streams("graph model")
        of_item = np.eye(TASTES)[np.arange(items) // (ITEMS // TASTES)]
        of_user = np.eye(TASTES)[np.arange(users) % TASTES]
        return GraphModel(
            graph.toarray(),
            of_user + draw.normal(0, 0.3, of_user.shape),
            of_item + draw.normal(0, 0.3, of_item.shape),
            draw.normal(0, 0.05, items),
        )

    def favouring(self, item: int) -> GraphModel:
        """The same, with an item that is recommended to every user, whatever is removed."""
        return dataclasses.replace(self, bias=_raised(self.bias, item))

    def user_embeddings(self) -> FloatArray:
        """(users, D + 1) a logit is their product with those of the items."""
        layers = self._summed()[0]
        return np.hstack([layers, np.ones((len(layers), 1))])

    def item_embeddings(self) -> FloatArray:
        """(items, D + 1), the bias last."""
        return np.hstack([self._summed()[1], self.bias[:, None]])

    def _summed(self) -> tuple[FloatArray, FloatArray]:
        """The vectors and their two layers on the graph as it is."""
        of_items, of_users = (np.maximum(self.graph.sum(axis=axis, keepdims=True), 1.0) for axis in (0, 1))
        links = self.graph / np.sqrt(of_items * of_users)
        user_layer, item_layer = self.user_vectors, self.item_vectors
        user_sum, item_sum = user_layer, item_layer
        for _ in range(2):
            user_layer, item_layer = links @ item_layer, links.T @ user_layer
            user_sum, item_sum = user_sum + user_layer, item_sum + item_layer
        return user_sum, item_sum

    def score_edits(self, edits: Edits) -> FloatArray:
        import torch

        arrays = (edits.users, edits.rows, edits.edge_users, edits.edge_items, edits.ops.astype(np.float64))
        with torch.no_grad():
            scores: FloatArray = self.score_weighted(*map(torch.as_tensor, arrays)).numpy()
        return scores

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        import torch

        existing = torch.from_numpy(self.graph).expand(len(users), *self.graph.shape)
        edges = existing.index_put((rows, edge_users, edge_items), delta, accumulate=True)
        links = _inverse_root(edges.sum(2))[:, :, None] * edges * _inverse_root(edges.sum(1))[:, None, :]
        user_layer = torch.from_numpy(self.user_vectors).expand(len(users), -1, -1)
        item_layer = torch.from_numpy(self.item_vectors).expand(len(users), -1, -1)
        user_sum, item_sum = user_layer, item_layer
        for _ in range(2):
            user_layer, item_layer = links @ item_layer, links.transpose(1, 2) @ user_layer
            user_sum, item_sum = user_sum + user_layer, item_sum + item_layer
        own = user_sum[torch.arange(len(users)), users]
        return (item_sum @ own[:, :, None])[:, :, 0] + torch.from_numpy(self.bias)


@dataclass(frozen=True)
class KitModel:
    """A recommender of the kit, and what it offers to explainers."""

    name: str
    provides: Capabilities
    recommender: LinearModel | GraphModel


def kit_models(graph: scipy.sparse.csr_matrix) -> tuple[KitModel, ...]:
    """The recommenders that explainers are checked on."""
    return (
        KitModel(
            "linear model",
            {
                "access": frozenset({"scores", "weights", "gradients"}),
                "scope": frozenset({"user-vector"}),
            },
            LinearModel.planted(graph),
        ),
        KitModel(
            "graph model",
            {
                "access": frozenset({"scores", "gradients", "embeddings"}),
                "scope": frozenset({"user-only", "indirect", "k-hop", "full"}),
            },
            GraphModel.planted(graph),
        ),
    )


def _raised(bias: FloatArray, item: int) -> FloatArray:
    raised = bias.copy()
    raised[item] += 1000.0
    return raised


def _inverse_root(degrees: Any) -> Any:
    """1 / sqrt(degree), and 0 for a node without edges (with a gradient of 0 there)."""
    import torch

    alone = degrees <= 1e-12
    return torch.where(alone, 0.0, torch.where(alone, 1.0, degrees).rsqrt())
