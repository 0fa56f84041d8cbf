"""A recommender that is a module of PyTorch Geometric, with weights from a file or trained here.

``factory`` names a class or function that returns the module; parameters called ``num_nodes``, ``num_users``,
``num_items`` and ``in_channels`` receive the numbers of nodes, users, items and features, ``options`` the others. The
nodes are the users, then the items, and each interaction is two edges, one in each direction. The module has one of

    get_embedding(edge_index, edge_weight) -> (nodes, d)     as torch_geometric.nn.models.LightGCN
    forward(x, edge_index, edge_weight)    -> (nodes, d)     as torch_geometric.nn.models.GCN
    forward(edge_index, edge_weight)       -> (nodes, d)

where x (nodes, ``features``) is learned with the weights, and the logit of user u and item i is the product of their
embeddings. ``weights`` is its state dict, as ``.safetensors`` or as ``.pt`` or ``.pth`` (read with
``weights_only=True``, so that no code in the file is executed); x stands there as ``x``.

Scores under an edit of the graph are those of the module on the edited graph, in float64: removed edges are deleted. B
edited graphs are one call on their disjoint union (see ``pyg_modules.py``). Explainers that follow gradients get them by
autograd in the edge weights, so a module that normalises with these weights has degrees that follow the mask. They
cannot be used with a module that ignores edge weights, or for which an edge of weight 0 is not the same as no edge.

``torch_geometric.nn.models.LightGCN`` itself is a polynomial of the normalised graph. It is scored as such, without a
union, by the algebra of ``cfbench_recsys.recommenders.graph_convolution``, which gives the same numbers at a fraction
of the cost.

Without weights the module is trained with BPR as cfbench's own graph recommenders are, by Adam; the epoch with the best
NDCG@10 on validation data is selected. It computes on the CPU. BPR and other ranking losses fix differences of logits
within a user only, hence the link ``softmax`` (see ``graph_convolution``); a module that was trained elsewhere with the
binary cross-entropy has the link ``sigmoid``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import CodeReference, Help, InputFile, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.plain_text import one_line
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_gnn.pyg_modules import (
    LIBRARY,
    NUMBERS_AT_ONCE,
    NUMBERS_IN_MEMORY,
    GraphModule,
    created_module,
    index_tensors,
    library_problem,
)
from cfbench_explainers_gnn.pyg_training import Training, state_of
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.graph_edits import changes
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.real_arrays import check_real
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution
from cfbench_recsys.recommenders.graph_layers import Weights
from cfbench_recsys.recommenders.training import CheckpointCallback, State, Stopping, sample_of, train
from cfbench_recsys.splits import Split

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="recsys/recommender/pyg",
    summary="Any PyTorch Geometric module, with weights from a file or trained here",
    target=f"{__name__}:PyG",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings", "module"},
    },
    papers=("fey2019pyg",),
)

DEFAULT = f"{__name__}:light_gcn"
LIBRARIES = (__name__, LIBRARY)


@dataclass(frozen=True, kw_only=True)
class Config:
    factory: Annotated[
        str, CodeReference(LIBRARIES), Help("package.module:name of the class or factory of the module")
    ] = DEFAULT
    options: Annotated[Mapping[str, Any], Help("arguments of the factory, by name: {num_layers: 3}")] = field(
        default_factory=dict
    )
    features: Annotated[int, Range(minimum=1), Help("columns of x, where forward takes it")] = 64
    weights: Annotated[
        str | None, InputFile(), Help("its state dict, .safetensors, .pt or .pth; none: trained here")
    ] = None
    link: Annotated[Link, Help("what the scores mean; sigmoid: trained with the binary cross-entropy")] = (
        "softmax"
    )
    learning_rate: Annotated[
        float, Range(above=0), Search(low=0.005, high=0.1, log=True), Help("of Adam")
    ] = 0.03
    weight_decay: Annotated[float, Range(minimum=0), Help("of Adam")] = 0.0
    negatives: Annotated[int, Range(minimum=1), Help("items drawn for each batch")] = 64
    batch: Annotated[int, Range(minimum=1), Help("interactions in a batch")] = 2048
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[
        int, Range(minimum=1), Help("evaluations without a better validation NDCG@10 before stopping")
    ] = 10
    eval_every: Annotated[
        int, Range(minimum=1), Help("epochs between two evaluations on the validation data")
    ] = 2

    def __post_init__(self) -> None:
        """Checks what can be known without importing the user's code, which happens only where it is needed."""
        if problem := library_problem(self.factory):
            raise ValueError(f"factory: {problem}")
        known = [name for name in inspect.signature(light_gcn).parameters if name != "num_nodes"]
        unknown = [name for name in self.options if name not in known] if self.factory == DEFAULT else []
        if unknown:
            raise ValueError(
                f"options: {unknown[0]!r} is no option of the default factory, which takes {' and '.join(known)}"
            )


