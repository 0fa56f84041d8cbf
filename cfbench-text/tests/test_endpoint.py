"""A recorded-answer double on 127.0.0.1 that fails in all the ways a server does; no test waits for real."""

import time

import numpy as np
import pytest
from fake_endpoint import requested, said

from cfbench_core.errors import IncompleteWarning, UserError
from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Prompt
from cfbench_text.models.endpoint import strict
from cfbench_text.triplets import Triplet

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")


def echo(body, attempt):
    return said(body["messages"][-1]["content"].upper())


def test_every_question_gets_its_own_answer_whatever_the_order(serve):
    server = serve(
        lambda body, attempt: (time.sleep(0.002 * (len(body["messages"][1]["content"]) % 5)), echo(body, 0))[
            1
        ]
    )
    texts = [f"text {'x' * (place % 7)} {place}" for place in range(60)]
    found = requested(server, texts, requests=5)
    assert [found[place].text for place in range(60)] == [text.upper() for text in texts]
    assert 1 < server.most <= 5
    first = server.requested[0]
    assert first["temperature"] == 0 and first["max_tokens"] == 10 and first["model"] == "m"


def test_429_waits_for_retry_after_and_server_errors_wait_longer_each_time(serve):
    reported = [(429, {"retry-after": "7"}, {}), (500, {}, b"oops"), (503, {}, b""), said("done")]
    pauses = []
    found = requested(serve(lambda body, attempt: reported[attempt]), ["a"], pauses)
    assert found[0].text == "done" and pauses == [7.0, 1.0, 2.0]


def test_retry_after_as_a_moment_and_as_nonsense(serve):
    reported = [
        (429, {"retry-after": "Wed, 21 Oct 2065 07:28:00 GMT"}, {}),
        (429, {"retry-after": "soon"}, {}),
        said("x"),
    ]
    pauses = []
    requested(serve(lambda body, attempt: reported[attempt]), ["a"], pauses)
    assert pauses == [120.0, 1.0]


@pytest.mark.parametrize(
    "garbage",
    [
        b"<html>",
        b"",
        {},
        {"choices": []},
        {"choices": [3]},
        {"choices": [{"message": {"content": None}}]},
        [],
    ],
)
def test_an_invalid_response_is_retried_and_then_fails_that_text_alone(serve, garbage):
    def reply(body, attempt):
        return (200, {}, garbage) if "bad" in body["messages"][1]["content"] else echo(body, attempt)

    server = serve(reply)
    found = requested(server, ["good", "bad", "fine"], retries=2)
    assert (found[0].text, found[2].text) == ("GOOD", "FINE")
    assert "protocol" in found[1].failure and len(server.requested) == 5


def test_a_response_in_another_encoding_than_it_states_fails_that_text_alone(serve):
    def reply(body, attempt):
        bad = "bad" in body["messages"][1]["content"]
        return (200, {"content-encoding": "gzip"}, b"no gzip") if bad else echo(body, attempt)

    found = requested(serve(reply), ["good", "bad", "fine"], retries=1)
    assert (found[0].text, found[2].text) == ("GOOD", "FINE")
    assert "violates the protocol" in found[1].failure


def test_a_question_that_times_out_fails_alone(serve):
    server = serve(
        lambda body, attempt: 0.3 if "slow" in body["messages"][1]["content"] else echo(body, attempt)
    )
    found = requested(server, ["slow", "quick"], timeout=0.1, retries=1)
    assert "no response within 0.1 s" in found[0].failure and found[1].text == "QUICK"


def test_400_is_not_retried(serve):
    server = serve(lambda body, attempt: (400, {}, {"error": "context length exceeded"}))
    found = requested(server, ["a"])
    assert (
        "HTTP 400" in found[0].failure and "context length" in found[0].failure and len(server.requested) == 1
    )


def test_an_endpoint_that_is_down_stops_the_work_in_one_line(serve):
    server = serve(echo)
    server.close()
    with pytest.raises(UserError, match="does not answer") as error:
        requested(server, [f"{place}" for place in range(30)], retries=1)
    assert len(error.value.lines) == 1


@pytest.mark.parametrize(("status", "why"), [(401, "key is refused"), (404, "no such model")])
def test_what_concerns_all_questions_stops_at_once(serve, status, why):
    server = serve(lambda body, attempt: (status, {}, {"error": "no"}))
    with pytest.raises(UserError, match=why):
        requested(server, ["a"])
    assert len(server.requested) == 1


def test_a_server_that_refuses_every_question_in_the_same_words_stops_the_work(serve):
    pinned = {"detail": "Server is pinned to 'a'; requested 'm'."}  # transformers serve, of another model
    server = serve(lambda body, attempt: (400, {}, pinned))
    with pytest.raises(UserError, match=r"refuses every question.*pinned to 'a'"):
        requested(server, [f"{place}" for place in range(40)], requests=2)
    assert len(server.requested) < 20


