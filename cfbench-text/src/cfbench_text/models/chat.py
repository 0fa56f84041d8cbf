"""Asking a chat model, at an endpoint or on this machine, with greedy decoding; answers are kept by hash."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from cfbench_core.config import Help, Range
from cfbench_core.hashing import digest
from cfbench_text.models.loading import Source
from cfbench_text.models.response_cache import ResponseCache


@dataclass(frozen=True, kw_only=True)
class ChatSource(Source):
    """A chat model. Defaults are those of paper 004, which extracts with Llama-3-8B-Instruct."""

    model: Annotated[str, Help("name, folder, .gguf file, package:NAME; or what the endpoint calls it")] = (
        "meta-llama/Meta-Llama-3-8B-Instruct"
    )
    endpoint: Annotated[
        str | None, Help("address of an OpenAI-compatible server, up to /v1; none: the model runs here")
    ] = None
    key: Annotated[str, Help("environment variable with the endpoint's key, if it wants one")] = (
        "OPENAI_API_KEY"
    )
    requests: Annotated[int, Range(minimum=1), Help("questions that the endpoint is asked at once")] = 8
    timeout: Annotated[float, Range(above=0), Help("seconds that the endpoint has for one answer")] = 120.0
    retries: Annotated[int, Range(minimum=0), Help("further attempts at a question, ever longer apart")] = 5
    batch: Annotated[int, Range(minimum=1), Help("questions computed at once, when the model runs here")] = 8


@dataclass(frozen=True)
class Prompt:
    system: str
    user: str

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


@dataclass(frozen=True)
class Completion:
    """An answer. ``cut``: it was stopped by its length. ``failure``: why there is none; asked again next time."""

    text: str = ""
    cut: bool = False
    failure: str = ""


@dataclass(frozen=True)
class OptionProbabilities:
    """Of two one-character answers: the probability of the first, and that of both together among all tokens.

    ``p`` is None where the answer was neither. ``mass`` is None where the back end gives no probabilities.
    """

    p: float | None
    mass: float | None = None
    failure: str = ""


class BackEnd(Protocol):
    def write(self, prompts: Sequence[Prompt], tokens: int) -> Iterable[tuple[int, Completion]]:
        """(place, answer) for every prompt, in any order, as they come."""

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str]
    ) -> Iterable[tuple[int, OptionProbabilities]]:
        """(place, choice) for every prompt."""


def back_end(source: ChatSource) -> BackEnd:
    if source.endpoint is not None:
        from cfbench_text.models.endpoint import Endpoint

        return Endpoint(source)
    from cfbench_text.models.causal import Causal

    return Causal(source)


class Chat:
    """A chat model whose answers are kept. The same question is asked once."""

    def __init__(self, source: ChatSource) -> None:
        self.source = source
        self._cache = ResponseCache("chat")
        self._back_end: BackEnd | None = None

    def write(self, prompts: Sequence[Prompt], tokens: int) -> list[Completion]:
        """What it answers, at most ``tokens`` tokens each."""
        failed: dict[str, Completion] = {}
        keys = [self._key("write", prompt, tokens) for prompt in prompts]

        def ask(places: Sequence[int]) -> Iterable[tuple[int, Any]]:
            for at, said in self._asked().write([prompts[place] for place in places], tokens):
                if said.failure:
                    failed[keys[places[at]]] = said
                yield places[at], None if said.failure else [said.text, said.cut]

        answers = self._cache.answers(keys, ask)
        return [
            Completion(*answer) if answer is not None else failed[key]
            for key, answer in zip(keys, answers, strict=True)
        ]

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str] = ("1", "0")
    ) -> list[OptionProbabilities]:
        """How probable the first of two answers is."""
        failed: dict[str, OptionProbabilities] = {}
        keys = [self._key("choose", prompt, options) for prompt in prompts]

        def ask(places: Sequence[int]) -> Iterable[tuple[int, Any]]:
            for at, choice in self._asked().choose([prompts[place] for place in places], options):
                if choice.failure:
                    failed[keys[places[at]]] = choice
                yield places[at], None if choice.failure else [choice.p, choice.mass]

        answers = self._cache.answers(keys, ask)
        return [
            OptionProbabilities(*answer) if answer is not None else failed[key]
            for key, answer in zip(keys, answers, strict=True)
        ]

    def signature(self) -> Mapping[str, str]:
        if self.source.endpoint is not None:
            return {
                "model": self.source.model,
                "back end": "OpenAI-compatible endpoint",
                "decoding": "greedy",
            }
        from cfbench_text.models.loading import signature

        return {**signature(self.source), "decoding": "greedy"}

    def _asked(self) -> BackEnd:
        if self._back_end is None:
            self._back_end = back_end(self.source)
        return self._back_end

    def _key(self, task: str, prompt: Prompt, more: Any) -> str:
        identity = [self.source.endpoint, self._signature_text, task, prompt.system, prompt.user, more]
        return digest(identity)

    @functools.cached_property
    def _signature_text(self) -> str:
        return json.dumps(dict(self.signature()), sort_keys=True)
