"""``xrec``: a frozen language model conditioned on vectors and profiles of user and item.

Ma, Ren, Huang, "XRec: large language models for explainable recommendation", EMNLP (Findings) 2024. Three parts:

1. vectors of users and items, trained by LightGCN on the training rows (``collaborative.py``) and then frozen;
2. two mixtures of experts, one for users and one for items, that map the vectors into the embedding space of the
   language model (``experts.py``). Only these are trained on the texts, with the cross entropy of the explanation;
3. a prompt (``prompts.py``) with two positions for the adapted vectors a and with profiles of user and item
   (``profiles.py``). a replaces the embedding at its position and, with ``inject: layers``, is added again to the input
   of every layer's attention there, so that long texts do not lose it.

The defaults are those of the paper and its code: one epoch, Adam with 1e-4 and one row per step, 64 dimensions, 4
graph layers, 8 experts with dropout 0.2, 128 tokens. The epoch is selected as in ``neural.py``.

``variant: paper`` is what the code of its authors (github HKUDS/XRec) does in addition to these:

- the vectors are the sum over the layers of the graph (LightGCN and ``cfbench``: the mean), with a learning rate of 0.001
  (5e-3), L2 of 1e-6 on the propagated vectors of a batch, undivided (1e-4 on the embeddings, for each row), drawn uniformly
  at first (normal; Xavier's range in both);
- the adapted vectors are added to the projected queries, keys and values.

Departs from the paper, in both variants unless it is said:

- Any decoder of ``transformers`` can be used (the paper: Llama-2-7b-chat). The authors' code adds the vectors to the
  projected queries, keys and values, W h + a, which requires that these are as wide as the hidden states (Llama-2-7b,
  but not Llama-3 or SmolLM2). With ``variant: cfbench`` it is W (h + a). Training is less stable than with the first
  layer alone: with SmolLM2-135M a learning rate of 1e-2 increases the loss at once, while ``inject: embeddings`` tolerates
  it.
- The vectors are those of the epoch with the lowest validation loss (the code: the highest recall).
- Gradients are clipped, the model is not quantised (the code: 8 bits).
- Profiles: by default the most frequent statements of the training rows; with ``profiles: llm`` the same model writes
  them. Statement profiles exclude what the user wrote about the explained item. Item titles are not in the prompt.
- The prompt describes the form of the suite's paragraphs. SmolLM2-135M follows it at once; otherwise it writes about
  "the user's response", and the adapters would have to learn the form from many thousand rows.
- No tokens are added to the model: the two positions are identified by their index.
- Decoding is greedy, and the logits of all tokens that end a response are combined.

Departs from the adapter of Statement factuality, which cuts texts out of the decoded prompt by its length, so that they
are empty for long prompts. Here only the new tokens are decoded, a prompt always leaves room for ``length`` of them, and
the removed profile sentences are counted. Rows are padded on the left and positions are counted from their first token,
so a text does not depend on the other rows. XRec predicts no rating.

The language model is not stored, only its name and the digest of its files; a model with other files is rejected.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from cfbench_core.config import Help, Range
from cfbench_core.config.variants import Variant, check_variant
from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.specs import ComponentSpec
from cfbench_text.corpus import ExplanationRequests, Rows
from cfbench_text.generators.base import Context, Explanation, Training
from cfbench_text.generators.batches import Batch, Loss
from cfbench_text.generators.injection import attentions, injected, projections
from cfbench_text.generators.language import Vocabulary
from cfbench_text.generators.neural import Encoding, SequenceConfig, SequenceGenerator, word_loss
from cfbench_text.generators.pretrained import State, Tokens, cache_state, embedded, output
from cfbench_text.generators.profiles import (
    NoProfiles,
    Profiles,
    StatementProfiles,
    WrittenProfiles,
    write_profiles,
)
from cfbench_text.generators.prompts import Prompts

if TYPE_CHECKING:
    from torch import Tensor

    from cfbench_text.generators.collaborative import Settings

SPEC = ComponentSpec(
    id="text/generator/xrec",
    summary="A frozen language model conditioned on graph vectors and profiles of user and item",
    target=f"{__name__}:XRec",
    config=f"{__name__}:Config",
    papers=("ma2024xrec", "he2020lightgcn"),
    details={"default": False, "pretrained": True},
)


MAY_DIFFER = ("torch", "transformers", "device")


@dataclass(frozen=True, kw_only=True)
class PaperOptions:
    graph_learning_rate: Annotated[float, Range(above=0), Help("of Adam, for the vectors")] = 1e-3
    graph_l2: Annotated[float, Range(minimum=0), Help("on the vectors of a batch")] = 1e-6


OF_CFBENCH = frozenset({"inject", "graph_learning_rate"})
"""Options without a meaning in variant: paper."""


@dataclass(frozen=True, kw_only=True)
class Config(SequenceConfig):
    variant: Annotated[Variant, Help("paper: as its authors published it")] = "cfbench"
    model: Annotated[str, Help("name, folder, .gguf file or package:NAME of a decoder")]
    revision: Annotated[str | None, Help("commit of a model on the hub")] = None
    download: Annotated[bool, Help("whether a model that is not on this machine is fetched")] = False
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], Help("of its weights; the narrow ones differ by batch")
    ] = "float32"
    inject: Annotated[
        Literal["layers", "embeddings"], Help("where the vectors go: every layer, or the first alone")
    ] = "layers"
    profiles: Annotated[Literal["statements", "llm", "none"], Help("the profiles in the prompt")] = (
        "statements"
    )
    statements: Annotated[int, Range(minimum=1), Help("of each sentiment in a profile, at most")] = 4
    review_words: Annotated[int, Range(minimum=1), Help("of reviews that a written profile is made of")] = 600
    profile_tokens: Annotated[int, Range(minimum=1), Help("the longest written profile")] = 128
    experts: Annotated[int, Range(minimum=1), Help("linear maps of each adapter")] = 8
    dimensions: Annotated[int, Range(minimum=1), Help("of the vectors of users and items")] = 64
    layers: Annotated[int, Range(minimum=0), Help("steps over the graph of users and items")] = 4
    graph_epochs: Annotated[int, Range(minimum=1), Help("at most, for the vectors")] = 300
    graph_learning_rate: Annotated[float, Range(above=0), Help("of Adam, for the vectors")] = 5e-3
    length: Annotated[int, Range(minimum=1), Help("tokens of a text at most; longer ones are cut")] = 128
    learning_rate: Annotated[float, Range(above=0), Help("of Adam, for the adapters")] = 1e-4
    batch: Annotated[int, Range(minimum=1), Help("rows in a step")] = 1
    epochs: Annotated[int, Range(minimum=1), Help("at most")] = 1
    rows_at_once: Annotated[int, Range(minimum=1), Help("rows that are written together")] = 16
    paper: Annotated[PaperOptions, Help("options of variant: paper")] = field(default_factory=PaperOptions)

    def __post_init__(self) -> None:
        check_variant(self, frozenset(vars(self)) - OF_CFBENCH)


class XRec(SequenceGenerator):
    config: Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.at_once = config.rows_at_once
        self.prompts: Prompts | None = None
        self.profiles: Profiles = NoProfiles()
        self.metadata: dict[str, Any] = {}
        """Counts and losses of the training, for the summary."""

    # The language model

    def _source(self) -> Any:
        from cfbench_text.models.loading import Source

        given = self.config
        return Source(
            model=given.model,
            revision=given.revision,
            download=given.download,
            device=given.device,
            dtype=given.dtype,
            batch=given.rows_at_once,
        )

    def _loaded(self) -> Any:
        from cfbench_text.models.loading import load

        return load("AutoModelForCausalLM", self._source())

    def learned_words(self, texts: Sequence[str]) -> Vocabulary:
        loaded = self._loaded()
        result = getattr(loaded.model.generation_config, "eos_token_id", None)
        return Tokens(loaded.tokenizer, result if isinstance(result, list) else [])

    def saved_words(self, words: tuple[str, ...]) -> Vocabulary:
        return self.learned_words(())

    # Learning

    def build(self, encoding: Encoding) -> Any:
        from torch import nn

        from cfbench_text.generators.experts import mixture

        given, model = self.config, self._loaded().model
        if given.variant == "paper":
            projections(model)  # raises before the training if they are narrower
        elif given.inject == "layers":
            attentions(model)
        width = model.get_input_embeddings().embedding_dim
        network: Any = nn.ModuleDict()
        for kind, names in (("user", encoding.users), ("item", encoding.items)):
            network[kind] = nn.Embedding(len(names) + 1, given.dimensions).requires_grad_(False)
            network[f"of {kind}"] = mixture(given.dimensions, width, given.experts)
        return network

    def learn(self, train: Batch, validation: Batch, training: Training) -> None:
        self._learn_vectors(train, validation, training)
        self.profiles = self._profiles_of(training.train)
        self._prompt_with(training)
        lost = [self._prompts.of(*pair).lost for pair in self._names(train.users, train.items)]
        self.metadata["training prompts"] = {"shortened": int(np.count_nonzero(lost)), "sentences": sum(lost)}
        if bool(train.mask.any()):
            super().learn(_with_text(train), _with_text(validation), training)

    def _learn_vectors(self, train: Batch, validation: Batch, training: Training) -> None:
        import torch

        from cfbench_text.generators.collaborative import learned_vectors

        assert self.encoding is not None
        pairs = [
            torch.stack([rows.users, rows.items], dim=1).cpu().numpy() - 1 for rows in (train, validation)
        ]
        losses: list[float] = []
        vectors = learned_vectors(
            pairs[0],
            pairs[1][(pairs[1] >= 0).all(axis=1)],
            (len(self.encoding.users), len(self.encoding.items)),
            self._graph_settings(),
            training.rng,
            self.device(),
            losses.append,
        )
        self.metadata["validation loss of the vectors"] = losses
        with torch.no_grad():
            for kind, found in zip(("user", "item"), vectors, strict=True):
                self.network[kind].weight[1:] = found
                self.network[kind].weight[0] = found.mean(dim=0)

    def _graph_settings(self) -> Settings:
        from cfbench_text.generators.collaborative import Settings

        given = self.config
        if given.variant == "cfbench":
            rate = given.graph_learning_rate
            return Settings(given.dimensions, given.layers, given.graph_epochs, rate, given.patience)
        rate, l2 = given.paper.graph_learning_rate, given.paper.graph_l2
        return Settings(
            given.dimensions, given.layers, given.graph_epochs, rate, given.patience, l2, published=True
        )

    def _profiles_of(self, rows: Rows) -> Profiles:
        given = self.config
        if given.profiles == "none":
            return NoProfiles()
        if given.profiles == "statements":
            return StatementProfiles(rows, given.statements)
        from cfbench_text.models.chat import Chat
        from cfbench_text.models.chat_types import ChatSource

        chat = Chat(ChatSource(**vars(self._source())))
        found, counts = write_profiles(rows, chat, given.review_words, given.profile_tokens)
        self.metadata["written profiles"] = counts
        return found

    def _prompt_with(self, training: Training) -> None:
        assert self.encoding is not None and isinstance(self.encoding.vocabulary, Tokens)
        room = self._loaded().limit - self.config.length
        self.prompts = Prompts(self.encoding.vocabulary, training.domain.title, self.profiles, room)

    # Computing

    @property
    def _prompts(self) -> Prompts:
        assert self.prompts is not None
        return self.prompts

    def _names(self, users: Tensor, items: Tensor) -> list[tuple[str, str]]:
        """Names of users and items by their numbers; the empty name for one that was not in training."""
        assert self.encoding is not None
        of_users, of_items = ("", *self.encoding.users), ("", *self.encoding.items)
        return [(of_users[u], of_items[i]) for u, i in zip(users.tolist(), items.tolist(), strict=True)]

    def _prefix(self, users: Tensor, items: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The prompts without their last token, padded on the left.

        Returns:
            The embeddings (B, P, d), which of them are there (B, P), and what is added in each layer (B, P, d).
        """
        import torch

        from cfbench_text.generators.experts import adapted

        model = self._loaded().model
        prompts = [self._prompts.of(*pair) for pair in self._names(users, items)]
        width = max(len(prompt.tokens) for prompt in prompts) - 1
        before = [width + 1 - len(prompt.tokens) for prompt in prompts]
        numbers = torch.full((len(prompts), width), self._prompts.last)
        there = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, (prompt, blank) in enumerate(zip(prompts, before, strict=True)):
            numbers[row, blank:] = torch.tensor(prompt.tokens[:-1])
            there[row, blank:] = 1
        x = model.get_input_embeddings()(numbers.to(self.device()))
        added = torch.zeros_like(x)
        rows = torch.arange(len(prompts))
        for kind, indices in (("user", users), ("item", items)):
            places = torch.tensor([getattr(p, kind) + b for p, b in zip(prompts, before, strict=True)])
            vectors = adapted(self.network[f"of {kind}"], self.network[kind](indices), self.config.dropout)
            x = x.index_put((rows, places), vectors.to(x.dtype))
            added = added.index_put((rows, places), vectors.to(x.dtype))
        return x, there.to(self.device()), added

    def _forward(self, x: Tensor, there: Tensor, added: Tensor | None, **more: Any) -> Any:
        """The model's output for embeddings x that follow what is in a cache, if any."""
        model = self._loaded().model
        if "position_ids" in inspect.signature(model.forward).parameters:
            more["position_ids"] = (there.cumsum(dim=1) - 1).clamp(min=0)[:, -x.shape[1] :]
        published = self.config.variant == "paper"
        reads: list[Any] = []
        if added is not None and (published or self.config.inject == "layers"):
            reads = projections(model) if published else attentions(model)
        with injected(reads, added, behind=published):
            return model(inputs_embeds=x, attention_mask=there, **more)

    def _embedded(self, numbers: Tensor) -> Tensor:
        """The model's embeddings of tokens; BEGIN as the last token of the prompt."""
        return embedded(self._loaded().model, numbers, self._prompts.last)

    def _output(self, logits: Tensor) -> Tensor:
        """Logits of the numbers of words, from those of the model's tokens."""
        assert self.encoding is not None and isinstance(self.encoding.vocabulary, Tokens)
        return output(logits.float(), self.encoding.vocabulary.ends)

    def start(self, users: Tensor, items: Tensor) -> tuple[Tensor, State]:
        x, there, added = self._prefix(users, items)
        result = self._forward(x, there, added, use_cache=True, logits_to_keep=1)
        return there, cache_state(result.past_key_values)

    def step(self, state: tuple[Tensor, State], words: Tensor) -> tuple[Tensor, tuple[Tensor, State]]:
        import torch
        from transformers import DynamicCache

        there, layers = state
        there = torch.cat([there, there.new_ones(len(there), 1)], dim=1)
        x = self._embedded(words)[:, None]
        result = self._forward(x, there, None, past_key_values=DynamicCache(layers), use_cache=True)
        return self._output(result.logits[:, -1]), (there, cache_state(result.past_key_values))

    def logits(self, users: Tensor, items: Tensor, words: Tensor) -> Tensor:
        """(B, T, V) those of the model for the token after each word, all positions at once."""
        import torch
        from torch.nn.functional import pad

        x, there, added = self._prefix(users, items)
        count = words.shape[1]
        x = torch.cat([x, self._embedded(words)], dim=1)
        there, added = pad(there, (0, count), value=1), pad(added, (0, 0, 0, count))
        found: Tensor = self._forward(x, there, added, use_cache=False, logits_to_keep=count).logits
        return found

    def loss(self, batch: Batch) -> Loss:
        logits = self.logits(batch.users, batch.items, batch.words)
        of_words, words = word_loss(self._output, logits, batch)
        return Loss(of_words / max(1, words), of_words, words)

    # Answering

    def explain(self, requests: ExplanationRequests, context: Context) -> Sequence[Explanation]:
        """Batches rows with prompts of similar length, which saves padding and does not change the texts."""
        pairs = self._names(*self._numbers(requests.users.tolist(), requests.items.tolist()))
        prompts = [self._prompts.of(*pair) for pair in pairs]
        shortened = sum(prompt.lost > 0 for prompt in prompts)
        if shortened:
            warnings.warn(
                f"xrec: {shortened} of {len(requests)} prompts were too long for the model;"
                f" {sum(prompt.lost for prompt in prompts)} sentences of profiles were left out",
                ResultWarning,
                stacklevel=2,
            )
        order = np.argsort([len(prompt.tokens) for prompt in prompts], kind="stable")
        units = tuple(requests.units[place] for place in order.tolist())
        arrays = (requests.users[order], requests.items[order], requests.times[order], requests.places[order])
        written = super().explain(ExplanationRequests(units, *arrays), context)
        found = dict(zip(order.tolist(), written, strict=True))
        return [found[place] for place in range(len(requests))]

    # Persistence

    def fit(self, training: Training) -> Mapping[str, Any]:
        return {**super().fit(training), **self.metadata}

    def settings(self) -> Mapping[str, Any]:
        from cfbench_text.models.loading import signature

        profiles = vars(self.profiles) if isinstance(self.profiles, WrittenProfiles) else None
        return {"model": signature(self._source()), "profiles": profiles, "metadata": self.metadata}

    def restore(self, settings: Mapping[str, Any], training: Training) -> None:
        self._check(settings["model"])
        self.metadata = settings["metadata"]
        stored = settings["profiles"]
        self.profiles = WrittenProfiles(**stored) if stored else self._profiles_of(training.train)

    def load_state(self, state: Mapping[str, np.ndarray[Any, Any]], training: Training) -> None:
        super().load_state(state, training)
        self._prompt_with(training)

    def _check(self, learned_with: Mapping[str, str]) -> None:
        """Raises a UserError unless the language model is the one with which the adapters were trained."""
        from cfbench_text.models.loading import signature

        found = signature(self._source())
        other = [
            name for name in learned_with if name not in MAY_DIFFER and learned_with[name] != found.get(name)
        ]
        if other:
            raise UserError(
                f"xrec: learned with another model than {self.config.model}: {other[0]} was"
                f" {learned_with[other[0]]}, is {found.get(other[0])}; use that model, or train again"
            )


def _with_text(rows: Batch) -> Batch:
    """Those rows that have a text to learn."""
    chosen = rows.mask.any(dim=1).nonzero()[:, 0]
    return rows.rows(chosen) if len(chosen) else rows
