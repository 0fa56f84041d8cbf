"""SimGCL: LightGCN without its first layer, and embeddings that must withstand noise.

Yu et al., "Are graph augmentations necessary? Simple graph contrastive learning for recommendation", SIGIR
2022. With E (nodes, d) the embeddings of users and items and Ã the normalised graph,

    F = 1/L sum_{l=1..L} Ã^l E,        s(u)_i = F_u . F_i                                     (the encoder)
    V = 1/L sum_{l=1..L} V_l,          V_l = Ã V_{l-1} + noise_l,   V_0 = E                   (a view)

noise_l (nodes, d) is drawn anew for each layer and view: each row r uniform in [0, 1]^d, scaled to length
``noise``, with the signs of the row of Ã V_{l-1} that it is added to (the paper's equation 7). Of each batch,
with V', V'' two views,

    loss = BPR(F) + contrast * (InfoNCE(V'_users, V''_users) + InfoNCE(V'_items, V''_items)) + L2(E),

InfoNCE with cosine similarity at ``temperature`` among the users (items) of the batch. Scores have no noise.

The noise is constant to the gradient, and the graph linear: V = F + 1/L sum_l n_l with n_l = Ã n_{l-1} +
noise_l, n_0 = 0. So only n, L - 1 layers of it, is propagated over the graph in addition to F, without a gradient; the way
back is a single one for F and both views. The same numbers for 20 in place of 36 products with the graph (L = 3).

As LightGCN's (see there), batches are large and share their negatives. Departs from the paper in two things
more. Of the users (items) of a batch at most ``contrasted`` are contrasted, drawn at random. And ``noise`` is
longer (0.5 in place of 0.1), ``contrast`` lighter (0.05 in place of 0.2 to 2): with the paper's, the contrast
of a dense graph, whose nodes are all similar at first, outweighs BPR for dozens of epochs (seen on ML-100K).

CFExpRec's code has no contrastive loss, and noise that is overwritten on all layers but one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.devices.training_steps import Loss
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.recommenders.graph_convolution import GraphConvolution
from cfbench_recsys.recommenders.graph_layers import Weights
from cfbench_recsys.recommenders.graph_options import GraphOptions
from cfbench_recsys.recommenders.graph_training import Training

SPEC = ComponentSpec(
    id="recsys/recommender/simgcl",
    summary="LightGCN with a contrastive loss between two noisy views of the graph",
    target=f"{__name__}:SimGCL",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-only", "indirect", "k-hop", "full"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings"},
    },
    papers=("yu2022simgcl",),
    presets="cfbench_recsys:presets/simgcl.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config(GraphOptions):
    layers: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(1, 2, 3)),
        Help("steps over the graph; the mean of 1..layers is taken"),
    ] = 3
    contrast: Annotated[
        float,
        Range(minimum=0),
        Search(low=0.005, high=1.0, log=True),
        Help("weight of the contrastive loss (lambda)"),
    ] = 0.05
    noise: Annotated[
        float, Range(minimum=0), Search(low=0.05, high=1.0, log=True), Help("length of the noise (epsilon)")
    ] = 0.5
    temperature: Annotated[
        float, Range(above=0), Search(low=0.05, high=0.5, log=True), Help("of the contrastive loss (tau)")
    ] = 0.2
    contrasted: Annotated[int, Range(minimum=2), Help("of a batch, at most so many users, and items")] = 1024
    learning_rate: Annotated[
        float, Range(above=0), Search(low=0.002, high=0.05, log=True), Help("of Adam")
    ] = 0.01


class SimGCL(GraphConvolution):
    name = "simgcl"
    smaller = "dimensions, layers or contrasted"

    def layer_weights(self) -> Weights:
        """Equal weights for all layers, without the embeddings themselves."""
        return (0.0, *[1.0] * self.config.layers)

    def loss(self, training: Training, users: np.ndarray, items: np.ndarray) -> Loss:
        """BPR and L2, and the contrast of two views, each of whose nodes is compared with all others."""
        bpr = training.bpr(users, items)
        bits = training.random.bit_generator
        before_contrast = bits.state

        def of(part: slice) -> Any:
            layers = training.layers()[1:]
            final = (
                sum(layer[0] for layer in layers) / len(layers),
                sum(layer[1] for layer in layers) / len(layers),
            )
            loss = bpr(*final, part)
            if self.config.contrast and part.start == 0:
                bits.state = before_contrast  # whoever computes this part again draws the same noise
                for term in self._contrasts(training, layers, final, (users, items)):
                    loss = loss + self.config.contrast * term
            return loss

        return of

    def _contrasts(
        self, training: Training, layers: Sequence[Sides], final: Sides, named: Sequence[np.ndarray]
    ) -> Iterator[Any]:
        """InfoNCE of the users of a batch, then of its items, as ``named``; ``final``: F."""
        from cfbench_recsys.ranking_loss import info_nce

        noises = [view_noise(layers, training.step, self.config.noise, training.random) for _ in range(2)]
        for side in range(2):
            chosen = training.index(self._some(named[side], training.random))
            first, second = (final[side][chosen] + noise[side][chosen] for noise in noises)
            yield info_nce(first, second, self.config.temperature)

    def _some(self, named: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """The nodes that ``named`` names, each once; at most ``contrasted`` of them."""
        nodes = np.unique(named)
        if len(nodes) <= self.config.contrasted:
            return nodes
        drawn: np.ndarray = random.choice(nodes, self.config.contrasted, replace=False)
        return drawn


Sides = tuple[Any, Any]
"""Values of the users (users, d) and of the items (items, d), torch."""


def view_noise(
    layers: Sequence[Sides], step: Callable[[Any, Any], Sides], length: float, random: np.random.Generator
) -> Sides:
    """V - F = 1/L sum_l n_l of one view, without a gradient.

    ``layers``: Ã^l E for l = 1..L; ``step``: Ã; ``length``: of each row of the noise of each layer.
    """
    import torch

    with torch.no_grad():
        users, items = (torch.zeros_like(side) for side in layers[0])  # n_0
        user_sum, item_sum = users, items
        for number, (user_layer, item_layer) in enumerate(layers):
            if number:
                users, items = step(users, items)
            users = users + _noise(user_layer + users, length, random)
            items = items + _noise(item_layer + items, length, random)
            user_sum, item_sum = user_sum + users, item_sum + items
        return user_sum / len(layers), item_sum / len(layers)


def _noise(embeddings: Any, length: float, random: np.random.Generator) -> Any:
    """(n, d) uniform in [0, 1], rows scaled to ``length``, with the signs of ``embeddings`` (n, d)."""
    import torch

    drawn = random.random(tuple(embeddings.shape), dtype=np.float32)
    drawn *= length / np.linalg.norm(drawn, axis=1, keepdims=True)
    return torch.sign(embeddings) * torch.from_numpy(drawn).to(embeddings.device)
