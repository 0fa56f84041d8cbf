"""``pepler``: a pretrained language model prompted with vectors of user and item.

Li, Zhang, Chen, "Personalized prompt learning for explainable recommendation", TOIS 2023. The inputs of a GPT-2-like
model are [u, v, begin, token, token, ...], where u and v are trained embeddings of user and item; everything else,
including the tokens, is the model's own. The loss is the cross entropy of the tokens plus ``rating_weight`` times the
squared error of the rating that an MLP predicts from u and v (the paper's regularisation by recommendation). As in the
paper, training is sequential: first u, v and the MLP with a frozen language model, then everything (``tune: false``
omits the second part).

``variant: paper`` is the authors' code, see ``pepler_paper.py``. This is ``variant: cfbench``, which departs from it:

- The paper has two ways of training, sequential and with the rating; here they are one. The second part uses a tenth of the
  learning rate, and is discarded if it does not improve the validation loss (the code: the same rate, and it replaces the
  first).
- Vectors of users and items start with the standard deviation of GPT-2's own embeddings, 0.02 (the code: uniform in
  (-0.1, 0.1)).
- The rating is the mean plus the output of an MLP of two layers (the code: three, without the mean), and its squared error
  has the weight 0.1 (the code: 0.01).
- The token that begins a text is given, not predicted.
- Batches of 32 rows of about equal length, clipped gradients, early stopping as in ``neural.py``.

In both, the model's end-of-document token begins and ends a text and is removed from texts, decoding is greedy, and the
variants PEPLER-D (words as prompts) and MF instead of the MLP are not implemented.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from cfbench_core.config import Help, Range
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import UserError
from cfbench_core.specs import ComponentSpec
from cfbench_text.generators import pepler_paper
from cfbench_text.generators.base import Training
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.language import Vocabulary
from cfbench_text.generators.neural import Encoding, NeuralConfig, NeuralGenerator, rating_loss, word_loss
from cfbench_text.generators.pepler_paper import PaperOptions
from cfbench_text.generators.pretrained import State, Tokens, cache_state, embedded, output
from cfbench_text.generators.recipes import Recipe

if TYPE_CHECKING:
    from torch import Tensor

SPEC = ComponentSpec(
    id="text/generator/pepler",
    summary="A pretrained language model prompted with vectors of user and item",
    target=f"{__name__}:PEPLER",
    config=f"{__name__}:Config",
    papers=("li2023pepler",),
    details={"default": False, "pretrained": True},
)


BEFORE = 3
"""Positions that are not the text's: user, item, begin."""
FIRST_NUMBERS = 0.02
"""Standard deviation of prompts before learning: that of GPT-2's own embeddings."""


SHARED = frozenset({"model", "revision", "download", "length", "device"})


@dataclass(frozen=True, kw_only=True)
class Config(NeuralConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    model: Annotated[str, Help("name, folder or package:NAME of a language model of GPT-2's kind")]
    revision: Annotated[str | None, Help("commit of a model on the hub")] = None
    download: Annotated[bool, Help("whether a model that is not on this machine is fetched")] = False
    dropout: Annotated[float, Range(minimum=0, below=1), Help("in place of the model's own")] = 0.1
    tune: Annotated[bool, Help("learn the language model itself, too, after the prompts")] = True
    hidden: Annotated[int, Range(minimum=1), Help("of the MLP that predicts ratings")] = 400
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, SHARED)


