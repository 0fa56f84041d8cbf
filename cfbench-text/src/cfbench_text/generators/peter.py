"""``peter``: a transformer over user, item and text that also predicts the rating and the words of the text.

Li, Zhang, Chen, "Personalized transformer for explainable recommendation", ACL 2021. The positions are [user, item,
BEGIN, word, word, ...]. Each position attends to itself and to earlier ones, and the user also to the item. With H the
hidden states of the last layer,

    rating = mean + MLP(H_user),   context = softmax(W H_item),   p(word_{t+1}) = softmax(W H_t),

and the loss is the cross entropy of the words, plus that of the same words under ``context`` regardless of their order
(a bag of words), plus ``rating_weight`` times the squared error of the rating.

``variant: paper`` is the authors' code, see ``peter_paper.py``. This is ``variant: cfbench``, which departs from the
paper: no feature words in the input (PETER, not PETER+); Adam instead of SGD with learning rate 1; the
rating is predicted as the difference to the mean; early stopping as in ``neural.py``. The default size of 512 dimensions
is meant for a GPU; on a CPU use ``{dimensions: 128, hidden: 256}`` for some thousand reviews.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_text.generators import attention, peter_paper
from cfbench_text.generators.attention import Cache
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.neural import (
    SHARED,
    Encoding,
    NeuralGenerator,
    WordConfig,
    rating_loss,
    word_loss,
)
from cfbench_text.generators.peter_paper import PaperOptions
from cfbench_text.generators.recipes import Recipe

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="text/generator/peter",
    summary="A transformer over user, item and text that also predicts the rating and the bag of words",
    target=f"{__name__}:PETER",
    config=f"{__name__}:Config",
    papers=("li2021peter",),
    details={"default": False},
)


PAIR = 2
"""The positions of user and item, before the text."""


@dataclass(frozen=True, kw_only=True)
class Config(WordConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    dimensions: Annotated[int, Range(minimum=1), Help("of embeddings and hidden states")] = 512
    layers: Annotated[int, Range(minimum=1), Help("of the transformer")] = 2
    heads: Annotated[int, Range(minimum=1), Help("of each layer; they divide the dimensions")] = 2
    hidden: Annotated[int, Range(minimum=1), Help("of the inner part of a layer")] = 2048
    context_weight: Annotated[float, Range(minimum=0), Help("of the bag of words")] = 1.0
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 5e-4
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, SHARED)
        if self.dimensions % self.heads:
            raise ValueError(f"dimensions must be a multiple of heads: {self.dimensions} and {self.heads}")


class PETER(NeuralGenerator):
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.published = config.variant == "paper"
        self.learns_unknown = self.published
        self.options: Config | PaperOptions = config.paper if self.published else config

    def recipe(self) -> Recipe:
        return self.config.paper.recipe() if self.published else super().recipe()

    def build(self, encoding: Encoding) -> Any:
        network = self.layers(encoding)
        if self.published:
            peter_paper.draw_weights(network)
        return network

    def layers(self, encoding: Encoding) -> Any:
        """The parts of the network."""
        from torch import nn

        given, d = self.options, self.options.dimensions
        network: Any = nn.ModuleDict(
            {
                "user": nn.Embedding(len(encoding.users) + 1, d),
                "item": nn.Embedding(len(encoding.items) + 1, d),
                "word": nn.Embedding(len(encoding.vocabulary), d),
                "layers": attention.transformer(d, given.heads, given.hidden, given.layers, given.dropout),
                "rating": nn.Sequential(nn.Linear(d, d), nn.Sigmoid(), nn.Linear(d, 1)),
                "dropout": nn.Dropout(given.dropout),
                "output": nn.Linear(d, len(encoding.vocabulary)),
            }
        )
        for name in ("user", "item", "word", "output"):
            nn.init.uniform_(network[name].weight, -0.1, 0.1)
        nn.init.zeros_(network["output"].bias)
        return network

    def rate(self, users: Tensor, items: Tensor) -> Tensor:
        return self._rating(self._begun(users, items)[0])

    def start(self, users: Tensor, items: Tensor) -> Cache:
        return self._begun(users, items)[1]

    def step(self, state: Cache, words: Tensor) -> tuple[Tensor, Cache]:
        position = state[0][0].shape[2]
        hidden, cache = self._run(self.network["word"](words)[:, None], position, None, state)
        return self.network["output"](hidden[:, 0]), cache

    def loss(self, batch: Batch) -> Loss:
        hidden = self.hidden_of(batch)
        texts = hidden[:, PAIR : PAIR + batch.targets.shape[1]]
        of_words, words = word_loss(self.network["output"], texts, batch)
        of_rating = rating_loss(self._rating(hidden), batch.ratings)
        counted = peter_paper.bag_of_words(batch, self.config.length) if self.published else batch.mask
        of_context = self._context_loss(hidden, batch, counted) / max(1, int(counted.sum()))
        weights = self.options.context_weight, self.options.rating_weight
        further = self.further_loss(hidden, batch)
        total = of_words / max(1, words) + weights[0] * of_context + weights[1] * of_rating
        return Loss(total + self.further_weight() * further, of_words, words, of_rating + further)

    def hidden_of(self, batch: Batch) -> Tensor:
        """(B, 2 + T, d) hidden states of the positions of a batch."""
        return self.hidden(batch.users, batch.items, batch.words)

    def further_loss(self, hidden: Tensor, batch: Batch) -> Tensor | float:
        """Additional squared error of a derived model."""
        return 0.0

    def further_weight(self) -> float:
        """The weight of :meth:`further_loss`."""
        return 0.0

    def hidden(self, users: Tensor, items: Tensor, words: Tensor, unseen: Tensor | None = None) -> Tensor:
        """(B, 2 + T, d) hidden states of all positions at once; none attends to words that are ``unseen`` (B, T)."""
        import torch

        pair = torch.stack([self.network["user"](users), self.network["item"](items)], dim=1)
        x = torch.cat([pair, self.network["word"](words)], dim=1)
        seen = sees(x.shape[1], x.device)
        if unseen is not None:
            shown = torch.cat([torch.zeros_like(unseen[:, :1]).expand(-1, PAIR), unseen], dim=1)
            seen = seen & ~shown[:, None, None, :]
        return self._run(x, 0, seen, None)[0]

    def _begun(self, users: Tensor, items: Tensor) -> tuple[Tensor, Cache]:
        """User and item alone: no word changes what they see."""
        import torch

        pair = torch.stack([self.network["user"](users), self.network["item"](items)], dim=1)
        return self._run(pair, 0, None, None)

    def _run(self, x: Tensor, first: int, sees: Tensor | None, cache: Cache | None) -> tuple[Tensor, Cache]:
        d = self.options.dimensions
        x = x * math.sqrt(d) + attention.positions(first, x.shape[1], d, x.device)
        return attention.run(
            self.network["layers"], self.options.heads, self.network["dropout"](x), sees, cache
        )

    def _rating(self, hidden: Tensor) -> Tensor:
        assert self.encoding is not None
        found: Tensor = self.network["rating"](hidden[:, 0])[:, 0]
        return found if self.published else self.encoding.rating + found

    def _context_loss(self, hidden: Tensor, batch: Batch, counted: Tensor) -> Tensor:
        """The summed cross entropy of the ``counted`` words of the text, foreseen at the item's position."""
        foreseen: Tensor = self.network["output"](hidden[:, 1]).log_softmax(dim=1)
        return -(foreseen.gather(1, batch.targets) * counted).sum()


def sees(count: int, device: Any = None) -> Tensor:
    """(count, count) True where a position attends to another: to itself, to those before it, the user to the item."""
    import torch

    found = torch.ones(count, count, dtype=torch.bool, device=device).tril()
    found[0, 1] = True
    return found
