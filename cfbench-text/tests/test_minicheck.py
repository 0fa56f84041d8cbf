"""The judge by MiniCheck's models, on tiny models in their layouts, against transformers called directly."""

import numpy as np
import pytest

from cfbench_core.errors import ResultWarning, UserError
from cfbench_text.documents import Document
from cfbench_text.judges.minicheck import Config, MiniCheck, chunked
from cfbench_text.models.tiny import classifier, t5
from cfbench_text.triplets import PlainStatement, Triplet

torch = pytest.importorskip("torch", reason="needs cfbench-text[models]")
transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = ["the sound is good. the price is low.", "strings break", "the tone is rich and the price is high"]
CLAIMS = ["the tone is good", "the price is low and the strings break", "bad sound"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def encoder(tmp_path):
    return classifier(tmp_path, ["LABEL_0", "LABEL_1"])


def asked():
    return [(Document(text, ()), PlainStatement(claim)) for text in TEXTS for claim in CLAIMS]


def test_an_encoder_gives_the_probability_of_its_second_class(encoder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(encoder).eval()
    expected = []
    for text in TEXTS:
        for claim in CLAIMS:
            with torch.no_grad():
                logits = model(**tokenizer(f"{text}[SEP]{claim}", return_tensors="pt")).logits
            expected.append(float(torch.softmax(logits[0].double(), dim=-1)[1]))
    found = MiniCheck(Config(model=str(encoder), batch=4)).support(asked())
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(found) > 0.01


def test_an_encoder_decoder_gives_the_probability_of_1_against_0(tmp_path):
    folder = t5(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    zero, one = tokenizer.convert_tokens_to_ids(["0", "1"])
    expected = []
    for text in TEXTS:
        for claim in CLAIMS:
            given = tokenizer(f"predict: {text}[SEP]{claim}", return_tensors="pt")
            with torch.no_grad():
                start = torch.zeros((1, 1), dtype=torch.long)
                logits = model(input_ids=given["input_ids"], decoder_input_ids=start).logits[0, 0]
            expected.append(float(torch.softmax(logits[[zero, one]].double(), dim=-1)[1]))
    found = MiniCheck(Config(model=str(folder), batch=4)).support(asked())
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(found) > 1e-3


def test_the_best_chunk_of_a_long_text_counts(encoder):
    parts = ["the sound is good.", "the price is low.", "strings break."]
    claim = PlainStatement("the tone is rich")
    judge = MiniCheck(Config(model=str(encoder), chunk=5))
    alone = judge.support([(Document(part, ()), claim) for part in parts])
    together = judge.support([(Document(" ".join(parts), ()), claim)])
    np.testing.assert_allclose(together, [alone.max()])


def test_chunks_by_hand():
    def words(text):
        return len(text.split())

    assert list(chunked(["a b", "c", "d e f", "g"], 3, words)) == ["a b c", "d e f", "g"]
    assert list(chunked(["a b c d", "e"], 3, words)) == ["a b c d", "e"]
    assert list(chunked([], 3, words)) == []


def test_line_breaks_stay_in_a_chunk(encoder):
    assert MiniCheck(Config(model=str(encoder)))._chunks("A b. C d.\nE f.") == ["A b. C d.\nE f."]


def test_statements_are_judged_with_their_sentiment_unless_bare(encoder):
    statement = Triplet("the sound is good", "sound", "negative")
    document = Document("the tone is good", ())
    whole, bare = (MiniCheck(Config(model=str(encoder), bare=bare)) for bare in (False, True))
    written = PlainStatement("The user may dislike that the sound is good.")
    assert whole.support([(document, statement)]) == pytest.approx(whole.support([(document, written)]))
    plain = PlainStatement("the sound is good")
    assert bare.support([(document, statement)]) == pytest.approx(whole.support([(document, plain)]))


def test_an_empty_text_supports_nothing(encoder):
    judge = MiniCheck(Config(model=str(encoder)))
    found = judge.support([(Document(text, ()), PlainStatement("the sound is good")) for text in ("", " \n")])
    assert found.tolist() == [0, 0]
    assert judge.support([]).shape == (0,)


def test_an_input_that_is_too_long_is_reported(encoder):
    statement = PlainStatement(" ".join(["the sound is good"] * 200))
    with pytest.warns(ResultWarning, match="1 inputs are longer than 512 tokens"):
        MiniCheck(Config(model=str(encoder))).support([(Document("the tone", ()), statement)])


def test_an_nli_model_is_refused(tmp_path):
    folder = classifier(tmp_path, ["entailment", "neutral", "contradiction"])
    with pytest.raises(UserError, match="has 3 labels: a model of minicheck has two"):
        MiniCheck(Config(model=str(folder))).support(asked())
