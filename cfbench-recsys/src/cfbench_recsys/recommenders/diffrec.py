"""DiffRec: a profile is corrupted with noise step by step, and a network learns to take the noise back.

Wang et al., "Diffusion recommender model", SIGIR 2023. With x_0 (items,) a profile and t = 1..T,

    1 - abar_t = noise_scale * (noise_min + (t - 1)/(T - 1) * (noise_max - noise_min))       linear variance
    q(x_t | x_0) = N(sqrt(abar_t) x_0, (1 - abar_t) I),     alpha_t = abar_t / abar_{t-1},     abar_0 = 1
    mean of q(x_{t-1} | x_t, x_0) = (sqrt(alpha_t) (1 - abar_{t-1}) x_t
                                     + sqrt(abar_{t-1}) (1 - alpha_t) x_0) / (1 - abar_t)

and a denoiser that predicts x_0 from x_t, with e_t (``embedding``,) the sinusoidal embedding of t,

    f(x, t) = W_o tanh(W_i x + W_t (W_e e_t + b_e) + b_i) + b_o,        W_i (hidden, items), W_o (items, hidden).

Training: for every profile a step t, noise, and |f(x_t, t) - x_0|^2 (mean over the items), weighted by half the
difference of the signal-to-noise ratios, abar_{t-1}/(1 - abar_{t-1}) - abar_t/(1 - abar_t), and by 1 for t = 1.
Steps are drawn with p_t ~ sqrt(E L_t^2) (the mean of the last ``HISTORY`` losses of each step; uniformly until
there are so many), the loss divided by T p_t. Dropout of the input prevents the network from copying it, as in the
published code. Adam; the epoch with the best NDCG@10 on validation data is selected.

Inference: x_T is the profile itself (after ``sampling_steps`` T' of the forward process), and

    x_{t-1} = mean of q(x_{t-1} | x_t, f(x_t, t)),  t = T..1,        s(x) = x_0,

the last of which is f(x_1, 1). Nothing is sampled, so scores are a function of the profile. Link: identity. The
squared error makes s(x)_j itself an estimate of the mean of x_0,j, the probability of an interaction; there is no
sigmoid or softmax in the objective, in the paper or in its published code. Since x_t enters f through W_i x_t alone,
the steps T..2 are made on W_i x_t (hidden,) with the matrix W_i W_o (hidden, hidden): the same numbers, at a cost that
hardly depends on T.

Departs from the paper in that the noise of the T' steps of inference is not drawn either, its mean is taken:
x_T = sqrt(abar_T') x_0. (The paper finds T' = 0 best in most cases.) Departs from the published code, which
replaces 1 - alpha_1 by 1e-5 and so another schedule than the paper's: here it is the paper's.
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
from cfbench_core.devices.training_steps import Loss
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_recsys.contracts import Link
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.recommenders.adam import Adam
from cfbench_recsys.recommenders.trained_on_profiles import TrainedOnProfiles, Training
from cfbench_recsys.recommenders.training import State, Stopping, check_shapes

SPEC = ComponentSpec(
    id="recsys/recommender/diffrec",
    summary="Denoising diffusion over the profile; deterministic when it recommends",
    target=f"{__name__}:DiffRec",
    config=f"{__name__}:Config",
    provides={"scope": {"user-vector"}, "checkpoints": {"yes"}, "access": {"scores", "gradients"}},
    papers=("wang2023diffrec",),
    presets="cfbench_recsys:presets/diffrec.yaml",
)

HISTORY = 10
UNIFORM = 0.001
"""Share of steps that are drawn uniformly whatever their losses, as in the published code."""


@dataclass(frozen=True, kw_only=True)
class Config:
    hidden: Annotated[
        int, Range(minimum=1), Search(choices=(100, 200, 400, 1000)), Help("width of the denoiser")
    ] = 200
    steps: Annotated[
        int, Range(minimum=1), Search(choices=(2, 5, 10, 40)), Help("T of the forward process")
    ] = 5
    noise_scale: Annotated[
        float,
        Range(above=0, maximum=1),
        Search(1e-4, 1, log=True),
        Help("of the variance; 1: as the next two"),
    ] = 0.1
    noise_min: Annotated[float, Range(above=0, below=1), Help("variance at the first step")] = 0.001
    noise_max: Annotated[float, Range(above=0, below=1), Help("variance at the last step")] = 0.01
    sampling_steps: Annotated[
        int, Range(minimum=0), Help("T' of the forward process before inference, at most steps")
    ] = 0
    reweight: Annotated[
        bool, Search(choices=(True, False)), Help("weigh losses by differences of signal-to-noise ratios")
    ] = True
    importance_sampling: Annotated[bool, Help("of steps, by their losses; otherwise uniformly")] = True
    embedding: Annotated[int, Range(minimum=2), Help("length of the embedding of a step")] = 10
    dropout: Annotated[
        float, Range(minimum=0, below=1), Search(0, 0.8), Help("share of the input that is left out")
    ] = 0.5
    learning_rate: Annotated[float, Range(above=0), Search(1e-4, 1e-2, log=True), Help("of Adam")] = 1e-3
    batch: Annotated[int, Range(minimum=1), Help("users in a batch")] = 256
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 300
    patience: Annotated[
        int, Range(minimum=1), Help("evaluations without a better validation NDCG@10 before stopping")
    ] = 10
    eval_every: Annotated[
        int, Range(minimum=1), Help("epochs between two evaluations on the validation data")
    ] = 2
    weights: Annotated[str | None, InputFile(), Help("a safetensors file to use in place of training")] = None
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"


@dataclass(frozen=True)
class Schedule:
    """How much of x_0 is left at each step.

    Attributes:
        signal: (T + 1,) abar_t, of t = 0 (where it is 1) to T.
    """

    signal: FloatArray

    @staticmethod
    def linear_variance(steps: int, scale: float, low: float, high: float) -> Schedule:
        """The paper's; with a single step its variance is ``scale * low``."""
        return Schedule(1.0 - np.concatenate([[0.0], scale * np.linspace(low, high, steps)]))

    def __len__(self) -> int:
        return len(self.signal) - 1

    def noised(self, profiles: np.ndarray, steps: IntArray, noise: np.ndarray) -> np.ndarray:
        """(B, items) x_t for x_0 ``profiles`` (B, items), t ``steps`` (B,), standard normal ``noise``.

        Computed in the precision of ``profiles``.
        """
        signal = self.signal[steps][:, None]
        start, deviation = (np.sqrt(part).astype(profiles.dtype) for part in (signal, 1 - signal))
        corrupted: np.ndarray = start * profiles + deviation * noise
        return corrupted

    def posterior(self) -> tuple[FloatArray, FloatArray]:
        """(T + 1,) twice: what x_t and x_0 count in the mean of q(x_{t-1} | x_t, x_0), t = 0 unused."""
        alpha = self.signal[1:] / self.signal[:-1]
        of_noised = np.sqrt(alpha) * (1 - self.signal[:-1]) / (1 - self.signal[1:])
        of_start = np.sqrt(self.signal[:-1]) * (1 - alpha) / (1 - self.signal[1:])
        return np.concatenate([[np.nan], of_noised]), np.concatenate([[np.nan], of_start])

    def loss_weights(self) -> FloatArray:
        """(T + 1,) half the differences of the signal-to-noise ratios of t - 1 and t; 1 for t = 1, 0 unused."""
        ratio = self.signal[1:] / (1 - self.signal[1:])
        return np.concatenate([[np.nan, 1.0], (ratio[:-1] - ratio[1:]) / 2])


