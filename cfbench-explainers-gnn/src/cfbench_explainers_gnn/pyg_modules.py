"""Modules of PyTorch Geometric as functions of edited user-item graphs, many of them in one call.

The nodes of a graph are its users, then its items. B graphs are passed to a module as one graph, their disjoint union,
with one edge list and one vector of edge weights, so a module needs no batch dimension. Node b * (|U| + |I|) + n is node
n of graph b. For that, each table with a row per node is repeated B times: the weights of ``torch.nn.Embedding``, and
parameters and buffers of the module itself. A module with one table of users and another of items numbers its nodes as
the concatenation of the two, so in the union all users come before all items. A module that does not compute a union
as its graphs one by one, for example because it uses numbers of nodes, is evaluated on one graph at a time.

Each interaction is two edges, one in each direction, of the same weight.
"""

from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config.code_references import named_object
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.plain_text import one_line

LIBRARY = "torch_geometric.nn.models"
LIBRARY_CLASSES = ("GAT", "GCN", "GIN", "GraphSAGE", "LightGCN")
"""Classes of PyTorch Geometric that a configuration may name without a module of the user's own."""

NUMBERS_AT_ONCE = 500_000
"""Edges of a union times the length of embeddings. Larger unions do not fit a processor's cache and take longer."""

NUMBERS_IN_MEMORY = 8_000_000
"""The same of all unions whose layers are stored for a gradient; with more, they are computed again on the way back."""

FEATURES = "x"
"""The name of the table of node features in a state, for a module whose ``forward`` takes ``x``."""

