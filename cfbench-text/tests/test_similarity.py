"""The judge by sentence embeddings, against cosines computed one by one."""

import numpy as np
import pytest

from cfbench_text.documents import Document
from cfbench_text.judges.similarity import Config, Similarity
from cfbench_text.models.tiny import encoder
from cfbench_text.triplets import Triplet

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return encoder(tmp_path)


def cosine(folder, *texts):
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        u, v = (
            model(**tokenizer(one, return_tensors="pt")).last_hidden_state[0].mean(dim=0) for one in texts
        )
    return float(torch.cosine_similarity(u, v, dim=0))


def of(statement, topic="sound", sentiment="positive"):
    return Triplet(statement, topic, sentiment)


def test_topic_and_sentiment_decide_what_the_cosine_means(folder):
    one, words = of("the sound is good"), "the tone is bad"
    alike = max(0.0, cosine(folder, one.statement, words))
    cases = [
        (of(words), [alike, 0, 1 - alike]),
        (of(words, sentiment="negative"), [0, alike, 1 - alike]),
        (of(words, sentiment="neutral"), [0, 0, 1]),
        (of(words, topic="price"), [0, 0, 1]),
        (one, [1, 0, 0]),
    ]
    found = Similarity(Config(model=str(folder))).entailment([(one, other) for other, _ in cases])
    np.testing.assert_allclose(found, [expected for _, expected in cases], atol=1e-5)


def test_opposite_embeddings_have_similarity_zero(folder, monkeypatch):
    judge = Similarity(Config(model=str(folder)))
    monkeypatch.setattr(judge._embeddings, "cosines", lambda pairs: np.full(len(pairs), -0.4))
    np.testing.assert_array_equal(judge.entailment([(of("a"), of("b"))]), [[0, 0, 1]])


def test_a_document_supports_as_its_best_statement_does(folder):
    judge = Similarity(Config(model=str(folder)))
    said = (of("the strings break"), of("the sound is good"))
    requested = [(Document("", said), of("the sound is good")), (Document("", ()), of("the sound is good"))]
    np.testing.assert_allclose(judge.support(requested), [1, 0], atol=1e-6)
    assert judge.support([]).shape == (0,)
