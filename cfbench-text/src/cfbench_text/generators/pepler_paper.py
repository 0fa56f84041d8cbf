"""``pepler`` with ``variant: paper``: the code of its authors (github lileipisces/PEPLER), whose settings are the defaults.

- Vectors of users and items are drawn from (-0.1, 0.1), and so are the weights of the MLP of the rating: [u; v] -> 400 ->
  400 -> 400, each with a sigmoid, and a linear output without the mean rating; biases are 0.
- ``training: regularised`` (``reg.py``): everything learns at once, and the loss is the cross entropy plus 0.01 times the
  squared error of the rating. The epoch is that with the lowest sum of both, unweighted.
- ``training: sequential`` (``main.py``): first the vectors with a frozen language model, then everything, both with the same
  learning rate; no rating is learned. The weights are those of the best epoch of the second part, whatever the first had.
- The first target is the token that begins a text: it is predicted from the item's vector.
- Learning rate 0.001, batches of 128 in random order, no clipping; training ends after five epochs, in all, without gain.
  Dropout is the model's own (GPT-2: 0.1).

Departs from it: the model's end-of-document token begins and ends a text, where its authors add three tokens with new
embeddings; Adam's epsilon is 1e-8 (1e-6 there); the code cuts explanations after 20 tokens (``length``), and writes as many
even behind the end; with ``training: sequential`` the rating is the mean of the training ratings; users and items that are
not in training have the mean vector. Ratings by MF (``--use_mf``) and prompts of words (``discrete.py``) are not there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cfbench_core.config import Help, Range
from cfbench_text.generators.recipes import Recipe, words_and_ratings

if TYPE_CHECKING:
    from torch import Tensor

    from cfbench_text.generators.batches import Batch

RANGE = 0.1


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    training: Annotated[
        Literal["regularised", "sequential"],
        Help("all at once with the rating, or the prompts and then everything without it"),
    ] = "regularised"
    hidden: Annotated[int, Range(minimum=1), Help("of the MLP that predicts ratings")] = 400
    layers: Annotated[int, Range(minimum=0), Help("of the MLP between its first and its last")] = 2
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 1e-3
    batch: Annotated[int, Range(minimum=1), Help("rows in a step")] = 128
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without a better validation loss, in all")] = 5
    rating_weight: Annotated[float, Range(minimum=0), Help("of the squared error of the rating")] = 0.01

    @property
    def rates(self) -> bool:
        """Whether ratings are learned."""
        return self.training == "regularised"

    def recipe(self) -> Recipe:
        return words_and_ratings(self.learning_rate, self.batch, self.epochs, self.patience)


def rating_network(options: PaperOptions, width: int) -> Any:
    """The MLP of the rating, with its initial weights, for vectors of this width."""
    from torch import nn

    layers: list[Any] = [nn.Linear(2 * width, options.hidden), nn.Sigmoid()]
    for _ in range(options.layers):
        layers += [nn.Linear(options.hidden, options.hidden), nn.Sigmoid()]
    network = nn.Sequential(*layers, nn.Linear(options.hidden, 1))
    for part in network:
        if isinstance(part, nn.Linear):
            nn.init.uniform_(part.weight, -RANGE, RANGE)
            nn.init.zeros_(part.bias)
    return network


def loss_of_begin(logits: Tensor, begin: int, batch: Batch) -> tuple[Tensor, int]:
    """Cross entropy of the token that begins a text, summed over the rows that have one, and their number.

    Args:
        logits: (B, V) of the model at the item's position.
    """
    there = batch.mask.any(dim=1)
    found: Tensor = -logits.log_softmax(dim=-1)[there, begin].sum()
    return found, int(there.sum())
