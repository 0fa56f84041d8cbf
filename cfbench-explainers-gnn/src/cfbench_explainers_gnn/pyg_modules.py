"""Modules of PyTorch Geometric as functions of edited user-item graphs, many of them in one call.

The nodes of a graph are its users, then its items. B graphs are passed to a module as one graph, their disjoint union,
with one edge list and one vector of edge weights, so a module needs no batch dimension. Node b * (|U| + |I|) + n is node
n of graph b. For that, each table with a row per node is repeated B times: the weights of ``torch.nn.Embedding``, and
parameters and buffers of the module itself. A module with one table of users and another of items numbers its nodes as
the concatenation of the two, so in the union all users come before all items.

Each interaction is two edges, one in each direction, of the same weight.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config.code_references import named_object
from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line

LIBRARY = "torch_geometric.nn.models"
LIBRARY_CLASSES = ("GAT", "GCN", "GIN", "GraphSAGE", "LightGCN")
"""Classes of PyTorch Geometric that a configuration may name without a module of the user's own."""

NUMBERS_AT_ONCE = 8_000_000
"""Edges of a union times the length of embeddings: what bounds the memory of a layer."""

FEATURES = "x"
"""The name of the table of node features in a state, for a module whose ``forward`` takes ``x``."""

AGREEMENT = 1e-6
"""Relative to the largest number: how far a union may differ from its graphs one by one."""


def created_module(
    reference: str, default: Any, options: Mapping[str, Any], users: int, items: int, features: int
) -> Any:
    """The torch module that ``reference`` makes; ``default`` is called in place of it unless it is None.

    The factory receives ``options``, and ``num_nodes``, ``num_users``, ``num_items`` and ``in_channels`` where it has
    parameters of these names.

    Raises:
        UserError: if the reference cannot be used, or does not return a module.
    """
    import torch

    factory = default or named_object(reference, "pyg", (LIBRARY,))
    known = {"num_nodes": users + items, "num_users": users, "num_items": items, "in_channels": features}
    try:
        parameters = inspect.signature(factory).parameters
        given = {key: value for key, value in known.items() if key in parameters} | dict(options)
        made = factory(**given)
    except UserError:
        raise
    except Exception as error:  # code of the user may raise anything
        reason = one_line(f"{type(error).__name__}: {error}")
        raise UserError(f"pyg: {reference} cannot be created with {given_text(options)}: {reason}") from error
    if not isinstance(made, torch.nn.Module):
        raise UserError(f"pyg: {reference} returned {type(made).__name__}, not a torch module")
    return made


def library_problem(reference: str) -> str:
    """Why a class of PyTorch Geometric cannot be the factory; empty if it can, and for other code. Imports nothing."""
    module, _, name = reference.partition(":")
    if module.partition(".")[0] != "torch_geometric" or (module == LIBRARY and name in LIBRARY_CLASSES):
        return ""
    return (
        f"{reference!r}: of PyTorch Geometric, factory takes {LIBRARY}:NAME with one of "
        f"{', '.join(LIBRARY_CLASSES)}; write a module of your own for others"
    )


def given_text(options: Mapping[str, Any]) -> str:
    """Options in a message."""
    return one_line(", ".join(f"{key}={value!r}" for key, value in options.items()), 200) or "no options"


def index_tensors(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Any, Any]:
    """Both arrays as int64 tensors."""
    import torch

    first, second = (torch.from_numpy(part.astype(np.int64)) for part in pair)
    return first, second


