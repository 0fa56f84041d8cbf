"""``peter`` with ``variant: paper``: the authors' code and settings (github lileipisces/PETER, with ``--peter_mask``).

- The MLP of the rating predicts the rating itself, not its difference to the mean; its weights are drawn from (-0.1, 0.1),
  its biases are 0. The attention of the transformer starts with Glorot's weights and biases of 0.
- Words outside of the vocabulary are learned. In the bag of words, the end of a text of the full length is left out.
- SGD with a learning rate of 1, a quarter of it after each epoch without improvement, batches of 128, gradients clipped at a
  norm of 1. After each epoch the mean over validation batches of the cross entropy per word plus the squared error of the
  rating; training ends after five epochs, in all, without improvement.

Departs from it: words outside of the vocabulary are never written; users and items that are not in training have the mean
embedding; no feature words in the input (PETER, not PETER+).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_text.generators.recipes import Recipe

if TYPE_CHECKING:
    from torch import Tensor

    from cfbench_text.generators.batches import Batch


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    dimensions: Annotated[int, Range(minimum=1), Help("of embeddings and hidden states")] = 512
    layers: Annotated[int, Range(minimum=1), Help("of the transformer")] = 2
    heads: Annotated[int, Range(minimum=1), Help("of each layer; they divide the dimensions")] = 2
    hidden: Annotated[int, Range(minimum=1), Help("of the inner part of a layer")] = 2048
    dropout: Annotated[float, Range(minimum=0, below=1), Help("share of values left out in training")] = 0.2
    learning_rate: Annotated[float, Range(above=0), Help("of SGD at the start")] = 1.0
    decay: Annotated[float, Range(above=0, maximum=1), Help("of the rate, after an epoch without gain")] = (
        0.25
    )
    clip: Annotated[float, Range(above=0), Help("maximum norm of the gradient")] = 1.0
    batch: Annotated[int, Range(minimum=1), Help("rows in a step")] = 128
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without a better validation loss, in all")] = 5
    context_weight: Annotated[float, Range(minimum=0), Help("of the bag of words")] = 1.0
    rating_weight: Annotated[float, Range(minimum=0), Help("of the squared error of the rating")] = 0.1

    def __post_init__(self) -> None:
        if self.dimensions % self.heads:
            raise ValueError(f"dimensions must be a multiple of heads: {self.dimensions} and {self.heads}")

    def recipe(self) -> Recipe:
        return Recipe(
            optimizer="sgd",
            learning_rate=self.learning_rate,
            decay=self.decay,
            clip=self.clip,
            batch=self.batch,
            epochs=self.epochs,
            patience=self.patience,
            in_all=True,
            with_ratings=self.rating_weight > 0,
            by_length=False,
        )


def draw_weights(network: Any) -> None:
    """The initial weights of the authors' code, where PyTorch's defaults are others."""
    from torch import nn

    for layer in network["layers"]:
        nn.init.xavier_uniform_(layer["query-key-value"].weight)
        nn.init.zeros_(layer["query-key-value"].bias)
        nn.init.zeros_(layer["mixed"].bias)
    for name in [name for name in ("rating", "rating of text") if name in network]:
        for linear in network[name]:
            if isinstance(linear, nn.Linear):
                nn.init.uniform_(linear.weight, -0.1, 0.1)
                nn.init.zeros_(linear.bias)


def bag_of_words(batch: Batch, length: int) -> Tensor:
    """(B, T) which targets are in the bag of words: all but the end of a text of the full length."""
    counted = batch.mask.clone()
    counted[:, length:] = False
    return counted
