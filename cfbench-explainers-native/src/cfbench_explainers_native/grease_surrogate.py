"""The graph network that GREASE as published fits to each unit, and its gradient in the weights of edges.

With Â the symmetrically normalised adjacency matrix of the unit's subgraph with self-loops, the network is

    S = Â dropout(relu(Â X W1 + b1)) W2 + b2.

Its gradients are written out, for two reasons: most of what automatic differentiation would do is writing and reading
arrays with a row for each node and a column for each hidden unit; and of the search only S_u and S_i of the unit's
items are wanted, for which the hidden layer of their neighbours suffices. All products are in float32. The random numbers
are those of the whole network in both phases, one for each node and hidden unit, as in the authors' code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_recsys.edits import BoolArray, IntArray
from cfbench_recsys.scopes import edges_in_scope
from cfbench_recsys.targets import Context, Targets

if TYPE_CHECKING:
    import torch

FIT_SHARE = 0.99
"""Of the nodes, on which the surrogate is fitted."""


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


class Subgraph:
    """The edges in scope of a unit and the nodes that they join; users come before items.

    Attributes:
        edges: (E, 2) user and item of each edge. ends: (2, E) the same as numbers of nodes.
        size: n, the number of nodes.
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
        places = (
            np.searchsorted(users, self.edges[:, 0]),
            len(users) + np.searchsorted(items, self.edges[:, 1]),
        )
        self.ends: IntArray = np.stack(places)
        self.size = len(users) + len(items)
        self.features, self.labels = (
            torch.as_tensor(np.concatenate([sides[0][users], sides[1][items]]).astype(np.float32))
            for sides in (first, final)
        )
        self.user = int(np.searchsorted(users, unit.users[0]))
        self.items: list[int] = (len(users) + np.searchsorted(items, wanted)).tolist()

    def neighbours(self, nodes: IntArray) -> IntArray:
        """``nodes`` and the nodes next to them, ascending."""
        near = self._marked(nodes)[self.ends].any(axis=0)
        return np.union1d(nodes, self.ends[:, near])

    def edges_at(self, nodes: IntArray) -> IntArray:
        """The numbers of the edges that end in one of ``nodes``, ascending."""
        return np.flatnonzero(self._marked(nodes)[self.ends].any(axis=0))

    def _marked(self, nodes: IntArray) -> BoolArray:
        marks = np.zeros(self.size, dtype=np.bool_)
        marks[nodes] = True
        return marks


