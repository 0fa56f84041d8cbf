"""MF: two-tower matrix factorisation, a user tower over the profile and a free embedding for each item.

Matrix factorisation as in Koren, Bell & Volinsky, "Matrix factorization techniques for recommender systems",
2009, with the user's embedding computed from the profile, as CFExpRec, Refined fidelity and Consistency beyond
top-1 use it. With x (items,) the profile, W_p, W_i (d, items) and b_p, b_i (d,):

    s(x)_j = (W_p x + b_p) . (W_i[:, j] + b_i),        probability of j = sigmoid(s(x)_j)  (link: sigmoid).

The logit is linear in the profile: s(x)_j = s(0)_j + sum_i x_i W[i, j] with W = W_p^T (W_i + b_i 1^T), of
rank d.

Training: in every epoch and for every user, a random ``holdout`` share of the profile (at least one
interaction) is taken out of the input and has to be found among the items that the user has not:

    loss_u = mean_{j held out} softplus(-s_j) + negatives * mean_{j not in x_u} softplus(s_j),

binary cross-entropy with ``negatives`` negatives for each positive in expectation, over all of them in place
of a sample (one matrix product for a batch of users). Adam; the epoch with the best NDCG@10 on validation
data is selected.

Departs from the papers' code, where the positive is part of the input profile while training (so that the
model learns that an item recommends itself): here a positive is never in its input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.devices.choice import Device
from cfbench_core.devices.training_steps import Loss
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.trained_on_profiles import TrainedOnProfiles, Training, entries
from cfbench_recsys.recommenders.training import State, check_shapes

SPEC = ComponentSpec(
    id="recsys/recommender/mf",
    summary="Two-tower matrix factorisation; its logit is linear in the profile",
    target=f"{__name__}:MF",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-vector"},
        "checkpoints": {"yes"},
        "access": {"scores", "weights", "gradients", "embeddings"},
    },
    papers=("koren2009mf",),
    presets="cfbench_recsys:presets/mf.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    dimensions: Annotated[
        int, Range(minimum=1), Search(choices=(16, 32, 64, 128)), Help("length of the embeddings")
    ] = 64
    learning_rate: Annotated[float, Range(above=0), Search(1e-3, 0.03, log=True), Help("of Adam")] = 0.01
    negatives: Annotated[
        float, Range(above=0), Search(1, 64, log=True), Help("weight of the negatives, for each positive")
    ] = 16.0
    holdout: Annotated[
        float,
        Range(above=0, below=1),
        Search(0.1, 0.5),
        Help("share of a profile to be predicted from the rest"),
    ] = 0.2
    batch: Annotated[int, Range(minimum=1), Help("users in a batch")] = 256
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 200
    patience: Annotated[
        int, Range(minimum=1), Help("epochs without a better validation NDCG@10 before stopping")
    ] = 25
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Device, Help("where to train; auto: that of the experiment")] = "auto"


class MF(TrainedOnProfiles):
    name = "mf"
    smaller = "dimensions"
    link: Link = "sigmoid"

    def __init__(self, config: Config) -> None:
        self.config = config

    def training(
        self, interactions: scipy.sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> _Training:
        return _Training(interactions, self.config, generator("mf", "fit"))

    def state(self) -> State:
        """profile.weight (d, items), profile.bias (d,), item.weight (d, items), item.bias (d,)."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape.
        """
        dimensions = state["profile.bias"].size if "profile.bias" in state else self.config.dimensions
        matrix, vector = (dimensions, interactions.shape[1]), (dimensions,)
        check_shapes(
            "mf",
            state,
            {"profile.weight": matrix, "profile.bias": vector, "item.weight": matrix, "item.bias": vector},
        )
        self._state = dict(state)
        widened = {name: np.asarray(array, dtype=np.float64) for name, array in state.items()}
        self._profile_weight = np.ascontiguousarray(widened["profile.weight"].T)  # (items, d)
        self._profile_bias = widened["profile.bias"]
        self._item_weight = widened["item.weight"] + widened["item.bias"][:, None]  # (d, items)

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""
        scores: FloatArray = self.profile_embeddings(profiles) @ self._item_weight
        return scores

    def score_dense(self, profiles: Any) -> Any:
        """The same as a torch tensor, for a float64 tensor (B, items), and differentiable in it."""
        import torch

        arrays = (self._profile_weight, self._profile_bias, self._item_weight)
        weight, bias, items = (torch.from_numpy(array).to(profiles.device) for array in arrays)
        return (profiles @ weight + bias) @ items

    def weights(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """W[rows, columns], broadcast: what item ``rows`` of a profile adds to the logit of item ``columns``.

        Adds dimension by dimension, so memory stays that of the result and no W (items, items) is formed.
        """
        total = np.zeros(np.broadcast_shapes(np.shape(rows), np.shape(columns)))
        for profile_side, item_side in zip(self._profile_weight.T, self._item_weight, strict=True):
            total += profile_side[rows] * item_side[columns]
        return total

    def profile_embeddings(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, d) output of the user tower."""
        embeddings: FloatArray = profiles.astype(np.float64) @ self._profile_weight + self._profile_bias
        return embeddings

    def item_embeddings(self) -> FloatArray:
        """(items, d) item embeddings, bias included: a logit is their product with a profile embedding."""
        return self._item_weight.T.copy()


