"""CLEAR as published: a graph autoencoder that decodes a whole adjacency matrix, of which the answer is one draw.

Ma et al., "CLEAR: generative counterfactual explanations on graphs", NeurIPS 2022; read from the authors' code
(github.com/jma712/GraphCFE, commit 1e78c96), which is followed where it differs from the paper: it matches no graphs, and
uses no representation loss. ``variant: paper`` of ``clear``. With A (n, n) the adjacency matrix of a unit's graph with
self-loops, X (n, d) the features of its nodes, u an auxiliary variable, y = 1 the desired label and BN batch normalisation:

    h = sum over nodes of D^-1/2 A D^-1/2 X W + b
    m = relu(BN([h, u, y] W_m)),        log s^2 = sigmoid(relu(BN([h, u, y] W_s)))
    m' = u w_m,                         log s'^2 = sigmoid(u w_s)                                    (prior)
    z = m + s * noise while learning, m in explaining
    A^ = sigmoid(D_a([z, y])),  X^ = D_x([z, y]);  D: two layers of relu(dropout(BN(.))) and a linear one
    loss = 10 |X - X^| / 4 + 10 BCE(A^, A) + KL(N(m, s^2), N(m', s'^2)) + alpha L,   alpha = 0 before epoch ``plain``, then 5

BCE and KL are means over their entries, the first term is the mean of Euclidean distances between graphs. Adam with weight
decay on one batch of units for each epoch. As in the published loop, the decoded graphs are encoded once more in each epoch,
which moves the averages of the batch normalisation and nothing else. The explanation is one draw: each edge of A is
retained with its probability in A^. Nothing is shortened.

Adaptations to recommendation:
- The graph of a unit is its user and items and the nodes nearest to them in scope, ``nodes`` at most: on the whole graph the
  last layer alone would have 16 (users + items)^2 weights. The authors' graphs are as small. Edges among other nodes stay.
- L is the mean of softplus(margin(i)) over the items: the negative log-likelihood of "has left", with the margin to the
  K-th best other candidate as the logit of "is in the list", on the recommender with the decoded weights.
- Only edges can be removed: what A^ has beyond A is ignored, an undirected edge has the mean of its two entries, and X^
  has no effect but the loss. X are the recommender's final embeddings, u is the logarithm of the mean number of users of
  the items.
- Learns from units of users who are not explained: ``units`` of them, drawn once, half of them items and half lists.
- A draw that displaces no item, or has more edges than the protocol allows, is no answer.

Agreement with the authors' loop, on the first items of 20 users of Amazon Fashion (LightGCN, K = 5, k-hop 3, no budget of
edits), both trained on the same 40 units from the same initial weights, with the same noise and draws: after 2001 epochs the
same set for 16 of 20, a mean Jaccard index of .999, PN-S 1.0 for both, with 159.1 and 159.0 edges. In double precision,
after 1000 epochs, the same set for 19 of 20 (.9996): most of the difference is rounding. With other random numbers PN-S is
.95 with 155.5 edges, no set is the same, and the index is .90, for nearly all edges of a unit's graph are removed
(``benchmarks/authors_graph_searches.py``, ``docs/results/authors-graph-searches.csv``).

Cost: one evaluation of the recommender with its gradient for each unit and epoch from ``plain`` on; one query in explaining.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.errors import UserError
from cfbench_explainers_gnn.blocks import Block, units_at_once
from cfbench_explainers_gnn.possible_edits import possible_edits
from cfbench_explainers_gnn.training_lists import training_lists
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.targets import Answer, Context, Targets

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    """Defaults are those of the authors' code; ``nodes``, ``units`` and the two options after them are the adaptation's."""

    epochs: Annotated[int, Range(minimum=1), Help("of training")] = 2001
    plain: Annotated[int, Range(minimum=0), Help("epochs of these without the counterfactual loss")] = 450
    alpha: Annotated[float, Range(minimum=0), Help("weight of the counterfactual loss")] = 5.0
    hidden: Annotated[int, Range(minimum=1), Help("units of the hidden layers")] = 16
    latent: Annotated[int, Range(minimum=1), Help("length of z")] = 16
    dropout: Annotated[float, Range(minimum=0, below=1), Help("in the decoders")] = 0.1
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 0.001
    weight_decay: Annotated[float, Range(minimum=0), Help("of Adam")] = 1e-5
    units: Annotated[int, Range(minimum=2), Help("units to learn from: one batch")] = 500
    nodes: Annotated[int, Range(minimum=2), Help("nodes of a unit's graph, at most")] = 128
    training_scope: Annotated[
        Literal["user-only", "indirect", "k-hop", "full"], Help("in which training removes edges")
    ] = "k-hop"
    k: Annotated[int, Range(minimum=1), Help("training takes targets from the top k")] = 5


def prepare_paper(context: Context, options: PaperOptions) -> dict[str, np.ndarray]:
    """The trained network, and ``losses`` (epochs, 4): features, adjacency, KL and counterfactual loss."""
    import torch

    random = context.generator("clear", "fit")
    learned = context.training.multiply(context.interactions).tocsr()
    learned.eliminate_zeros()
    blocks, graphs = _training_units(context, learned, options, random)
    x, a, u = (
        torch.stack(parts)
        for parts in zip(*((g.features, g.adjacency, g.auxiliary) for g in graphs), strict=True)
    )
    smoothed = smooth(x, a)  # once: the graphs are the same in each epoch
    losses = np.empty((options.epochs, 4))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(random.integers(2**62)))
        network = make_network(x.shape[2], options)
        optimizer = torch.optim.Adam(
            network.parameters(), lr=options.learning_rate, weight_decay=options.weight_decay
        )
        network.train()
        for epoch in range(options.epochs):
            decoded = forward(network, x, a, u, smoothed)
            with torch.no_grad():
                encode(network, decoded["features"], decoded["adjacency"], u)
            terms = [10 * term for term in reconstruction(decoded, x, a)] + [divergence(decoded)]
            loss = torch.stack(terms).sum()
            losses[epoch] = [*(float(term.detach()) for term in terms), 0.0]
            if epoch >= options.plain:
                losses[epoch, 3], through = counterfactual_loss(decoded["adjacency"], blocks, graphs)
                loss = loss + options.alpha * through
            if not np.isfinite(losses[epoch]).all():
                raise UserError(f"clear: training diverged in epoch {epoch}; try a smaller learning_rate")
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    state = {
        f"paper.{name}": value.cpu().numpy().copy()
        for name, value in network.state_dict().items()
        if value.is_floating_point()  # not the counters of the batch normalisation
    }
    return {**state, "losses": losses}


def paper_answer(block: Block, options: PaperOptions) -> Answer:
    """One draw from what the network decodes for each unit."""
    import torch

    state = block.context.state
    assert state is not None, "what prepare gave"
    around = Nodes(block.context)
    network = make_network(around.vectors.shape[1], options)
    weights = {n[6:]: torch.as_tensor(v) for n, v in state.items() if n.startswith("paper.")}
    network.load_state_dict(weights, strict=False)
    network.eval()
    removed = np.zeros(len(block.possible.rows), dtype=bool)
    starts = np.searchsorted(block.possible.rows, np.arange(len(block)))
    for unit, graph in enumerate(unit_graphs(block, around, options.nodes)):
        with torch.no_grad():
            decoded = forward(network, graph.features[None], graph.adjacency[None], graph.auxiliary[None])
        retained = graph.of_edges(decoded["adjacency"][0]).cpu().numpy()
        drawn = block.generator(unit, "clear", "draw").random(len(retained))
        removed[starts[unit] + graph.edges] = drawn >= retained
    edits = block.targets.within_budget(block.possible.where(removed))
    displaces = block.displaced(edits, np.arange(len(block))) > 0
    return Answer(edits.where(displaces[edits.rows]), {"queries": np.ones(len(block))})


def _training_units(
    context: Context, learned: Any, options: PaperOptions, random: np.random.Generator
) -> tuple[list[Block], list[UnitGraph]]:
    """Units to learn from, at item and at list level, as blocks that the recommender scores at once, and their graphs.

    A block has the edges of these graphs alone: all edges in scope of 500 units take gigabytes on MovieLens 1M.
    """
    model = context.graph_embedding_model
    users, lists = training_lists(model.user_embeddings(), model.item_embeddings(), learned, options.k)
    if not len(users):
        reason = "nothing can be recommended to the users who are not explained"
        raise UserError(
            f"clear: there are no users to train on: {reason if learned.nnz else 'all users are explained'}"
        )
    drawn = random.permutation(len(users))[: options.units // 2]
    places = random.integers(np.count_nonzero(lists[drawn] >= 0, axis=1))
    where, around = dataclasses.replace(context, interactions=learned), Nodes(context)
    width, blocks, graphs = units_at_once(context), list[Block](), list[UnitGraph]()
    levels: tuple[tuple[Literal["item", "list"], IntArray], ...] = (
        ("item", lists[drawn, places][:, None]),
        ("list", lists[drawn]),
    )
    for level, items in levels:
        for start in range(0, len(drawn), width):
            some = slice(start, start + width)
            targets = Targets.of(
                learned, users[drawn[some]], items[some], options.k, level, options.training_scope
            )
            block = Block(targets, possible_edits(targets, where), where)
            found = list(unit_graphs(block, around, options.nodes))
            blocks.append(with_edges_of(found, block))
            graphs += found
    return blocks, graphs


def with_edges_of(graphs: list[UnitGraph], block: Block) -> Block:
    """The block whose possible edits are the edges of its units' graphs, in their order."""
    starts = np.searchsorted(block.possible.rows, np.arange(len(block)))
    chosen = np.zeros(len(block.possible.rows), dtype=bool)
    for start, graph in zip(starts, graphs, strict=True):
        chosen[start + graph.edges] = True
    return Block(block.targets, block.possible.where(chosen), block.context)