def test_texts_that_are_refused_among_others_do_not_stop_the_work(serve):
    def reply(body, attempt):
        too_long = "long" in body["messages"][1]["content"]
        return (400, {}, {"error": "too long"}) if too_long else echo(body, attempt)

    found = requested(serve(reply), ["fine", *["long"] * 20], requests=1)
    assert found[0].text == "FINE" and all("too long" in found[place].failure for place in range(1, 21))
    different = serve(lambda body, attempt: (400, {}, {"error": body["messages"][1]["content"]}))
    assert len(requested(different, [f"{place} tokens" for place in range(20)])) == 20


def test_the_key_comes_from_the_environment_and_is_not_in_the_signature(serve, monkeypatch):
    monkeypatch.setenv("MY_KEY", "not-a-real-key")
    server = serve(echo)
    requested(server, ["a"], key="MY_KEY")
    assert server.headers["Authorization"] == "Bearer not-a-real-key"
    assert "not-a-real-key" not in str(Chat(ChatSource(endpoint=server.url, key="MY_KEY")).signature())


def test_responses_are_cached_failures_are_not_and_a_stopped_run_resumes(serve):
    broken = {"now": True}

    def reply(body, attempt):
        return (
            (400, {}, {}) if broken["now"] and body["messages"][1]["content"] == "c" else echo(body, attempt)
        )

    server = serve(reply)
    source = ChatSource(endpoint=server.url, model="m")
    prompts = [Prompt("", text) for text in "abca"]
    first = Chat(source).write(prompts, 10)
    assert [one.text for one in first] == ["A", "B", "", "A"] and first[2].failure
    assert len(server.requested) == 3  # "a" once
    broken["now"] = False
    again = Chat(source).write(prompts, 10)
    assert [one.text for one in again] == ["A", "B", "C", "A"] and len(server.requested) == 4
    Chat(source).write(prompts, 11)  # another length of the answer is another question
    assert len(server.requested) == 7


def test_responses_before_the_endpoint_failed_are_cached(serve):
    reached = []

    def reply(body, attempt):
        reached.append(1)
        return echo(body, attempt) if len(reached) <= 3 else 0.15

    server = serve(reply)
    source = ChatSource(endpoint=server.url, model="m", requests=1, retries=0, timeout=0.05)
    with pytest.raises(UserError, match="are cached"):
        Chat(source).write([Prompt("", f"{place}") for place in range(20)], 10)
    reached.clear()
    assert [
        one.text for one in Chat(source).write([Prompt("", f"{place}") for place in range(3)], 10)
    ] == list("012")
    assert not reached


def test_the_extractor_salvages_what_a_cut_answer_holds(serve):
    whole = '{"statement": "the strings break", "topic": "durability", "sentiment": "negative"}'
    domain = load_domain("musical-instruments")
    topic = next(iter(domain.topics))
    whole = whole.replace("durability", topic)
    answers = {
        "one": said(f"Sure! [{whole}]"),
        "two": said(f"[{whole}, {{", cut=True),
        "three": said("[]"),
        "four": said("I cannot"),
    }
    server = serve(
        lambda body, attempt: next(
            a for name, a in answers.items() if f"\n{name}\n" in body["messages"][1]["content"]
        )
    )
    found = LLMExtractor(Config(endpoint=server.url)).extract(
        ["one", "two", "three", "four", "", " "], domain
    )
    expected = (Triplet("the strings break", topic, "negative"),)
    assert [one.triplets for one in found] == [expected, expected, (), (), (), ()]
    assert [one.status for one in found] == ["ok", "cut", "empty", "failed", "empty", "empty"]
    assert all(name in server.requested[0]["messages"][0]["content"] for name in domain.topics)


def test_a_question_without_an_answer_is_a_counted_failure_of_that_text(serve):
    server = serve(lambda body, attempt: (400, {}, {"error": "no"}) if "bad" in str(body) else said("[]"))
    bad, good = LLMExtractor(Config(endpoint=server.url)).extract(["a bad one", "fine"], load_domain("toys"))
    assert bad.status == "failed" and sum(bad.left_out.values()) == 1 and good.status == "empty"


def test_the_judge_reads_probabilities_or_the_bare_answer(serve):
    top = [{"token": token, "logprob": np.log(p)} for token, p in (("1", 0.6), (" 1", 0.1), ("0", 0.2))]
    reported = {
        "soft": said("1", logprobs={"content": [{"top_logprobs": top}]}),
        "plain": said(" 1\n"),
        "no": said("0."),
        "odd": said("10"),
    }
    server = serve(lambda body, attempt: reported[body["messages"][1]["content"].split("\n")[1]])
    claim = Triplet("it is good", "sound", "positive")
    pairs = [(Document(name, ()), claim) for name in [*reported, ""]]
    with pytest.warns(UserWarning, match="1 of 4"):
        found = LLMJudge(JudgeConfig(endpoint=server.url)).support(pairs)
    np.testing.assert_allclose(found, [0.7 / 0.9, 1, 0, np.nan, 0])
    with pytest.warns(UserWarning):
        hard = LLMJudge(JudgeConfig(endpoint=server.url, answer="hard")).support(pairs)
    np.testing.assert_array_equal(hard, [1, 1, 0, np.nan, 0])
    assert len(server.requested) == 4  # the second judge reads the cache; an empty text is not queried


