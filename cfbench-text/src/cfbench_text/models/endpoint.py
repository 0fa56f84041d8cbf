"""A chat model behind an OpenAI-compatible server (vLLM, Ollama, llama.cpp, or a service), with concurrent requests.

Transient errors are retried with growing pauses (0.5 s, 1 s, 2 s, ... up to 30 s; after 429 or 503 as the server's
Retry-After header requests, up to two minutes): failed connections, timeouts, 408, 409, 429, server errors, and
responses that violate the protocol. If the last attempt fails, that prompt has failed, and a later run sends it again; a
prompt with a 400 response (for example a text too long for the model) has failed for good. The run stops after 20
prompts in a row without a valid response, and if every prompt would fail for the same reason: the server is down, the
API key is rejected, the model does not exist (404, or the first prompts are rejected with the same message, as
``transformers serve`` does with 400). Received responses are cached, so a later run resumes.

The API key is sent to the host of the endpoint alone: redirects are not followed, a proxy of the environment is not used
for this machine, and what a server repeats of the key is removed from its responses and messages.
"""

from __future__ import annotations

import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from cfbench_core.errors import ResultWarning, UserError
from cfbench_core.plain_text import one_line
from cfbench_core.redaction import redacted, secret
from cfbench_text.models.accepted_parameters import AcceptedParameters, Question
from cfbench_text.models.chat_types import (
    ChatSource,
    Completion,
    OptionProbabilities,
    Prompt,
    is_loopback,
)
from cfbench_text.response_parsing import without_reasoning

RETRIED = frozenset({408, 409, 425, 429, *range(500, 600)})
FATAL = {
    401: "the key is refused",
    402: "the account must be paid for",
    403: "the key is refused",
    404: "no such model or address",
}
LONGEST_PAUSE, LONGEST_RETRY_AFTER = 30.0, 120.0
BROKEN_IN_A_ROW = 20
"""Number of consecutive prompts without a valid response, though the server is reached, after which the run stops."""
MOST_ADAPTATIONS = 6
"""How often one prompt is sent with other parameters, because the server rejects those that it got."""
IN_A_ROW = 5
"""Number of consecutive prompts without a response, or rejected with one message, after which the run stops."""

Found = TypeVar("Found", Completion, OptionProbabilities)
Tokens = tuple[int, int]
"""Of prompts and of responses."""


class _GarbageError(Exception):
    """A response that violates the protocol."""


class _NoAnswerError(Exception):
    """No response to one prompt after all attempts.

    reached: whether the server responded at all. refused: whether it rejected the prompt. tokens: of the prompt and of the
    responses that could not be used.
    """

    def __init__(self, why: str, reached: bool, refused: bool = False, tokens: Tokens = (0, 0)) -> None:
        super().__init__(why)
        self.reached = reached
        self.refused = refused
        self.tokens = tokens


