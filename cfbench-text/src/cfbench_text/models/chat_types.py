"""Chat models: how one is named, what it is sent and what it returns."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol
from urllib.parse import urlsplit

from cfbench_core.config import EnvironmentVariable, Help, Range
from cfbench_text.models.loading import Source

JUDGE_MODEL = "meta-llama/Llama-3.1-8B-Instruct"
"""With which Statement factuality computes metrics that query a language model (footnote 17)."""


@dataclass(frozen=True, kw_only=True)
class ChatSource(Source):
    """A chat model. The default is the model with which Statement factuality extracts (footnote 2)."""

    model: Annotated[
        str, Help("name, folder, .gguf file, package:NAME; or the model's name at the endpoint")
    ] = "meta-llama/Meta-Llama-3-8B-Instruct"
    endpoint: Annotated[
        str | None, Help("address of an OpenAI-compatible server, up to /v1; none: a local model")
    ] = None
    key: Annotated[
        str | None,
        EnvironmentVariable(),
        Help("environment variable with the API key of the endpoint, such as OPENAI_API_KEY; none: no key"),
    ] = None
    requests: Annotated[int, Range(minimum=1), Help("concurrent requests to the endpoint")] = 8
    timeout: Annotated[
        float, Range(above=0), Help("seconds without any data from the endpoint until a request fails")
    ] = 120.0
    retries: Annotated[int, Range(minimum=0), Help("further attempts of a request, with growing pauses")] = 5
    batch: Annotated[int, Range(minimum=1), Help("prompts per batch of a local model")] = 8
    input_price: Annotated[float, Range(minimum=0), Help("price of a million tokens of prompts")] = 0.0
    output_price: Annotated[float, Range(minimum=0), Help("price of a million tokens of responses")] = 0.0
    extra_body: Annotated[
        Mapping[str, Any],
        Help("further fields of requests to the endpoint: {reasoning_effort: low}; null leaves a field out"),
    ] = field(default_factory=dict)
    reasoning_tokens: Annotated[
        int,
        Range(minimum=0),
        Help("tokens of an endpoint's model for reasoning before its answer, which is then read as text"),
    ] = 0

    def __post_init__(self) -> None:
        if self.endpoint is None and (self.extra_body or self.reasoning_tokens):
            raise ValueError(
                "extra_body and reasoning_tokens are options of an endpoint; name one in 'endpoint'"
            )
        fixed = sorted({"messages", "model", "stream", "n"} & set(self.extra_body))
        if fixed:
            raise ValueError(f"extra_body: {fixed[0]!r} cannot be set")
        if self.endpoint is not None:
            problem = address_problem(self.endpoint, self.key)
            if problem:
                raise ValueError(f"endpoint: {problem}")

    @property
    def sends(self) -> str:
        """What of the user's is sent where; empty if nothing is."""
        if self.endpoint is None:
            return ""
        host = urlsplit(self.endpoint).hostname
        return f"the key in ${self.key} to {host}" if self.key else ""


def address_problem(address: str, key: str | None) -> str:
    """Why an address cannot be an endpoint that gets the key in the environment variable ``key``; empty if it can.

    The address is stored with the results and shown, so it must not hold a secret; messages do not repeat it.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https") or not host or any(c.isspace() for c in address):
        return "must be an address such as https://api.example.org/v1"
    if "@" in parts.netloc:
        return "must not hold a user name or a password; name the environment variable of a key in 'key'"
    if "?" in address or "#" in address:
        return "must not have a part after ? or #; name the environment variable of a key in 'key'"
    if key is not None and parts.scheme == "http" and not is_loopback(host):
        return f"http would send the key in ${key} unencrypted over the network; use https, or remove 'key'"
    return ""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine by definition, so that nothing reaches a network."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Prompt:
    system: str
    user: str

    @property
    def messages(self) -> list[dict[str, str]]:
        return [{"role": "system", "content": self.system}, {"role": "user", "content": self.user}]


@dataclass(frozen=True)
class Completion:
    """The text that a model generated.

    Attributes:
        text: without the prompt.
        cut: whether it was truncated at the maximum length.
        failure: why there is no text, else empty. Failures are not cached.
        final: whether the same prompt would fail again (it is too long, or the server rejects it).
        tokens: of the prompt and of the response, as the server counts them; zeros if it does not.
    """

    text: str = ""
    cut: bool = False
    failure: str = ""
    final: bool = False
    tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class OptionProbabilities:
    """The answer to a question with two one-character options.

    Attributes:
        p: probability of the first option, given that the answer is one of the two; None if it is neither.
        mass: probability of both options together among all tokens; None if the back end reports no probabilities.
        failure: why there is no answer, else empty. Failures are not cached.
        final: whether the same prompt would fail again.
        tokens: as in :class:`Completion`.
    """

    p: float | None
    mass: float | None = None
    failure: str = ""
    final: bool = False
    tokens: tuple[int, int] = (0, 0)


class BackEnd(Protocol):
    """Runs a chat model. Results come in any order, as soon as they are computed."""

    def write(self, prompts: Sequence[Prompt], tokens: int) -> Iterable[tuple[int, Completion]]:
        """(index of the prompt, completion of at most ``tokens`` tokens) for every prompt."""

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str]
    ) -> Iterable[tuple[int, OptionProbabilities]]:
        """(index of the prompt, probabilities of the options) for every prompt."""
