"""What a chat server accepts: parameters that differ between servers, learned from their error messages.

The protocol has variants. Newer models of OpenAI take ``max_completion_tokens`` instead of ``max_tokens`` and no
temperature; many servers limit ``top_logprobs`` or report no probabilities at all; some reject parameters that they do
not know. A request that is rejected for such a reason is sent again as the server wants it, and so are all that follow.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cfbench_text.models.chat_types import ChatSource, Prompt

MOST_PROBABILITIES = 20
"""Tokens whose probabilities are requested; the limit of the protocol."""
BARE_ANSWER = 8
"""Maximum number of tokens of an answer that is read from the text, because there are no probabilities."""

_REJECTED = re.compile(r"support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|extra|invalid")


@dataclass(frozen=True)
class Question:
    """A prompt, and the maximum number of tokens of the response; None if it is one of two options."""

    prompt: Prompt
    tokens: int | None


class AcceptedParameters:
    """The parameters of requests to one server. Threads may share it.

    Attributes:
        changes: what a reader of the results should know of the parameters that the server did not accept.
    """

    def __init__(self, source: ChatSource) -> None:
        self.changes: list[str] = []
        self._source = source
        self._lock = threading.Lock()
        self._limit = "max_tokens"
        self._top = 0 if source.reasoning_tokens else MOST_PROBABILITIES
        self._rejected: frozenset[str] = frozenset()

    def body(self, question: Question) -> dict[str, Any]:
        """The body of a request."""
        with self._lock:
            limit, top, rejected = self._limit, self._top, self._rejected
        tokens, more = question.tokens, {}
        if tokens is None:
            tokens = 1 if top else BARE_ANSWER
            more = {"logprobs": True, "top_logprobs": top} if top else {}
        body = {
            "model": self._source.model,
            "messages": question.prompt.messages,
            "temperature": 0,
            "seed": 0,
            limit: tokens + self._source.reasoning_tokens,
            **more,
            **self._source.extra_body,
        }
        return {name: value for name, value in body.items() if value is not None and name not in rejected}

    def adapt(self, sent: Mapping[str, Any], error: str) -> bool:
        """Learns from the error message of a rejected request; returns whether it is worth sending again."""
        error = error.lower()
        with self._lock:
            if "max_tokens" in sent and "max_completion_tokens" in error:
                self._limit = "max_completion_tokens"
                return "max_tokens" not in self._source.extra_body
            if "top_logprobs" in sent and "logprobs" in error:
                return self._lower(int(sent["top_logprobs"]), error)
            for name in ("temperature", "seed"):
                if name in sent and re.search(rf"[\"'`]{name}\b", error) and _REJECTED.search(error):
                    return self._leave_out(name)
        return False

    def _lower(self, top: int, error: str) -> bool:
        """Requests as many probabilities as the message names, or none."""
        if "top_logprobs" in self._source.extra_body:
            return False
        if self._top >= top:  # no other thread has been here first
            permitted = [number for number in map(int, re.findall(r"\b\d{1,3}\b", error)) if 0 < number < top]
            self._top = max(permitted, default=0)
            if not self._top:
                self.changes.append("the server reports no probabilities: verdicts are read from its text")
        return True

    def _leave_out(self, name: str) -> bool:
        if name in self._source.extra_body:
            return False
        if name not in self._rejected:
            self._rejected |= {name}
            if name == "temperature":
                self.changes.append(
                    "the server does not accept a temperature of 0: its responses are sampled"
                )
        return True
