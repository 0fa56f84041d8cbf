"""The training of LXR: what it learns from, its loss and its network in torch. See ``lxr.py`` for the formulas."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.devices.training_steps import TrainingSteps
from cfbench_core.errors import UserError
from cfbench_explainers_native import lxr_paper
from cfbench_recsys.contracts import DifferentiableProfileRecommender, Link
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of
from cfbench_recsys.ranking import top_k
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import Target
from cfbench_recsys.targets import Context, Targets

if TYPE_CHECKING:
    import torch

FLOOR = math.log(1e-7)
"""Below this, log p(x * (1 - m)) is low enough: nothing is gained by lowering it further."""


@dataclass(frozen=True)
class Hyperparameters:
    """What the options of either variant are turned into; ``published``: of the variant paper."""

    lambda_pos: float
    lambda_neg: float
    alpha: float
    target: Target
    k: int
    hidden: int
    learning_rate: float
    batch: int
    epochs: int
    decay_every: int
    patience: int
    validation: float
    published: bool = False


@dataclass(frozen=True)
class Lessons:
    """n training users, and what the recommender recommends to them.

    Attributes:
        users: (n,); profiles: (n, items).
        lists: (n, k) their top k, the first ``counts`` (n,) of each row, at least one.
        scales: (n,) the standard deviation of the logits of unseen items.
    """

    users: IntArray
    profiles: scipy.sparse.csr_matrix
    lists: IntArray
    counts: IntArray
    scales: FloatArray

    @staticmethod
    def of(context: Context, users: IntArray, k: int) -> Lessons:
        """Users to whom nothing can be recommended are left out."""
        training = context.training
        seen = Targets.of(
            training, users, np.zeros((len(users), 1), dtype=np.int64), k, "item", "user-vector"
        )
        lists, scales = np.empty((len(users), k), dtype=np.int64), np.ones(len(users))
        for rows, scores in score_blocks(context.model, Edits.nothing(users), training):
            lists[rows] = top_k(scores, seen.history[rows], seen.padding[rows], k)
            scales[rows] = _spread(scores, seen.history[rows], seen.padding[rows])
        counts = np.count_nonzero(lists >= 0, axis=1)
        some = np.flatnonzero(counts)
        return Lessons(users[some], training[users[some]], lists[some], counts[some], scales[some])

    def __len__(self) -> int:
        return len(self.users)


def _spread(scores: FloatArray, history: IntArray, padding: BoolArray) -> FloatArray:
    """(B,) standard deviation of each row over what is not in ``history``; 1 where that is 0."""
    unseen = np.ones(scores.shape)
    rows, columns = np.nonzero(~padding)
    unseen[rows, history[rows, columns]] = 0.0
    sizes = np.maximum(unseen.sum(axis=1), 1.0)
    centred = (scores - ((scores * unseen).sum(axis=1) / sizes)[:, None]) * unseen
    deviations: FloatArray = np.sqrt((centred**2).sum(axis=1) / sizes)
    return np.where(deviations > 0, deviations, 1.0)


class Training:
    """The network's parameters in torch, float32, and the optimiser."""

    def __init__(self, config: Hyperparameters, context: Context, lessons: Lessons) -> None:
        import torch

        self.config, self.model, self.lessons = config, context.profile_gradients, lessons
        self.random = context.generator("lxr", "fit")
        start = lxr_paper.initial if config.published else initial
        self.network = {
            name: torch.as_tensor(array).requires_grad_()
            for name, array in start(context.training.shape[1], config.hidden, self.random).items()
        }
        self.optimizer = torch.optim.Adam(list(self.network.values()), lr=config.learning_rate)
        self.steps = TrainingSteps("lxr", "hidden or the recommender")

    def epoch(self, number: int) -> None:
        """Each user once, in random order, with a target of its list drawn anew.

        Raises:
            UserError: if the loss is no longer a finite number.
        """
        if self.config.decay_every:
            falls = (number - 1) // self.config.decay_every
            self.optimizer.param_groups[0]["lr"] = self.config.learning_rate * 0.1**falls
        order = self.random.permutation(len(self.lessons))
        for start in range(0, len(order), self.config.batch):
            rows = order[start : start + self.config.batch]
            places = self.random.integers(0, self.lessons.counts[rows])
            loss_of = partial(loss, self.network, self.model, self.lessons, rows, places, self.config)
            if not math.isfinite(self.steps.take(self.optimizer, len(rows), loss_of)):
                raise UserError(f"lxr: training diverged in epoch {number}; try a smaller learning_rate")

    def state(self) -> dict[str, np.ndarray]:
        return {name: tensor.detach().cpu().numpy().copy() for name, tensor in self.network.items()}