def embed(steps: int, length: int) -> FloatArray:
    """(steps + 1, length) e_t of t = 0..steps: cosines and sines of t at frequencies from 1 down to 1/10000."""
    half = length // 2
    angles = np.arange(steps + 1)[:, None] * 10000.0 ** (-np.arange(half) / half)
    return np.hstack([np.cos(angles), np.sin(angles), np.zeros((steps + 1, length % 2))])


class DiffRec(TrainedOnProfiles):
    name = "diffrec"
    smaller = "hidden"
    link: Link = "identity"

    def __init__(self, config: Config) -> None:
        if config.sampling_steps > config.steps:
            raise UserError(
                f"diffrec: sampling_steps must be at most steps ({config.steps}), got {config.sampling_steps}"
            )
        if config.noise_min > config.noise_max:
            raise UserError(
                f"diffrec: noise_min {config.noise_min:g} is above noise_max {config.noise_max:g}"
            )
        self.config = config
        self.schedule = Schedule.linear_variance(
            config.steps, config.noise_scale, config.noise_min, config.noise_max
        )

    def training(
        self, interactions: scipy.sparse.csr_matrix, generator: Callable[..., np.random.Generator]
    ) -> _Training:
        return _Training(interactions, self.config, self.schedule, generator("diffrec", "fit"))

    def stopping(self) -> Stopping:
        return Stopping(self.config.epochs, self.config.patience, self.config.eval_every)

    def state(self) -> State:
        """step.weight W_e and step.bias b_e; input.weight W_i (hidden, items), input.step_weight W_t and
        input.bias; output.weight W_o (items, hidden) and output.bias."""
        return dict(self._state)

    def load_state(self, state: Mapping[str, np.ndarray], interactions: scipy.sparse.csr_matrix) -> None:
        """Restores what :meth:`state` returned, for the items of ``interactions`` (users, items).

        Raises:
            UserError: if an array is missing or has another shape.
        """
        import torch

        hidden = state["input.bias"].size if "input.bias" in state else self.config.hidden
        check_shapes("diffrec", state, _shapes(interactions.shape[1], hidden, self.config.embedding))
        self._state = dict(state)
        wide = {name: np.asarray(array, dtype=np.float64) for name, array in state.items()}
        steps = embed(self.config.steps, self.config.embedding) @ wide["step.weight"].T + wide["step.bias"]
        shifts = steps @ wide["input.step_weight"].T + wide["input.bias"]  # (T + 1, hidden)
        start = np.sqrt(self.schedule.signal[self.config.sampling_steps])
        self._input = np.ascontiguousarray(start * wide["input.weight"].T)  # (items, hidden), W_i x_T from x
        output = wide["output.weight"].T  # (hidden, items)
        again = output @ wide["input.weight"].T  # from what f gives back into f
        again_bias = wide["input.weight"] @ wide["output.bias"]
        self.device = torch_device(self.config.device)
        arrays = (self._input, shifts, output, wide["output.bias"], again, again_bias)
        self._dense_input, *self._denoiser = (torch.from_numpy(np.array(a)).to(self.device) for a in arrays)

    def score_profiles(self, profiles: scipy.sparse.csr_matrix) -> FloatArray:
        """(B, items) logits for B profiles (B, items)."""
        import torch

        inputs = torch.from_numpy(profiles.astype(np.float64) @ self._input).to(self.device)
        with torch.no_grad():
            scores: FloatArray = self._denoised(inputs).cpu().numpy()
        return scores

    def score_dense(self, profiles: Any) -> Any:
        """The same as a torch tensor, for a float64 tensor (B, items), and differentiable in it."""
        return self._denoised(profiles.to(self.device) @ self._dense_input).to(profiles.device)

    def _denoised(self, inputs: Any) -> Any:
        """(B, items) x_0 from ``inputs`` (B, hidden), W_i x_T."""
        shifts, output, output_bias, again, again_bias = self._denoiser
        of_noised, of_start = self.schedule.posterior()
        for t in range(len(self.schedule), 1, -1):
            predicted = (inputs + shifts[t]).tanh() @ again + again_bias
            inputs = float(of_noised[t]) * inputs + float(of_start[t]) * predicted
        return (inputs + shifts[1]).tanh() @ output + output_bias


