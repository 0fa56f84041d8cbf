"""VAE: a variational autoencoder of profiles with a multinomial likelihood (Mult-VAE).

Liang, Krishnan, Hoffman & Jebara, "Variational autoencoders for collaborative filtering", WWW 2018. With x
(items,) the profile, h = ``hidden`` and d = ``dimensions``:

    e = tanh(W_e x/|x| + b_e)              (h,)      an empty profile goes in as it is, 0
    mu = W_m e + b_m,  log var = W_v e + b_v    (d,) each
    s(z) = W_o tanh(W_d z + b_d) + b_o     (items,)  the logits

with tanh, or the rectifier as ``activation``, and the score is s(mu): nothing is dropped and nothing drawn once the
model is trained, and the logits are those before the softmax. Link: softmax. The likelihood is multinomial, so the
model's value of item i is its share exp(s_i) / sum_j exp(s_j) of the probability over all items, and a constant added
to all logits changes nothing.
Training maximises, with z = mu + exp(log var / 2) * noise,

    sum_i x_i log softmax(s(z))_i - beta_t KL(N(mu, var) | N(0, 1)),
    KL = 1/2 sum_d (mu^2 + var - log var - 1),

where the share ``dropout`` of the *input* is dropped (what is left is scaled up; the target is all of x), and
beta_t grows in a straight line, step by step, from 0 to ``beta`` in ``anneal_epochs`` epochs. Adam; the epoch
with the best NDCG@10 on validation data is selected (the paper chooses by NDCG@100).

Departs from the paper (200 dimensions, 600 hidden units, batches of 500) because its data sets are twenty times
larger: on MovieLens 1M the larger model is no better. That a profile is in part reconstructed from itself is
the paper's: it is what an autoencoder does, and the dropout takes away every item of a profile in that share of
the cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, InputFile, Range, Search
from cfbench_core.devices.choice import Device
from cfbench_core.devices.cuda import torch_device
from cfbench_core.devices.training_steps import Loss
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import BoolArray, FloatArray
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.trained_on_profiles import TrainedOnProfiles, Training, entries
from cfbench_recsys.recommenders.training import State, check_shapes
from cfbench_recsys.scoring import BLOCK

SPEC = ComponentSpec(
    id="recsys/recommender/vae",
    summary="Variational autoencoder of profiles with a multinomial likelihood (Mult-VAE)",
    target=f"{__name__}:VAE",
    config=f"{__name__}:Config",
    provides={
        "scope": {"user-vector"},
        "checkpoints": {"yes"},
        "access": {"scores", "gradients", "embeddings"},
    },
    papers=("liang2018vae",),
    presets="cfbench_recsys:presets/vae.yaml",
)


@dataclass(frozen=True, kw_only=True)
class Config:
    dimensions: Annotated[
        int, Range(minimum=1), Search(choices=(32, 64, 128, 200)), Help("length of the latent vector")
    ] = 64
    hidden: Annotated[
        int, Range(minimum=1), Search(choices=(128, 256, 400, 600)), Help("units of each hidden layer")
    ] = 256
    activation: Annotated[
        Literal["tanh", "relu"], Help("of the hidden layers; relu: as in the code of LXR and CFExpRec")
    ] = "tanh"
    dropout: Annotated[
        float, Range(minimum=0, below=1), Search(0.1, 0.8), Help("share of the input to drop in training")
    ] = 0.5
    beta: Annotated[
        float, Range(minimum=0), Search(0.02, 1.0, log=True), Help("weight of the KL divergence, at the end")
    ] = 0.2
    anneal_epochs: Annotated[int, Range(minimum=0), Help("epochs in which it grows from 0 to that")] = 50
    learning_rate: Annotated[float, Range(above=0), Search(2e-4, 1e-2, log=True), Help("of Adam")] = 1e-3
    batch: Annotated[int, Range(minimum=1), Help("users in a batch")] = 256
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 300
    patience: Annotated[
        int, Range(minimum=1), Help("epochs without a better validation NDCG@10 before stopping")
    ] = 20
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"


LAYERS = ("encoder.hidden", "encoder.mean", "encoder.log_variance", "decoder.hidden", "decoder.output")


def _shapes(items: int, hidden: int, dimensions: int) -> dict[str, tuple[int, ...]]:
    """Those of ``state``: (out, in) for weights, (out,) for biases."""
    ins = (items, hidden, hidden, dimensions, hidden)
    outs = (hidden, dimensions, dimensions, hidden, items)
    shapes: dict[str, tuple[int, ...]] = {}
    for layer, size_in, size_out in zip(LAYERS, ins, outs, strict=True):
        shapes[f"{layer}.weight"], shapes[f"{layer}.bias"] = (size_out, size_in), (size_out,)
    return shapes


class VAE(TrainedOnProfiles):
    name = "vae"
    smaller = "hidden or dimensions"
    link: Link = "softmax"

    def __init__(self, config: Config) -> None:
        self.config = config

    def training(
        self, interactions: scipy.sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> _Training:
        return _Training(interactions, self.config, generator("vae", "fit"))

    def state(self) -> State:
        """``weight`` (out, in) and ``bias`` (out,) of each of ``LAYERS``."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape.
        """
        import torch

        hidden = state["encoder.hidden.bias"].size if "encoder.hidden.bias" in state else self.config.hidden
        dimensions = (
            state["encoder.mean.bias"].size if "encoder.mean.bias" in state else self.config.dimensions
        )
        check_shapes("vae", state, _shapes(interactions.shape[1], hidden, dimensions))
        self._state = dict(state)
        self.device = torch_device(self.config.device)
        self._tensors = {
            name: torch.from_numpy(np.ascontiguousarray(array.T, dtype=np.float64)).to(self.device)
            for name, array in state.items()
        }  # weights (in, out)
        self._encoder_weight = self._tensors["encoder.hidden.weight"].cpu().numpy()  # (items, h)

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""
        return self._in_blocks(lambda encoded: self._logits(self._decoded(encoded)), profiles)

    def profile_embeddings(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, h + 1) last hidden layer, and a 1 for the bias."""
        hidden = self._in_blocks(self._decoded, profiles)
        return np.concatenate([hidden, np.ones((len(hidden), 1))], axis=1)

    def item_embeddings(self) -> FloatArray:
        """(items, h + 1) rows of W_o, and b_o: a logit is their product with a profile embedding."""
        weight, bias = (self._state[f"decoder.output.{part}"] for part in ("weight", "bias"))
        return np.concatenate([weight, bias[:, None]], axis=1, dtype=np.float64)

    def _in_blocks(self, function: Callable[[Any], Any], profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """``function`` of W_e x/|x|, in blocks of one shape: so a row does not hang on its batch."""
        import torch

        parts = []
        for start in range(0, max(1, profiles.shape[0]), BLOCK):
            block = profiles[start : start + BLOCK]
            encoded = np.zeros((BLOCK, self._encoder_weight.shape[1]))
            encoded[: block.shape[0]] = _normalised(block) @ self._encoder_weight  # each row for itself
            with torch.no_grad():
                result = function(torch.from_numpy(encoded).to(self.device))
            parts.append(result[: block.shape[0]].cpu().numpy())
        return np.concatenate(parts)

    def score_dense(self, profiles: Any) -> Any:
        """(B, items) float64 logits for ``profiles`` (B, items), a float64 torch tensor; differentiable.

        x/|x| has no derivative at 0; there the gradient is that of x, so that it is finite.
        """
        import torch

        weighted = profiles.to(self.device)
        squares = (weighted**2).sum(1, keepdim=True)
        normalised = weighted * torch.where(squares > 0, squares, 1.0).rsqrt()
        logits = self._logits(self._decoded(normalised @ self._tensors["encoder.hidden.weight"]))
        return logits.to(profiles.device)

    def _decoded(self, encoded: Any) -> Any:
        """(B, h) the last hidden layer, from W_e x/|x| (B, h)."""
        tensors = self._tensors
        hidden = _activated(encoded + tensors["encoder.hidden.bias"], self.config)
        mean = hidden @ tensors["encoder.mean.weight"] + tensors["encoder.mean.bias"]
        return _activated(
            mean @ tensors["decoder.hidden.weight"] + tensors["decoder.hidden.bias"], self.config
        )

    def _logits(self, hidden: Any) -> Any:
        return hidden @ self._tensors["decoder.output.weight"] + self._tensors["decoder.output.bias"]


def _activated(values: Any, config: Config) -> Any:
    """The activation of the hidden layers, of a tensor."""
    return values.tanh() if config.activation == "tanh" else values.relu()


def _normalised(profiles: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """x/|x| for each row (B, items); an empty row stays empty."""
    squares = np.asarray(profiles.multiply(profiles).sum(axis=1), dtype=np.float64).ravel()
    return scipy.sparse.diags(1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))) @ profiles.astype(
        np.float64
    )


