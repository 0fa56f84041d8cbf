"""What recommenders share whose final embeddings are a polynomial of the graph times free embeddings.

With E (nodes, d) the embeddings of users and items and Ã = D^-1/2 A D^-1/2 the normalised graph (see
``bipartite_graph.py``),

    P = sum_{l=0..L} w_l Ã^l / sum_l w_l,        F = P E,        s(u)_i = F_u . F_i.

w = (1, 1, ..., 1) is LightGCN, (0, 1, ..., 1) the encoder of SimGCL.

Scores under an edit of the graph: E stays, Ã follows the edit, degrees included (CFExpRec's code uses the
old degrees out of the gradient). Instead of smoothing d columns again for every edit, only one column is sent
there and back:

    p = P e_u          (nodes,)    one column, from the unit vector of u
    F_u = E^T p        (d,)
    s(u) = (P E F_u) restricted to the items,   one column again,

so B edits are B columns of one matrix, L sparse products there (the first is a look-up) and L back. Exact for any
edits: removals and additions, anybody's edges; edits of a few edges of u alone need no propagation at all
(``own_edges.py``). Float64. Scores and gradients of an edit do not depend, bit by bit, on the other edits of the batch
(``batch_products.py``). An edit that changes nothing is scored from the final embeddings. Cost: O(L (edges + edited
edges)) for each edit, memory O(edges + B nodes). Where an edit gives so many edges other weights that the shared matrix
is of no use, it gets a matrix of its own (``reweighted_graph.py``).

Link: softmax. BPR, which all of them minimise, is the likelihood that an interaction is preferred to another item,
P(i before j) = sigmoid(s_i - s_j) = exp(s_i) / (exp(s_i) + exp(s_j)): it fixes differences of scores within a user, and
a constant added to all scores of a user changes nothing. The probabilities over all items with these odds for every
pair (Luce's choice axiom; Luce, "Individual choice behavior", 1959) are the softmax of the scores. The sigmoid of a
single score, or the inner product itself, would depend on that constant.

Training: Adam on E, the whole graph propagated for each batch of interactions; what is minimised is the
recommender's own business. The epoch with the best NDCG@10 on validation data is selected.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.cuda import torch_device
from cfbench_core.devices.training_steps import Loss, TrainingSteps
from cfbench_core.errors import UserError
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import Edits, FloatArray
from cfbench_recsys.graph_edits import changes, distinct
from cfbench_recsys.quality import ranking_quality
from cfbench_recsys.recommenders.graph_layers import (
    Weights,
    layers_of_units,
    layers_to_items,
    plus,
    weighted,
    weighted_layers,
)
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS, Training
from cfbench_recsys.recommenders.training import (
    CheckpointCallback,
    State,
    Stopping,
    check_shapes,
    sample_of,
    train,
)
from cfbench_recsys.splits import Split

if TYPE_CHECKING:
    from cfbench_recsys.own_edges import OwnEdges
    from cfbench_recsys.reweighted_graph import Division


class GraphConvolution(ABC):
    """Training, persistence and scoring. A recommender defines the polynomial (``layer_weights``) and what is minimised.

    Attributes:
        name: of the component; it names the random streams and stands in messages.
        smaller: the options on which the memory of the training depends that no smaller batch saves.
        config: has dimensions, layers, learning_rate, l2, negatives, batch, epochs, patience, every, device.
        scores_alone: the scores of an edit do not depend on the others of its batch (``remembered_scores.py``).
        further_arrays: what a state holds besides the embeddings.
    """

    name: str
    smaller = "dimensions or layers"
    link: Link = "softmax"
    scores_alone = True
    further_arrays: frozenset[str] = frozenset()

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def layer_weights(self) -> Weights:
        """w_0..w_L"""

    @abstractmethod
    def loss(self, training: Training, users: np.ndarray, items: np.ndarray) -> Loss:
        """Draws what is random for a batch of interactions (users[b], items[b]); what is minimised, by parts."""

    def training(self, interactions: scipy.sparse.csr_matrix, random: np.random.Generator) -> Training:
        """What is trained on the graph ``interactions``; a recommender with more than E has its own."""
        return Training(interactions, self.config, self.layer_weights(), random)

    def fit(
        self,
        split: Split,
        generator: Callable[..., np.random.Generator],
        report: Callable[[int, int], None] = lambda done, total: None,
        checkpoint: CheckpointCallback | None = None,
    ) -> dict[str, Any]:
        """Trains on the graph ``split.train``, to score ``split.profiles``. Returns a summary.

        Raises:
            UserError: if there are users to recommend without training interactions.
        """
        unknown = (np.diff(split.profiles.indptr) > 0) & (np.diff(split.train.indptr) == 0)
        if unknown.any():
            raise UserError(
                f"{self.name}: {unknown.sum()} users have no training interactions, hence no embedding; "
                "use a split that divides the interactions, not the users"
            )
        training = self.training(split.train, generator(self.name, "fit"))
        validation = sample_of(split.validation, generator(self.name, "validation"))

        def validate() -> Mapping[str, float]:
            users, items = training.final_embeddings()
            return ranking_quality(lambda rows: users[validation.users[rows]] @ items.T, validation)

        stopping = Stopping(self.config.epochs, self.config.patience, self.config.eval_every)
        steps = TrainingSteps(self.name, self.smaller)
        best, summary = train(
            lambda: training.epoch(self.loss, steps), validate, training.state, stopping, report, checkpoint
        )
        self.load_state(best, split.profiles)
        return summary

    def state(self) -> State:
        """user_embedding.weight (users, d) and item_embedding.weight (items, d): E, before propagation."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, to score the graph ``interactions`` (users, items).

        Raises:
            UserError: if there is not one embedding for each user and item, all of one length.
        """
        import torch

        users, items = interactions.shape
        length = state[USERS].shape[-1] if USERS in state else self.config.dimensions
        shapes = {USERS: (users, length), ITEMS: (items, length)}
        check_shapes(self.name, state, shapes, self.further_arrays)
        self._state = dict(state)
        self.device = torch_device(self.config.device)
        user_embedding, item_embedding = (
            torch.from_numpy(np.asarray(state[name], dtype=np.float64)).to(self.device)
            for name in (USERS, ITEMS)
        )
        self.place(user_embedding, item_embedding, interactions)

    def place(self, users: Any, items: Any, interactions: scipy.sparse.csr_matrix) -> None:
        """Takes E = ``users`` (users, d), ``items`` (items, d), float64, to score the graph ``interactions``."""
        from cfbench_recsys.bipartite_graph import BipartiteGraph, Propagation
        from cfbench_recsys.own_edges import can_prepare
        from cfbench_recsys.reweighted_graph import EdgePattern

        self._users, self._items, self._interactions = users, items, interactions
        strengths = self.strengths(interactions)
        self._users_across, self._items_across = users.T.contiguous(), items.T.contiguous()
        self._graph = BipartiteGraph(interactions, self.device, strengths)
        self._pattern = EdgePattern(interactions)
        self._division: Division | None = None  # of the edges that were scored last
        self._own_edges: OwnEdges | None = None  # made when it is needed
        on_cpu = users.device.type == "cpu"
        self._own_edges_suffice = on_cpu and can_prepare(len(items), self.layer_weights())
        propagation = Propagation(interactions, users.dtype, self.device, strengths)
        final = weighted_layers(propagation, self._users, self._items, self.layer_weights())
        self._final_users, self._final_items = (side.cpu().numpy() for side in final)

    def strengths(self, interactions: scipy.sparse.csr_matrix) -> FloatArray | None:
        """(edges,) what each edge of ``interactions`` counts, in the order of its data; None: 1 each."""
        return None

    def weighed(self, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """``delta`` (E,) times the strengths of these edges, whether they exist or not."""
        return delta

    def user_embeddings(self) -> FloatArray:
        """(users, d) final embeddings F: a logit is their product with those of the items."""
        return np.array(self._final_users)

    def item_embeddings(self) -> FloatArray:
        """(items, d) final embeddings F."""
        return np.array(self._final_items)

    def score_edits(self, edits: Edits) -> FloatArray:
        """(B, items) logits of ``edits.users``, each on its edited graph.

        Removing an edge that is not there, adding one that is, or naming an edge twice changes nothing.
        """
        import torch

        from cfbench_recsys.batch_products import column_product

        edits = edits.where(changes(edits, self._interactions))
        edited = edits.counts() > 0
        scores: FloatArray = np.empty((len(edits), self._interactions.shape[1]))
        if not edited.all():
            own = torch.from_numpy(self._final_users[edits.users[~edited]].T)
            scores[~edited] = column_product(torch.from_numpy(self._final_items), own).T.numpy()
        if edited.any():
            which, places = distinct(edits, np.flatnonzero(edited))
            found = np.empty((len(which), scores.shape[1]))
            alone = edits.of_own_edges()[which] & self._own_edges_suffice
            for chosen, score in ((alone, self._score_own_edges), (~alone, self._score_any_edges)):
                if chosen.any():
                    found[chosen] = score(edits.choose(which[chosen]))
            scores[edited] = found[places]
        return scores

    def _score_own_edges(self, edits: Edits) -> FloatArray:
        """(B, items) logits; each edit has edges of its user alone."""
        import torch

        users, rows, edge_users, edge_items, ops = self._tensors(edits)
        with torch.no_grad():
            delta = self.weighed(edge_users, edge_items, ops)
            found: FloatArray = self._own().scores(users, rows, edge_items, delta).numpy()
        return found

    def _own(self) -> OwnEdges:
        from cfbench_recsys.own_edges import OwnEdges

        if self._own_edges is None:
            graph = self._interactions.astype(np.float64)
            graph.data[:] = self._graph.strengths.numpy()
            sides = self._users.numpy(), self._items.numpy()
            self._own_edges = OwnEdges(graph, *sides, self.layer_weights())
        return self._own_edges

    def _score_any_edges(self, edits: Edits) -> FloatArray:
        """(B, items) logits."""
        import torch

        with torch.no_grad():
            found: FloatArray = self.score_weighted(*self._tensors(edits)).cpu().numpy()
        return found

    def _tensors(self, edits: Edits) -> tuple[Any, ...]:
        """users, rows, edge_users, edge_items and delta, as :meth:`score_weighted` takes them."""
        import torch

        arrays = (edits.users, edits.rows, edits.edge_users, edits.edge_items, edits.ops.astype(np.float64))
        return tuple(torch.from_numpy(array).to(self.device) for array in arrays)

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """(B, items) float64 logits as a torch tensor, differentiable in ``delta``, through the degrees too.

        users (B,); edges rows, edge_users, edge_items (E,): int64 tensors. delta (E,) float64: the weight of
        edge e in the graph of edit rows[e] is (1 if it exists else 0) + delta[e]; edges named twice add up.
        """
        import torch

        from cfbench_recsys.reweighted_graph import Division, ReweightedGraph, edited_weights

        delta = self.weighed(edge_users, edge_items, delta)
        division = self._division
        if division is None or not division.is_of(len(users), rows, edge_users, edge_items):
            division = Division(self._pattern, len(users), rows, edge_users, edge_items)
            if division.large:  # one of few edges is quickly made, and must not replace this one
                self._division = division
        edges = (rows, edge_users, edge_items, delta)
        if not division.large:
            return self._score_few(users, *edges)
        found: list[Any] = [None] * len(users)
        for unit, own, places in division.large:
            weights = edited_weights(self._graph.strengths, places, delta[own])
            (found[unit],) = self._scores(ReweightedGraph(self._pattern, weights), users[unit : unit + 1])
        if len(division.rest):
            scores = self._score_few(*_of_units(division.rest, division.rest_edges, users, *edges))
            for unit, own in zip(division.rest.tolist(), scores, strict=True):
                found[unit] = own
        return torch.stack(found)

    def _score_few(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """(B, items) logits, as :meth:`score_weighted`. Which formula a unit gets depends on the unit alone."""
        import torch

        edges = (rows, edge_users, edge_items, delta)
        alone = self._few_of_own(users, *edges[:2]) if self._own_edges_suffice else None
        if alone is None or not alone.any():
            return self._scores(self._graph.edited(len(users), *edges), users)
        if alone.all():
            return self._own().scores(users, rows, edge_items, delta)
        units = [torch.nonzero(chosen)[:, 0] for chosen in (alone, ~alone)]
        own, other = (
            _of_units(chosen, torch.nonzero(is_chosen[rows])[:, 0], users, *edges)
            for chosen, is_chosen in zip(units, (alone, ~alone), strict=True)
        )
        scores = (
            self._own().scores(own[0], own[1], *own[3:]),
            self._scores(self._graph.edited(len(other[0]), *other[1:]), other[0]),
        )
        return torch.cat(scores)[torch.argsort(torch.cat(units))]

    @staticmethod
    def _few_of_own(users: Any, rows: Any, edge_users: Any) -> Any:
        """(B,) whether a unit edits few edges, all of its own user."""
        import torch

        from cfbench_recsys.own_edges import MOST_EDITS

        foreign = torch.bincount(rows[edge_users != users[rows]], minlength=len(users))
        return (foreign == 0) & (torch.bincount(rows, minlength=len(users)) <= MOST_EDITS)

    def _scores(self, graphs: Any, users: Any) -> Any:
        """(B, items) logits of ``users`` (B,), each on its version of the graph."""
        from cfbench_recsys.batch_products import column_product

        weights = self.layer_weights()
        user_sum, item_sum = layers_of_units(graphs, users, weights)
        embedding = weighted(self._users[users].T, weights[0])  # (d, B); layer 0 is the unit vector of u
        if item_sum is not None:
            embedding = plus(embedding, column_product(self._items_across, item_sum, self._items), 1.0)
        if user_sum is not None:
            embedding = plus(embedding, column_product(self._users_across, user_sum, self._users), 1.0)
        embedding = embedding / sum(weights)
        on_users = column_product(self._users, embedding, self._users_across)
        on_items = column_product(self._items, embedding, self._items_across)
        scores = layers_to_items(graphs, on_users, on_items, weights)
        return scores.T / sum(weights)


def _of_units(
    units: Any, edges: Any, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any
) -> tuple[Any, ...]:
    """A batch of these ``units`` (ascending) alone, whose ``edges`` are these: users, rows, ..., delta."""
    import torch

    return (
        users[units],
        torch.searchsorted(units, rows[edges]),
        *(of[edges] for of in (edge_users, edge_items, delta)),
    )
