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

This is ``variant: cfbench``. ``variant: paper`` is the method as its authors published it, see ``lxr_paper.py``.

Departs from the papers' code: trained on users who are not explained only, and chosen on others again (the
code of CFExpRec learns from the explained users, too, and stops by the training loss; the authors' code chooses the
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
from dataclasses import dataclass, field
from typing import Annotated, Literal

import numpy as np

from cfbench_core.config import Help, Range, Search
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_explainers_native import lxr_paper
from cfbench_explainers_native.lxr_paper import PaperOptions
from cfbench_explainers_native.lxr_training import Hyperparameters, Lessons, Training
from cfbench_explainers_native.shared import mean_over_targets
from cfbench_recsys.edits import FloatArray, IntArray
from cfbench_recsys.removals import ImportanceOrder, RemovalResponses, step_counts
from cfbench_recsys.target_functions import Target, TargetFunction
from cfbench_recsys.targets import Context, Targets

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

LOOK_EVERY = 2
"""Epochs from one look at the validation users to the next."""

VALIDATION_USERS = 200
"""At most so many of the training users are used for validation."""

SHARED = frozenset({"derive", "validation"})
"""Options of both variants."""

BLOCK = 64
"""Rows of a matrix product, always the same number: how it rounds depends on it."""


@dataclass(frozen=True, kw_only=True)
class Config:
    variant: Annotated[Variant, Help("paper: as published by its authors, see lxr_paper.py")] = "cfbench"
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
        Help("the probability to preserve, of the margin to the k-th place, the model's own, of the logit"),
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
            "explicit answers of both variants; threshold: importance above 0.5, as published; "
            "none: protocol.postprocess.derive"
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
        int,
        Range(minimum=1),
        Help("evaluations without a better order (one every 2 epochs) before stopping"),
    ] = 8
    validation: Annotated[
        float,
        Range(minimum=0, below=1),
        Help("share of the training users to choose the epoch on, in both variants"),
    ] = 0.1
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, SHARED)

    @property
    def fixed_target(self) -> str | None:
        """The target that the variant explains whatever the option says."""
        return str(lxr_paper.FIXED["target"]) if self.variant == "paper" else None


def hyperparameters(config: Config) -> Hyperparameters:
    """Those of the configured variant."""
    if config.variant == "paper":
        return Hyperparameters(
            **vars(config.paper), **lxr_paper.FIXED, validation=config.validation, published=True
        )
    own = vars(config).keys() - {"variant", "paper", "derive"}
    return Hyperparameters(**{name: getattr(config, name) for name in own})


class LXR:
    def __init__(self, config: Config) -> None:
        self.config = hyperparameters(config)

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
        best, lowest, in_vain = None, math.inf, 0
        published = self.config.published
        every = 1 if published else LOOK_EVERY
        for epoch in range(1, self.config.epochs + 1):
            training.epoch(epoch)
            if not len(chosen_on) or (epoch % every and epoch < self.config.epochs):
                continue
            state = training.state()
            pos, neg = self._quality(chosen_on, state, context)
            evaluations.append((epoch, pos, neg))
            in_vain += 1
            value = pos if published else pos - neg
            if value < lowest:
                best, lowest, in_vain = state, value, 0
            if in_vain == self.config.patience or (published and lxr_paper.stops(evaluations)):
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
        """POS-P and NEG-P (10 steps) on validation users, over all items of their lists, with K = k (published: 20)."""
        k = lxr_paper.QUALITY_AT if self.config.published else self.config.k
        context = dataclasses.replace(context, interactions=context.training, state=state)
        rows, places = np.nonzero(np.arange(lessons.lists.shape[1]) < lessons.counts[:, None])
        items = lessons.lists[rows, places][:, None]
        targets = Targets.of(context.training, lessons.users[rows], items, k, "item", "user-vector")
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