class Nodes:
    """Features of all nodes, users before items.

    Attributes:
        vectors: (users + items, d) final embeddings. users: their number. degrees: (items,).
    """

    def __init__(self, context: Context) -> None:
        model, graph = context.graph_embedding_model, context.interactions
        sides = [np.asarray(side) for side in (model.user_embeddings(), model.item_embeddings())]
        self.vectors: FloatArray = np.concatenate(sides).astype(np.float64)
        self.users = graph.shape[0]
        self.degrees = np.bincount(graph.indices, minlength=graph.shape[1])


@dataclass(frozen=True)
class UnitGraph:
    """The graph of a unit, padded to n nodes.

    Attributes:
        features: (n, d). adjacency: (n, n), with self-loops. auxiliary: (1,).
        edges: (e,) numbers of its edges within the scope of the unit. ends: (2, e) their nodes.
    """

    features: torch.Tensor
    adjacency: torch.Tensor
    auxiliary: torch.Tensor
    edges: IntArray
    ends: torch.Tensor

    def of_edges(self, matrix: torch.Tensor) -> torch.Tensor:
        """(e,) the mean of the two entries of each edge in ``matrix`` (n, n)."""
        return (matrix[self.ends[0], self.ends[1]] + matrix[self.ends[1], self.ends[0]]) / 2


