"""``nrt`` with ``variant: paper``: the public implementation that studies of explanations use.

L. Li's code (github lileipisces/NRT, "NRT (SIGIR'17) without review prediction task"), whose settings are the defaults here:

- The MLP of the rating has the layers [u; v] -> 400 -> 400 (four times), each with a sigmoid, and a linear output, without
  the mean rating.
- The predicted rating, cut to the range of the ratings, is truncated to a whole number, not rounded.
- All weights outside of the GRU are drawn from (-0.1, 0.1), their biases are 0. No dropout.
- Loss: cross entropy per word plus the squared error of the rating, with the same weight. Adam with a learning rate of
  0.0001, batches of 200, no clipping. After each epoch the mean over validation batches of the sum of both; training ends
  after five epochs, in all, without improvement.

Departs from it: words outside of the vocabulary are learned, but never written; users and items that are not in training
have the mean embedding. From the paper also: no third task (the words of the whole review), greedy decoding, no L2 (with
the paper's 0.0001 all sentences would be the same, as the code's author notes).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.neural import Encoding, rating_loss, word_loss
from cfbench_text.generators.recipes import Recipe, words_and_ratings

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    dimensions: Annotated[int, Range(minimum=1), Help("of the embeddings")] = 300
    hidden: Annotated[int, Range(minimum=1), Help("of the hidden states")] = 400
    layers: Annotated[int, Range(minimum=0), Help("of the MLP between its first and its last")] = 4
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 1e-4
    batch: Annotated[int, Range(minimum=1), Help("rows in a step")] = 200
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without a better validation loss, in all")] = 5
    rating_weight: Annotated[float, Range(minimum=0), Help("of the squared error of the rating")] = 1.0

    def recipe(self) -> Recipe:
        return words_and_ratings(self.learning_rate, self.batch, self.epochs, self.patience)


def build(options: PaperOptions, encoding: Encoding) -> Any:
    """The network of the public implementation, with its initial weights."""
    from torch import nn

    d, h, words = options.dimensions, options.hidden, len(encoding.vocabulary)
    layers: list[Any] = [nn.Linear(2 * d, h), nn.Sigmoid()]
    for _ in range(options.layers):
        layers += [nn.Linear(h, h), nn.Sigmoid()]
    network: Any = nn.ModuleDict(
        {
            "user": nn.Embedding(len(encoding.users) + 1, d),
            "item": nn.Embedding(len(encoding.items) + 1, d),
            "rating": nn.Sequential(*layers, nn.Linear(h, 1)),
            "first": nn.Linear(2 * d, h),
            "first of rating": nn.Embedding(encoding.levels, h),
            "word": nn.Embedding(words, d),
            "gru": nn.GRU(d, h, batch_first=True),
            "output": nn.Linear(h, words),
        }
    )
    for name, part in network.items():
        if name != "gru":
            part.apply(_uniform)
    return network


def _uniform(module: Any) -> None:
    from torch import nn

    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.uniform_(module.weight, -0.1, 0.1)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


def level(ratings: Tensor, encoding: Encoding) -> Tensor:
    """The number of the whole rating below, 0 for the lowest; no gradient passes."""
    return ratings.detach().clip(encoding.lowest, encoding.highest).long() - encoding.lowest


def loss(network: Any, first: Tensor, ratings: Tensor, batch: Batch, weight: float) -> Loss:
    hidden, _ = network["gru"](network["word"](batch.words), first[None].contiguous())
    of_words, words = word_loss(network["output"], hidden, batch)
    of_ratings = rating_loss(ratings, batch.ratings)
    return Loss(of_words / max(1, words) + weight * of_ratings, of_words, words, of_ratings)
