"""Chat models: how one is named, what it is sent and what it returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from cfbench_core.config import Help, Range
from cfbench_text.models.loading import Source


@dataclass(frozen=True, kw_only=True)
class ChatSource(Source):
    """A chat model. The default is the model with which Statement factuality extracts, Llama-3-8B-Instruct."""

    model: Annotated[
        str, Help("name, folder, .gguf file, package:NAME; or the model's name at the endpoint")
    ] = "meta-llama/Meta-Llama-3-8B-Instruct"
    endpoint: Annotated[
        str | None, Help("address of an OpenAI-compatible server, up to /v1; none: a local model")
    ] = None
    key: Annotated[str, Help("environment variable with the API key of the endpoint, if it needs one")] = (
        "OPENAI_API_KEY"
    )
    requests: Annotated[int, Range(minimum=1), Help("concurrent requests to the endpoint")] = 8
    timeout: Annotated[float, Range(above=0), Help("seconds until a request to the endpoint fails")] = 120.0
    retries: Annotated[int, Range(minimum=0), Help("further attempts of a request, with growing pauses")] = 5
    batch: Annotated[int, Range(minimum=1), Help("prompts per batch of a local model")] = 8


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
    """

    text: str = ""
    cut: bool = False
    failure: str = ""


@dataclass(frozen=True)
class OptionProbabilities:
    """The answer to a question with two one-character options.

    Attributes:
        p: probability of the first option, given that the answer is one of the two; None if it is neither.
        mass: probability of both options together among all tokens; None if the back end reports no probabilities.
        failure: why there is no answer, else empty. Failures are not cached.
    """

    p: float | None
    mass: float | None = None
    failure: str = ""


class BackEnd(Protocol):
    """Runs a chat model. Results come in any order, as soon as they are computed."""

    def write(self, prompts: Sequence[Prompt], tokens: int) -> Iterable[tuple[int, Completion]]:
        """(index of the prompt, completion of at most ``tokens`` tokens) for every prompt."""

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str]
    ) -> Iterable[tuple[int, OptionProbabilities]]:
        """(index of the prompt, probabilities of the options) for every prompt."""
