"""LightGCN: embeddings smoothed over the user-item graph, and nothing else.

He et al., "LightGCN: simplifying and powering graph convolution network for recommendation", SIGIR 2020. With
E (nodes, d) the embeddings of users and items and Ã = D^-1/2 A D^-1/2 the normalised graph (see
``bipartite_graph.py``),

    P = 1/(L+1) sum_{l=0..L} Ã^l,        F = P E,        s(u)_i = F_u . F_i.

Training as in the paper: BPR, -log sigmoid(s(u)_i - s(u)_j), with L2 on the embeddings E of a batch, Adam,
the whole graph propagated for each batch. Departs from it in the sampling: ``negatives`` items j are drawn
for a whole batch and serve all its (u, i), which is one matrix product; pairs (u, j) that are interactions
are left out. Batches are larger and so is the learning rate, because every step costs a propagation. The
epoch with the best NDCG@10 on validation data is kept.

Scores under an edit of the graph, and how training goes on: see ``graph_convolution.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution, Training, Weights

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
class Config:
    dimensions: Annotated[int, Range(minimum=1), Help("length of the embeddings")] = 64
    layers: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(1, 2, 3, 4)),
        Help("steps over the graph; the mean of 0..layers is taken"),
    ] = 3
    learning_rate: Annotated[
        float, Range(above=0), Search(low=0.005, high=0.1, log=True), Help("of Adam")
    ] = 0.03
    l2: Annotated[
        float,
        Range(minimum=0),
        Search(low=1e-5, high=1e-1, log=True),
        Help("weight of the squared embeddings"),
    ] = 1e-3
    negatives: Annotated[int, Range(minimum=1), Help("items drawn for each batch")] = 64
    batch: Annotated[
        int | None,
        Range(minimum=1),
        Help("interactions in a batch; none: 2048, or a sixteenth of all if more"),
    ] = None
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 300
    patience: Annotated[
        int, Range(minimum=1), Help("looks without a better validation NDCG@10 before stopping")
    ] = 10
    eval_every: Annotated[int, Range(minimum=1), Help("epochs between two looks at the validation data")] = 2
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Help("auto: cuda where there is one")] = "auto"


class LightGCN(GraphConvolution):
    name = "lightgcn"

    def layer_weights(self) -> Weights:
        """All layers alike, the embeddings themselves among them."""
        return (*[1.0] * (self.config.layers + 1),)

    def loss(self, training: Training, users: np.ndarray, items: np.ndarray) -> Any:
        """BPR and L2."""
        return training.bpr(*training.final(), users, items)