class Endpoint:
    """``pause`` waits a number of seconds; tests replace it."""

    def __init__(self, source: ChatSource, pause: Callable[[float], None] = time.sleep) -> None:
        try:
            import httpx
        except ImportError:
            raise UserError("an endpoint needs httpx: pip install 'cfbench-text[llm]'") from None
        self._httpx = httpx
        self.source = source
        self.address = f"{(source.endpoint or '').rstrip('/')}/chat/completions"
        self._pause = pause
        self._parameters = AcceptedParameters(source)
        self._reported = 0

    def write(self, prompts: Sequence[Prompt], tokens: int) -> Iterator[tuple[int, Completion]]:
        questions = [Question(prompt, tokens) for prompt in prompts]
        yield from self._all(questions, _completion, lambda why, final: Completion(failure=why, final=final))

    def choose(
        self, prompts: Sequence[Prompt], options: tuple[str, str]
    ) -> Iterator[tuple[int, OptionProbabilities]]:
        yield from self._all(
            [Question(prompt, None) for prompt in prompts],
            lambda reply: _choice(reply, options),
            lambda why, final: OptionProbabilities(None, failure=why, final=final),
        )

    def _all(
        self,
        questions: Sequence[Question],
        read: Callable[[Mapping[str, Any]], Found],
        failed: Callable[[str, bool], Found],
    ) -> Iterator[tuple[int, Found]]:
        """The responses as they arrive. The pool holds a limited number of waiting prompts."""
        headers = {"Authorization": f"Bearer {secret(self.source.key)}"} if self.source.key else {}
        own_machine = is_loopback(urlsplit(self.address).hostname or "")
        unreached, broken, refusals, answered = 0, 0, list[str](), False
        stop: UserError | None = None
        with (
            self._httpx.Client(
                timeout=self.source.timeout,
                headers=headers,
                follow_redirects=False,
                trust_env=not own_machine,
            ) as client,
            ThreadPoolExecutor(self.source.requests) as pool,
        ):
            for start in range(0, len(questions), 4 * self.source.requests):
                pending: dict[Future[Found], int] = {
                    pool.submit(self._one, client, question, read): start + place
                    for place, question in enumerate(questions[start : start + 4 * self.source.requests])
                }
                try:
                    for done in as_completed(pending):
                        try:
                            yield pending[done], done.result()
                            unreached, broken, answered = 0, 0, True
                        except CancelledError:
                            continue
                        except UserError as error:
                            stop = stop or error
                        except _NoAnswerError as error:
                            refusals += [str(error)] * error.refused
                            unreached = 0 if error.reached else unreached + 1
                            broken = 0 if error.refused else broken + 1
                            if not answered and refusals == [str(error)] * IN_A_ROW:
                                stop = stop or self._refused(str(error))
                            elif broken >= BROKEN_IN_A_ROW or unreached >= min(IN_A_ROW, len(questions)):
                                stop = stop or self._down(str(error))
                            yield (
                                pending[done],
                                replace(failed(str(error), error.refused), tokens=error.tokens),
                            )
                        if stop:  # responses that are on their way are still received, and cached
                            _cancel(pending)
                finally:
                    _cancel(pending)
                self._report_changes()
                if stop:
                    raise stop

    def _one(self, client: Any, question: Question, read: Callable[[Mapping[str, Any]], Found]) -> Found:
        """Sends one prompt, with as many attempts as the configuration allows."""
        why, reached, wait = "", False, 0.0
        spent: Tokens = (0, 0)
        for attempt in range(self.source.retries + 1):
            if attempt:
                self._pause(max(wait, min(LONGEST_PAUSE, 0.5 * 2 ** (attempt - 1))))
            try:
                reply = self._post(client, question)
            except self._httpx.TimeoutException:
                why, reached, wait = f"no response within {self.source.timeout:g} s", False, 0.0
                continue
            except self._httpx.TransportError as error:
                why = f"no connection ({one_line(redacted(str(error)), 200) or type(error).__name__})"
                reached, wait = False, 0.0
                continue
            except self._httpx.DecodingError as error:
                why, wait = f"a response that violates the protocol ({one_line(str(error), 200)})", 0.0
                reached = True
                continue
            except self._httpx.InvalidURL as error:
                raise UserError(f"endpoint {self.source.endpoint!r}: no address ({error})") from None
            reached = True
            if reply.has_redirect_location:
                raise UserError(
                    f"endpoint {self.source.endpoint} redirects to {_host(reply)} (HTTP {reply.status_code}),"
                    " which is not followed; name the address itself if you trust it"
                )
            if reply.status_code in FATAL:
                raise UserError(
                    f"endpoint {self.source.endpoint}: {FATAL[reply.status_code]} (HTTP {reply.status_code},"
                    f" model {self.source.model!r}, {self._key()}): {_message(reply)}"
                )
            if reply.status_code in RETRIED:
                why, wait = f"HTTP {reply.status_code}", _retry_after(reply)
                continue
            if reply.status_code != 200:
                why = f"HTTP {reply.status_code}: {_message(reply)}"
                raise _NoAnswerError(why, reached, refused=True, tokens=spent)
            spent = _sum(spent, _tokens(reply))  # a response that cannot be used is paid for as well
            try:
                return replace(read(_decoded(reply)), tokens=spent)
            except _GarbageError as error:
                why, wait = f"a response that violates the protocol ({error})", 0.0
        raise _NoAnswerError(why, reached, tokens=spent)

    def _post(self, client: Any, question: Question) -> Any:
        """The response to a prompt, sent with the parameters that the server accepts."""
        for _ in range(MOST_ADAPTATIONS):
            body = self._parameters.body(question)
            reply = client.post(self.address, json=body)
            rejected = reply.status_code in (400, 422)
            if not rejected or not self._parameters.adapt(body, redacted(str(reply.text)[:10_000])):
                break
        return reply

    def _report_changes(self) -> None:
        """Warns of the parameters that the server did not accept, once each."""
        changes = self._parameters.changes
        for change in changes[self._reported :]:
            warnings.warn(f"{self.source.model}: {change}", ResultWarning, stacklevel=2)
        self._reported = len(changes)

    def _key(self) -> str:
        return f"key from ${self.source.key}" if self.source.key else "no key, because 'key' is not set"

    def _refused(self, why: str) -> UserError:
        return UserError(
            f"endpoint {self.source.endpoint} refuses every question (model {self.source.model!r}): {why}"
        )

    def _down(self, why: str) -> UserError:
        return UserError(
            f"endpoint {self.source.endpoint} does not answer: {why}. Start the server, or name another in 'endpoint';"
            " its responses are cached, and the same command resumes"
        )