def unit_graphs(block: Block, around: Nodes, size: int) -> Iterator[UnitGraph]:
    """The graph of each unit, with ``size`` nodes at most."""
    scope, targets = block.possible, block.targets
    bounds = np.searchsorted(scope.rows, np.arange(len(block) + 1))
    for user, items, start, end in zip(targets.users, targets.items, bounds, bounds[1:], strict=False):
        left, right = scope.edge_users[start:end], around.users + scope.edge_items[start:end]
        yield _unit_graph(int(user), items[items >= 0], left, right, around, size)


def _unit_graph(
    user: int, items: IntArray, left: IntArray, right: IntArray, around: Nodes, size: int
) -> UnitGraph:
    """The nodes nearest to the user and the items by the edges from ``left`` to ``right``; then by their number."""
    import torch

    order = [user, *(around.users + items).tolist()]
    reached = set(order)
    while len(order) < size:
        near = np.isin(left, order) | np.isin(right, order)
        new = sorted({*left[near].tolist(), *right[near].tolist()} - reached)
        if not new:
            break
        order += new
        reached.update(new)
    nodes = np.array(order[:size])
    place = np.full(len(around.vectors), -1)
    place[nodes] = np.arange(len(nodes))
    edges = np.flatnonzero((place[left] >= 0) & (place[right] >= 0))
    ends = torch.as_tensor(np.stack([place[left[edges]], place[right[edges]]]))
    features = torch.zeros(size, around.vectors.shape[1])
    features[: len(nodes)] = torch.as_tensor(around.vectors[nodes].astype(np.float32))
    adjacency = torch.eye(size)
    adjacency[ends[0], ends[1]] = adjacency[ends[1], ends[0]] = 1.0
    popularity = math.log(1.0 + float(around.degrees[items].mean()))
    return UnitGraph(features, adjacency, torch.tensor([popularity]), edges, ends)


def make_network(width: int, options: PaperOptions) -> Any:
    """The layers, a ``torch.nn.ModuleDict``; ``width`` is d."""
    from torch import nn

    hidden, latent, size = options.hidden, options.latent, options.nodes

    def decoder(outputs: int) -> nn.Sequential:
        layers: list[nn.Module] = []
        for inputs in (latent + 1, hidden):
            layers += [
                nn.Linear(inputs, hidden),
                nn.BatchNorm1d(hidden),
                nn.Dropout(options.dropout),
                nn.ReLU(),
            ]
        return nn.Sequential(*layers, nn.Linear(hidden, outputs))

    def encoder(*last: nn.Module) -> nn.Sequential:
        return nn.Sequential(nn.Linear(hidden + 2, latent), nn.BatchNorm1d(latent), nn.ReLU(), *last)

    convolution = nn.Linear(width, hidden)
    nn.init.xavier_uniform_(convolution.weight)
    nn.init.zeros_(convolution.bias)
    return nn.ModuleDict(
        {
            "convolution": convolution,
            "prior_mean": nn.Linear(1, latent),
            "prior_variance": nn.Sequential(nn.Linear(1, latent), nn.Sigmoid()),
            "mean": encoder(),
            "variance": encoder(nn.Sigmoid()),
            "features": decoder(size * width),
            "adjacency": decoder(size * size),
        }
    )


