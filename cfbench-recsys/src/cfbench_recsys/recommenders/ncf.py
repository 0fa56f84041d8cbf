"""NCF: neural matrix factorisation (NeuMF), a product of embeddings and a perceptron side by side.

He, Liao, Zhang, Nie, Hu & Chua, "Neural collaborative filtering", WWW 2017, with the user's embeddings computed
from the profile by linear towers, as Refined fidelity uses it. With x (items,) the profile, d = ``dimensions`` and
widths n_1 = ``units``, n_2 = n_1 / 2, ... of ``layers`` hidden layers:

    p = P x + b     (d,)      q_j (d,)       generalised matrix factorisation: embeddings of its own
    p' = P' x + b'  (n_1,)    q'_j (n_1,)    multi-layer perceptron: embeddings of its own
    z_1 = relu(W_1 [p'; q'_j] + c_1),    z_l = relu(W_l z_{l-1} + c_l)    (n_l,)
    s(x)_j = g . (p * q_j) + m . z_L + c,        probability of j = sigmoid(s(x)_j)  (link: sigmoid).

Scoring all items for thousands of profiles: W_1 [p'; q'_j] = W_1' p' + W_1'' q'_j is a part of the user, itself
linear in x, and a part of the item, so that the first layer costs an addition for each pair; the others go
profile by profile, (items, n_l) at a time. Memory: the result, and one profile's layers. With gradients, too:
they are computed again when the gradient is.

Training: as of ``mf.py``, a random ``holdout`` share of the profile (at least one interaction) is taken out of
the input in every epoch and has to be found; so a positive is never in its own input. Log loss with
``sampled`` items drawn for a batch of users; those that the user has not serve as its negatives:

    loss_u = mean_{j held out} softplus(-s_j) + negatives * mean_{j drawn, not in x_u} softplus(s_j).

Adam; the epoch with the best NDCG@10 on validation data is selected.

Departs from the paper, apart from the towers: its negatives are drawn for each positive anew (four; here their
weight is four), which needs many more passes. Its pretraining is an option, ``pretraining`` epochs: both towers
learn alone (they share nothing, so both learn at once, from the sum of their losses), then they are joined with
their heads halved (alpha = 1/2), and training continues, by Adam where the paper takes SGD. For that c is the sum
of two biases, one for each tower.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.devices.choice import Device
from cfbench_core.devices.cuda import torch_device
from cfbench_core.devices.training_steps import Loss, TrainingSteps
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import BoolArray, FloatArray, IntArray
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.mf import draw
from cfbench_recsys.recommenders.trained_on_profiles import TrainedOnProfiles, Training, entries
from cfbench_recsys.recommenders.training import State, check_shapes
from cfbench_recsys.scoring import BLOCK

SPEC = ComponentSpec(
    id="recsys/recommender/ncf",
    summary="Neural matrix factorisation: a product of embeddings and a perceptron (NeuMF)",
    target=f"{__name__}:NCF",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "checkpoints": {"yes"}, "access": {"scores", "gradients"}},
    papers=("he2017ncf",),
    presets="cfbench_recsys:presets/ncf.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    dimensions: Annotated[
        int, Range(minimum=1), Search(choices=(16, 32, 64, 128)), Help("length of the embeddings multiplied")
    ] = 64
    units: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(16, 32, 64)),
        Help("of the perceptron's embeddings and its first layer; half as many in each further one"),
    ] = 32
    layers: Annotated[int, Range(minimum=1), Search(choices=(1, 2, 3)), Help("of the perceptron")] = 3
    learning_rate: Annotated[float, Range(above=0), Search(1e-3, 3e-2, log=True), Help("of Adam")] = 0.003
    negatives: Annotated[
        float, Range(above=0), Search(1.0, 32.0, log=True), Help("weight of the negatives, for each positive")
    ] = 4.0
    sampled: Annotated[int, Range(minimum=1), Help("items drawn for each batch as negatives")] = 256
    holdout: Annotated[
        float,
        Range(above=0, below=1),
        Search(0.1, 0.5),
        Help("share of a profile to be predicted from the rest"),
    ] = 0.4
    pretraining: Annotated[int, Range(minimum=0), Help("epochs in which the two towers learn alone")] = 0
    batch: Annotated[int, Range(minimum=1), Help("users in a batch")] = 256
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 200
    patience: Annotated[
        int, Range(minimum=1), Help("epochs without a better validation NDCG@10 before stopping")
    ] = 25
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"


def _shapes(items: int, dimensions: int, widths: list[int]) -> dict[str, tuple[int, ...]]:
    """Those of ``state``; ``widths`` are n_1, ..., n_L."""
    shapes: dict[str, tuple[int, ...]] = {}
    for tower, length in (("gmf", dimensions), ("mlp", widths[0])):
        shapes[f"{tower}.profile.weight"], shapes[f"{tower}.profile.bias"] = (length, items), (length,)
        shapes[f"{tower}.item.weight"] = (length, items)
    for layer, (size_in, size_out) in enumerate(
        zip([2 * widths[0], *widths[:-1]], widths, strict=True), start=1
    ):
        shapes[f"mlp.{layer}.weight"], shapes[f"mlp.{layer}.bias"] = (size_out, size_in), (size_out,)
    return {**shapes, "head.weight": (dimensions + widths[-1],), "head.bias": (2,)}


class NCF(TrainedOnProfiles):
    name = "ncf"
    smaller = "dimensions, units or sampled"
    link: Link = "sigmoid"

    def __init__(self, config: Config) -> None:
        self.config = config

    def _widths(self) -> list[int]:
        return [max(1, self.config.units >> layer) for layer in range(self.config.layers)]

    def training(
        self, interactions: scipy.sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> _Training:
        return _Training(interactions, self.config, self._widths(), generator("ncf", "fit"))

    def state(self) -> State:
        """For each tower (gmf, mlp): profile.weight (d, items), profile.bias (d,), item.weight (d, items).

        Then mlp.1.weight (n_1, 2 n_1), users before items, mlp.1.bias (n_1,), mlp.2.weight (n_2, n_1), ...;
        head.weight (d + n_L,), g and m; head.bias (2,), whose sum is c.
        """
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape.
        """
        import torch

        found = [f"mlp.{layer}.bias" for layer in range(1, len(state) + 1)]
        widths = [state[name].size for name in found if name in state] or self._widths()
        length = state["gmf.profile.bias"].size if "gmf.profile.bias" in state else self.config.dimensions
        check_shapes("ncf", state, _shapes(interactions.shape[1], length, widths))
        self._state = dict(state)
        self.device = torch_device(self.config.device)
        wide = {name: np.asarray(array, dtype=np.float64) for name, array in state.items()}
        product, perceptron = wide["head.weight"][:length], wide["head.weight"][length:]
        of_user, of_item = np.split(wide["mlp.1.weight"], 2, axis=1)

        def tensor(array: FloatArray) -> Any:
            return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)

        # The part of the user, linear in the profile: g * p (d,) and W_1' p' + c_1 (n_1,), side by side
        self._user_weight = np.concatenate(
            [wide["gmf.profile.weight"].T * product, wide["mlp.profile.weight"].T @ of_user.T], axis=1
        )
        self._user_bias = np.concatenate(
            [wide["gmf.profile.bias"] * product, of_user @ wide["mlp.profile.bias"] + wide["mlp.1.bias"]]
        )
        self._user_tensors = tensor(self._user_weight), tensor(self._user_bias)
        self._product_items = tensor(wide["gmf.item.weight"])  # (d, items)
        self._perceptron_items = tensor(of_item @ wide["mlp.item.weight"])  # (n_1, items)
        self._layers = [
            (tensor(wide[f"mlp.{layer}.weight"]), tensor(wide[f"mlp.{layer}.bias"][:, None]))
            for layer in range(2, len(widths) + 1)
        ]
        self._head, self._bias = tensor(perceptron), float(wide["head.bias"].sum())

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items), computed in blocks of one shape."""
        import torch

        scores = np.empty(profiles.shape)
        for start in range(0, len(scores), BLOCK):
            block = profiles[start : start + BLOCK].astype(np.float64)
            count = block.shape[0]
            user = np.zeros((BLOCK, len(self._user_bias)))
            user[:count] = block @ self._user_weight + self._user_bias  # each row for itself
            with torch.no_grad():
                logits = self._from_user(torch.from_numpy(user).to(self.device), count)
            scores[start : start + count] = logits.cpu().numpy()
        return scores

    def score_dense(self, profiles: Any) -> Any:
        """(B, items) float64 logits for ``profiles`` (B, items), a float64 torch tensor; differentiable."""
        weight, bias = self._user_tensors
        user = profiles.to(self.device) @ weight + bias
        return self._from_user(user, len(user)).to(profiles.device)

    def _from_user(self, user: Any, count: int) -> Any:
        """(count, items) logits of the first rows of the user's part, (B, d + n_1)."""
        import torch
        from torch.utils.checkpoint import checkpoint

        product, first = user.split([len(self._product_items), len(self._perceptron_items)], dim=1)
        logits = (product @ self._product_items)[:count] + self._bias
        if torch.is_grad_enabled():
            rows = [checkpoint(self._perceptron, row, use_reentrant=False) for row in first[:count]]
        else:
            rows = [self._perceptron(row) for row in first[:count]]
        return logits + torch.stack(rows) if rows else logits

    def _perceptron(self, of_user: Any) -> Any:
        """(items,) m . z_L, from the user's part of the first layer (n_1,)."""
        hidden = (self._perceptron_items + of_user[:, None]).relu_()  # (n_1, items): wide is faster than tall
        for weight, bias in self._layers:
            hidden = bias.addmm(weight, hidden).relu_()
        return self._head @ hidden


