"""Training of a graph transformer on a graph whose rationale is hidden: what GFormer learns and how.

See ``gformer.py`` for the model and for what the letters mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.recommenders.graph_convolution import ITEMS, USERS, Training, Weights, weighted_layers
from cfbench_recsys.recommenders.training import State

QUERY, KEY, VALUE = "query.weight", "key.weight", "value.weight"
TOPOLOGY = "topology.weight"
ANCHORS, USER_NEARNESS, ITEM_NEARNESS = "anchors", "user_nearness", "item_nearness"
MATRICES = (QUERY, KEY, VALUE, TOPOLOGY)


@dataclass(frozen=True)
class View:
    """A graph to encode: light convolutions, and who attends to whom.

    Attributes:
        propagation: Ã, see ``bipartite_graph.py``.
        by_user, by_item: its edges as patterns, see ``graph_attention.py``, from users and from items.
    """

    propagation: Any
    by_user: Any
    by_item: Any

    @staticmethod
    def of(interactions: scipy.sparse.csr_matrix, device: Any) -> View:
        """For float32 embeddings."""
        import torch

        from cfbench_recsys.bipartite_graph import Propagation
        from cfbench_recsys.graph_attention import Pattern

        pattern = Pattern.of(interactions, device)
        return View(Propagation(interactions, torch.float32, device), pattern, pattern.transposed())


class MaskedTraining(Training):
    """Embeddings, matrices, anchors; and a graph without its rationale, another one in each epoch.

    Attributes:
        parameters: E, W_Q, W_K, W_V, W_T, float32, and the anchors with their nearness, by the names of the state.
        whole, shown, hidden: the training graph; what of it is encoded in this epoch; what is not (None if that
            is not needed).
    """

    def __init__(
        self,
        interactions: scipy.sparse.csr_matrix,
        config: Any,
        weights: Weights,
        random: np.random.Generator,
    ) -> None:
        super().__init__(interactions, config, weights, random)
        self.interactions = interactions
        d, nodes = config.dimensions, sum(interactions.shape)
        anchors = random.choice(nodes, size=min(config.anchors, nodes), replace=False).astype(np.int64)
        near = nearness(interactions, anchors, config.radius)
        constants = {ANCHORS: anchors}
        constants[USER_NEARNESS], constants[ITEM_NEARNESS] = np.split(near, [interactions.shape[0]])
        self.parameters = {name: self.torch.from_numpy(array) for name, array in constants.items()}
        self.parameters = {name: array.to(self.device) for name, array in self.parameters.items()}
        for name, rows, scale in ((QUERY, d, 1.0), (KEY, d, 1.0), (VALUE, d, 0.1), (TOPOLOGY, 2 * d, 0.1)):
            drawn = scale / np.sqrt(d) * random.standard_normal((rows, d), dtype=np.float32)
            start = np.eye(d) if name == VALUE else 0.0
            self.parameters[name] = self._parameter((start + drawn).astype(np.float32))
        matrices = [self.parameters[name] for name in MATRICES]
        rate = config.matrix_rate * config.learning_rate
        self.optimizer.add_param_group({"params": matrices, "lr": rate})
        self.parameters |= {USERS: self.users, ITEMS: self.items}
        self.whole = self.shown = View.of(interactions, self.device)
        self.hidden: View | None = None

    def epoch(self, loss_of: Callable[[Training, np.ndarray, np.ndarray], Any]) -> float:
        """Hides a rationale, then goes once over all interactions; the mean loss."""
        count = int(self.config.masked * self.interactions.nnz)
        if count:
            drawn = draw_weighted(self.rationale(), count, self.random)
            self.shown = View.of(_only(self.interactions, ~drawn), self.device)
            if self.config.independence:
                self.hidden = View.of(_only(self.interactions, drawn), self.device)
        return super().epoch(loss_of)

    def rationale(self) -> FloatArray:
        """(interactions,) an edge's share of the attention of its two ends, 1 if they treat all edges equally."""
        from cfbench_recsys.graph_attention import shares

        with self.torch.no_grad():
            of_users, of_items = self.heads()
            found = shares(self.whole.by_user, of_users, of_items).double()
            order = self.whole.by_user.order
            found[order] += shares(self.whole.by_item, of_items, of_users).double()
        rationale: FloatArray = found.cpu().numpy() / 2
        return rationale

    def heads(self) -> tuple[Any, Any]:
        """Queries, keys and values of the users, and of the items."""
        return heads_of(self.parameters, self.config)

    def attended(self, heads: tuple[Any, Any], view: View) -> tuple[Any, Any]:
        """gate T of the users (users, d), and of the items (items, d)."""
        from cfbench_recsys.graph_attention import attend

        of_users, of_items = heads
        return attend(view.by_user, of_users, of_items), attend(view.by_item, of_items, of_users)

    def convolved(self, outputs: tuple[Any, Any], view: View) -> tuple[Any, Any]:
        """F of H = E + gate T."""
        users, items = self.users + outputs[0], self.items + outputs[1]
        return weighted_layers(view.propagation, users, items, self.weights)

    def final(self) -> tuple[Any, Any]:
        """F (users, d) and (items, d) on the whole graph, torch."""
        return self.convolved(self.attended(self.heads(), self.whole), self.whole)

    def state(self) -> State:
        """Copies, as :meth:`GFormer.state`."""
        return {name: array.detach().cpu().numpy().copy() for name, array in self.parameters.items()}


