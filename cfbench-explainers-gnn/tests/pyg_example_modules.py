"""Modules that tests name as a user's own: good ones and bad ones."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.nn import GATConv, GCNConv, GraphNorm, LGConv
from torch_geometric.nn.models import LightGCN
from torch_geometric.utils import sort_edge_index


class UnionLightGCN(LightGCN):  # type: ignore[misc]
    """Not LightGCN itself, so that it is scored on unions of graphs."""


class TwoTables(torch.nn.Module):
    """Users and items in tables of their own, another normalisation, and a layer with weights."""

    def __init__(self, num_users: int, num_items: int, width: int = 5) -> None:
        super().__init__()
        self.users = torch.nn.Embedding(num_users, width)
        self.items = torch.nn.Embedding(num_items, width)
        self.first = GCNConv(width, width)
        self.second = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        x = torch.cat([self.users.weight, self.items.weight])
        x = torch.tanh(self.first(x, edge_index, edge_weight))
        return x + self.second(x, edge_index, edge_weight)


class Regularised(torch.nn.Module):
    """Dropout and a normalisation by the statistics of the batch: in training, graphs of a union influence each other."""

    def __init__(self, num_nodes: int, width: int = 8, frozen: bool = False) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_nodes, width)
        self.norm = torch.nn.BatchNorm1d(width)
        self.dropout = torch.nn.Dropout(0.3)
        self.layer = LGConv()
        if frozen:
            self.norm.eval()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        x = self.dropout(self.norm(self.table.weight))
        return x + self.layer(x, edge_index, edge_weight)


class WholeGraph(UnionLightGCN):
    """Normalises over all nodes of the union, which mixes its graphs."""

    def get_embedding(self, edge_index: Any, edge_weight: Any = None) -> Any:
        found = super().get_embedding(edge_index, edge_weight)
        return GraphNorm(found.shape[1]).to(found.dtype)(found)


class WithoutWeights(UnionLightGCN):
    def get_embedding(self, edge_index: Any) -> Any:
        return super().get_embedding(edge_index)


class WrongShape(UnionLightGCN):
    def get_embedding(self, edge_index: Any, edge_weight: Any = None) -> Any:
        return super().get_embedding(edge_index, edge_weight)[:-1]


class Fails(UnionLightGCN):
    def get_embedding(self, edge_index: Any, edge_weight: Any = None) -> Any:
        raise KeyError("on\npurpose")


class Attention(torch.nn.Module):
    """One layer of attention over a table of nodes, without edge weights."""

    def __init__(self, num_nodes: int, width: int = 8) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_nodes, width)
        self.layer = GATConv(width, width)

    def forward(self, edge_index: Any) -> Any:
        return self.table.weight + self.layer(self.table.weight, edge_index)


class AttentionToSortedEdges(Attention):
    """Whose layer gets the edges in another order."""

    def forward(self, edge_index: Any) -> Any:
        return super().forward(sort_edge_index(edge_index, sort_by_row=False))


class AttentionToUsers(Attention):
    """Whose layer gets one direction of each interaction."""

    def forward(self, edge_index: Any) -> Any:
        return super().forward(edge_index[:, edge_index[0] > edge_index[1]])


class MatrixOfItems(TwoTables):
    """A matrix of its own with as many rows as there are items, if ``width`` is their number: no table of nodes."""

    def __init__(self, num_users: int, num_items: int, width: int) -> None:
        super().__init__(num_users, num_items, width)
        self.matrix = torch.nn.Parameter(torch.eye(width))

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        return super().forward(edge_index, edge_weight) @ self.matrix


class TwoOfNodes(torch.nn.Module):
    """A table of nodes as a parameter, and a gate that has as many numbers if ``width`` is the number of nodes."""

    def __init__(self, num_nodes: int, width: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(num_nodes, width))
        self.gate = torch.nn.Parameter(torch.randn(width))
        self.layer = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        return self.table + self.layer(self.table * self.gate, edge_index, edge_weight)


class OffsetOfUsers(torch.nn.Module):
    """Uses numbers of nodes: the first ``num_users`` are users."""

    def __init__(self, num_nodes: int, num_users: int, width: int = 5) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_nodes, width)
        self.offset = torch.nn.Embedding(num_users, width)
        self.layer = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        users = len(self.offset.weight)
        x = torch.cat([self.table.weight[:users] + self.offset.weight, self.table.weight[users:]])
        return x + self.layer(x, edge_index, edge_weight)


class DropsInEvaluation(UnionLightGCN):
    def get_embedding(self, edge_index: Any, edge_weight: Any = None) -> Any:
        return torch.nn.functional.dropout(super().get_embedding(edge_index, edge_weight), 0.3)


class Cached(torch.nn.Module):
    """A layer that keeps the edges of the first graph; with ``both`` another layer follows each graph."""

    def __init__(self, num_nodes: int, width: int = 5, both: bool = False) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_nodes, width)
        self.layer = GCNConv(width, width, cached=True)
        self.other = LGConv() if both else None

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        found = self.layer(self.table.weight, edge_index, edge_weight)
        return found if self.other is None else found + self.other(self.table.weight, edge_index, edge_weight)


class RandomFeatures(torch.nn.Module):
    """Features drawn at random, which belong to its state dict only if ``persistent``."""

    def __init__(
        self, num_nodes: int, width: int = 5, persistent: bool = False, seed: int | None = None
    ) -> None:
        super().__init__()
        drawn = torch.randn(
            num_nodes, width, generator=None if seed is None else torch.Generator().manual_seed(seed)
        )
        self.register_buffer("features", drawn, persistent=persistent)
        self.layer = GCNConv(width, width)

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        return self.layer(self.features, edge_index, edge_weight)


class CachedByHand(UnionLightGCN):
    """Keeps what it computed first."""

    def get_embedding(self, edge_index: Any, edge_weight: Any = None) -> Any:
        if not hasattr(self, "first"):
            self.first = super().get_embedding(edge_index, edge_weight)
        return self.first


class WithoutShape(TwoTables):
    def __init__(self, num_users: int, num_items: int) -> None:
        super().__init__(num_users, num_items)
        self.scale = torch.nn.UninitializedParameter()


class HalfPrecision(TwoTables):
    """Trained in bfloat16, a type that NumPy does not have."""

    def __init__(self, num_users: int, num_items: int, width: int = 5) -> None:
        super().__init__(num_users, num_items, width)
        self.bfloat16()


class TableCalledX(torch.nn.Module):
    """A table under the name that the features of other modules have."""

    def __init__(self, num_nodes: int, width: int = 5) -> None:
        super().__init__()
        self.x = torch.nn.Parameter(torch.randn(num_nodes, width))
        self.layer = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        return self.x + self.layer(self.x, edge_index, edge_weight)


class TwoCalledX(TableCalledX):
    def forward(self, x: Any, edge_index: Any, edge_weight: Any) -> Any:
        return x @ x.T @ super().forward(edge_index, edge_weight)


class DividesByDegree(UnionLightGCN):
    """The mean of the neighbours, which a node without any does not have."""

    def get_embedding(self, edge_index: Any, edge_weight: Any) -> Any:
        x = self.embedding.weight
        ends = edge_index[1]
        degrees = torch.zeros(len(x), dtype=x.dtype).index_add(0, ends, edge_weight.to(x.dtype))
        messages = x[edge_index[0]] * edge_weight[:, None]
        return x + torch.zeros_like(x).index_add(0, ends, messages) / degrees[:, None]


def a_word(name: str) -> str:
    """No module."""
    return name


class Padded(torch.nn.Module):
    """A table with one more row than there are nodes."""

    def __init__(self, num_nodes: int, width: int = 6) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(num_nodes + 1, width, padding_idx=0)
        self.layer = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        x = self.table.weight[1:]
        return x + self.layer(x, edge_index, edge_weight)


class Constant(torch.nn.Module):
    """Embeddings that do not depend on the parameters."""

    def __init__(self, num_nodes: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("table", torch.arange(4.0 * num_nodes).reshape(num_nodes, 4))
        self.layer = LGConv()

    def forward(self, edge_index: Any, edge_weight: Any) -> Any:
        return self.layer(self.table, edge_index, edge_weight)
