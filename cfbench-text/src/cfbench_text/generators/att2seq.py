"""``att2seq``: an LSTM that generates words from attributes, with attention to the attributes at every word.

Dong, Huang, Wei, Lapata, Zhou, Xu, "Learning to generate product reviews from attributes", EACL 2017. With g_1..g_K
the embeddings of user, item and, optionally, rating, an LSTM of two layers starts from their encoding,

    a = tanh(W_e [g_1; ..; g_K] + b_e), one part of it for each layer,   h_t = LSTM(h_{t-1}, word_t),

and every word is chosen with attention to the attributes,

    s_tk ~ exp(tanh(w . [h_t; g_k])),   c_t = sum_k s_tk g_k,   p(word_{t+1}) = softmax(W_o tanh(W_c c_t + W_h h_t)).

The published adapters of Statement factuality have no attention (``attention: false``). An MLP predicts a rating from
the embeddings; the paper does not need one, because ratings are given there. With ``rating: true`` the true rating is
an attribute in training and the predicted rating at test time, when the true one is unknown. Further departures: greedy
decoding instead of beams, Adam instead of RMSProp, and smaller hidden states (256 instead of 512).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.specs import ComponentSpec
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.neural import Encoding, NeuralGenerator, WordConfig, rating_loss, word_loss

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="text/generator/att2seq",
    summary="A recurrent network that attends to user and item at every word",
    target=f"{__name__}:Att2Seq",
    config=f"{__name__}:Config",
    papers=("dong2017att2seq",),
    details={"default": False},
)


State = tuple["Tensor", "Tensor", "Tensor"]
"""Hidden states and cells (B, layers, H), and the attributes (B, K, d)."""


@dataclass(frozen=True, kw_only=True)
class Config(WordConfig):
    dimensions: Annotated[int, Range(minimum=1), Help("of the embeddings of attributes")] = 64
    hidden: Annotated[int, Range(minimum=1), Help("of words and hidden states")] = 256
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 2e-3
    layers: Annotated[int, Range(minimum=1), Help("of the LSTM")] = 2
    attention: Annotated[bool, Help("look back at the attributes at every word")] = True
    rating: Annotated[bool, Help("the rating is an attribute, too")] = False


class Att2Seq(NeuralGenerator):
    config: Config

    def build(self, encoding: Encoding) -> Any:
        from torch import nn

        given, d, h = self.config, self.config.dimensions, self.config.hidden
        dropout = given.dropout if given.layers > 1 else 0.0
        network: Any = nn.ModuleDict(
            {
                "user": nn.Embedding(len(encoding.users) + 1, d),
                "item": nn.Embedding(len(encoding.items) + 1, d),
                "level": nn.Embedding(encoding.levels, d),
                "rating": nn.Sequential(nn.Linear(2 * d, h), nn.Sigmoid(), nn.Linear(h, 1)),
                "encoder": nn.Linear((3 if given.rating else 2) * d, given.layers * h),
                "word": nn.Embedding(len(encoding.vocabulary), h),
                "lstm": nn.LSTM(h, h, given.layers, batch_first=True, dropout=dropout),
                "score": nn.Linear(h + d, 1, bias=False),
                "context": nn.Linear(d, h, bias=False),
                "mixed": nn.Linear(h, h),
                "dropout": nn.Dropout(given.dropout),
                "output": nn.Linear(h, len(encoding.vocabulary)),
            }
        )
        for name in ("user", "item", "level", "word"):
            nn.init.uniform_(network[name].weight, -0.1, 0.1)
        return network

    def rate(self, users: Tensor, items: Tensor) -> Tensor:
        import torch

        assert self.encoding is not None
        pair = torch.cat([self.network["user"](users), self.network["item"](items)], dim=1)
        found: Tensor = self.network["rating"](pair)[:, 0]
        return self.encoding.rating + found

    def start(self, users: Tensor, items: Tensor) -> State:
        return self._start(users, items, self.rate(users, items))

    def _start(self, users: Tensor, items: Tensor, ratings: Tensor) -> State:
        import torch

        known = [self.network["user"](users), self.network["item"](items)]
        if self.config.rating:
            known.append(self.network["level"](self.level(ratings)))
        code = self.network["encoder"](torch.cat(known, dim=1)).tanh()
        hidden = code.view(len(users), self.config.layers, self.config.hidden)
        return hidden, torch.zeros_like(hidden), torch.stack(known, dim=1)

    def step(self, state: State, words: Tensor) -> tuple[Tensor, State]:
        top, (hidden, cells) = self._lstm(self.network["word"](words)[:, None], state)
        logits = self.network["output"](self.attended(top, state[2]))[:, 0]
        return logits, (hidden, cells, state[2])

    def _lstm(self, x: Tensor, state: State) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        first = tuple(part.transpose(0, 1).contiguous() for part in state[:2])
        top, (hidden, cells) = self.network["lstm"](x, first)
        return top, (hidden.transpose(0, 1), cells.transpose(0, 1))

    def attended(self, top: Tensor, attributes: Tensor) -> Tensor:
        """(B, T, H) hidden states with the attributes that each looks back at."""
        if not self.config.attention:
            return top
        shares = self.shares(top, attributes)
        context: Tensor = self.network["context"](shares @ attributes)
        own: Tensor = self.network["mixed"](top)
        return (context + own).tanh()

    def shares(self, top: Tensor, attributes: Tensor) -> Tensor:
        """(B, T, K) how much of each attribute is looked at; each row sums to 1.

        The weights of w act on h and g apart, so no (B, T, K, H + d) of all pairs is built.
        """
        weight, size = self.network["score"].weight, self.config.hidden
        of_hidden: Tensor = top @ weight[0, :size]
        of_attribute: Tensor = attributes @ weight[0, size:]
        return (of_hidden[:, :, None] + of_attribute[:, None, :]).tanh().softmax(dim=2)

    def loss(self, batch: Batch) -> Loss:
        drop, rated = self.network["dropout"], self.rate(batch.users, batch.items)
        ratings = batch.ratings.where(~batch.ratings.isnan(), rated)
        state = self._start(batch.users, batch.items, ratings if self.network.training else rated)
        top, _ = self._lstm(drop(self.network["word"](batch.words)), state)
        mixed = drop(self.attended(top, state[2]))
        of_words, words = word_loss(self.network["output"], mixed, batch)
        of_rating = rating_loss(rated, batch.ratings)
        return Loss(of_words / max(1, words) + self.config.rating_weight * of_rating, of_words, words)