def heads_of(parameters: Mapping[str, Any], config: Any) -> tuple[Any, Any]:
    """Queries, keys and values (times ``gate``) of the users, and of the items, from the inputs X."""
    import torch

    from cfbench_recsys.graph_attention import Heads

    users, items = parameters[USERS], parameters[ITEMS]
    own, of_anchor = parameters[TOPOLOGY].split(users.shape[1])
    anchors = torch.cat([users, items])[parameters[ANCHORS]] @ of_anchor  # (S, d)

    def of(embeddings: Any, near: Any) -> Any:
        there = near.sum(1, keepdim=True) * (embeddings @ own) + near @ anchors
        inputs = embeddings + there / max(1, len(anchors))
        query, key, value = (parameters[name] for name in (QUERY, KEY, VALUE))
        return Heads.of(inputs, query, key, config.gate * value, config.heads)

    return of(users, parameters[USER_NEARNESS]), of(items, parameters[ITEM_NEARNESS])


def nearness(interactions: scipy.sparse.csr_matrix, anchors: IntArray, radius: int) -> np.ndarray:
    """(nodes, S) float32 1/(dist + 1) to each anchor, users before items; 0 beyond ``radius`` edges."""
    users, items = interactions.shape
    edges = scipy.sparse.csr_matrix(interactions != 0, dtype=np.float32)
    found = np.zeros((users + items, len(anchors)), dtype=np.float32)
    found[anchors, np.arange(len(anchors))] = 1.0
    for distance in range(1, radius + 1):
        there = (found > 0).astype(np.float32)
        next_to = np.concatenate([edges @ there[users:], edges.T @ there[:users]])
        found[(found == 0) & (next_to > 0)] = 1.0 / (distance + 1)
    return found


def draw_weighted(weights: FloatArray, count: int, random: np.random.Generator) -> BoolArray:
    """(n,) marks ``count`` of n, drawn one after the other without replacement with these odds.

    Efraimidis & Spirakis 2006: the ``count`` first to arrive, at exponential times of rates ``weights``.
    """
    arrivals = random.exponential(size=len(weights)) / weights
    drawn: BoolArray = np.zeros(len(weights), dtype=np.bool_)
    drawn[np.argsort(arrivals, kind="stable")[:count]] = True
    return drawn


def _only(interactions: scipy.sparse.csr_matrix, retained: BoolArray) -> scipy.sparse.csr_matrix:
    """The same shape, with only the entries that ``retained`` (in the order of ``data``) marks."""
    ends = np.concatenate([[0], np.cumsum(retained)])[interactions.indptr]
    return scipy.sparse.csr_matrix(
        (interactions.data[retained], interactions.indices[retained], ends), shape=interactions.shape
    )


def likeness(first: tuple[Any, Any], second: tuple[Any, Any]) -> Any:
    """log of the mean over all nodes of exp(cosine) between two views, each (users, d) and (items, d)."""
    import torch

    cosines = [torch.nn.functional.cosine_similarity(a, b) for a, b in zip(first, second, strict=True)]
    return torch.cat(cosines).exp().mean().log()