def light_gcn(num_nodes: int, embedding_dim: int = 64, num_layers: int = 3) -> Any:
    """The default module: ``torch_geometric.nn.models.LightGCN``."""
    from torch_geometric.nn.models import LightGCN  # type: ignore[import-untyped]

    return LightGCN(num_nodes, embedding_dim, num_layers)


class PyG:
    """A graph recommender with gradients in the weights of edges."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.link = config.link

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        checkpoint: CheckpointCallback | None = None,
    ) -> dict[str, Any]:
        """Trains on the graph ``split.train``, to score ``split.profiles``. Returns a summary.

        Raises:
            UserError: if there are users to recommend without training interactions, or the module does not fit.
        """
        import torch

        unknown = (np.diff(split.profiles.indptr) > 0) & (np.diff(split.train.indptr) == 0)
        if unknown.any():
            raise UserError(
                f"pyg: {unknown.sum()} users have no training interactions, hence no embedding; "
                "use a split that divides the interactions, not the users"
            )
        random = generator("pyg", "fit")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(random.integers(2**31)))  # the module draws its parameters and its dropout
            graph = self._created(split.train.shape)
            graph.check(split.train)
            self._check_recreated(graph, split.train)
            training = Training(graph, split.train, self.config, random)
            validation = sample_of(split.validation, generator("pyg", "validation"))

            def validate() -> Mapping[str, float]:
                users, items = training.final_embeddings()
                return ranking_quality(lambda rows: users[validation.users[rows]] @ items.T, validation)

            stopping = Stopping(self.config.epochs, self.config.patience, self.config.eval_every)
            snapshot = lambda: state_of(graph)  # noqa: E731
            best, summary = train(training.epoch, validate, snapshot, stopping, report, checkpoint)
        self.load_state(best, split.profiles)
        return summary

    def state(self) -> State:
        """The state dict of the module, and x (nodes, features) where its forward takes x."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, to score the graph ``interactions`` (users, items).

        Raises:
            UserError: if the arrays do not fit the module, or it does not compute as the contract says.
        """
        import torch

        check_real(state, f"pyg: weights of {self.config.factory}")
        with torch.random.fork_rng(devices=[]):
            graph = self._created(interactions.shape)
        names = {graph.long_name(name): name for name in state}
        tensors = {name: torch.as_tensor(np.array(state[short])) for name, short in names.items()}
        graph.wrapper.double()  # before its weights are read, which would be rounded to the precision of the module
        try:
            graph.wrapper.load_state_dict(tensors)
        except RuntimeError as error:
            reason = one_line(re.sub(r'(["\s])module\.', r"\1", " ".join(str(error).split())))
            raise UserError(f"pyg: the weights do not fit {self.config.factory}: {reason}") from None
        self._state = dict(state)
        graph.wrapper.eval().requires_grad_(False)
        self._interactions = interactions.sorted_indices()
        self._edges: tuple[Tensor, Tensor] = index_tensors(self._interactions.nonzero())
        self._graph = graph
        self._no_gradients = graph.check(interactions)
        self._check_recreated(graph, interactions)
        self._polynomial = _polynomial_of(graph, interactions)
        with torch.no_grad():
            ones = torch.ones(len(self._edges[0]), dtype=torch.float64)
            users, items = graph.embeddings(1, torch.zeros_like(self._edges[0]), *self._edges, ones)
        self._final_users, self._final_items = users[0].numpy(), items[0].numpy()

    def user_embeddings(self) -> FloatArray:
        """(users, d) final embeddings: a logit is their product with those of the items."""
        return np.array(self._final_users)

    def item_embeddings(self) -> FloatArray:
        """(items, d) final embeddings."""
        return np.array(self._final_items)

    def explained_module(self) -> tuple[Any, Tensor, Tensor]:
        """The module of torch with ``forward(edge_index, edge_weight)``, and both for the graph as it is.

        edge_index (2, 2E): first the direction from users to items, in the order of the graph's rows. Nodes are the
        users, then the items. For algorithms that look into layers.
        """
        import torch

        users, items = self._edges
        ends = torch.stack([users, self._interactions.shape[0] + items])
        edge_index = torch.cat([ends, ends.flip(0)], dim=1)
        return self._graph.wrapper, edge_index, torch.ones(edge_index.shape[1], dtype=torch.float64)

    def score_edits(self, edits: Edits) -> FloatArray:
        """(B, items) logits of ``edits.users``, each on its edited graph.

        Removing an edge that is not there, adding one that is, or naming an edge twice changes nothing.
        """
        import torch

        if self._polynomial is not None:
            return self._polynomial.score_edits(edits)
        edits = edits.where(changes(edits, self._interactions))
        scores: FloatArray = self._final_users[edits.users] @ self._final_items.T
        edited = np.flatnonzero(edits.counts())
        arrays = edits.choose(edited)
        delta = torch.from_numpy(arrays.ops.astype(np.float64))
        users, rows = index_tensors((arrays.users, arrays.rows))
        edge_users, edge_items = index_tensors((arrays.edge_users, arrays.edge_items))
        if len(edited):
            with torch.no_grad():
                scores[edited] = self._score(users, rows, edge_users, edge_items, delta).numpy()
        return scores

    def score_weighted(
        self, users: Tensor, rows: Tensor, edge_users: Tensor, edge_items: Tensor, delta: Tensor
    ) -> Tensor:
        """(B, items) logits, differentiable in ``delta`` (E,): see ``DifferentiableGraphRecommender``.

        Raises:
            UserError: if the module does not follow edge weights.
        """
        if self._no_gradients:
            raise UserError(
                f"pyg: {self.config.factory}: {self._no_gradients}, so explainers that follow gradients cannot explain it"
            )
        if self._polynomial is not None:
            found: Tensor = self._polynomial.score_weighted(users, rows, edge_users, edge_items, delta)
            return found
        return self._score(users, rows, edge_users, edge_items, delta)

    def _score(
        self, users: Tensor, rows: Tensor, edge_users: Tensor, edge_items: Tensor, delta: Tensor
    ) -> Tensor:
        """Unions of a few graphs; with gradients of many, what is between is computed again on the way back."""
        import torch
        from torch.utils.checkpoint import checkpoint

        numbers = 2 * max(1, self._interactions.nnz) * self._final_users.shape[1]
        together = max(1, NUMBERS_AT_ONCE // numbers) if self._graph.together else 1
        again = delta.requires_grad and torch.is_grad_enabled() and len(users) * numbers > NUMBERS_IN_MEMORY
        parts = []
        for low in range(0, len(users), together):
            own = (rows >= low) & (rows < low + together)
            given = (
                users[low : low + together],
                rows[own] - low,
                edge_users[own],
                edge_items[own],
                delta[own],
            )
            if again and len(users) > together:
                parts.append(checkpoint(self._score_union, *given, use_reentrant=False))
            else:
                parts.append(self._score_union(*given))
        if not parts:
            return torch.empty((0, self._interactions.shape[1]), dtype=torch.float64)
        return torch.cat(parts)

    def _score_union(
        self, users: Tensor, rows: Tensor, edge_users: Tensor, edge_items: Tensor, delta: Tensor
    ) -> Tensor:
        import torch

        graphs, (count, width) = len(users), self._interactions.shape
        base_users, base_items = self._edges
        key = edge_users * width + edge_items
        place = torch.searchsorted(base_users * width + base_items, key).clamp(max=len(base_users) - 1)
        exists = (base_users[place] == edge_users) & (base_items[place] == edge_items)
        weights = torch.ones(graphs * len(base_users), dtype=torch.float64)
        weights = weights.index_add(0, rows[exists] * len(base_users) + place[exists], delta[exists])
        new = ~exists
        all_rows = torch.cat([torch.arange(graphs).repeat_interleave(len(base_users)), rows[new]])
        all_users = torch.cat([base_users.repeat(graphs), edge_users[new]])
        all_items = torch.cat([base_items.repeat(graphs), edge_items[new]])
        weights = torch.cat([weights, delta[new]])
        # A node without any weight has degree 0, where the usual normalisation has no derivative: its edges are left out.
        degrees = torch.zeros(graphs * (count + width), dtype=torch.float64)
        first = all_rows * (count + width)
        with torch.no_grad():
            ends = (first + all_users, first + count + all_items)
            for end in ends:
                degrees.index_add_(0, end, weights.detach().abs())
            present = (degrees[ends[0]] > SMALLEST_WEIGHT) & (degrees[ends[1]] > SMALLEST_WEIGHT)
            if not weights.requires_grad:
                present &= weights != 0
        kept = (all_rows[present], all_users[present], all_items[present], weights[present])
        of_users, of_items = self._graph.embeddings(graphs, *kept)
        own = of_users[torch.arange(graphs), users]
        scores: Tensor = torch.einsum("bd,bid->bi", own, of_items)
        return scores

    def _check_recreated(self, graph: GraphModule, interactions: scipy.sparse.csr_matrix) -> None:
        """That another module with the weights of this one computes the same: all tasks explain one model."""
        import torch

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch.initial_seed() ^ 1)  # other numbers than when ``graph`` was created
            graph.check_recreated(self._created(interactions.shape), interactions)

    def _created(self, shape: tuple[int, int]) -> GraphModule:
        default = light_gcn if self.config.factory == DEFAULT else None
        features = self.config.features
        module = created_module(self.config.factory, default, self.config.options, *shape, features)
        return GraphModule(module, self.config.factory, *shape, features)


SMALLEST_WEIGHT = 1e-9
"""A node whose edges have no more weight than this counts as isolated."""


class _Polynomial(GraphConvolution):
    """The scores of PyTorch Geometric's LightGCN: its layers, weighted by ``alpha``."""

    name = "pyg"

    def __init__(self, alpha: Weights) -> None:
        import torch

        self.alpha, self.device = alpha, torch.device("cpu")

    def layer_weights(self) -> Weights:
        """alpha_0..alpha_L"""
        return self.alpha

    def loss(self, training: Any, users: np.ndarray, items: np.ndarray) -> Any:
        """Never called: the module is trained as it is."""
        raise NotImplementedError


def _polynomial_of(graph: GraphModule, interactions: scipy.sparse.csr_matrix) -> _Polynomial | None:
    """The module as a polynomial of the graph, if it is exactly PyTorch Geometric's LightGCN; else None."""
    from torch_geometric.nn import LGConv  # type: ignore[import-untyped]
    from torch_geometric.nn.models import LightGCN

    module = graph.module
    if type(module) is not LightGCN or not module.num_layers:
        return None
    plain = all(type(conv) is LGConv and conv.normalize and conv.aggr == "add" for conv in module.convs)
    alpha = tuple(float(weight) for weight in module.alpha)
    if not plain or abs(sum(alpha)) < 1e-6:
        return None
    found = _Polynomial(alpha)
    embedding = module.embedding.weight.detach() * sum(
        alpha
    )  # the polynomial's weights are divided by their sum
    found.place(embedding[: graph.users], embedding[graph.users :], interactions)
    return found
