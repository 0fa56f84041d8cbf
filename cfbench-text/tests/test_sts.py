import json

import numpy as np
import pytest

from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.sts import STS, Config
from cfbench_text.models.tiny import encoder
from cfbench_text.models.tokens import Encoder

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


TEXTS = ["the sound is good", "price", "the strings break . they may", "", "the tone", "easy"]
REFERENCES = ["the sound is bad", "the price is low", "easy tone", "bad tone", "", "easy"]


def score(folder, **options):
    none = [()] * len(TEXTS)
    return STS(Config(model=str(folder), **options)).compute(
        ObservedTexts(TEXTS, REFERENCES, none, none, load_domain("toys"))
    )["STS"]


def literal(folder, text, reference, pooling):
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        both = [
            model(**tokenizer(one, return_tensors="pt")).last_hidden_state[0] for one in (text, reference)
        ]
    u, v = (one[0] if pooling == "cls" else one.mean(dim=0) for one in both)
    return float(torch.cosine_similarity(u, v, dim=0))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_equals_the_literal_loop_with_the_models_pooling(tmp_path, pooling):
    folder = encoder(tmp_path)
    (folder / "1_Pooling").mkdir()
    reported = {"pooling_mode_cls_token": pooling == "cls", "pooling_mode_mean_tokens": pooling == "mean"}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(reported))
    found = score(folder, batch=2)
    expected = [literal(folder, *pair, pooling) for pair in list(zip(TEXTS, REFERENCES, strict=True))[:3]]
    np.testing.assert_allclose(found[:3], expected, atol=1e-5)
    assert found[3] == 0 and np.isnan(found[4]) and found[5] == pytest.approx(1, abs=1e-6)


def test_the_models_limit_holds_and_truncated_texts_are_reported(tmp_path):
    folder = encoder(tmp_path)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 4}')
    with pytest.warns(UserWarning, match="texts are longer than the 4 tokens"):
        found = score(folder)
    assert np.isfinite(found[:3]).all()


def test_an_embedding_is_computed_once_for_all_who_write(tmp_path, monkeypatch):
    folder, requested = encoder(tmp_path), []
    embeddings = Encoder.embeddings

    def counted(self, texts):
        requested.append(list(texts))
        return embeddings(self, texts)

    monkeypatch.setattr(Encoder, "embeddings", counted)
    first = score(folder)
    np.testing.assert_array_equal(score(folder), first)  # another metric object, as in the next cell
    assert len(requested) == 1 and sorted(requested[0]) == sorted(
        {*TEXTS, *REFERENCES} - {"", "bad tone", "the tone"}
    )
    score(folder, dtype="bfloat16")
    assert len(requested) == 2  # another model is queried again