class _Training(Training):
    """Parameters and optimiser. The first weight is (items, h): its rows are what is gathered and added up."""

    config: Config

    def __init__(
        self, interactions: scipy.sparse.csr_matrix, config: Config, random: np.random.Generator
    ) -> None:
        super().__init__(interactions, config, random)
        self.steps = 0
        shapes = _shapes(interactions.shape[1], config.hidden, config.dimensions)
        self.parameters = {name: self._parameter(name, shape) for name, shape in shapes.items()}
        self.optimizer = Adam(self.parameters.values(), config.learning_rate)

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Any:
        """Drawn as in the paper's code: Xavier's uniform for weights, biases nearly 0."""
        if len(shape) == 1:
            values = 0.001 * self.random.standard_normal(shape, dtype=np.float32)
        else:
            bound = np.sqrt(6.0 / sum(shape), dtype=np.float32)
            values = bound * (2.0 * self.random.random(shape, dtype=np.float32) - 1.0)
        if name == "encoder.hidden.weight":
            values = np.ascontiguousarray(values.T)
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    def _beta(self) -> float:
        """Of this step, the first being 0."""
        batches = -(-len(self.users) // self.config.batch)
        planned = self.config.anneal_epochs * batches
        share = min(1.0, self.steps / planned) if planned else 1.0
        self.steps += 1
        return self.config.beta * share

    def loss(self, profiles: scipy.sparse.csr_matrix) -> Loss:
        """The mean over the users of ``profiles`` (B, items) of the negative of what is maximised."""
        users = profiles.shape[0]
        retained = self.random.random(profiles.nnz, dtype=np.float32) >= self.config.dropout
        noise = self.random.standard_normal((users, self.config.dimensions), dtype=np.float32)
        beta = self._beta()

        def of(part: slice) -> Any:
            own = retained[entries(profiles, part)]
            return self._sum(profiles[part], own, noise[part], beta) / users

        return of

    def _sum(
        self, profiles: scipy.sparse.csr_matrix, retained: BoolArray, noise: np.ndarray, beta: float
    ) -> Any:
        """The sum over the users, with what is not dropped (nnz,), and noise (B, d)."""
        torch = self.torch
        mean, log_variance = self._encode(profiles, retained)
        latent = mean + (0.5 * log_variance).exp() * torch.from_numpy(noise).to(self.device)
        hidden = _activated(self._linear("decoder.hidden", latent), self.config)
        logits = self._linear("decoder.output", hidden)
        rows = torch.from_numpy(np.repeat(np.arange(len(mean)), np.diff(profiles.indptr))).to(self.device)
        items = torch.from_numpy(profiles.indices.astype(np.int64)).to(self.device)
        likelihood = torch.log_softmax(logits, 1)[rows, items].sum()
        divergence = 0.5 * (mean**2 + log_variance.exp() - log_variance - 1.0).sum()
        return beta * divergence - likelihood

    def _encode(self, profiles: scipy.sparse.csr_matrix, retained: BoolArray) -> tuple[Any, Any]:
        """Mean and log-variance (B, d) of profiles of which a part is dropped."""
        torch, lengths = self.torch, np.diff(profiles.indptr)
        values = retained / (1.0 - self.config.dropout) / np.sqrt(lengths).repeat(lengths)
        encoded = torch.nn.functional.embedding_bag(
            torch.from_numpy(profiles.indices.astype(np.int64)).to(self.device),
            self.parameters["encoder.hidden.weight"],
            torch.from_numpy(profiles.indptr[:-1].astype(np.int64)).to(self.device),
            mode="sum",
            per_sample_weights=torch.from_numpy(values.astype(np.float32)).to(self.device),
        )
        hidden = _activated(encoded + self.parameters["encoder.hidden.bias"], self.config)
        return self._linear("encoder.mean", hidden), self._linear("encoder.log_variance", hidden)

    def _linear(self, layer: str, inputs: Any) -> Any:
        return self.torch.nn.functional.linear(
            inputs, self.parameters[f"{layer}.weight"], self.parameters[f"{layer}.bias"]
        )

    def state(self) -> State:
        """Copies, in the layout of :meth:`VAE.state`."""
        arrays = {name: value.detach().cpu().numpy() for name, value in self.parameters.items()}
        arrays["encoder.hidden.weight"] = arrays["encoder.hidden.weight"].T
        return {name: np.array(array, order="C") for name, array in arrays.items()}