class PEPLER(NeuralGenerator):
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.published = config.variant == "paper"

    def recipe(self) -> Recipe:
        return self.config.paper.recipe() if self.published else super().recipe()

    def learned_words(self, texts: Sequence[str]) -> Vocabulary:
        return Tokens(self._loaded().tokenizer)

    def saved_words(self, words: tuple[str, ...]) -> Vocabulary:
        return Tokens(self._loaded().tokenizer)

    def _loaded(self) -> Any:
        from cfbench_text.models.loading import Source, load

        given = self.config
        where = Source(model=given.model, revision=given.revision, download=given.download, device="cpu")
        loaded = load("AutoModelForCausalLM", where)
        if loaded.limit < BEFORE + given.length:
            raise UserError(
                f"pepler: {given.model} reads {loaded.limit} tokens; length may be {loaded.limit - BEFORE} at most"
            )
        return loaded

    def build(self, encoding: Encoding) -> Any:
        from torch import nn

        model = copy.deepcopy(self._loaded().model)
        d = model.get_input_embeddings().embedding_dim
        network: Any = nn.ModuleDict(
            {
                "user": nn.Embedding(len(encoding.users) + 1, d),
                "item": nn.Embedding(len(encoding.items) + 1, d),
                "model": model,
            }
        )
        if self.published:
            network["rating"] = pepler_paper.rating_network(self.config.paper, d)
            for name in ("user", "item"):
                nn.init.uniform_(network[name].weight, -pepler_paper.RANGE, pepler_paper.RANGE)
            return network
        h = self.config.hidden
        network["rating"] = nn.Sequential(
            nn.Linear(2 * d, h), nn.Sigmoid(), nn.Linear(h, h), nn.Sigmoid(), nn.Linear(h, 1)
        )
        for part in model.modules():
            if isinstance(part, nn.Dropout):
                part.p = self.config.dropout
        for name in ("user", "item"):
            nn.init.normal_(network[name].weight, 0.0, FIRST_NUMBERS)
        return network

    def learn(self, train: Batch, validation: Batch, training: Training) -> None:
        """Trains the prompts, then everything; the second part is discarded if it does not improve the validation loss."""
        if self.published:
            self._learn_as_published(train, validation, training)
            return
        super().learn(train, validation, training)
        if self.config.tune:
            self.network["model"].requires_grad_(True)
            self.train(train, validation, training, self.config.learning_rate / 10)
            self.network["model"].requires_grad_(False)

    def _learn_as_published(self, train: Batch, validation: Batch, training: Training) -> None:
        first: list[float] = []
        if not self.config.paper.rates:
            super().learn(train, validation, training)
            first, self.history = self.history, []  # the second part replaces the first even if it is worse
        self.network["model"].requires_grad_(True)
        super().learn(train, validation, training)
        self.network["model"].requires_grad_(False)
        self.history = first + self.history

    def rate(self, users: Tensor, items: Tensor) -> Tensor:
        assert self.encoding is not None
        found: Tensor = self.network["rating"](self._pair(users, items).flatten(1))[:, 0]
        if self.published:
            return found if self.config.paper.rates else found.new_full(found.shape, self.encoding.rating)
        return self.encoding.rating + found

    def _pair(self, users: Tensor, items: Tensor) -> Tensor:
        """(B, 2, d) the prompts."""
        import torch

        return torch.stack([self.network["user"](users), self.network["item"](items)], dim=1)

    def _embedded(self, numbers: Tensor) -> Tensor:
        """The model's embeddings of tokens; BEGIN as the end of a document."""
        return embedded(self.network["model"], numbers, self._ends()[0])

    def _output(self, logits: Tensor) -> Tensor:
        """Logits of the numbers of words, from those of the model's tokens."""
        return output(logits, self._ends())

    def _ends(self) -> tuple[int, ...]:
        assert self.encoding is not None and isinstance(self.encoding.vocabulary, Tokens)
        return self.encoding.vocabulary.ends

    def start(self, users: Tensor, items: Tensor) -> State:
        result = self.network["model"](inputs_embeds=self._pair(users, items), use_cache=True)
        return cache_state(result.past_key_values)

    def step(self, state: State, words: Tensor) -> tuple[Tensor, State]:
        from transformers import DynamicCache

        cache = DynamicCache(state)
        x = self._embedded(words)[:, None]
        result = self.network["model"](inputs_embeds=x, past_key_values=cache, use_cache=True)
        return self._output(result.logits[:, -1]), cache_state(result.past_key_values)

    def logits(self, users: Tensor, items: Tensor, words: Tensor) -> Tensor:
        """(B, T, V) those of the model for the token after each word, all positions at once."""
        return self._logits(users, items, words)[:, 2:]

    def _logits(self, users: Tensor, items: Tensor, words: Tensor) -> Tensor:
        """(B, 2 + T, V) those after user, item and each word."""
        import torch

        x = torch.cat([self._pair(users, items), self._embedded(words)], dim=1)
        found: Tensor = self.network["model"](inputs_embeds=x, use_cache=False).logits
        return found

    def loss(self, batch: Batch) -> Loss:
        logits = self._logits(batch.users, batch.items, batch.words)
        of_words, words = word_loss(self._output, logits[:, 2:], batch)
        if self.published:
            return self._published_loss(batch, logits[:, 1], of_words, words)
        of_rating = rating_loss(self.rate(batch.users, batch.items), batch.ratings)
        return Loss(of_words / max(1, words) + self.config.rating_weight * of_rating, of_words, words)

    def _published_loss(self, batch: Batch, of_item: Tensor, of_words: Tensor, words: int) -> Loss:
        """With the token that begins a text among the targets."""
        options = self.config.paper
        of_begin, texts = pepler_paper.loss_of_begin(of_item, self._ends()[0], batch)
        of_words, words = of_words + of_begin, words + texts
        of_rating = of_words.new_zeros(())
        if options.rates:
            of_rating = rating_loss(self.rate(batch.users, batch.items), batch.ratings)
        total = of_words / max(1, words) + options.rating_weight * of_rating
        return Loss(total, of_words, words, of_rating)