class Rows:
    """Some rows of the adjacency matrix with self-loops, whose values are weights of edges.

    Attributes:
        weights: (values,) for each value its place in (edges..., 1), the last being that of a self-loop.
        places: (values,) its place in the matrix, row by row.
    """

    def __init__(self, subgraph: Subgraph, rows: IntArray, columns: IntArray, edges: IntArray) -> None:
        """``rows``, ``columns`` (nodes, ascending) and ``edges`` (their numbers) are those that appear."""
        import torch

        left, right = subgraph.ends[:, edges]
        numbers = np.arange(len(edges))
        loops = np.full(len(rows), len(edges))
        from_node = np.concatenate([left, right, rows])
        to_node = np.concatenate([right, left, rows])
        places = np.concatenate([numbers, numbers, loops])
        inside = np.isin(from_node, rows)
        row = np.searchsorted(rows, from_node[inside])
        column = np.searchsorted(columns, to_node[inside])
        order = np.lexsort((column, row))
        starts = np.searchsorted(row[order], np.arange(len(rows) + 1))
        self.shape = len(rows), len(columns)
        self.weights = torch.as_tensor(places[inside][order])
        self.places = torch.as_tensor(row[order] * len(columns) + column[order])
        self._starts, self._columns = torch.as_tensor(starts), torch.as_tensor(column[order])

    def matrix(self, values: torch.Tensor) -> torch.Tensor:
        """The CSR matrix with ``values`` (values,)."""
        from cfbench_recsys.bipartite_graph import csr_tensor

        return csr_tensor(self._starts, self._columns, values, self.shape)

    def inner_products(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """(values,) of each value the inner product of its row of ``left`` (rows, c) and its column of ``right``."""
        import torch

        nothing = self.matrix(left.new_zeros(len(self.weights)))
        found: torch.Tensor = torch.sparse.sampled_addmm(nothing, left, right.T).values()
        return found


class Surrogate:
    """The graph network of one unit."""

    def __init__(self, subgraph: Subgraph, options: PaperOptions, stream: np.random.Generator) -> None:
        import torch

        self.subgraph, self.options, self.stream = subgraph, options, stream
        self.draws = torch.Generator().manual_seed(int(stream.integers(2**62)))
        width = subgraph.features.shape[1]
        shapes = ((width, options.hidden), (options.hidden,), (options.hidden, width), (width,))
        self.parameters = [self._uniform(shape) for shape in shapes]
        self._chance, self._hidden = torch.empty(
            2, subgraph.size, options.hidden
        )  # written again in each step
        self.scale = 1 / (1 - options.dropout)

    def _uniform(self, shape: tuple[int, ...]) -> torch.Tensor:
        import torch

        bound = 1 / math.sqrt(shape[-1])
        return torch.rand(shape, generator=self.draws) * 2 * bound - bound

    def fit(self) -> float:
        """Fits W and b, which are constants afterwards; returns the relative error."""
        import torch

        options, labels = self.options, self.subgraph.labels
        count = max(1, int(FIT_SHARE * self.subgraph.size))
        nodes = torch.as_tensor(self.stream.choice(self.subgraph.size, count, replace=False))
        share = torch.zeros(self.subgraph.size, 1)
        share[nodes] = 2 / (count * labels.shape[1])  # of a node in the gradient of the mean square
        optimizer = torch.optim.Adam(
            self.parameters, lr=options.surrogate_learning_rate, weight_decay=options.weight_decay
        )
        adjacency = self._adjacency()
        smoothed = adjacency @ self.subgraph.features
        for _ in range(options.surrogate_steps):
            self._set_gradients(adjacency, smoothed, share)
            optimizer.step()
        weight2, bias2 = self.parameters[2:]
        found = adjacency @ (self.hidden(smoothed) @ weight2) + bias2
        error = (found - labels).square().mean()
        return float(error / labels.var(correction=0).clamp(min=1e-30))

    def _adjacency(self) -> torch.Tensor:
        """(n, n) Â of the subgraph as it is."""
        import torch

        nodes = np.arange(self.subgraph.size)
        rows = Rows(self.subgraph, nodes, nodes, np.arange(len(self.subgraph.edges)))
        whole = rows.matrix(torch.ones(len(rows.weights)))
        degrees = whole @ torch.ones(self.subgraph.size)
        values = rows.inner_products(*(2 * [degrees.rsqrt()[:, None]]))
        return rows.matrix(values)

    def _set_gradients(self, adjacency: torch.Tensor, smoothed: torch.Tensor, share: torch.Tensor) -> None:
        """Sets the gradients of the parameters: those of sum of ``share`` (n, 1) / 2 times the squares of S - F."""
        import torch

        _, _, weight2, bias2 = self.parameters
        scaled = weight2 * self.scale
        hidden = self.hidden(smoothed, self._hidden).mul_(self.retained())
        by_output = adjacency @ (hidden @ scaled)
        by_output.add_(bias2).sub_(self.subgraph.labels).mul_(share)
        by_product = adjacency @ by_output  # the matrix is symmetric
        by_weight2 = (hidden.T @ by_product).mul_(self.scale)
        by_hidden = torch.mm(by_product, scaled.T, out=self._chance).mul_(hidden.sign_())
        gradients = smoothed.T @ by_hidden, by_hidden.sum(dim=0), by_weight2, by_output.sum(dim=0)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient

    def hidden(self, smoothed: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        """relu(``smoothed`` W1 + b1), without dropout; ``smoothed`` are rows of Â X. ``out``: where to write it."""
        import torch

        weight1, bias1 = self.parameters[:2]
        return torch.addmm(bias1, smoothed, weight1, out=out).relu_()

    def retained(self, nodes: torch.Tensor | None = None) -> torch.Tensor:
        """(n, hidden) 1 where the next dropout leaves a number of the hidden layer, 0 elsewhere; or of ``nodes`` alone."""
        if self.options.dropout:
            self._chance.uniform_(generator=self.draws)
        else:
            self._chance.fill_(1.0)
        chance = self._chance if nodes is None else self._chance[nodes]
        kept: torch.Tensor = chance.ge_(self.options.dropout)
        return kept


class Slopes:
    """The sum of S_u . S_i over the items of a unit, and its gradient in the weights of edges.

    Attributes:
        edges: (F,) the numbers of the edges whose gradient may differ from 0. Degrees are constants for gradients, so it is
            those with an end among user, items and their neighbours.
    """

    def __init__(self, surrogate: Surrogate, weights: torch.Tensor) -> None:
        """``surrogate``: fitted. ``weights`` (E,): of them those of other edges stay as they are."""
        import torch

        self.surrogate, subgraph = surrogate, surrogate.subgraph
        outputs = np.unique([subgraph.user, *subgraph.items])
        hidden = subgraph.neighbours(outputs)
        inputs = subgraph.neighbours(hidden)
        self.edges = subgraph.edges_at(hidden)
        self._first = Rows(subgraph, hidden, inputs, self.edges)
        self._second = Rows(subgraph, outputs, hidden, self.edges)
        self._user = int(np.searchsorted(outputs, subgraph.user))
        self._items = torch.as_tensor(np.searchsorted(outputs, subgraph.items))
        self._nodes = [torch.as_tensor(nodes) for nodes in (inputs, hidden, outputs)]
        ends, own = torch.as_tensor(subgraph.ends), torch.as_tensor(self.edges)
        self._ends = ends[:, own]
        fixed = weights.index_fill(0, own, 0.0)
        self._degrees = torch.ones(subgraph.size).index_add_(0, ends[0], fixed).index_add_(0, ends[1], fixed)

    def of(self, weights: torch.Tensor) -> torch.Tensor:
        """(F,) the gradient at ``weights`` (F,), with the next dropout."""
        return self.score_and_slopes(weights)[1]

    def score_and_slopes(self, weights: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum and its gradient (F,) at ``weights`` (F,), with the next dropout."""
        import torch

        weight1, _, weight2, bias2 = self.surrogate.parameters
        scaled = weight2 * self.surrogate.scale
        extended = torch.cat([weights, weights.new_ones(1)])
        first = self._first.matrix(extended[self._first.weights])
        second = weights.new_zeros(self._second.shape)  # a row for the user and for each item: dense
        second.view(-1)[self._second.places] = extended[self._second.weights]
        degrees = self._degrees.index_add(0, self._ends[0], weights).index_add_(0, self._ends[1], weights)
        inputs, hidden, outputs = (degrees[nodes].rsqrt()[:, None] for nodes in self._nodes)

        x = inputs * self.surrogate.subgraph.features[self._nodes[0]]
        layer = self.surrogate.hidden(hidden * (first @ x)).mul_(self.surrogate.retained(self._nodes[1]))
        product = hidden * (layer @ scaled)
        found = outputs * (second @ product) + bias2
        own, of_items = found[self._user], found[self._items]

        by_found = torch.zeros_like(found).index_add_(0, self._items, own.expand_as(of_items))
        by_found[self._user] += of_items.sum(dim=0)
        by_found *= outputs
        by_layer = ((hidden * (second.T @ by_found)) @ scaled.T).mul_(layer.sign())
        by_smoothed = hidden * (by_layer @ weight1.T)
        slopes = torch.zeros_like(extended)
        slopes.index_add_(0, self._first.weights, self._first.inner_products(by_smoothed, x))
        of_second = (by_found @ product.T).flatten()[self._second.places]
        slopes.index_add_(0, self._second.weights, of_second)
        return (of_items @ own).sum(), slopes[:-1]
