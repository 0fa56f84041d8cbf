"""GFormer: a graph transformer that attends over the edges, and learns to find the edges it was not shown.

Li et al., "Graph Transformer for Recommendation", SIGIR 2023. E (nodes, d) are the embeddings of users and
items, Ã the normalised graph (see ``bipartite_graph.py``), V_A a set of S anchor nodes.

    w_na = 1 / (dist(n, a) + 1), 0 beyond ``radius`` edges                                  (topology)
    X_n  = E_n + 1/S sum_{a in V_A} w_na [E_n, E_a] W_T            W_T (2d, d)
    T_n  = heads side by side of sum_m a_nm X_m W_V / sum_m a_nm    m the neighbours of n    (graph transformer)
    a_nm = exp(X_n W_Q . X_m W_K / sqrt(d / heads))                W_Q, W_K, W_V (d, d); see ``graph_attention.py``
    H    = E + gate T
    F    = 1/(L+1) sum_{l=0..L} Ã^l H,        s(u)_i = F_u . F_i                              (what is scored)

Training masks the rationale. At the start of each epoch an edge's rationale is its share of the attention of
its two ends, mean over the heads, relative to an even share; ``masked`` of all edges are drawn without
replacement, likelier the larger theirs, and taken out of the graph. What is encoded is the rest. BPR over all
training interactions, masked ones among them, so makes the model reconstruct its own rationale from the
complement (a masked autoencoder), in addition to ranking the visible edges. ``independence`` adds the paper's contrastive
regulariser: the log of the mean over nodes of exp(cos(T_n over the masked edges, T_n over the rest)), which is to
separate rationale and complement.

Departs from the paper, so that the model can be explained, and on a small machine:

- The transformer's output reaches the score. In the published code, where the scores are computed neither the
  transformer nor the anchors take part (the code of CFExpRec inherits this): what is explained there is
  LightGCN.
- One layer of attention (the published default), before the light convolutions and not between them. Its
  queries, keys and values then depend on E alone. An edit moves T at the ends of the edited edges only; Ã does
  the rest, degrees included. So B edited graphs cost B columns, as for LightGCN.
- Logits are bounded smoothly, see ``graph_attention.py``.
- Anchors are drawn once, from the seed, not in every epoch; they and their nearness w (nodes, S) are measured
  on the training graph and belong to the trained model, as W_T does. An edit does not measure them anew.
- Reconstruction is ranked like the rest (sampled negatives), in place of a score that is to grow and a
  uniformity loss that prevents it from growing. There is no second transformer as a decoder.
- W_V starts near the identity, so that training sets out from a light convolution, and the matrices learn more
  slowly than the embeddings (``matrix_rate``): otherwise they fit the training data alone.
- Batches and negatives as in ``lightgcn.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.recommenders.graph_convolution import (
    ITEMS,
    USERS,
    GraphConvolution,
    Weights,
    layers_of_units,
    layers_to_items,
)
from cfbench_recsys.recommenders.graph_options import GraphOptions
from cfbench_recsys.recommenders.masked_training import (
    ANCHORS,
    ITEM_NEARNESS,
    KEY,
    QUERY,
    TOPOLOGY,
    USER_NEARNESS,
    VALUE,
    MaskedTraining,
    heads_of,
    likeness,
)
from cfbench_recsys.recommenders.training import State, check_shapes

SPEC = ComponentSpec(
    id="recsys/recommender/gformer",
    summary="Graph transformer: attention over the edges, trained to reconstruct masked ones",
    target=f"{__name__}:GFormer",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings"},
    },
    papers=("li2023gformer",),
    presets="cfbench_recsys:presets/gformer.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(GraphOptions):
    layers: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(1, 2, 3, 4)),
        Help("light convolutions after the attention; the mean of 0..layers is taken"),
    ] = 3
    heads: Annotated[
        int, Range(minimum=1), Search(choices=(1, 2, 4, 8)), Help("of the attention; a divisor of dimensions")
    ] = 4
    gate: Annotated[
        float,
        Range(minimum=0),
        Search(low=0.05, high=1.0, log=True),
        Help("weight of the attention relative to a node's own embedding"),
    ] = 0.1
    anchors: Annotated[int, Range(minimum=0), Help("nodes to which all nodes know their distance")] = 32
    radius: Annotated[int, Range(minimum=1), Help("anchors more than so many edges away do not count")] = 4
    masked: Annotated[
        float,
        Range(minimum=0, below=1),
        Search(low=0.0, high=0.5),
        Help("share of the edges that training hides and wants reconstructed"),
    ] = 0.2
    independence: Annotated[
        float, Range(minimum=0), Help("weight of the contrast of hidden and shown edges")
    ] = 0.0
    learning_rate: Annotated[
        float, Range(above=0), Search(low=0.005, high=0.1, log=True), Help("of Adam, for the embeddings")
    ] = 0.03
    matrix_rate: Annotated[
        float,
        Range(minimum=0),
        Search(low=0.001, high=1.0, log=True),
        Help("learning rate of the matrices, relative to that of the embeddings"),
    ] = 0.01


class GFormer(GraphConvolution):
    name = "gformer"

    def __init__(self, config: Config) -> None:
        """
        Raises:
            UserError: if the heads cannot share the dimensions evenly.
        """
        if config.dimensions % config.heads:
            raise UserError(
                f"gformer: dimensions {config.dimensions} cannot be divided among {config.heads} heads"
            )
        super().__init__(config)

    def layer_weights(self) -> Weights:
        """Equal weights for all layers, including H itself."""
        return (*[1.0] * (self.config.layers + 1),)

    def training(self, interactions: scipy.sparse.csr_matrix, random: np.random.Generator) -> MaskedTraining:
        """What is trained on the graph ``interactions``."""
        return MaskedTraining(interactions, self.config, self.layer_weights(), random)

    def loss(self, training: Any, users: np.ndarray, items: np.ndarray) -> Any:
        """BPR of seen and hidden edges, L2, and the contrast of rationale and complement."""
        heads = training.heads()
        outputs = training.attended(heads, training.shown)
        loss = training.bpr(*training.convolved(outputs, training.shown), users, items)
        if self.config.independence and training.hidden is not None:
            others = training.attended(heads, training.hidden)
            loss = loss + self.config.independence * likeness(outputs, others)
        return loss

    def state(self) -> State:
        """Embeddings user_embedding.weight (users, d), item_embedding.weight (items, d): E.

        query.weight, key.weight, value.weight (d, d), topology.weight (2d, d): W_Q, W_K, W_V, W_T.
        anchors (S,) int64, users before items; user_nearness (users, S), item_nearness (items, S): w.
        """
        return super().state()

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, to score the graph ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape, or an anchor is no node.
        """
        users, items = interactions.shape
        d = state[USERS].shape[-1] if USERS in state else self.config.dimensions
        anchors = len(state[ANCHORS]) if ANCHORS in state else self.config.anchors
        shapes: dict[str, tuple[int, ...]] = {USERS: (users, d), ITEMS: (items, d)}
        shapes |= {QUERY: (d, d), KEY: (d, d), VALUE: (d, d)}
        shapes |= {TOPOLOGY: (2 * d, d), ANCHORS: (anchors,)}
        shapes |= {USER_NEARNESS: (users, anchors), ITEM_NEARNESS: (items, anchors)}
        check_shapes("gformer", state, shapes)
        if d % self.config.heads:
            raise UserError(f"gformer: weights: {d} dimensions for {self.config.heads} heads")
        if anchors and not 0 <= state[ANCHORS].min() <= state[ANCHORS].max() < users + items:
            raise UserError(f"gformer: weights: {ANCHORS} must be in 0..{users + items - 1}")
        super().load_state(state, interactions)

    def place(self, users: Any, items: Any, interactions: scipy.sparse.csr_matrix) -> None:
        """From E to H on the graph ``interactions``."""
        import torch

        from cfbench_recsys.graph_attention import Attention, Pattern

        arrays = {name: torch.from_numpy(np.asarray(array)) for name, array in self._state.items()}
        parameters = {
            name: array.to(self.device, torch.int64 if name == ANCHORS else torch.float64)
            for name, array in arrays.items()
        }
        of_users, of_items = heads_of(parameters, self.config)
        pattern = Pattern.of(interactions, self.device)
        self._user_attention = Attention(pattern, of_users, of_items)
        self._item_attention = Attention(pattern.transposed(), of_items, of_users)
        users, items = users + self._user_attention.output, items + self._item_attention.output
        super().place(users, items, interactions)

    def score_weighted(self, users: Any, rows: Any, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """(B, items) float64 logits as a torch tensor, differentiable in ``delta``, through degrees and attention.

        As :meth:`GraphConvolution.score_weighted`, with H_b = H + a few rows in place of E: the column that is
        sent there meets H_b^T, the one that is sent back starts at H_b F_u.
        """
        import torch

        count = len(users)
        graphs = self._graph.edited(count, rows, edge_users, edge_items, delta)
        user_changes = self._user_attention.edited(count, rows, edge_users, edge_items, delta)
        item_changes = self._item_attention.edited(count, rows, edge_items, edge_users, delta)
        weights = self.layer_weights()

        user_column, item_column = layers_of_units(graphs, users, weights)
        if user_column is None:
            user_column = torch.zeros(len(self._users), count, dtype=torch.float64, device=self.device)
        own = (users, torch.arange(count, device=self.device))
        one = torch.ones(count, dtype=torch.float64, device=self.device)
        user_column = user_column.index_put(own, one, accumulate=True)  # layer 0, the unit vector of u

        embedding = self._users.T @ user_column + self._items.T @ item_column  # (d, B)
        embedding = user_changes.add_transposed_product(embedding, user_column)
        embedding = item_changes.add_transposed_product(embedding, item_column) / sum(weights)
        user_values = user_changes.add_product(self._users @ embedding, embedding)
        item_values = item_changes.add_product(self._items @ embedding, embedding)
        return layers_to_items(graphs, user_values, item_values, weights).T / sum(weights)