def _shapes(items: int, hidden: int, embedding: int) -> dict[str, tuple[int, ...]]:
    return {
        "step.weight": (embedding, embedding),
        "step.bias": (embedding,),
        "input.weight": (hidden, items),
        "input.step_weight": (hidden, embedding),
        "input.bias": (hidden,),
        "output.weight": (items, hidden),
        "output.bias": (items,),
    }


class _Training(Training):
    """Parameters, optimiser, and the losses of late of each step.

    Attributes:
        losses: of each step; without those of the latest batch, whose steps and losses are ``latest``.
    """

    config: Config

    def __init__(
        self,
        interactions: scipy.sparse.csr_matrix,
        config: Config,
        schedule: Schedule,
        random: np.random.Generator,
    ) -> None:
        super().__init__(interactions.astype(np.float32), config, random)
        self.schedule = schedule
        embedded = embed(config.steps, config.embedding).astype(np.float32)
        self.embedded = self.torch.from_numpy(embedded).to(self.device)
        self.weights = schedule.loss_weights() if config.reweight else np.ones(config.steps + 1)
        self.losses: list[FloatArray] = [np.empty(0) for _ in range(config.steps + 1)]
        self.latest = np.empty(0, dtype=np.int64), np.empty(0)
        shapes = _shapes(interactions.shape[1], config.hidden, config.embedding)
        self.parameters = {name: self._parameter(name, shape) for name, shape in shapes.items()}
        self.optimizer = Adam(self.parameters.values(), config.learning_rate)

    def _parameter(self, name: str, shape: tuple[int, ...]) -> Any:
        """Normal, as in the published code: of Xavier's variance, biases nearly 0."""
        deviation = 0.001 if len(shape) == 1 else np.sqrt(2.0 / sum(shape))
        values = (deviation * self.random.standard_normal(shape)).astype(np.float32)
        return self.torch.from_numpy(values).to(self.device).requires_grad_()

    def loss(self, profiles: scipy.sparse.csr_matrix) -> Loss:
        """The mean over ``profiles`` (B, items) of their losses at steps drawn for them."""
        torch, dense = self.torch, profiles.toarray()
        self._remember(*self.latest)
        chances = self._chances()
        steps = self.random.choice(np.arange(1, len(chances) + 1), size=len(dense), p=chances)
        noise = self.random.standard_normal(dense.shape, dtype=np.float32)
        inputs = self.schedule.noised(dense, steps, noise)
        left = self.random.random(dense.shape, dtype=np.float32) >= self.config.dropout
        inputs = inputs * left / np.float32(1.0 - self.config.dropout)
        found = np.empty(len(dense))
        self.latest = steps, found

        def of(part: slice) -> Any:
            predicted = self._predict(torch.from_numpy(inputs[part]).to(self.device), steps[part])
            target = torch.from_numpy(dense[part]).to(self.device)
            errors = ((predicted - target) ** 2).mean(1)
            losses = errors * torch.from_numpy(self.weights[steps[part]]).to(errors)
            found[part] = losses.detach().cpu().numpy()
            share = torch.from_numpy(chances[steps[part] - 1] * len(chances)).to(losses)
            return (losses / share).mean() * (len(losses) / len(dense))

        return of

    def _predict(self, inputs: Any, steps: IntArray) -> Any:
        """(B, items) f(x_t, t)."""
        p = self.parameters
        embedded = self.embedded @ p["step.weight"].T + p["step.bias"]
        shifts = embedded @ p["input.step_weight"].T + p["input.bias"]
        hidden = (inputs @ p["input.weight"].T + shifts[self.torch.from_numpy(steps).to(self.device)]).tanh()
        return hidden @ p["output.weight"].T + p["output.bias"]

    def _chances(self) -> FloatArray:
        """(T,) of drawing each of the steps 1..T."""
        count = self.config.steps
        if not self.config.importance_sampling or min(map(len, self.losses[1:])) < HISTORY:
            return np.full(count, 1.0 / count)
        size = np.sqrt([np.mean(losses**2) for losses in self.losses[1:]])
        chances = (1 - UNIFORM) * size / size.sum() + UNIFORM / count
        normalised: FloatArray = chances / chances.sum()
        return normalised

    def _remember(self, steps: IntArray, losses: FloatArray) -> None:
        for step in np.unique(steps):
            recent = np.concatenate([self.losses[step], losses[steps == step]])
            self.losses[step] = recent[-HISTORY:]

    def state(self) -> State:
        """Copies, as :meth:`DiffRec.state`."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.parameters.items()}
