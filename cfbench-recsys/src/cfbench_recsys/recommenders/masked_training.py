"""Training of a graph transformer on a graph whose rationale is hidden: what GFormer learns and how.

See ``gformer.py`` for the model and for what the letters mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.training_steps import TrainingSteps
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.recommenders.graph_layers import weighted_layers
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS, LossOf, Training
from cfbench_recsys.recommenders.training import State

QUERY, KEY = "query.weight", "key.weight"
TOPOLOGY = "topology.weight"
ANCHORS, USER_NEARNESS, ITEM_NEARNESS = "anchors", "user_nearness", "item_nearness"
MATRICES = (QUERY, KEY, TOPOLOGY)


@dataclass(frozen=True)
class View:
    """A graph to encode.

    Attributes:
        by_user, by_item: its edges as patterns, see ``graph_attention.py``, from users and from items.
    """

    by_user: Any
    by_item: Any

    @staticmethod
    def of(interactions: scipy.sparse.csr_matrix, device: Any) -> View:
        from cfbench_recsys.graph_attention import Pattern

        pattern = Pattern.of(interactions, device)
        return View(pattern, pattern.transposed())


@dataclass(eq=False)
class MaskedTraining(Training):
    """Embeddings, matrices, anchors; and a graph without its rationale, another one in each epoch.

    Attributes:
        parameters: E, W_Q, W_K, W_T, float32, and the anchors with their nearness, by the names of the state.
        whole, shown, hidden: the training graph; what of it is encoded in this epoch; what is not (None if that
            is not needed).
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        interactions, config, random = self.interactions, self.config, self.random
        d, nodes = config.dimensions, sum(interactions.shape)
        anchors = random.choice(nodes, size=min(config.anchors, nodes), replace=False).astype(np.int64)
        near = nearness(interactions, anchors, config.radius)
        constants = {ANCHORS: anchors}
        constants[USER_NEARNESS], constants[ITEM_NEARNESS] = np.split(near, [interactions.shape[0]])
        self.parameters = {name: self.torch.from_numpy(array) for name, array in constants.items()}
        self.parameters = {name: array.to(self.device) for name, array in self.parameters.items()}
        for name, rows, scale in ((QUERY, d, 1.0), (KEY, d, 1.0), (TOPOLOGY, 2 * d, 0.1)):
            drawn = scale / np.sqrt(d) * random.standard_normal((rows, d), dtype=np.float32)
            self.parameters[name] = self._parameter(drawn.astype(np.float32))
        matrices = [self.parameters[name] for name in MATRICES]
        rate = config.matrix_rate * config.learning_rate
        self.optimizer.add(matrices, rate)
        self.parameters |= {USERS: self.users, ITEMS: self.items}
        self.whole = self.shown = View.of(interactions, self.device)
        self.hidden: View | None = None

    def epoch(self, loss_of: LossOf, steps: TrainingSteps) -> float:
        """Hides a rationale, then goes once over all interactions; the mean loss."""
        count = int(self.config.masked * self.interactions.nnz)
        if count:
            drawn = draw_weighted(self.rationale(), count, self.random)
            self.shown = View.of(_only(self.interactions, ~drawn), self.device)
            if self.config.independence:
                self.hidden = View.of(_only(self.interactions, drawn), self.device)
        return super().epoch(loss_of, steps)

    def rationale(self) -> FloatArray:
        """(interactions,) an edge's share of the strengths at its two ends, 1 where all edges count the same."""
        with self.torch.no_grad():
            pattern, strengths = self.whole.by_user, self.strengths(self.whole)
            of_users, of_items = self.over(self.whole).degrees
            shares = [
                strengths * self.torch.bincount(ends, minlength=len(degrees))[ends] / degrees[ends]
                for ends, degrees in ((pattern.rows, of_users), (pattern.columns, of_items))
            ]
        rationale: FloatArray = ((shares[0] + shares[1]) / 2).double().cpu().numpy()
        return rationale

    def strengths(self, view: View) -> Any:
        """(edges of the view,) how much each edge counts, torch."""
        from cfbench_recsys.graph_attention import edge_strengths

        return edge_strengths(view.by_user, *heads_of(self.parameters, self.config))

    def over(self, view: View) -> Any:
        """Attentive propagation over the edges of a view."""
        from cfbench_recsys.graph_attention import AttentivePropagation

        return AttentivePropagation(view.by_user, view.by_item, self.strengths(view))

    def encoded(self, propagation: Any) -> tuple[Any, Any]:
        """F (users, d) and (items, d), torch."""
        return weighted_layers(propagation, self.users, self.items, self.weights)

    def final(self) -> tuple[Any, Any]:
        """F (users, d) and (items, d) on the whole graph, torch."""
        return self.encoded(self.over(self.whole))

    def state(self) -> State:
        """Copies, as :meth:`GFormer.state`."""
        return {name: array.detach().cpu().numpy().copy() for name, array in self.parameters.items()}


def heads_of(parameters: Mapping[str, Any], config: Any) -> tuple[Any, Any]:
    """Queries and keys of the users, and of the items, from the inputs X."""
    import torch

    from cfbench_recsys.graph_attention import Heads

    users, items = parameters[USERS], parameters[ITEMS]
    own, of_anchor = parameters[TOPOLOGY].split(users.shape[1])
    anchors = torch.cat([users, items])[parameters[ANCHORS]] @ of_anchor  # (S, d)

    def of(embeddings: Any, near: Any) -> Any:
        there = near.sum(1, keepdim=True) * (embeddings @ own) + near @ anchors
        inputs = embeddings + there / max(1, len(anchors))
        return Heads.of(inputs, parameters[QUERY], parameters[KEY], config.heads)

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
