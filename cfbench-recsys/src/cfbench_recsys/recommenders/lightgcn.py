"""LightGCN: embeddings smoothed over the user-item graph, and nothing else.

He et al., "LightGCN: simplifying and powering graph convolution network for recommendation", SIGIR 2020. With
E (nodes, d) the embeddings of users and items and Ã = D^-1/2 A D^-1/2 the normalised graph (see
``bipartite_graph.py``),

    P = 1/(L+1) sum_{l=0..L} Ã^l,        F = P E,        s(u)_i = F_u . F_i.

Training as in the paper: BPR, -log sigmoid(s(u)_i - s(u)_j), with L2 on the embeddings E of a batch, Adam,
the whole graph propagated for each batch. Departs from it in the sampling: ``negatives`` items j are drawn
for a whole batch and serve all its (u, i), which is one matrix product; pairs (u, j) that are interactions
are left out. Batches are larger and so is the learning rate, because every step costs a propagation. The
epoch with the best NDCG@10 on validation data is selected.

Scores under an edit of the graph, and the training: see ``graph_convolution.py``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cfbench_core.devices.training_steps import Loss
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution
from cfbench_recsys.recommenders.graph_layers import Weights
from cfbench_recsys.recommenders.graph_options import GraphOptions
from cfbench_recsys.recommenders.graph_training import Training

SPEC = ComponentSpec(
    id="recsys/recommender/lightgcn",
    summary="Light graph convolution over the user-item graph",
    target=f"{__name__}:LightGCN",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings"},
    },
    papers=("he2020lightgcn",),
    version="2",
    presets="cfbench_recsys:presets/lightgcn.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(GraphOptions):
    """No options in addition to those of every graph recommender."""


class LightGCN(GraphConvolution):
    name = "lightgcn"

    def layer_weights(self) -> Weights:
        """Equal weights for all layers, including the embeddings themselves."""
        return (*[1.0] * (self.config.layers + 1),)

    def loss(self, training: Training, users: np.ndarray, items: np.ndarray) -> Loss:
        """BPR and L2."""
        bpr = training.bpr(users, items)
        return lambda part: bpr(*training.final(), part)
