"""LettuceDetect on a tiny ModernBERT in the published layout, against transformers called directly."""

import numpy as np
import pytest

from cfbench_core.errors import ResultWarning, UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.lettucedetect import Config, LettuceDetect, Span, spans_of
from cfbench_text.models.tiny import token_classifier

torch = pytest.importorskip("torch", reason="needs cfbench-text[models]")
transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

REFERENCES = [
    "the sound is good. the price is low.",
    "strings break",
    "the tone is rich and the price is high",
]
TEXTS = [
    "bad sound, the price is low and the strings break",
    "the tone is good because strings break",
    "easy",
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return token_classifier(tmp_path_factory.mktemp("model"))


def observed(texts=TEXTS, references=REFERENCES):
    none = [()] * len(texts)
    return ObservedTexts(texts, references, none, none, load_domain("toys"))


def by_characters(model, reference, text, **options):
    """For each character of the text whether a token that covers it is likelier hallucinated; one pair at a time."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    network = transformers.AutoModelForTokenClassification.from_pretrained(model).eval()
    prompt = f"Summarize the following text:\npassage 1: {reference}\noutput:"
    given = tokenizer(prompt, text, return_tensors="pt", return_offsets_mapping=True, **options)
    offsets = given.pop("offset_mapping")[0].tolist()
    count = len(tokenizer(text, add_special_tokens=False)["input_ids"])
    with torch.no_grad():
        logits = network(input_ids=given["input_ids"], attention_mask=given["attention_mask"]).logits[0]
    mine = range(len(offsets) - count - 1, len(offsets) - 1)
    marked = np.zeros(len(text), dtype=bool)
    for token in mine:
        if logits[token, 1] > logits[token, 0]:
            marked[slice(*offsets[token])] = True
            if token - 1 in mine and logits[token - 1, 1] > logits[token - 1, 0]:
                marked[offsets[token - 1][1] : offsets[token][0]] = True  # the blank within a span
    return marked


def test_the_spans_are_the_tokens_that_the_model_rejects(model):
    metric = LettuceDetect(Config(model=str(model), batch=2))
    expected = [by_characters(model, *pair) for pair in zip(REFERENCES, TEXTS, strict=True)]
    for text, spans, marked in zip(TEXTS, metric.spans(observed()), expected, strict=True):
        found = np.zeros(len(text), dtype=bool)
        for span in spans:
            assert 0 <= span.start < span.end <= len(text) and 0.5 < span.p <= 1
            found[span.start : span.end] = True
        np.testing.assert_array_equal(found, marked)
    share = metric.compute(observed())["LettuceDetect"]
    np.testing.assert_allclose(share, [marked.mean() for marked in expected])
    assert share[:2].max() > 0 and share.min() < 1


def test_neighbouring_tokens_are_one_span_and_only_those_of_the_text_count():
    p = np.array([0.9, 0.9, 0.1, 0.7, 0.8, 0.2, 0.6, 0.9])
    offsets = [(0, 0), (0, 3), (0, 0), (0, 3), (4, 7), (7, 8), (9, 12), (0, 0)]
    parts = [None, 0, None, 1, 1, 1, 1, None]
    assert spans_of(p, offsets, parts) == [Span(0, 7, 0.8), Span(9, 12, 0.6)]
    assert spans_of(np.full(8, 0.5), offsets, parts) == []


def test_a_long_reference_is_truncated_and_the_text_is_not(model):
    reference = " ".join(["the sound is good"] * 40)
    metric = LettuceDetect(Config(model=str(model), tokens=64))
    (spans,) = metric.spans(observed(TEXTS[:1], [reference]))
    marked = by_characters(model, reference, TEXTS[0], truncation="only_first", max_length=64)
    assert sum(span.end - span.start for span in spans) == marked.sum()


def test_blank_texts_have_no_spans_and_without_a_reference_there_is_no_score(model):
    metric = LettuceDetect(Config(model=str(model)))
    found = metric.compute(observed(["", "the sound"], ["the sound", " "]))["LettuceDetect"]
    np.testing.assert_array_equal(found, [0.0, np.nan])


def test_a_text_that_is_too_long_is_counted(model):
    metric = LettuceDetect(Config(model=str(model), tokens=8))
    with pytest.warns(ResultWarning, match="1 texts are longer than the 8 tokens"):
        found = metric.compute(observed([TEXTS[0], "easy"], ["good", "good"]))["LettuceDetect"]
    assert np.isnan(found[0]) and found[1] in (0.0, 1.0)


def test_spans_are_cached(model, monkeypatch):
    first = LettuceDetect(Config(model=str(model))).spans(observed())
    monkeypatch.setattr(LettuceDetect, "_computed", lambda *args: pytest.fail("computed again"))
    assert LettuceDetect(Config(model=str(model))).spans(observed()) == first


def test_other_models_and_prompts_are_refused(tmp_path):
    with pytest.raises(UserError, match="has 3 labels: a model of LettuceDetect has two"):
        LettuceDetect(Config(model=str(token_classifier(tmp_path, 3)))).spans(observed())
    with pytest.raises(ValueError, match="once"):
        Config(prompt="no place")
