"""Servers that do not accept every parameter, and models that reason."""

import subprocess
import sys

import numpy as np
import pytest
from fake_endpoint import requested, said

from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Prompt
from cfbench_text.triplets import Triplet

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")

CLAIM = Triplet("it is good", "sound", "positive")
ONE_OR_ZERO = {
    "content": [
        {"top_logprobs": [{"token": "1", "logprob": np.log(0.8)}, {"token": "0", "logprob": np.log(0.2)}]}
    ]
}


def picky(rejects):
    """A server that rejects a body for which ``rejects`` returns a message, and knows the answer otherwise."""

    def reply(body, attempt):
        message = rejects(body)
        if message:
            return 400, {}, {"error": {"message": message, "code": 400}}
        return said("1", logprobs=ONE_OR_ZERO if body.get("logprobs") else None)

    return reply


def unknown(name):
    return lambda body: f"Unsupported parameter: '{name}' is not supported with this model." * (name in body)


@pytest.mark.parametrize(
    ("rejects", "support"),
    [
        (lambda b: "Use 'max_completion_tokens' instead of 'max_tokens'." * ("max_tokens" in b), 0.8),
        (lambda b: "top_logprobs must be between 0 and 5" * (b.get("top_logprobs", 0) > 5), 0.8),
        (lambda b: "Requested sample logprobs of 20, max allowed: 8" * (b.get("top_logprobs", 0) > 8), 0.8),
        (unknown("seed"), 0.8),
        (unknown("logprobs"), 1.0),
        (unknown("temperature"), 0.8),
    ],
    ids=["max_completion_tokens", "at most 5", "at most 8", "no seed", "no logprobs", "no temperature"],
)
@pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")
def test_a_request_is_sent_again_as_the_server_wants_it(serve, rejects, support):
    server = serve(picky(rejects))
    judge = LLMJudge(JudgeConfig(endpoint=server.url, requests=1))
    pairs = [(Document(f"text {place}", ()), CLAIM) for place in range(4)]
    np.testing.assert_allclose(judge.support(pairs), [support] * 4)
    assert len(server.requested) == 5  # only the first prompt is sent twice


def test_a_server_that_rejects_several_parameters_gets_none_of_them(serve):
    def rejects(body):
        named = next(
            (name for name in ("max_tokens", "temperature", "seed", "logprobs") if name in body), None
        )
        better = "max_completion_tokens" if named == "max_tokens" else ""
        return f"Unsupported parameter: '{named}'. {better}" * (named is not None)

    server = serve(picky(rejects))
    with pytest.warns(UserWarning) as warned:
        support = LLMJudge(JudgeConfig(endpoint=server.url)).support([(Document("a text", ()), CLAIM)])
    assert support == [1.0] and set(server.requested[-1]) == {"model", "messages", "max_completion_tokens"}
    texts = " ".join(str(one.message) for one in warned)
    assert "verdicts are read from its text" in texts and "responses are sampled" in texts


def test_what_is_wrong_with_a_text_is_not_mistaken_for_a_parameter(serve):
    server = serve(
        lambda body, attempt: (400, {}, {"error": "the temperature of this text is not supported"})
    )
    found = requested(server, ["a"])
    assert "HTTP 400" in found[0].failure and found[0].final and len(server.requested) == 1


def test_options_of_a_body_are_sent_and_are_part_of_what_identifies_a_response(serve):
    server = serve(lambda body, attempt: said(str(body.get("top_k"))))
    texts = [
        Chat(ChatSource(endpoint=server.url, model="m", extra_body=extra))
        .write([Prompt("", "a")], 10)[0]
        .text
        for extra in ({"top_k": 1, "seed": None}, {"top_k": 2}, {"top_k": 1, "seed": None})
    ]
    assert texts == ["1", "2", "1"] and len(server.requested) == 2
    assert "seed" not in server.requested[0] and server.requested[1]["seed"] == 0


def test_a_model_that_reasons_has_room_for_it_and_its_answer_is_read_behind_it(serve):
    says = {
        "good": "<think>0? No.</think>\n1",
        "bad": "1 or 0? </think> **0**",
        "long": "<think>1, or rather",
    }
    server = serve(
        lambda body, attempt: said(
            next(t for n, t in says.items() if f"\n{n}\n" in body["messages"][1]["content"])
        )
    )
    judge = LLMJudge(JudgeConfig(endpoint=server.url, reasoning_tokens=500))
    with pytest.warns(UserWarning, match="1 of 3 verdicts of judge llm are undecided"):
        support = judge.support([(Document(name, ()), CLAIM) for name in says])
    np.testing.assert_array_equal(support, [1, 0, np.nan])
    assert all(body["max_tokens"] == 508 and "logprobs" not in body for body in server.requested)


def test_reasoning_that_the_server_returns_elsewhere_and_that_used_up_the_tokens_is_no_answer(serve):
    choice = {"message": {"content": None, "reasoning_content": "[]"}, "finish_reason": "length"}
    server = serve(lambda body, attempt: (200, {}, {"choices": [choice]}))
    (found,) = LLMExtractor(Config(endpoint=server.url)).extract(["a text"], load_domain("toys"))
    assert (found.status, found.reason, len(server.requested)) == ("failed", "no array", 1)


@pytest.mark.parametrize("options", [{"extra_body": {"top_k": 1}}, {"reasoning_tokens": 5}])
def test_options_of_an_endpoint_without_one_are_refused(options):
    with pytest.raises(ValueError, match="are options of an endpoint"):
        ChatSource(**options)


@pytest.mark.parametrize("name", ["model", "messages", "stream", "n"])
def test_what_defines_a_question_cannot_be_overwritten(name):
    with pytest.raises(ValueError, match=f"'{name}' cannot be set"):
        ChatSource(endpoint="http://127.0.0.1:9/v1", extra_body={name: 2})


def test_an_endpoint_needs_no_torch(serve):
    server = serve(picky(lambda body: ""))
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['torch', 'transformers', 'accelerate', 'gguf']))\n"
        "from cfbench_text.documents import Document\n"
        "from cfbench_text.judges.llm import Config, LLMJudge\n"
        "from cfbench_text.triplets import Triplet\n"
        f"judge = LLMJudge(Config(endpoint={server.url!r}))\n"
        "print(judge.support([(Document('a', ()), Triplet('it is good', 'sound', 'positive'))])[0].round(3))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "0.8", done.stderr
