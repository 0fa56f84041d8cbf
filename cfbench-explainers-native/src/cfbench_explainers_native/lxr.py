"""LXR: a network, trained on other users, that predicts in one pass which interactions carry a recommendation.

Barkan et al., "A counterfactual framework for learning and evaluating explanations for recommender systems",
WWW 2024; Gurevitch et al., "LXR: learning to explain recommendations", ACM TORS 2025. With x the profile, I_u
its items, W_1, W_2, W_4 (items, h) and W_3 (2h, h):

    t = tanh(W_3^T tanh([sum_{i in I_u} W_1[i] + b_1, W_2[y] + b_2]) + b_3)
    m_i = sigmoid(W_4[i] . t + b_4[i])   for i in I_u                                    the importances
    loss = -lambda_pos log p_y(x * m) + lambda_neg max(log p_y(x * (1 - m)), log 1e-7) + alpha mean_{I_u} m_i

(mean over a batch of users; Adam), y drawn from the user's top ``k`` unseen items anew in every epoch. The
masked profile should preserve the recommendation, its complement should not. At list level the importances are the
mean of the masks of the listed items: they stay in [0, 1], so CFExpRec's threshold of 0.5 has the same meaning.

What the probability p_y is, is up to ``target``, as recommenders give scores of different kinds. With d the standard
deviation of the scores of the user's unseen items under the full profile:
- ``margin``: sigmoid((s_y - the k-th best other unseen item) / d), the k-th best under the same mask. It is the question
  of a counterfactual, whether y stays in its place; means the same for every recommender, whatever its link and the
  scale of its scores; and does not saturate. Therefore it is the default for every link.
- ``probability``: f(x)_y, the sigmoid or the softmax (over all items) that the recommender declares as its link: the
  papers' for MF and for VAE. An error where the link is identity.
- ``logit``: sigmoid(s_y / d).
For MF, ``margin`` gives the best POS-P and NEG-P on ml-1m and amazon-fashion; ``probability``, which depends on y's own
score alone, is better at DEL and INS, which do so too.

``validation`` is a share of the *training* users; the epoch with the lowest POS-P@k - NEG-P@k on them is selected.

Departs from the papers' code: trained on users who are not explained only, and chosen on others again (paper
000's code learns from the explained users, too, and stops by the training loss; the authors' code chooses the
epoch on test users); y from the top k, not the first alone; log-probabilities from logits, clamped only where
log p is to fall without end; the mean mask is one of means of users, so that a user's loss does not hang on
the others of the batch; at list level no target of several items, which the network never saw in training.
Cost: no model query, h * (|I_u| + 2h) multiplications (first layer: once for each user). Training: two
evaluations with gradients for each user and epoch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import scipy  # scipy.sparse is imported at first use, not by every plan

from cfbench_core.config import Help, Range, Search
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native.shared import mean_over_targets
from cfbench_recsys.contracts import DifferentiableProfileRecommender, Link
from cfbench_recsys.edits import BoolArray, Edits, FloatArray, IntArray
from cfbench_recsys.links import link_of
from cfbench_recsys.ranking import top_k
from cfbench_recsys.removals import ImportanceOrder, RemovalResponses, step_counts
from cfbench_recsys.scoring import score_blocks
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

if TYPE_CHECKING:
    import torch

SPEC = ComponentSpec(
    id="recsys/explainer/lxr",
    summary="A network, trained on other users, that masks the interactions behind a recommendation",
    target=f"{__name__}:LXR",
    config=f"{__name__}:Config",
    provides={
        "format": {"implicit", "explicit"},
        "level": {"item", "list"},
        "scope": {"user-vector"},
        "edit": {"remove"},
        "pretraining": {"yes"},
    },
    needs={"recommender": {"access": {"scores", "gradients"}}},
    papers=("barkan2024lxr",),
    presets="cfbench_explainers_native:presets/lxr.yaml",
    details={"default": False},
)

FLOOR = math.log(1e-7)
"""Below this, log p(x * (1 - m)) is low enough: nothing is gained by lowering it further."""

LOOK_EVERY = 2
"""Epochs from one look at the validation users to the next."""

VALIDATION_USERS = 200
"""At most so many of the training users are used for validation."""

BLOCK = 64
"""Rows of a matrix product, always the same number: how it rounds depends on it."""


@dataclass(frozen=True, kw_only=True)
class Config:
    lambda_pos: Annotated[
        float,
        Range(minimum=0),
        Search(1, 50, log=True),
        Help("weight of preserving the item under the mask"),
    ] = 5.0
    lambda_neg: Annotated[
        float,
        Range(minimum=0),
        Search(0.1, 50, log=True),
        Help("weight of displacing the item under the complement of the mask"),
    ] = 1.0
    alpha: Annotated[
        float,
        Range(minimum=0),
        Help("weight of the mean mask; only the ratios of the three matter, so it is not searched"),
    ] = 1.0
    target: Annotated[
        Target,
        Help(
            "the probability to preserve: of the margin to the k-th place, the model's own (the papers'), of the logit"
        ),
    ] = "margin"
    k: Annotated[
        int,
        Range(minimum=1),
        Search(choices=(1, 5, 10, 20)),
        Help("targets are of the user's top k; with target margin, the place to be preserved"),
    ] = 5
    derive: Annotated[
        Literal["smallest-prefix", "threshold"] | None,
        Help(
            "explicit answers; threshold: importance above 0.5, as published; none: protocol.postprocess.derive"
        ),
    ] = None
    hidden: Annotated[
        int, Range(minimum=1), Search(choices=(32, 64, 128)), Help("units of each hidden layer")
    ] = 64
    learning_rate: Annotated[float, Range(above=0), Search(1e-3, 0.03, log=True), Help("of Adam")] = 0.01
    batch: Annotated[int, Range(minimum=1), Search(choices=(16, 32, 64, 128)), Help("users in a batch")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("at most; validation chooses among them")] = 40
    decay_every: Annotated[
        int, Range(minimum=0), Help("epochs after which the learning rate falls to a tenth; 0: never")
    ] = 15
    patience: Annotated[
        int, Range(minimum=1), Help("evaluations without a better order (one every 2 epochs) before stopping")
    ] = 8
    validation: Annotated[
        float, Range(minimum=0, below=1), Help("share of the training users to choose the epoch on")
    ] = 0.1


class LXR:
    def __init__(self, config: Config) -> None:
        self.config = config

    def prepare(self, context: Context) -> dict[str, np.ndarray]:
        """The network, and ``validation`` (evaluations, 3): epoch, POS-P@k and NEG-P@k of each evaluation, if any."""
        TargetFunction.of(self.config.target, context.model, "lxr")  # raises before anything is trained
        users = np.flatnonzero(np.diff(context.training.indptr))
        drawn = context.generator("lxr", "validation").permutation(len(users))
        kept_back = min(VALIDATION_USERS, int(self.config.validation * len(users)))
        chosen_on = Lessons.of(context, np.sort(users[drawn[:kept_back]]), self.config.k)
        learned_from = Lessons.of(context, users[drawn[kept_back:]], self.config.k)
        if not len(learned_from):
            raise UserError("lxr: there are no users to train on: all users are explained")
        training = Training(self.config, context, learned_from)
        evaluations: list[tuple[float, float, float]] = []
        best, best_gap, in_vain = None, math.inf, 0
        for epoch in range(1, self.config.epochs + 1):
            training.epoch(epoch)
            if not len(chosen_on) or (epoch % LOOK_EVERY and epoch < self.config.epochs):
                continue
            state = training.state()
            pos, neg = self._quality(chosen_on, state, context)
            evaluations.append((epoch, pos, neg))
            in_vain += 1
            if pos - neg < best_gap:
                best, best_gap, in_vain = state, pos - neg, 0
            if in_vain == self.config.patience:
                break
        if best is None:
            return training.state()
        return {**best, "validation": np.array(evaluations)}

    def importances(self, targets: Targets, context: Context) -> FloatArray:
        """(B, H) masks in [0, 1]; at list level their mean over the listed items."""
        assert context.state is not None, "what prepare gave"
        network = {name: array.astype(np.float64) for name, array in context.state.items()}
        users, owners = np.unique(targets.users, return_inverse=True)
        profiles = context.interactions[users].astype(np.float64) @ network["profile.weight"]
        units, positions = np.nonzero(~targets.padding)
        masks = np.empty((len(units), targets.items.shape[1]))
        for place, items in enumerate(targets.items.T):
            inner = _hidden(network, profiles[owners], items)
            masks[:, place] = _masks(network, inner, units, targets.history[units, positions])
        importances = np.zeros(targets.history.shape)
        importances[units, positions] = mean_over_targets(masks)
        return importances

    def _quality(
        self, lessons: Lessons, state: dict[str, np.ndarray], context: Context
    ) -> tuple[float, float]:
        """POS-P@k and NEG-P@k (10 steps) on validation users, over all items of their lists."""
        context = dataclasses.replace(context, interactions=context.training, state=state)
        rows, places = np.nonzero(np.arange(lessons.lists.shape[1]) < lessons.counts[:, None])
        items = lessons.lists[rows, places][:, None]
        targets = Targets.of(
            context.training, lessons.users[rows], items, self.config.k, "item", "user-vector"
        )
        order = ImportanceOrder.of(targets, self.importances(targets, context))
        responses = RemovalResponses(context.model, targets, order, context.training)
        counts = step_counts(order.lengths, 10)
        pos = (responses.after(counts)[0] <= targets.k).mean()
        neg = (responses.after(counts, "least important")[0] <= targets.k).mean()
        return float(pos), float(neg)


def _hidden(network: Mapping[str, np.ndarray], profiles: FloatArray, items: IntArray) -> FloatArray:
    """(B, h) t, from the sums over the profiles (B, h). In blocks of one shape, so that each row is itself."""
    first = np.concatenate(
        [profiles + network["profile.bias"], network["item.weight"][items] + network["item.bias"]], axis=1
    )
    padded = np.zeros((-(-len(first) // BLOCK) * BLOCK, first.shape[1]))
    np.tanh(first, out=padded[: len(first)])
    for start in range(0, len(padded), BLOCK):
        rows = slice(start, start + BLOCK)
        half = padded.shape[1] // 2
        padded[rows, :half] = padded[rows] @ network["hidden.weight"]
    hidden: FloatArray = np.tanh(padded[: len(first), : first.shape[1] // 2] + network["hidden.bias"])
    return hidden


def _masks(
    network: Mapping[str, np.ndarray], hidden: FloatArray, units: IntArray, items: IntArray
) -> FloatArray:
    """(N,) masks of N interactions. Adds unit by unit of the last layer: each mask is itself, in any company."""
    logits = network["output.bias"][items]
    for of_unit, of_item in zip(hidden.T.copy(), network["output.weight"].T.copy(), strict=True):
        logits += of_unit[units] * of_item[items]
    masks: FloatArray = 1.0 / (1.0 + np.exp(-logits))
    return masks


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

    def __init__(self, config: Config, context: Context, lessons: Lessons) -> None:
        import torch

        self.config, self.model, self.lessons = config, context.profile_gradients, lessons
        self.random = context.generator("lxr", "fit")
        self.network = {
            name: torch.from_numpy(array).requires_grad_()
            for name, array in initial(context.training.shape[1], config.hidden, self.random).items()
        }
        self.optimizer = torch.optim.Adam(list(self.network.values()), lr=config.learning_rate)

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
            value = loss(self.network, self.model, self.lessons, rows, places, self.config)
            self.optimizer.zero_grad()
            value.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            if not math.isfinite(value.item()):
                raise UserError(f"lxr: training diverged in epoch {number}; try a smaller learning_rate")

    def state(self) -> dict[str, np.ndarray]:
        return {name: tensor.detach().numpy().copy() for name, tensor in self.network.items()}


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
    config: Config,
) -> torch.Tensor:
    """The loss above, for the items at ``places`` of the lists of users ``rows``."""
    import torch

    profiles = lessons.profiles[rows]
    lengths = np.diff(profiles.indptr)
    owners = torch.from_numpy(np.repeat(np.arange(len(rows)), lengths))
    items = torch.from_numpy(profiles.indices.astype(np.int64))
    wanted = torch.from_numpy(lessons.lists[rows, places])
    starts = torch.from_numpy(profiles.indptr[:-1].astype(np.int64))
    masks = _masks_to_learn(network, owners, items, starts, wanted)

    edges = (torch.cat([owners, owners + len(rows)]), torch.cat([items, items]))
    masked = torch.zeros((2 * len(rows), profiles.shape[1]), dtype=torch.float64)
    scores = model.score_dense(masked.index_put(edges, torch.cat([masks, 1 - masks])))
    scales = torch.from_numpy(lessons.scales[rows]).repeat(2)
    logs = log_probability(scores, wanted.repeat(2), edges, scales, config, link_of(model))
    keeping, losing = logs[: len(rows)], logs[len(rows) :]
    means = torch.zeros(len(rows), dtype=torch.float64).index_add(0, owners, masks) / torch.from_numpy(
        lengths
    )
    of_users = (
        -config.lambda_pos * keeping + config.lambda_neg * losing.clamp(min=FLOOR) + config.alpha * means
    )
    mean: torch.Tensor = of_users.mean()
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
    config: Config,
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
