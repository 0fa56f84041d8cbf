"""The judge by FactCG's model, on a tiny model in its layout, against transformers called directly."""

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.documents import Document
from cfbench_text.judges.factcg import Config, FactCG
from cfbench_text.models.tiny import classifier
from cfbench_text.triplets import PlainStatement

torch = pytest.importorskip("torch", reason="needs cfbench-text[models]")
transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

PROMPT = "text: {text_a} . statement: {text_b} ? the"
"""Of our own: what matters here is where the parts stand."""


@pytest.fixture
def judge(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    folder = classifier(tmp_path / "model", ["LABEL_0", "LABEL_1"])
    (tmp_path / "prompt.txt").write_text(PROMPT)

    def make(**options):
        return FactCG(Config(**{"model": str(folder), "prompt": str(tmp_path / "prompt.txt"), **options}))

    return make


def test_probability_of_the_second_class_for_the_prompt(judge):
    made = judge()
    tokenizer = transformers.AutoTokenizer.from_pretrained(made.config.model)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(made.config.model).eval()
    cases = [("the sound is good", "the tone is bad"), ("{text_b} strings", "the price is {text_a}")]
    expected = []
    for text, claim in cases:
        written = f"text: {text} . statement: {claim} ? the"
        with torch.no_grad():
            logits = model(**tokenizer(written, return_tensors="pt")).logits
        expected.append(float(torch.softmax(logits[0].double(), dim=-1)[1]))
    found = made.support([(Document(text, ()), PlainStatement(claim)) for text, claim in cases])
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert found[0] != found[1]


def test_chunks_have_a_sentence_on_each_line_and_the_best_one_counts(judge):
    made = judge(chunk=11)
    text = "The sound is good. The price is low. Strings break."
    assert made._chunks(text) == ["The sound is good.\nThe price is low.", "Strings break."]
    claim = PlainStatement("the tone is rich")
    alone = judge(chunk=550).support([(Document(chunk, ()), claim) for chunk in made._chunks(text)])
    assert made.support([(Document(text, ()), claim)])[0] == pytest.approx(alone.max())
    assert made.support([(Document(" ", ()), claim)]).tolist() == [0]


@pytest.mark.parametrize("prompt", ["{text_a}", "no place", "{text_a} {text_a} {text_b}"])
def test_a_prompt_without_its_places_is_refused(judge, tmp_path, prompt):
    (tmp_path / "other.txt").write_text(prompt)
    with pytest.raises(UserError, match="once each"):
        judge(prompt=str(tmp_path / "other.txt")).signature()
    with pytest.raises(UserError, match="cannot be read"):
        judge(prompt=str(tmp_path / "missing.txt")).signature()


def test_another_prompt_is_another_judge(judge, tmp_path):
    (tmp_path / "other.txt").write_text(PROMPT + " good")
    assert judge().signature() != judge(prompt=str(tmp_path / "other.txt")).signature()