class GraphModule:
    """A module, and how it is called.

    Attributes:
        module: the torch module of the user.
        wrapper: a module with ``forward(edge_index, edge_weight)`` around it, and with the table x if it needs one.
        joint: whether a node of an item follows those of the users of the same graph.
        weighted: whether it takes edge weights.
    """

    def __init__(self, module: Any, reference: str, users: int, items: int, features: int) -> None:
        self.reference, self.users, self.items = reference, users, items
        self.module = module
        call = module.get_embedding if hasattr(module, "get_embedding") else module.forward
        names = set(inspect.signature(call).parameters)
        if "edge_index" not in names:
            raise UserError(
                f"pyg: {reference} has neither get_embedding(edge_index, edge_weight) nor "
                "forward([x,] edge_index, edge_weight)"
            )
        self.weighted = "edge_weight" in names and getattr(module, "supports_edge_weight", True)
        self.wrapper = _wrapper(
            module, features if FEATURES in names else 0, users + items, "edge_weight" in names
        )
        self.tables = self._find_tables()
        self.joint = "nodes" in self.tables.values() or not self.tables

    def _find_tables(self) -> dict[str, str]:
        """Names of the parameters and buffers of ``wrapper`` with a row per node, and what their rows are."""
        import torch

        embeddings = {
            f"{name}.weight"
            for name, part in self.wrapper.named_modules()
            if isinstance(part, torch.nn.Embedding)
        }
        own = {FEATURES} | {
            f"module.{name}"
            for name, _ in [
                *self.module.named_parameters(recurse=False),
                *self.module.named_buffers(recurse=False),
            ]
        }
        tensors = {**dict(self.wrapper.named_parameters()), **dict(self.wrapper.named_buffers())}
        candidates = {
            name: tensor.shape[0]
            for name, tensor in tensors.items()
            if name in embeddings | own and tensor.ndim
        }
        joint = {name: "nodes" for name, rows in candidates.items() if rows == self.users + self.items}
        if joint:
            return joint
        kinds = {self.items: "items", self.users: "users"}
        return {name: kinds[rows] for name, rows in candidates.items() if rows in kinds}

    def embeddings(self, graphs: int, rows: Any, users: Any, items: Any, weights: Any) -> tuple[Any, Any]:
        """Final embeddings of the users (B, users, d) and of the items (B, items, d) of B = ``graphs`` graphs.

        Edge e joins ``users[e]`` and ``items[e]`` of graph ``rows[e]`` with weight ``weights[e]``.

        Raises:
            UserError: if the module fails, or returns anything but one vector for each node.
        """
        import torch

        if self.joint:
            first = rows * (self.users + self.items)
            ends = torch.stack([first + users, first + self.users + items])
        else:
            ends = torch.stack([rows * self.users + users, graphs * self.users + rows * self.items + items])
        edge_index = torch.cat([ends, ends.flip(0)], dim=1)
        tensors = {**dict(self.wrapper.named_parameters()), **dict(self.wrapper.named_buffers())}
        repeated = {
            name: tensors[name].repeat(graphs, *[1] * (tensors[name].ndim - 1))
            for name in (self.tables if graphs > 1 else ())
        }
        nodes = graphs * (self.users + self.items)
        try:
            found = torch.func.functional_call(
                self.wrapper, repeated, (edge_index, torch.cat([weights, weights]))
            )
        except Exception as error:  # code of the user may raise anything
            reason = one_line(f"{type(error).__name__}: {error}")
            raise UserError(f"pyg: {self.reference} fails on a graph of {nodes} nodes: {reason}") from error
        if not isinstance(found, torch.Tensor) or found.ndim != 2 or len(found) != nodes:
            shape = tuple(found.shape) if isinstance(found, torch.Tensor) else type(found).__name__
            raise UserError(
                f"pyg: {self.reference} must return one vector for each node, ({nodes}, d): returned {shape}"
            )
        if self.joint:
            split = found.reshape(graphs, self.users + self.items, -1)
            return split[:, : self.users], split[:, self.users :]
        count = graphs * self.users
        return found[:count].reshape(graphs, self.users, -1), found[count:].reshape(graphs, self.items, -1)

    def check(self, interactions: scipy.sparse.csr_matrix) -> str:
        """Whether unions and weights mean what they should, on the graph and on one with fewer edges.

        The module computes as in evaluation: dropout draws anew in each call, and a normalisation by the statistics of
        a batch sees all graphs of a union.

        Returns:
            Why explainers that follow gradients cannot use the module; empty if they can.

        Raises:
            UserError: if an embedding is not finite, or graphs of one union influence each other.
        """
        training = [part for part in self.wrapper.modules() if part.training]
        self.wrapper.eval()
        try:
            return self._check(interactions)
        finally:
            for part in training:  # each by itself: a module may keep parts of it in evaluation
                part.training = True

    def _check(self, interactions: scipy.sparse.csr_matrix) -> str:
        import torch

        users, items = index_tensors(interactions.nonzero())
        dtype = next((p.dtype for p in self.wrapper.parameters() if p.is_floating_point()), torch.float64)
        ones, zeros = torch.ones(len(users), dtype=dtype), torch.zeros(len(users), dtype=torch.int64)
        fewer = torch.arange(len(users)) % 3 > 0

        def run(graphs: int, edges: Any, rows: Any, weights: Any) -> Any:
            found = self.embeddings(graphs, rows, users[edges], items[edges], weights)
            return torch.cat(found, dim=1)

        everything = torch.arange(len(users))
        few = everything[fewer]
        with torch.no_grad():
            whole, part = run(1, everything, zeros, ones), run(1, few, zeros[fewer], ones[fewer])
            both = run(
                2,
                torch.cat([everything, few]),
                torch.cat([zeros, zeros[fewer] + 1]),
                torch.cat([ones, ones[fewer]]),
            )
            if not bool(torch.isfinite(whole).all() and torch.isfinite(part).all()):
                raise UserError(f"pyg: {self.reference} returned NaN or infinite embeddings")
            if _gap(both, torch.cat([whole, part])) > AGREEMENT:
                raise UserError(
                    f"pyg: {self.reference} does not treat a disjoint union of graphs as separate graphs; every table "
                    "with a row per node must be an Embedding or a parameter of the module, and no layer may look at "
                    "the whole graph"
                )
            if not self.weighted:
                return "it takes no edge weights"
            absent = run(1, everything, zeros, torch.where(fewer, ones, 0.0))
            half = run(1, everything, zeros, torch.where(fewer, ones, 0.5))
        if len(few) < len(users) and _gap(half, whole) == 0:
            return "it ignores edge weights"
        return "" if _gap(absent, part) <= AGREEMENT else "an edge of weight 0 is not the same as no edge"


def _gap(found: Any, expected: Any) -> float:
    """The largest difference, in units of the largest number."""
    if found.shape != expected.shape:
        return float("inf")
    return float((found - expected).abs().max() / expected.abs().max().clamp(min=1e-300))


def _wrapper(module: Any, features: int, nodes: int, takes_weights: bool) -> Any:
    """A module with ``forward(edge_index, edge_weight)``, ``features`` > 0: with a table x of so many columns."""
    import torch

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            if features:
                self.x = torch.nn.Parameter(0.1 * torch.randn(nodes, features))

        def forward(self, edge_index: Any, edge_weight: Any) -> Any:
            call = self.module.get_embedding if hasattr(self.module, "get_embedding") else self.module
            given = {"edge_weight": edge_weight} if takes_weights and supported else {}
            return call(self.x, edge_index, **given) if features else call(edge_index, **given)

    supported = getattr(module, "supports_edge_weight", True)
    return Wrapper()