def _cancel(pending: Iterable[Future[Any]]) -> None:
    for one in pending:
        one.cancel()


def _decoded(reply: Any) -> Mapping[str, Any]:
    """The first choice of an answer."""
    try:
        choice = reply.json()["choices"][0]
    except (ValueError, KeyError, IndexError, TypeError, RecursionError):
        raise _GarbageError("no choices") from None
    if not isinstance(choice, dict):
        raise _GarbageError("a choice is no object")
    return choice


def _sum(one: Tokens, other: Tokens) -> Tokens:
    return one[0] + other[0], one[1] + other[1]


def _tokens(reply: Any) -> Tokens:
    """Of the prompt and of the response; zeros if the server does not count them."""
    try:
        usage = reply.json().get("usage")
    except (ValueError, AttributeError, RecursionError):
        return 0, 0
    counts = [
        usage.get(name) if isinstance(usage, dict) else 0 for name in ("prompt_tokens", "completion_tokens")
    ]
    given, written = (count if isinstance(count, int) and count > 0 else 0 for count in counts)
    return given, written


def _content(choice: Mapping[str, Any]) -> str:
    message = choice.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(message, dict) and content is None and choice.get("finish_reason") == "length":
        return ""  # all tokens were spent on reasoning, which the server returns elsewhere
    if not isinstance(content, str):
        raise _GarbageError("no text in the message")
    return redacted(content)


def _completion(choice: Mapping[str, Any]) -> Completion:
    return Completion(_content(choice), cut=choice.get("finish_reason") == "length")


def _choice(choice: Mapping[str, Any], options: tuple[str, str]) -> OptionProbabilities:
    """From the probabilities of the first token where there are any, else from the text, read strictly."""
    try:
        top = choice["logprobs"]["content"][0]["top_logprobs"]
        if not top:
            return OptionProbabilities(strict(_content(choice), options))
        mass = [
            math.fsum(math.exp(one["logprob"]) for one in top if str(one["token"]).strip() == option)
            for option in options
        ]
    except (KeyError, IndexError, TypeError):
        return OptionProbabilities(strict(_content(choice), options))
    except OverflowError:
        raise _GarbageError("a logprob above that of certainty") from None
    total = math.fsum(mass)
    return OptionProbabilities(mass[0] / total, total) if total else OptionProbabilities(None, 0.0)


def strict(text: str, options: tuple[str, str]) -> float | None:
    """1 for the first option, 0 for the second, None for anything else."""
    bare = re.sub(r"^[\s\"'*]+|[\s\"'*.]+$", "", without_reasoning(text) or "")
    return float(bare == options[0]) if bare in options else None


def _retry_after(reply: Any) -> float:
    """Seconds until the time in the Retry-After header, given in seconds or as a date; 0 without one."""
    header = str(reply.headers.get("retry-after", "")).strip()
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except ValueError:
            return 0.0
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER) if math.isfinite(seconds) else 0.0


def _message(reply: Any) -> str:
    """The beginning of the server's error message."""
    return one_line(redacted(str(reply.text)[:10_000]), 120)


def _host(reply: Any) -> str:
    """Where a redirect leads, without what its address may hold besides."""
    try:
        parts = urlsplit(str(reply.headers["location"]))
        return one_line(f"{parts.scheme}://{parts.hostname}" if parts.hostname else "another path", 100)
    except ValueError:
        return "another address"
