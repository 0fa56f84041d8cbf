"""``nrt``: neural rating regression with tips, an RNN whose initial state encodes user, item and predicted rating.

Li, Wang, Ren, Bing, Lam, "Neural rating regression with abstractive tips generation for recommendation", SIGIR
2017. With u and v the embeddings of user and item,

    h = sigmoid(W_1 [u; v] + b_1),   h' = sigmoid(W_2 h + b_2),   r = mean + w . h' + b,
    s_0 = tanh(W_u u + W_v v + W_r e(r) + b_s),   s_t = GRU(s_{t-1}, word_t),   p(word_{t+1}) = softmax(W_o s_t),

where e(r) is the rounded predicted rating in one-hot encoding. The loss is the cross entropy of the words plus
``rating_weight`` times the squared error of r.

``variant: paper`` is the public implementation, see ``nrt_paper.py``. This is ``variant: cfbench``, which departs from the
paper: no third task (the words of the whole review), because generators of this suite learn from
statements only; the rating is predicted as the difference to the mean; greedy decoding instead of beam search; no L2
(see ``neural.py``). Dimensions are smaller than the paper's 300 and 400.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.specs import ComponentSpec
from cfbench_text.generators import nrt_paper
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.neural import (
    SHARED,
    Encoding,
    NeuralGenerator,
    WordConfig,
    rating_loss,
    word_loss,
)
from cfbench_text.generators.nrt_paper import PaperOptions
from cfbench_text.generators.recipes import Recipe

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="text/generator/nrt",
    summary="A recurrent network initialised with user, item and the predicted rating",
    target=f"{__name__}:NRT",
    config=f"{__name__}:Config",
    papers=("li2017nrt",),
    details={"default": False},
)


@dataclass(frozen=True, kw_only=True)
class Config(WordConfig):
    variant: Annotated[Variant, Help("paper: the public implementation")] = "cfbench"
    dimensions: Annotated[int, Range(minimum=1), Help("of the embeddings")] = 128
    hidden: Annotated[int, Range(minimum=1), Help("of the hidden states")] = 256
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 2e-3
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, SHARED)


class NRT(NeuralGenerator):
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.published = config.variant == "paper"
        self.learns_unknown = self.published

    def recipe(self) -> Recipe:
        return self.config.paper.recipe() if self.published else super().recipe()

    def build(self, encoding: Encoding) -> Any:
        from torch import nn

        if self.published:
            return nrt_paper.build(self.config.paper, encoding)
        d, h = self.config.dimensions, self.config.hidden
        network: Any = nn.ModuleDict(
            {
                "user": nn.Embedding(len(encoding.users) + 1, d),
                "item": nn.Embedding(len(encoding.items) + 1, d),
                "rating": nn.Sequential(
                    nn.Linear(2 * d, h), nn.Sigmoid(), nn.Linear(h, h), nn.Sigmoid(), nn.Linear(h, 1)
                ),
                "first": nn.Linear(2 * d, h),
                "first of rating": nn.Embedding(encoding.levels, h),
                "word": nn.Embedding(len(encoding.vocabulary), d),
                "gru": nn.GRU(d, h, batch_first=True),
                "dropout": nn.Dropout(self.config.dropout),
                "output": nn.Linear(h, len(encoding.vocabulary)),
            }
        )
        for name in ("user", "item", "word", "first of rating"):
            nn.init.uniform_(network[name].weight, -0.1, 0.1)
        return network

    def rate(self, users: Tensor, items: Tensor) -> Tensor:
        assert self.encoding is not None
        found: Tensor = self.network["rating"](self._pair(users, items))[:, 0]
        return found if self.published else self.encoding.rating + found

    def level(self, ratings: Tensor) -> Tensor:
        assert self.encoding is not None
        return nrt_paper.level(ratings, self.encoding) if self.published else super().level(ratings)

    def _pair(self, users: Tensor, items: Tensor) -> Tensor:
        import torch

        return torch.cat([self.network["user"](users), self.network["item"](items)], dim=1)

    def start(self, users: Tensor, items: Tensor) -> Tensor:
        """(B, H) the first hidden state."""
        return self._start(users, items, self.rate(users, items))

    def _start(self, users: Tensor, items: Tensor, ratings: Tensor) -> Tensor:
        of_rating: Tensor = self.network["first of rating"](self.level(ratings))
        of_pair: Tensor = self.network["first"](self._pair(users, items))
        return (of_pair + of_rating).tanh()

    def step(self, state: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        hidden, last = self.network["gru"](self.network["word"](words)[:, None], state[None].contiguous())
        return self.network["output"](hidden[:, 0]), last[0]

    def loss(self, batch: Batch) -> Loss:
        ratings = self.rate(batch.users, batch.items)
        first = self._start(batch.users, batch.items, ratings)
        if self.published:
            return nrt_paper.loss(self.network, first, ratings, batch, self.config.paper.rating_weight)
        drop = self.network["dropout"]
        hidden, _ = self.network["gru"](drop(self.network["word"](batch.words)), first[None].contiguous())
        of_words, words = word_loss(self.network["output"], drop(hidden), batch)
        of_rating = rating_loss(ratings, batch.ratings)
        return Loss(of_words / max(1, words) + self.config.rating_weight * of_rating, of_words, words)