class _Training(Training):
    """Parameters and optimiser. Embeddings are (items, d): rows are what is gathered and added up."""

    config: Config

    def __init__(
        self,
        interactions: scipy.sparse.csr_matrix,
        config: Config,
        widths: list[int],
        random: np.random.Generator,
    ) -> None:
        super().__init__(interactions, config, random)
        self.layers = range(1, len(widths) + 1)
        self.epochs = 0
        shapes = _shapes(interactions.shape[1], config.dimensions, widths)
        self.parameters = {name: self._parameter(name, shape) for name, shape in shapes.items()}
        self._start_optimizer()

    def _start_optimizer(self) -> None:
        self.optimizer = Adam(self.parameters.values(), self.config.learning_rate)

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Any:
        """Embeddings N(0, 0.1^2), layers uniform as He et al. 2015, biases 0, a head of ones for the product."""
        if name.endswith("bias"):
            values = np.zeros(shape, dtype=np.float32)
        elif "profile" in name or "item" in name:
            values = 0.1 * self.random.standard_normal(shape[::-1], dtype=np.float32)
        else:
            bound = np.sqrt(6.0 / shape[-1], dtype=np.float32)
            values = bound * (2.0 * self.random.random(shape, dtype=np.float32) - 1.0)
            if name == "head.weight":
                values[: self.config.dimensions] = 1.0
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    @property
    def apart(self) -> bool:
        """Do the towers still learn alone?"""
        return self.epochs < self.config.pretraining

    def epoch(self, steps: TrainingSteps) -> float:
        """Once over all users; the mean loss. Towers that have learned alone for long enough are joined."""
        apart, mean_loss = self.apart, super().epoch(steps)
        self.epochs += 1
        if apart and not self.apart:
            with self.torch.no_grad():
                for name in ("head.weight", "head.bias"):
                    self.parameters[name] *= 0.5
            self._start_optimizer()
        return mean_loss

    def loss(self, profiles: scipy.sparse.csr_matrix) -> Loss:
        """The mean over the users of ``profiles`` (B, items) of the loss above."""
        counts = np.maximum(1, np.rint(self.config.holdout * np.diff(profiles.indptr))).astype(np.int64)
        out = draw(profiles, counts, self.random)
        drawn = self.random.choice(
            profiles.shape[1], size=min(self.config.sampled, profiles.shape[1]), replace=False
        )

        def of(part: slice) -> Any:
            own = out[entries(profiles, part)]
            return self._sum(profiles[part], counts[part], own, drawn) / len(counts)

        return of

    def _sum(
        self, profiles: scipy.sparse.csr_matrix, counts: IntArray, out: BoolArray, drawn: IntArray
    ) -> Any:
        """The sum of the losses, with what is held ``out`` (nnz,), how many for each user (B,), and the items drawn."""
        torch, lengths = self.torch, np.diff(profiles.indptr)
        seen = self._tensor(profiles[:, drawn].toarray() > 0)
        unseen = 1.0 / np.maximum(1, profiles.shape[1] - lengths)
        rows = self._tensor(np.repeat(np.arange(len(lengths)), lengths)[out])
        items = self._tensor(profiles.indices[out].astype(np.int64))
        share = self._tensor((1.0 / counts).astype(np.float32).repeat(counts))  # rows ascend: in order

        users = self._users(profiles, ~out)
        found = self._pairs(users, rows, items)
        missed = self._grid(users, self._tensor(drawn))
        weight = self._tensor((self.config.negatives * unseen * profiles.shape[1] / len(drawn)).astype("f4"))
        loss = torch.zeros((), device=self.device)
        for positives, negatives in zip(self._joined(found), self._joined(missed), strict=True):
            avoided = torch.nn.functional.softplus(negatives).masked_fill(seen, 0.0).sum(1)
            loss = loss + (torch.nn.functional.softplus(-positives) * share).sum() + (avoided * weight).sum()
        return loss

    def _tensor(self, array: np.ndarray) -> Any:
        return self.torch.from_numpy(array).to(self.device)

    def _joined(self, logits: tuple[Any, Any]) -> list[Any]:
        """The logits to learn from: of each tower, or of both together."""
        bias = self.parameters["head.bias"]
        alone = [logits[0] + bias[0], logits[1] + bias[1]]
        return alone if self.apart else [alone[0] + alone[1]]

    def _users(self, profiles: scipy.sparse.csr_matrix, retained: np.ndarray) -> tuple[Any, Any]:
        """g * p (B, d) and W_1' p' + c_1 (n_1, B) of the retained part of the profiles."""
        starts = np.concatenate([[0], np.cumsum(retained)])[profiles.indptr[:-1]]
        items, offsets = self._tensor(profiles.indices[retained].astype(np.int64)), self._tensor(starts)
        p, own = (
            self.torch.nn.functional.embedding_bag(
                items, self.parameters[f"{tower}.profile.weight"], offsets, mode="sum"
            )
            + self.parameters[f"{tower}.profile.bias"]
            for tower in ("gmf", "mlp")
        )
        of_user, _ = self.parameters["mlp.1.weight"].chunk(2, dim=1)
        product = self.parameters["head.weight"][: self.config.dimensions]
        return p * product, of_user @ own.T + self.parameters["mlp.1.bias"][:, None]

    def _items(self, items: Any) -> tuple[Any, Any]:
        """q (n, d) and W_1'' q' (n_1, n)."""
        _, of_item = self.parameters["mlp.1.weight"].chunk(2, dim=1)
        q, own = (self.parameters[f"{tower}.item.weight"][items] for tower in ("gmf", "mlp"))
        return q, of_item @ own.T

    def _pairs(self, users: tuple[Any, Any], rows: Any, items: Any) -> tuple[Any, Any]:
        """(P,) logits of each tower for the pairs (rows, items)."""
        q, of_item = self._items(items)
        return (users[0][rows] * q).sum(1), self._perceptron(users[1][:, rows] + of_item)

    def _grid(self, users: tuple[Any, Any], items: Any) -> tuple[Any, Any]:
        """(B, n) logits of each tower for all pairs."""
        q, of_item = self._items(items)
        first = users[1][:, :, None] + of_item[:, None, :]
        return users[0] @ q.T, self._perceptron(first.flatten(1)).view(first.shape[1:])

    def _perceptron(self, first: Any) -> Any:
        """(n,) m . z_L for first layers (n_1, n), before their relu."""
        hidden = first.relu()
        for layer in self.layers[1:]:
            weight, bias = self.parameters[f"mlp.{layer}.weight"], self.parameters[f"mlp.{layer}.bias"]
            hidden = self.torch.addmm(bias[:, None], weight, hidden).relu()
        return self.parameters["head.weight"][self.config.dimensions :] @ hidden

    def state(self) -> State:
        """Copies, in the layout of :meth:`NCF.state`. Towers that learn alone still: the mean of the two."""
        arrays = {name: value.detach().cpu().numpy() for name, value in self.parameters.items()}
        for name in arrays:
            if "profile.weight" in name or "item.weight" in name:
                arrays[name] = arrays[name].T
            elif name.startswith("head") and self.apart:
                arrays[name] = 0.5 * arrays[name]
        return {name: np.array(array, order="C") for name, array in arrays.items()}