AGREEMENT, ROUNDING = 1e-6, 16.0
"""Relative to the largest number: how far a union may differ from its graphs one by one, and the same in units of the
precision of the numbers, for those that are less precise than float64."""


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
        together: whether many graphs may be passed as their union; False: one at a time.
    """

    def __init__(self, module: Any, reference: str, users: int, items: int, features: int) -> None:
        self.reference, self.users, self.items = reference, users, items
        self.module = module
        call = module.get_embedding if hasattr(module, "get_embedding") else module.forward
        names = set(inspect.signature(call).parameters)
        if FEATURES in names and hasattr(module, FEATURES):
            raise UserError(
                f"pyg: {reference} has a parameter {FEATURES!r} and takes {FEATURES!r} as an argument, which stands "
                "under this name in the weights; rename the parameter"
            )
        if "edge_index" not in names:
            raise UserError(
                f"pyg: {reference} has neither get_embedding(edge_index, edge_weight) nor "
                "forward([x,] edge_index, edge_weight)"
            )
        self.weighted = "edge_weight" in names and getattr(module, "supports_edge_weight", True)
        self.wrapper = _wrapper(
            module, features if FEATURES in names else 0, users + items, "edge_weight" in names
        )
        self.together = True
        self._repeat(())

    def long_name(self, short: str) -> str:
        """The name in ``wrapper`` of what is called ``short`` among the weights."""
        return short if short == FEATURES and hasattr(self.wrapper, FEATURES) else f"module.{short}"

    def _repeat(self, left_out: Sequence[str]) -> None:
        """Chooses the tables that a union repeats: all that have a row per node, but those ``left_out``."""
        rows = {name: count for name, count in self._rows().items() if name not in left_out}
        kinds = {self.items: "items", self.users: "users"}
        joint = {name: "nodes" for name, count in rows.items() if count == self.users + self.items}
        self.tables = joint or {name: kinds[count] for name, count in rows.items() if count in kinds}
        self.joint = bool(joint) or not self.tables

    def _rows(self) -> dict[str, int]:
        """The rows of each parameter and buffer of ``wrapper`` that may be a table of nodes, by name.

        Raises:
            UserError: if one has no shape yet.
        """
        import torch

        tensors = {**dict(self.wrapper.named_parameters()), **dict(self.wrapper.named_buffers())}
        names = [name for name in tensors if name in self._embedding_tables() or name in self._own()]
        for name in names:
            if torch.nn.parameter.is_lazy(tensors[name]):
                raise UserError(
                    f"pyg: {self.reference}: {name.removeprefix('module.')} has no shape; create it with one, not as "
                    f"{type(tensors[name]).__name__}"
                )
        return {name: tensors[name].shape[0] for name in names if tensors[name].ndim}

    def _embedding_tables(self) -> set[str]:
        """Names of tables of ``torch.nn.Embedding``, and of x."""
        import torch

        parts = self.wrapper.named_modules()
        return {FEATURES} | {f"{name}.weight" for name, part in parts if isinstance(part, torch.nn.Embedding)}

    def _own(self) -> set[str]:
        """Names of parameters and buffers of the module itself."""
        own = [*self.module.named_parameters(recurse=False), *self.module.named_buffers(recurse=False)]
        return {f"module.{name}" for name, _ in own}

    def embeddings(self, graphs: int, rows: Any, users: Any, items: Any, weights: Any) -> tuple[Any, Any]:
        """Final embeddings of the users (B, users, d) and of the items (B, items, d) of B = ``graphs`` graphs.

        Edge e joins ``users[e]`` and ``items[e]`` of graph ``rows[e]`` with weight ``weights[e]``.

        Raises:
            UserError: if the module fails, or returns anything but one vector for each node, in evaluation a finite one.
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
        if not self.wrapper.training and not bool(torch.isfinite(found).all()):
            connected = len(torch.unique(edge_index))
            without = f", on a graph in which {nodes - connected} nodes have no edges" * (connected < nodes)
            raise UserError(f"pyg: {self.reference} returned NaN or infinite embeddings{without}")
        if self.joint:
            split = found.reshape(graphs, self.users + self.items, -1)
            return split[:, : self.users], split[:, self.users :]
        count = graphs * self.users
        return found[:count].reshape(graphs, self.users, -1), found[count:].reshape(graphs, self.items, -1)

    def check(self, interactions: scipy.sparse.csr_matrix) -> str:
        """Whether unions and weights mean what they should, on the graph and on one with fewer edges.

        The module computes as in evaluation: dropout draws anew in each call, and a normalisation by the statistics of
        a batch sees all graphs of a union. A parameter of the module may have as many rows as there are nodes by chance,
        so tables are chosen with which a union has the embeddings of its graphs; without any, ``together`` is False.

        Returns:
            Why explainers that follow gradients cannot use the module; empty if they can.

        Raises:
            UserError: if an embedding is not finite, or does not depend on the graph alone.
        """
        with self._in_evaluation():
            return self._check(_Trial(self, interactions))

    def check_recreated(self, other: GraphModule, interactions: scipy.sparse.csr_matrix) -> None:
        """That ``other``, the same module created again, has the same embeddings once it has the same weights.

        Raises:
            UserError: if not: it uses numbers drawn at random that are not among its weights.
        """
        import torch

        if {part.dtype for part in self.wrapper.parameters() if part.is_floating_point()} <= {torch.float64}:
            other.wrapper.double()
        other.wrapper.load_state_dict(self.wrapper.state_dict())
        with self._in_evaluation(), other._in_evaluation(), torch.no_grad():
            trial = _Trial(self, interactions)
            if not trial.same(_Trial(other, interactions).whole(), trial.whole()):
                raise UserError(
                    f"pyg: {self.reference} computes something else when it is created again with the same weights: does it "
                    "draw random numbers that are not in its state dict? Register them as a buffer"
                )

    @contextlib.contextmanager
    def _in_evaluation(self) -> Iterator[None]:
        """All parts of the module as in evaluation."""
        training = [part for part in self.wrapper.modules() if part.training]
        self.wrapper.eval()
        try:
            yield
        finally:
            for part in training:  # each by itself: a module may keep parts of it in evaluation
                part.training = True

    def _check(self, trial: _Trial) -> str:
        import torch

        with torch.no_grad():
            whole, again = trial.whole(), trial.whole()
            if not trial.same(again, whole):
                raise UserError(
                    f"pyg: two evaluations of {self.reference} on the same graph differ: is dropout active in evaluation?"
                )
            part = trial.part()
            self._choose(trial, whole, part)
            if not self.weighted:
                return "it takes no edge weights"
            half = trial.weighted(0.5)
            if trial.removes_edges and _gap(half, whole) == 0:
                return "it ignores edge weights"
            absent = trial.weighted(0.0)
        return "" if trial.same(absent, part) else "an edge of weight 0 is not the same as no edge"

    def _choose(self, trial: _Trial, whole: Any, part: Any) -> None:
        """Tables with which the union of two graphs has the embeddings of both; else graphs are evaluated one by one."""
        import torch

        expected = torch.cat([whole, part])
        ambiguous = [name for name in self.tables if name not in self._embedding_tables()]
        for left_out in dict.fromkeys([(), *((name,) for name in ambiguous), tuple(ambiguous)]):
            self._repeat(left_out)
            with contextlib.suppress(UserError):  # it fails, or returns another shape
                if trial.same(trial.union(), expected):
                    return
        if trial.removes_edges and (_gap(part, whole) == 0 or self._caches()):
            raise UserError(
                f"pyg: the scores of {self.reference} do not follow the edges: a smaller graph has those of the first "
                "one; has a layer cached=True?"
            )
        self.together = False
        warnings.warn(
            f"pyg: {self.reference} is evaluated one graph at a time, which takes longer: in a union of graphs it does "
            "not compute each of them as alone (docs/how-to/explain-a-pyg-model.md)",
            ResultWarning,
            stacklevel=2,
        )

    def _caches(self) -> bool:
        """Whether a layer of PyTorch Geometric keeps the edges of the first graph that it sees."""
        from torch_geometric.nn import MessagePassing  # type: ignore[import-untyped]

        layers = (part for part in self.wrapper.modules() if isinstance(part, MessagePassing))
        return any(getattr(layer, "cached", False) for layer in layers)