def initial(items: int, hidden: int, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Parameters to start from: small ones for a profile, which adds up many; larger ones for the target."""
    shapes = {
        "profile": ((items, hidden), 0.1),
        "item": ((items, hidden), 0.3),
        "hidden": ((2 * hidden, hidden), (2 * hidden) ** -0.5),
        "output": ((items, hidden), hidden**-0.5),
    }
    found = {}
    for layer, (shape, deviation) in shapes.items():
        found[f"{layer}.weight"] = np.float32(deviation) * random.standard_normal(shape, dtype=np.float32)
        found[f"{layer}.bias"] = np.zeros(items if layer == "output" else hidden, dtype=np.float32)
    return found


def loss(
    network: Mapping[str, torch.Tensor],
    model: DifferentiableProfileRecommender,
    lessons: Lessons,
    rows: IntArray,
    places: IntArray,
    config: Hyperparameters,
    part: slice = slice(None),
) -> torch.Tensor:
    """The loss above, for the items at ``places`` of the lists of users ``rows``; what a ``part`` of them contributes."""
    import torch

    ends = lessons.profiles.indptr
    users, interactions = len(rows), int((ends[rows + 1] - ends[rows]).sum())
    rows, places = rows[part], places[part]
    profiles = lessons.profiles[rows]
    lengths = np.diff(profiles.indptr)
    owners = torch.as_tensor(np.repeat(np.arange(len(rows)), lengths))
    items = torch.as_tensor(profiles.indices.astype(np.int64))
    wanted = torch.as_tensor(lessons.lists[rows, places])
    starts = torch.as_tensor(profiles.indptr[:-1].astype(np.int64))
    masks = _masks_to_learn(network, owners, items, starts, wanted)

    edges = (torch.cat([owners, owners + len(rows)]), torch.cat([items, items]))
    masked = torch.zeros((2 * len(rows), profiles.shape[1]), dtype=torch.float64)
    scores = model.score_dense(masked.index_put(edges, torch.cat([masks, 1 - masks])))
    scales = torch.as_tensor(lessons.scales[rows]).repeat(2)
    logs = log_probability(scores, wanted.repeat(2), edges, scales, config, link_of(model))
    keeping, losing = logs[: len(rows)], logs[len(rows) :]
    means = torch.zeros(len(rows), dtype=torch.float64).index_add(0, owners, masks) / torch.as_tensor(lengths)
    if config.published:  # nothing is clamped, and all masks of the batch weigh the same
        of_users = config.lambda_neg * losing - config.lambda_pos * keeping
        share = profiles.nnz / interactions
        value: torch.Tensor = of_users.mean() * (len(rows) / users) + config.alpha * masks.mean() * share
        return value
    of_users = (
        -config.lambda_pos * keeping + config.lambda_neg * losing.clamp(min=FLOOR) + config.alpha * means
    )
    mean: torch.Tensor = of_users.mean() * (len(rows) / users)
    return mean


def _masks_to_learn(
    network: Mapping[str, torch.Tensor],
    owners: torch.Tensor,
    items: torch.Tensor,
    starts: torch.Tensor,
    wanted: torch.Tensor,
) -> torch.Tensor:
    """(N,) float64 masks of all interactions of B users, end to end from ``starts`` (B,) on."""
    import torch
    from torch.nn.functional import embedding, embedding_bag

    profile = embedding_bag(items, network["profile.weight"], starts, mode="sum") + network["profile.bias"]
    item = embedding(wanted, network["item.weight"]) + network["item.bias"]
    first = torch.tanh(torch.cat([profile, item], dim=1))
    hidden = torch.tanh(first @ network["hidden.weight"] + network["hidden.bias"])
    # embedding() where an index would do: its gradient adds up in one order, whatever the number of threads
    of_unit, of_item = embedding(owners, hidden), embedding(items, network["output.weight"])
    logits = (of_unit * of_item).sum(1) + embedding(items, network["output.bias"][:, None])[:, 0]
    return torch.sigmoid(logits.double())


def log_probability(
    scores: torch.Tensor,
    items: torch.Tensor,
    seen: tuple[torch.Tensor, torch.Tensor],
    scales: torch.Tensor,
    config: Hyperparameters,
    link: Link,
) -> torch.Tensor:
    """(B,) log p of ``items`` (B,) from scores (B, all items), by ``config.target``.

    seen: rows and columns of the users' histories; scales: (B,) d of the docstring above; link: of the recommender.
    """
    import torch
    from torch.nn.functional import logsigmoid

    own = scores.gather(1, items[:, None])
    if config.target == "logit":
        return logsigmoid(own[:, 0] / scales)
    if config.target == "probability" and link == "softmax":
        return own[:, 0] - scores.logsumexp(dim=1)
    if config.target == "probability":
        return logsigmoid(own[:, 0])
    nothing = torch.tensor(-torch.inf, dtype=scores.dtype)
    rivals = scores.index_put(seen, nothing).scatter(1, items[:, None], -torch.inf)
    last = rivals.topk(min(config.k, rivals.shape[1]), dim=1).values[:, -1]
    return logsigmoid((own[:, 0] - last) / scales)
