"""Queries a chat model, at an endpoint or on this machine, with greedy decoding. Responses are cached."""

from __future__ import annotations

import functools
import json
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from cfbench_core.errors import IncompleteWarning, ResultWarning
from cfbench_core.hashing import digest
from cfbench_text.models.chat_types import BackEnd, ChatSource, Completion, OptionProbabilities, Prompt
from cfbench_text.models.response_cache import ResponseCache
from cfbench_text.reviews import IntArray

Response = TypeVar("Response", Completion, OptionProbabilities)


def back_end(source: ChatSource) -> BackEnd:
    if source.endpoint is not None:
        from cfbench_text.models.endpoint import Endpoint

        return Endpoint(source)
    from cfbench_text.models.causal import Causal

    return Causal(source)


class Chat:
    """A chat model with a response cache. Each distinct prompt is sent once."""

    def __init__(self, source: ChatSource) -> None:
        self.source = source
        self._cache = ResponseCache("chat")
        self._back_end: BackEnd | None = None
        self.begin(lambda done, total: None)

    def begin(self, report: Callable[[int, int], None]) -> None:
        """Counts usage anew; ``report`` is called with the number of prompts of a batch that are done, and of all.

        A prompt is done if it has a response or has failed.
        """
        self._report = report
        self._counted: set[str] = set()
        self._usage: IntArray = np.zeros(3, dtype=np.int64)

    def write(self, prompts: Sequence[Prompt], tokens: int) -> list[Completion]:
        """Completions of at most ``tokens`` tokens each."""
        keys = [self._key("write", prompt, tokens) for prompt in prompts]
        return self._responses(
            keys,
            lambda places: self._model().write([prompts[place] for place in places], tokens),
            lambda found: [found.text, found.cut, *found.tokens],
            lambda stored: Completion(stored[0], stored[1], tokens=(stored[2], stored[3])),
        )

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str] = ("1", "0")
    ) -> list[OptionProbabilities]:
        """The probability of the first of two options for each prompt."""
        keys = [self._key("choose", prompt, options) for prompt in prompts]
        return self._responses(
            keys,
            lambda places: self._model().choose([prompts[place] for place in places], options),
            lambda found: [found.p, found.mass, *found.tokens],
            lambda stored: OptionProbabilities(stored[0], stored[1], tokens=(stored[2], stored[3])),
        )

    def _responses(
        self,
        keys: Sequence[str],
        query: Callable[[Sequence[int]], Iterable[tuple[int, Response]]],
        encode: Callable[[Response], list[Any]],
        decode: Callable[[list[Any]], Response],
    ) -> list[Response]:
        """The responses by key, cached ones first; failures are returned, not cached, and reported by a warning."""
        failed: dict[str, Response] = {}
        total = len(set(keys))

        def compute(places: Sequence[int]) -> Iterable[tuple[int, Any]]:
            done = total - len(places)
            for at, response in query(places):
                done += 1
                self._report(done, total)
                if response.failure:
                    failed[keys[places[at]]] = response
                yield places[at], None if response.failure else encode(response)

        stored = self._cache.values(keys, compute)
        if failed:
            reasons = Counter(one.failure for one in failed.values()).most_common(2)
            listed = ", ".join(f"{why}: {count}" for why, count in reasons)
            warnings.warn(
                f"{len(failed)} of {total} prompts to {self.source.model} have no response ({listed})",
                ResultWarning if all(one.final for one in failed.values()) else IncompleteWarning,
                stacklevel=3,
            )
        found = [
            decode(value) if value is not None else failed[key]
            for key, value in zip(keys, stored, strict=True)
        ]
        self._count(dict(zip(keys, found, strict=True)))
        return found

    def _count(self, responses: Mapping[str, Completion | OptionProbabilities]) -> None:
        for key, one in responses.items():
            if one.failure:  # what was paid for without a usable response
                self._usage += np.array([0, *one.tokens])
            elif key not in self._counted:
                self._counted.add(key)
                self._usage += np.array([1, *one.tokens])

    def usage(self) -> dict[str, float]:
        """The distinct responses since ``begin``, cached ones included, their tokens and their cost, with the tokens of
        attempts whose response could not be used."""
        responses, given, written = map(int, self._usage)
        cost = (self.source.input_price * given + self.source.output_price * written) / 1e6
        found = {"responses": responses, "input_tokens": given, "output_tokens": written, "cost": cost}
        return {name: number for name, number in found.items() if number}

    def signature(self) -> Mapping[str, str]:
        if self.source.endpoint is not None:
            more = (
                {"body": json.dumps(dict(self.source.extra_body), sort_keys=True)}
                if self.source.extra_body
                else {}
            )
            if self.source.reasoning_tokens:
                more["reasoning tokens"] = str(self.source.reasoning_tokens)
            return {
                "model": self.source.model,
                "back end": "OpenAI-compatible endpoint",
                "decoding": "greedy",
                **more,
            }
        from cfbench_text.models.loading import signature

        return {**signature(self.source), "decoding": "greedy"}

    def _model(self) -> BackEnd:
        if self._back_end is None:
            self._back_end = back_end(self.source)
        return self._back_end

    def _key(self, task: str, prompt: Prompt, more: Any) -> str:
        return digest([self.source.endpoint, self._signature_text, task, prompt.system, prompt.user, more])

    @functools.cached_property
    def _signature_text(self) -> str:
        return json.dumps(dict(self.signature()), sort_keys=True)
