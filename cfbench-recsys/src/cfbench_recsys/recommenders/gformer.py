"""GFormer: a graph transformer whose attention weighs every edge it propagates over, trained on masked rationales.

Li et al., "Graph Transformer for Recommendation", SIGIR 2023. E (nodes, d) are the embeddings of users and items,
V_A a set of S anchor nodes.

    w_na = 1 / (dist(n, a) + 1), 0 beyond ``radius`` edges                                   (topology)
    X_n  = E_n + 1/S sum_{a in V_A} w_na [E_n, E_a] W_T             W_T (2d, d)
    a_ui = mean over heads and directions of exp(X_n W_Q . X_m W_K / sqrt(d / heads))        (attention)
    Â    = D^-1/2 A D^-1/2,   A the matrix of the a_ui, D its row sums
    F    = 1/(L+1) sum_{l=0..L} Â^l E,         s(u)_i = F_u . F_i                             (what is scored)

W_Q and W_K are (d, d); logits are bounded smoothly, see ``graph_attention.py``. All that a node receives comes through
the attention. With all a_ui = 1 it is LightGCN: :meth:`GFormer.with_uniform_attention` gives this ablation.

Training masks the rationale. At the start of each epoch an edge's rationale is its share of the attention at its
two ends (the paper's mean over the heads), relative to an even share; ``masked`` of all edges are drawn without
replacement, likelier the larger theirs, and taken out of the graph. What is encoded is the rest. BPR over all
training interactions, masked ones among them, so makes the model reconstruct its own rationale from the
complement (a masked autoencoder), in addition to ranking the visible edges. ``independence`` adds the paper's
contrastive regulariser: the log of the mean over nodes of exp(cos(Â_masked E, Â_rest E)), which is to separate
rationale and complement.

Departs from the paper, so that the attention takes part in the score and the model can be explained:

- Attention reaches the score. In the published code the scores are computed by light convolutions; its transformer
  layer is left out there (the code of CFExpRec inherits this): what is explained there is LightGCN.
- Every layer propagates by the same attention, computed from E once, and there are no value matrices. A strength so
  depends on its two ends alone, and an edit of the graph moves only the sums in D: B edited graphs cost B columns,
  as for LightGCN, and are exact.
- The strengths are normalised by both ends (D^-1/2 A D^-1/2), not by the receiving end alone (D^-1 A, the softmax).
  The softmax divides away the degrees that LightGCN's normalisation retains; in our trials it ranked worse.
- Anchors are drawn once, from the seed, not in every epoch; they and their nearness w (nodes, S) are measured
  on the training graph and belong to the trained model, as W_T does. An edit does not measure them anew.
- Reconstruction is ranked like the rest (sampled negatives), in place of a score that is to grow and a
  uniformity loss that prevents it from growing. There is no second transformer as a decoder.
- The matrices learn more slowly than the embeddings (``matrix_rate``): otherwise they fit the training data alone.
- Batches and negatives as in ``lightgcn.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.devices.training_steps import Loss
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.edits import FloatArray
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution
from cfbench_recsys.recommenders.graph_layers import Weights
from cfbench_recsys.recommenders.graph_options import GraphOptions
from cfbench_recsys.recommenders.graph_training import ITEMS, USERS
from cfbench_recsys.recommenders.masked_training import (
    ANCHORS,
    ITEM_NEARNESS,
    KEY,
    QUERY,
    TOPOLOGY,
    USER_NEARNESS,
    MaskedTraining,
    heads_of,
    likeness,
)
from cfbench_recsys.recommenders.training import State, check_shapes

SPEC = ComponentSpec(
    id="recsys/recommender/gformer",
    summary="Graph transformer: propagation weighted by attention, trained to reconstruct masked edges",
    target=f"{__name__}:GFormer",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings", "attention"},
    },
    papers=("li2023gformer",),
    presets="cfbench_recsys:presets/gformer.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(GraphOptions):
    heads: Annotated[
        int, Range(minimum=1), Search(choices=(1, 2, 4, 8)), Help("of the attention; a divisor of dimensions")
    ] = 4
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
        Search(low=0.01, high=0.3, log=True),
        Help("learning rate of the matrices, relative to that of the embeddings"),
    ] = 0.1


class GFormer(GraphConvolution):
    name = "gformer"
    smaller = "dimensions, layers, heads or anchors"
    further_arrays = frozenset({QUERY, KEY, TOPOLOGY, ANCHORS, USER_NEARNESS, ITEM_NEARNESS})

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
        self._uniform = False

    def with_uniform_attention(self) -> GFormer:
        """This fitted model, in which the attention is replaced by equal weights: an ablation."""
        model = GFormer(self.config)
        model._uniform = True
        model.load_state(self._state, self._interactions)
        return model

    def layer_weights(self) -> Weights:
        """Equal weights for all layers, including E itself."""
        return (*[1.0] * (self.config.layers + 1),)

    def training(self, interactions: scipy.sparse.csr_matrix, random: np.random.Generator) -> MaskedTraining:
        """What is trained on the graph ``interactions``."""
        return MaskedTraining(interactions, self.config, self.layer_weights(), random)

    def loss(self, training: Any, users: np.ndarray, items: np.ndarray) -> Loss:
        """BPR of seen and hidden edges, L2, and the contrast of rationale and complement, which is one of all nodes."""
        bpr = training.bpr(users, items)

        def of(part: slice) -> Any:
            shown = training.over(training.shown)
            loss = bpr(*training.encoded(shown), part)
            if self.config.independence and training.hidden is not None and part.start == 0:
                layers = [
                    (propagation.to_users(training.items), propagation.to_items(training.users))
                    for propagation in (shown, training.over(training.hidden))
                ]
                loss = loss + self.config.independence * likeness(*layers)
            return loss

        return of

    def state(self) -> State:
        """Embeddings user_embedding.weight (users, d), item_embedding.weight (items, d): E.

        query.weight, key.weight (d, d), topology.weight (2d, d): W_Q, W_K, W_T.
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
        shapes |= {QUERY: (d, d), KEY: (d, d)}
        shapes |= {TOPOLOGY: (2 * d, d), ANCHORS: (anchors,)}
        shapes |= {USER_NEARNESS: (users, anchors), ITEM_NEARNESS: (items, anchors)}
        check_shapes("gformer", state, shapes)
        if d % self.config.heads:
            raise UserError(f"gformer: weights: {d} dimensions for {self.config.heads} heads")
        if anchors and not 0 <= state[ANCHORS].min() <= state[ANCHORS].max() < users + items:
            raise UserError(f"gformer: weights: {ANCHORS} must be in 0..{users + items - 1}")
        super().load_state(state, interactions)

    def strengths(self, interactions: scipy.sparse.csr_matrix) -> FloatArray | None:
        """(edges,) a_ui of the edges of ``interactions``, in the order of its data."""
        if self._uniform:
            return None
        import torch

        from cfbench_recsys.graph_attention import Pattern, edge_strengths

        arrays = {name: torch.from_numpy(np.asarray(array)) for name, array in self._state.items()}
        parameters = {
            name: array.to(self.device, torch.int64 if name == ANCHORS else torch.float64)
            for name, array in arrays.items()
        }
        self._heads = heads_of(parameters, self.config)
        found: FloatArray = edge_strengths(Pattern.of(interactions, self.device), *self._heads).cpu().numpy()
        return found

    def weighed(self, edge_users: Any, edge_items: Any, delta: Any) -> Any:
        """``delta`` (E,) times a_ui of these edges, whether they exist or not."""
        if self._uniform:
            return delta
        from cfbench_recsys.graph_attention import pair_strengths

        return delta * pair_strengths(edge_users, edge_items, *self._heads)