class _Training(Training):
    """Parameters and optimiser. Row-wise weights (items, d), since rows are what is gathered and added up."""

    config: Config

    def __init__(
        self, interactions: scipy.sparse.csr_matrix, config: Config, random: np.random.Generator
    ) -> None:
        super().__init__(interactions, config, random)
        shape = (interactions.shape[1], config.dimensions)
        self.profile_weight, self.item_weight = (
            self._parameter(0.1 * self.random.standard_normal(shape, dtype=np.float32)) for _ in range(2)
        )
        self.profile_bias, self.item_bias = (
            self._parameter(np.zeros(config.dimensions, dtype=np.float32)) for _ in range(2)
        )
        parameters = [self.profile_weight, self.profile_bias, self.item_weight, self.item_bias]
        self.optimizer = Adam(parameters, config.learning_rate)

    def _parameter(self, values: np.ndarray) -> Any:
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    def loss(self, profiles: scipy.sparse.csr_matrix) -> Loss:
        """The mean over the users of ``profiles`` (B, items) of the loss above."""
        counts = np.maximum(1, np.rint(self.config.holdout * np.diff(profiles.indptr))).astype(np.int64)
        held_out = draw(profiles, counts, self.random)

        def of(part: slice) -> Any:
            own = held_out[entries(profiles, part)]
            return self._sum(profiles[part], counts[part], own) / len(counts)

        return of

    def _sum(self, profiles: scipy.sparse.csr_matrix, counts: IntArray, held_out: BoolArray) -> Any:
        """The sum of the losses, with what is held out (nnz,), and how many for each user (B,)."""
        torch = self.torch
        lengths = np.diff(profiles.indptr)
        share = (1.0 / counts).astype(np.float32).repeat(counts)  # rows ascend, so this is in order
        rows = torch.from_numpy(np.repeat(np.arange(len(lengths)), lengths)).to(self.device)
        items = torch.from_numpy(profiles.indices.astype(np.int64)).to(self.device)
        out = torch.from_numpy(held_out).to(self.device)

        tower = torch.zeros(len(lengths), self.config.dimensions, device=self.device)
        tower = tower.index_add(0, rows[~out], self.profile_weight[items[~out]]) + self.profile_bias
        logits = tower @ (self.item_weight + self.item_bias).T
        found = torch.nn.functional.softplus(-logits[rows[out], items[out]])
        unseen = logits.index_put((rows, items), torch.tensor(-torch.inf, device=self.device))
        missing = torch.from_numpy(np.maximum(1, profiles.shape[1] - lengths)).to(self.device)
        avoided = torch.nn.functional.softplus(unseen).sum(1) / missing
        positives = (found * torch.from_numpy(share).to(self.device)).sum()
        return positives + self.config.negatives * avoided.sum()

    def state(self) -> State:
        """Copies, in the layout of :meth:`MF.state`."""
        weights = {
            "profile.weight": self.profile_weight.T,
            "profile.bias": self.profile_bias,
            "item.weight": self.item_weight.T,
            "item.bias": self.item_bias,
        }
        return {name: np.array(value.detach().cpu().numpy(), order="C") for name, value in weights.items()}


def draw(profiles: scipy.sparse.csr_matrix, counts: IntArray, random: np.random.Generator) -> BoolArray:
    """(nnz,) marks ``counts[b]`` of the stored entries of row b, every choice equally likely."""
    rows = np.repeat(np.arange(profiles.shape[0]), np.diff(profiles.indptr))
    order = np.lexsort((random.random(profiles.nnz), rows))
    places = np.empty(profiles.nnz, dtype=np.int64)
    places[order] = np.arange(profiles.nnz) - profiles.indptr[rows]
    marks: BoolArray = places < counts[rows]
    return marks