def test_impossible_probabilities_fail_that_text_alone_and_without_any_the_answer_is_read(serve):
    def reply(body, attempt):
        impossible = "impossible" in str(body["messages"])
        top = [{"token": "1", "logprob": 1000.0}] if impossible else []
        return said("1", logprobs={"content": [{"top_logprobs": top}]})

    claim = Triplet("it is good", "sound", "positive")
    judge = LLMJudge(JudgeConfig(endpoint=serve(reply).url, retries=0))
    with pytest.warns(UserWarning, match="1 of 2"):
        found = judge.support([(Document(name, ()), claim) for name in ("impossible", "fine")])
    np.testing.assert_array_equal(found, [np.nan, 1])


def test_a_verdict_without_probability_on_the_options_is_undecided(serve):
    top = [{"token": token, "logprob": p} for token, p in (("<think>", -1e-7), ("1", -18.0), ("0", -20.0))]
    server = serve(lambda body, attempt: said("<think>", logprobs={"content": [{"top_logprobs": top}]}))
    pairs = [(Document("a text", ()), Triplet("it is good", "sound", "positive"))]
    with pytest.warns(UserWarning, match="1 of 1 verdicts of judge llm are undecided"):
        assert np.isnan(LLMJudge(JudgeConfig(endpoint=server.url)).support(pairs)).all()
    assert LLMJudge(JudgeConfig(endpoint=server.url, min_mass=0.0)).support(pairs) == pytest.approx(
        1 / (1 + np.exp(-2))
    )


def test_reasoning_is_not_an_answer(serve):
    answers = {
        "one": "<think>Nothing here: [] is tempting",
        "two": "<think>perhaps []</think>\n```json\n[]\n```",
        "three": "perhaps [] </think> sorry",
    }
    server = serve(
        lambda body, attempt: said(
            next(a for name, a in answers.items() if f"\n{name}\n" in body["messages"][1]["content"])
        )
    )
    found = LLMExtractor(Config(endpoint=server.url)).extract(list(answers), load_domain("toys"))
    assert [one.status for one in found] == ["failed", "empty", "failed"]


def test_a_strict_parse_takes_nothing_but_the_digit():
    assert [strict(text, ("1", "0")) for text in ("1", "0", " **1** ", "'0'.", "10", "1 or 0", "yes", "")] == [
        1, 0, 1, 0, None, None, None, None,
    ]  # fmt: skip


def test_tokens_and_cost_are_those_of_the_responses_that_are_used_also_of_cached_ones(serve):
    server = serve(lambda body, attempt: said("1", usage=(1000, 20)))
    source = ChatSource(endpoint=server.url, model="m", input_price=3.0, output_price=10.0)
    for _ in range(2):
        chat = Chat(source)
        chat.write([Prompt("", "a"), Prompt("", "b"), Prompt("", "a")], 10)
        chat.write([Prompt("", "b")], 10)
        expected = {"responses": 2, "input_tokens": 2000, "output_tokens": 40, "cost": pytest.approx(0.0064)}
        assert chat.usage() == expected
    assert len(server.requested) == 2


def test_responses_that_cannot_be_used_are_paid_for_as_well(serve):
    """The first prompt is answered at the second attempt, the other one never."""
    broken = (200, {}, {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 3}})

    def reply(body, attempt):
        last = body["messages"][-1]["content"] == "never"
        return broken if last or attempt == 0 else said("1", usage=(10, 1))

    source = ChatSource(endpoint=serve(reply).url, retries=1, input_price=1e6, output_price=1e5)
    chat = Chat(source)
    with pytest.warns(IncompleteWarning, match="1 of 2 prompts"):
        chat.write([Prompt("", "once"), Prompt("", "never")], 10)
    assert chat.usage() == {"responses": 1, "input_tokens": 40, "output_tokens": 10, "cost": 41.0}


@pytest.mark.parametrize("usage", [None, (None, "many"), (-1, 0)])
def test_tokens_that_a_server_does_not_count_are_not_reported(serve, usage):
    chat = Chat(ChatSource(endpoint=serve(lambda body, attempt: said("1", usage=usage)).url))
    chat.choose([Prompt("", "a")])
    assert chat.usage() == {"responses": 1}


def test_progress_counts_the_distinct_prompts_of_a_batch_cached_and_failed_ones_included(serve):
    def reply(body, attempt):
        return (400, {}, {}) if "bad" in body["messages"][1]["content"] else echo(body, attempt)

    chat, reported = Chat(ChatSource(endpoint=serve(reply).url, model="m")), []
    chat.write([Prompt("", "a")], 10)
    chat.begin(lambda done, total: reported.append((done, total)))
    with pytest.warns(UserWarning, match="1 of 4 prompts"):
        chat.write([Prompt("", text) for text in ("a", "b", "bad", "b", "c")], 10)
    assert reported == [(2, 4), (3, 4), (4, 4)]