def forward(
    network: Any, x: torch.Tensor, a: torch.Tensor, u: torch.Tensor, smoothed: torch.Tensor | None = None
) -> dict[str, torch.Tensor]:
    """What the network makes of B graphs: x (B, n, d), a (B, n, n), u (B, 1).

    ``smoothed``: what :func:`smooth` makes of x and a, where it is at hand.
    """
    import torch

    mean, log_variance = encode_smoothed(network, smooth(x, a) if smoothed is None else smoothed, u)
    noise = torch.randn_like(mean) if network.training else torch.zeros_like(mean)
    z = torch.cat([mean + torch.exp(log_variance / 2) * noise, torch.ones(len(x), 1)], dim=1)
    return {
        "mean": mean,
        "log_variance": log_variance,
        "prior_mean": network["prior_mean"](u),
        "prior_log_variance": network["prior_variance"](u),
        "adjacency": torch.sigmoid(network["adjacency"](z)).view(a.shape),
        "features": network["features"](z).view(x.shape),
    }


def encode(
    network: Any, x: torch.Tensor, a: torch.Tensor, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, latent) m and log s^2; the diagonal of ``a`` counts as 1."""
    return encode_smoothed(network, smooth(x, a), u)


def smooth(x: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
    """(B, n, d) D^-1/2 A D^-1/2 X; the diagonal of ``a`` counts as 1."""
    import torch

    loops = torch.eye(a.shape[1])
    a = a * (1 - loops) + loops
    roots = a.sum(dim=2).clamp(min=1).rsqrt()
    return roots[:, :, None] * (a @ (roots[:, :, None] * x))


def encode_smoothed(
    network: Any, smoothed: torch.Tensor, u: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """(B, latent) m and log s^2 of graphs whose features are ``smoothed`` (B, n, d)."""
    import torch

    pooled = network["convolution"](smoothed).sum(dim=1)
    inputs = torch.cat([pooled, u, torch.ones(len(u), 1)], dim=1)
    return network["mean"](inputs), network["variance"](inputs)


def reconstruction(decoded: dict[str, torch.Tensor], x: torch.Tensor, a: torch.Tensor) -> list[torch.Tensor]:
    """Mean distance of the features of a graph, over 4, and mean cross-entropy of the adjacency matrices."""
    import torch

    apart = torch.nn.functional.pairwise_distance(x.flatten(1), decoded["features"].flatten(1))
    return [apart.mean() / 4, torch.nn.functional.binary_cross_entropy(decoded["adjacency"], a)]


def divergence(decoded: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean over units and components of KL(q || prior)."""
    between = decoded["prior_log_variance"] - decoded["log_variance"]
    apart = decoded["log_variance"].exp() + (decoded["mean"] - decoded["prior_mean"]) ** 2
    return (0.5 * (between + apart / decoded["prior_log_variance"].exp() - 1)).mean()


def counterfactual_loss(
    adjacency: torch.Tensor, blocks: list[Block], graphs: list[UnitGraph]
) -> tuple[float, torch.Tensor]:
    """L over all units, and a tensor whose gradient in ``adjacency`` (B, n, n) is that of L.

    ``blocks``: see :func:`with_edges_of`. Block after block, so that the
    recommender's memory is that of one block.
    """
    import torch

    total, through, first = 0.0, adjacency.new_zeros(()), 0
    for block in blocks:
        own = range(first, first + len(block))
        first += len(block)
        # all edges are looked up at once: the gradient of a look-up is as large as ``adjacency``
        left, right = torch.cat([graphs[unit].ends for unit in own], dim=1)
        of_unit = torch.repeat_interleave(
            torch.tensor(own), torch.tensor([len(graphs[unit].edges) for unit in own])
        )
        weights = (adjacency[of_unit, left, right] + adjacency[of_unit, right, left]) / 2
        made = (1.0 - weights.detach().double()).requires_grad_()
        real = torch.as_tensor(block.targets.items >= 0)
        each = torch.nn.functional.softplus(torch.where(real, block.margins(made), -1e9)).sum(dim=1)
        loss = (each / real.sum(dim=1)).sum() / len(graphs)
        (slope,) = torch.autograd.grad(loss, made)
        total += float(loss.detach())
        through = through - (slope.to(weights.dtype) * weights).sum()
    return total, through
