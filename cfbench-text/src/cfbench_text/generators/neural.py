"""What trained generators share: options, training with one stopping rule, decoding and persistence.

Such a generator has a vector for each user and item and writes a text word by word (``SequenceGenerator``); most also
predict the rating (``NeuralGenerator``). The training loss is the mean cross entropy of the words plus further terms
(rows without a text or a rating are excluded from the respective term). After each epoch the mean cross entropy per
word is computed on the validation rows. The epoch with the lowest one is selected, and training stops after
``patience`` epochs without improvement. The criterion is the same for all generators, so that additional loss terms do
not prolong training. Without validation texts the last epoch is used.

There is no weight decay: the adapters of Statement factuality use an L2 of 0.001 on all weights of NRT, with which the
embeddings vanish and every pair gets the same sentence. All generators use Adam with gradient clipping; those with
``variant: paper`` the optimiser and the stopping rule of their authors (``recipes.py``). An unknown user or item has the
mean embedding of all.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.devices.batches import halved
from cfbench_core.devices.choice import Device
from cfbench_core.devices.cuda import torch_device
from cfbench_core.errors import UserError
from cfbench_text.corpus import ExplanationRequests, Rows
from cfbench_text.generators import recipes
from cfbench_text.generators.base import Context, Explanation, Training
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.decoding import decode
from cfbench_text.generators.json_arrays import json_array, json_of
from cfbench_text.generators.language import BEGIN, PAD, UNKNOWN, Vocabulary
from cfbench_text.generators.recipes import Recipe
from cfbench_text.reviews import FloatArray

if TYPE_CHECKING:
    from torch import Tensor

    from cfbench_text.contracts import State

ROWS_AT_ONCE = 256
"""Rows per batch in decoding."""
WEIGHT, SETTINGS = "weight.", "settings"
"""Names in the stored state: the prefix of the weights, and the settings as JSON."""


@dataclass(frozen=True, kw_only=True)
class SequenceConfig:
    """The options of all trained generators."""

    length: Annotated[int, Range(minimum=1), Help("words of a text at most; longer ones are cut")] = 100
    dropout: Annotated[float, Range(minimum=0, below=1), Help("share of values left out in training")] = 0.2
    learning_rate: Annotated[float, Range(above=0), Help("of Adam")] = 1e-3
    batch: Annotated[int, Range(minimum=1), Help("rows in a step")] = 32
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 100
    patience: Annotated[int, Range(minimum=1), Help("epochs without a better validation loss")] = 3
    device: Annotated[Device, Help("auto: that of the experiment")] = "auto"


@dataclass(frozen=True, kw_only=True)
class NeuralConfig(SequenceConfig):
    """Options of generators that predict the rating."""

    rating_weight: Annotated[float, Range(minimum=0), Help("of the squared error of the rating")] = 0.1


@dataclass(frozen=True, kw_only=True)
class WordConfig(NeuralConfig):
    """Options of generators that learn their vocabulary from the training texts."""

    vocabulary: Annotated[int, Range(minimum=1), Help("words that can be written, the most frequent")] = (
        20_000
    )


SHARED = frozenset({"length", "vocabulary", "device"})
"""Options that both variants of a generator have."""


@dataclass(frozen=True)
class Encoding:
    """What a network needs in addition to its weights: the names behind the numbers, and the scale of ratings."""

    vocabulary: Vocabulary
    users: tuple[str, ...]
    items: tuple[str, ...]
    rating: float
    lowest: int
    highest: int

    @staticmethod
    def of(rows: Rows, vocabulary: Vocabulary) -> Encoding:
        ratings = rows.ratings[~np.isnan(rows.ratings)]
        users, items = (tuple(dict.fromkeys(names.tolist())) for names in (rows.users, rows.items))
        low, high = (round(ratings.min()), round(ratings.max())) if len(ratings) else (0, 0)
        mean = float(ratings.mean()) if len(ratings) else 0.0
        return Encoding(vocabulary, users, items, mean, low, high)

    @property
    def levels(self) -> int:
        """The number of whole ratings."""
        return self.highest - self.lowest + 1


class SequenceGenerator(ABC):
    """``fit`` or ``load_state``, then ``explain``. A subclass defines the network."""

    at_once = ROWS_AT_ONCE
    """Rows per batch in decoding and evaluation."""
    learns_unknown = False
    """Whether words outside of the vocabulary are among the targets. They are never written."""

    def __init__(self, config: Any) -> None:
        if find_spec("torch") is None or find_spec("safetensors") is None:
            raise UserError(f"{type(self).__name__} needs torch: pip install 'cfbench-text[torch]'")
        self.config = config
        self.encoding: Encoding | None = None
        self.network: Any = None
        self.history: list[float] = []
        """Validation loss of each epoch."""

    # Defined by a subclass. States are as in ``decoding.py``; hidden states are (..., H).

    @abstractmethod
    def build(self, encoding: Encoding) -> Any:
        """A ``torch.nn.ModuleDict`` with, among others, embeddings "user" and "item", row 0 for the unknown."""

    @abstractmethod
    def loss(self, batch: Batch) -> Loss:
        """Of a batch; with :func:`word_loss` and :func:`rating_loss`."""

    @abstractmethod
    def start(self, users: Tensor, items: Tensor) -> Any:
        """The state before the first word."""

    @abstractmethod
    def step(self, state: Any, words: Tensor) -> tuple[Tensor, Any]:
        """Logits (B, V) of the next word after ``words`` (B,), and the state then."""

    def rating_values(self, users: Tensor, items: Tensor) -> list[float]:
        """(B,) the predicted ratings of the explanations; NaN if none are predicted."""
        return [math.nan] * len(users)

    # Words: those of the training texts, unless a subclass brings its own.

    def learned_words(self, texts: Sequence[str]) -> Vocabulary:
        return Vocabulary.of(texts, self.config.vocabulary)

    def saved_words(self, words: tuple[str, ...]) -> Vocabulary:
        """The vocabulary again from its ``words``."""
        return Vocabulary(words)

    # Learning

    def fit(self, training: Training) -> Mapping[str, Any]:
        import torch

        encoding = self.encoding = Encoding.of(training.train, self.learned_words(training.train.targets))
        with _seeded(int(training.rng.integers(2**62))):
            self.network = self.build(encoding).to(self.device())
            for name in ("user", "item"):
                torch.nn.init.zeros_(self.network[name].weight[0].data)
            self.learn(self._batch_of(training.train), self._batch_of(training.validation), training)
        with torch.no_grad():
            for name in ("user", "item"):
                weight = self.network[name].weight
                weight[0] = weight[1:].mean(dim=0)
        self.network.eval()
        return {"validation loss": self.history}

    def learn(self, train: Batch, validation: Batch, training: Training) -> None:
        self.train(train, validation, training, self.recipe().learning_rate)

    def train(self, train: Batch, validation: Batch, training: Training, learning_rate: float) -> None:
        """See :func:`cfbench_text.generators.recipes.train`."""
        recipes.train(self, train, validation, training, replace(self.recipe(), learning_rate=learning_rate))

    def recipe(self) -> Recipe:
        """How the generator learns."""
        given = self.config
        return Recipe(
            learning_rate=given.learning_rate,
            batch=given.batch,
            epochs=given.epochs,
            patience=given.patience,
        )

    def cross_entropy(self, rows: Batch) -> float:
        """The mean over all words of all rows: the validation loss."""
        import torch

        self.network.eval()
        total, words = 0.0, 0
        with torch.no_grad():
            for start in range(0, len(rows), self.at_once):
                stop = min(start + self.at_once, len(rows))
                loss = self.loss(rows.rows(torch.arange(start, stop, device=self.device())))
                total, words = total + float(loss.of_words), words + loss.words
        return total / max(1, words)

    def _batch_of(self, rows: Rows) -> Batch:
        import torch

        assert self.encoding is not None
        texts = [self.encoding.vocabulary.encode(text, self.config.length) for text in rows.targets]
        targets = np.full((len(texts), max(map(len, texts), default=0) or 1), PAD, dtype=np.int64)
        for place, numbers in enumerate(texts):
            targets[place, : len(numbers)] = numbers
        words = np.roll(targets, 1, axis=1)
        words[:, 0] = BEGIN
        users, items = self._numbers(rows.users.tolist(), rows.items.tolist())
        learned = (targets != PAD) & (self.learns_unknown | (targets != UNKNOWN))
        parts = (rows.ratings.astype(np.float32), words, targets, learned)
        return Batch(users, items, *(torch.from_numpy(part).to(self.device()) for part in parts))

    def _numbers(self, users: Sequence[str], items: Sequence[str]) -> tuple[Tensor, Tensor]:
        import torch

        assert self.encoding is not None
        found = []
        for names, known in ((users, self.encoding.users), (items, self.encoding.items)):
            numbers = {name: place for place, name in enumerate(known, start=1)}
            found.append(torch.tensor([numbers.get(name, 0) for name in names], dtype=torch.long))
        return found[0].to(self.device()), found[1].to(self.device())

    # Answering

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        """Generates one text for each distinct pair of user and item."""
        pairs = list(dict.fromkeys(zip(requests.users.tolist(), requests.items.tolist(), strict=True)))
        written: dict[tuple[str, str], Explanation] = {}
        starts = range(0, len(pairs), self.at_once)
        batches = [range(start, min(start + self.at_once, len(pairs))) for start in starts]
        for some, found in halved(batches, lambda some: self._written([pairs[place] for place in some])):
            written.update(zip((pairs[place] for place in some), found, strict=True))
        return [written[pair] for pair in zip(requests.users.tolist(), requests.items.tolist(), strict=True)]

    def _written(self, pairs: Sequence[tuple[str, str]]) -> list[Explanation]:
        import torch

        assert self.encoding is not None
        users, items = self._numbers(*zip(*pairs, strict=True))
        with torch.inference_mode():
            ratings = self.rating_values(users, items)
            state = self.start(users, items)
            found = decode(self.step, state, len(pairs), self.config.length, self.device())
        texts = [self.encoding.vocabulary.decode(numbers) for numbers in found]
        return [Explanation(text, rating) for text, rating in zip(texts, ratings, strict=True)]

    # Persistence

    def state(self) -> State:
        assert self.encoding is not None
        settings: Mapping[str, Any] = {
            **vars(self.encoding),
            "vocabulary": self.encoding.vocabulary.words,
            "validation loss": self.history,
            **self.settings(),
        }
        weights = {
            WEIGHT + name: value.cpu().numpy().copy() for name, value in self.network.state_dict().items()
        }
        return {SETTINGS: json_array(settings), **weights}

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], training: Training) -> None:
        import torch

        settings = json_of(state[SETTINGS])
        self.history = settings.pop("validation loss")
        words, users, items = (tuple(settings.pop(name)) for name in ("vocabulary", "users", "items"))
        scale = {name: settings.pop(name) for name in ("rating", "lowest", "highest")}
        self.restore(settings, training)
        self.encoding = Encoding(self.saved_words(words), users, items, **scale)
        with _seeded(0):
            self.network = self.build(self.encoding)
        weights = {
            name.removeprefix(WEIGHT): torch.from_numpy(np.array(value))
            for name, value in state.items()
            if name.startswith(WEIGHT)
        }
        self.network.load_state_dict(weights)
        self.network.to(self.device()).eval()

    def settings(self) -> Mapping[str, Any]:
        """What a subclass stores in addition to weights and encoding; JSON."""
        return {}

    def restore(self, settings: Mapping[str, Any], training: Training) -> None:
        """Receives what :meth:`settings` returned, before the network is built."""
        if settings:
            raise UserError(f"{type(self).__name__}: cannot restore {', '.join(settings)}")

    def device(self) -> Any:
        return torch_device(self.config.device)


class NeuralGenerator(SequenceGenerator):
    """A generator that also predicts ratings."""

    @abstractmethod
    def rate(self, users: Tensor, items: Tensor) -> Tensor:
        """(B,) ratings, not cut to their range."""

    def rating_values(self, users: Tensor, items: Tensor) -> list[float]:
        found: list[float] = self._clipped(self.rate(users, items)).tolist()
        return found

    def predict_ratings(self, requests: ExplanationRequests) -> FloatArray:
        import torch

        users, items = self._numbers(requests.users.tolist(), requests.items.tolist())
        with torch.inference_mode():
            return np.asarray(self._clipped(self.rate(users, items)).cpu(), dtype=np.float64)

    def _clipped(self, ratings: Tensor) -> Tensor:
        """Within the range of the training ratings."""
        assert self.encoding is not None
        return ratings.clip(self.encoding.lowest, self.encoding.highest)

    def level(self, ratings: Tensor) -> Tensor:
        """The number of the nearest whole rating, 0 for the lowest; no gradient passes."""
        assert self.encoding is not None
        return (self._clipped(ratings.detach()).round() - self.encoding.lowest).long()


def rating_loss(predicted: Tensor, ratings: Tensor) -> Tensor:
    """The mean squared error of the ratings that are known; 0 if none is."""
    known = ~ratings.isnan()
    return ((predicted - ratings.nan_to_num()) ** 2 * known).sum() / known.sum().clamp(min=1)


def word_loss(output: Any, hidden: Tensor, batch: Batch) -> tuple[Tensor, int]:
    """The summed cross entropy of the targets, from hidden states (B, T, H), and how many targets there are."""
    from torch.nn.functional import cross_entropy

    targets = batch.targets[batch.mask]
    return cross_entropy(output(hidden[batch.mask]), targets, reduction="sum"), len(targets)


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Torch draws from its own stream within the context; its global state is restored afterwards."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
