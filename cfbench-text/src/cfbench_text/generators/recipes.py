"""How a trained generator learns: ours for all generators, or that of the authors' code (``variant: paper``)."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from cfbench_text.generators.language import PAD

if TYPE_CHECKING:
    from torch import Tensor

    from cfbench_text.generators.base import Training
    from cfbench_text.generators.batches import Batch, Loss

CLIP = 1.0
"""The maximum norm of the gradient."""


class Learner(Protocol):
    """A generator with a network (``torch.nn.Module``) and the validation losses so far."""

    network: Any
    history: list[float]

    def loss(self, batch: Batch) -> Loss: ...
    def cross_entropy(self, rows: Batch) -> float: ...
    def device(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """One way of training.

    Attributes:
        patience: epochs without a better validation loss after which training ends, in a row, or in all with ``in_all``.
        clip: maximum norm of the gradient; None: not clipped.
        decay: factor of the learning rate after each epoch without a better validation loss.
        with_ratings: the validation loss is the mean over batches of rows in their order of the cross entropy per word plus
            the squared error of the ratings; otherwise it is the cross entropy per word of all rows.
        by_length: batches have rows of about equal length.
    """

    optimizer: Literal["adam", "sgd"] = "adam"
    learning_rate: float
    batch: int
    epochs: int
    patience: int
    in_all: bool = False
    clip: float | None = CLIP
    decay: float = 1.0
    with_ratings: bool = False
    by_length: bool = True


def words_and_ratings(learning_rate: float, batch: int, epochs: int, patience: int) -> Recipe:
    """As NRT and PEPLER are trained in the public implementations: words and ratings together, gradients not clipped."""
    return Recipe(
        learning_rate=learning_rate,
        batch=batch,
        epochs=epochs,
        patience=patience,
        in_all=True,
        clip=None,
        with_ratings=True,
        by_length=False,
    )


def train(generator: Learner, learned: Batch, validation: Batch, training: Training, recipe: Recipe) -> None:
    """Trains until the validation loss stops falling. An earlier call's weights are restored if none are better."""
    import torch

    network, history = generator.network, generator.history
    judged = bool(validation.mask.any())
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    makers = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}
    optimizer: Any = makers[recipe.optimizer](weights, lr=recipe.learning_rate)
    best, without_gain = min(history, default=math.inf), 0
    best_state = copy.deepcopy(network.state_dict()) if history else None
    for epoch in range(recipe.epochs):
        network.train()
        for rows in shuffled(learned, training.rng, recipe):
            optimizer.zero_grad()
            generator.loss(learned.rows(rows.to(generator.device()))).total.backward()  # type: ignore[no-untyped-call]
            if recipe.clip is not None:
                torch.nn.utils.clip_grad_norm_(weights, recipe.clip)
            optimizer.step()
        training.report(epoch + 1, recipe.epochs)
        if not judged:
            continue
        history.append(validation_loss(generator, validation, recipe))
        if history[-1] < best:
            best, best_state = history[-1], copy.deepcopy(network.state_dict())
            without_gain = without_gain if recipe.in_all else 0
            continue
        without_gain += 1
        if without_gain >= recipe.patience:
            break
        for group in optimizer.param_groups:
            group["lr"] *= recipe.decay
    if best_state is not None:
        network.load_state_dict(best_state)


def validation_loss(generator: Learner, rows: Batch, recipe: Recipe) -> float:
    """What decides which epoch is the best, see :class:`Recipe`."""
    import torch

    if not recipe.with_ratings:
        return generator.cross_entropy(rows)
    generator.network.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(rows), recipe.batch):
            stop = min(start + recipe.batch, len(rows))
            loss = generator.loss(rows.rows(torch.arange(start, stop, device=generator.device())))
            total += (stop - start) * (float(loss.of_words) / max(1, loss.words) + float(loss.of_ratings))
    return total / max(1, len(rows))


def shuffled(learned: Batch, draw: np.random.Generator, recipe: Recipe) -> Iterator[Tensor]:
    """Numbers of the rows of each batch, in random order; with ``by_length`` those of 16 batches are sorted by length."""
    import torch

    order, size = draw.permutation(len(learned)), recipe.batch
    if not recipe.by_length:
        for first in range(0, len(order), size):
            yield torch.from_numpy(order[first : first + size])
        return
    lengths = (learned.targets != PAD).sum(dim=1).cpu().numpy()
    batches = []
    for start in range(0, len(order), 16 * size):
        pool = order[start : start + 16 * size]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        batches += [pool[first : first + size] for first in range(0, len(pool), size)]
    for place in draw.permutation(len(batches)).tolist():
        yield torch.from_numpy(batches[place])