class _Trial:
    """Evaluations of a module on a graph, on one with fewer edges, and on the union of both.

    Attributes:
        removes_edges: whether the second graph has fewer edges.
    """

    def __init__(self, graph: GraphModule, interactions: scipy.sparse.csr_matrix) -> None:
        import torch

        self.graph = graph
        self.users, self.items = index_tensors(interactions.nonzero())
        floating = [p.dtype for p in graph.wrapper.parameters() if p.is_floating_point()]
        self.dtype = floating[0] if floating else torch.float64
        self.coarsest = max((torch.finfo(dtype).eps for dtype in floating), default=0.0)
        self.retained = torch.arange(len(self.users)) % 3 > 0
        self.few = torch.nonzero(self.retained)[:, 0]
        self.removes_edges = len(self.few) < len(self.users)

    def whole(self) -> Any:
        """(nodes, d)"""
        return self.weighted(1.0)

    def weighted(self, weight: float) -> Any:
        """(nodes, d) with the edges that :meth:`part` lacks at ``weight``."""
        import torch

        ones = torch.ones(len(self.users), dtype=self.dtype)
        zeros = torch.zeros_like(self.users)
        return self._run(1, torch.arange(len(zeros)), zeros, torch.where(self.retained, ones, weight))

    def part(self) -> Any:
        """(nodes, d) with two thirds of the edges."""
        import torch

        return self._run(1, self.few, torch.zeros_like(self.few), torch.ones(len(self.few), dtype=self.dtype))

    def union(self) -> Any:
        """(2 nodes, d) those of :meth:`whole` and of :meth:`part` in one call."""
        import torch

        everything = torch.arange(len(self.users))
        rows = torch.cat([torch.zeros_like(everything), torch.ones_like(self.few)])
        return self._run(2, torch.cat([everything, self.few]), rows, torch.ones(len(rows), dtype=self.dtype))

    def _run(self, graphs: int, edges: Any, rows: Any, weights: Any) -> Any:
        import torch

        users, items = self.graph.embeddings(graphs, rows, self.users[edges], self.items[edges], weights)
        return torch.cat([users, items], dim=1).flatten(0, 1)

    def same(self, found: Any, expected: Any) -> bool:
        """Whether two results agree but for rounding."""
        import torch

        precision = max(self.coarsest, torch.finfo(found.dtype).eps)
        return _gap(found, expected) <= max(AGREEMENT, ROUNDING * precision)


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
