import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.bertscore import BERTScore, Config
from cfbench_text.models.tiny import encoder, roberta

pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = [
    "the sound is good",
    "price",
    "the strings break . they may",
    "bad tone and rich sound is easy",
    "the tone",
]
REFERENCES = [
    "the sound is bad",
    "the price is low",
    "easy tone",
    "bad tone and rich sound is easy",
    "the low tone ?",
]


def answers(texts, references):
    none = [()] * len(texts)
    return ObservedTexts(texts, references, none, none, load_domain("toys"))


def scores(config, texts=TEXTS, references=REFERENCES):
    found = BERTScore(config).compute(answers(texts, references))
    return np.array([found[f"BERTScore-{name}"] for name in "PRF"]).T


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(encoder(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    path = tmp_path_factory.mktemp("baseline") / "tiny.tsv"
    path.write_text("LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.3,0.31,0.32\n2,0.4,0.41,0.42\n3,0.5,0.6,0.7\n")
    return str(path)


def literal(folder, text, reference, layer, special, before=""):
    """One pair, word by word."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()

    def vectors(words):
        with torch.no_grad():
            hidden = model(
                **tokenizer(before + words, return_tensors="pt"), output_hidden_states=True
            ).hidden_states[layer][0]
        return [v / v.norm() for v in hidden]

    mine, others = vectors(text), vectors(reference)

    def mean(these, those):
        matched = those if special else those[1:-1]
        return float(np.mean([max(float(v @ w) for w in matched) for v in these[1:-1]]))

    p, r = mean(mine, others), mean(others, mine)
    return [p, r, 2 * p * r / (p + r)]


@pytest.mark.parametrize("layer", [1, 3])
@pytest.mark.parametrize("special", ["match", "leave-out"])
def test_equals_the_literal_loop(folder, layer, special):
    found = scores(Config(model=folder, layer=layer, special=special, batch=2))
    expected = [
        literal(folder, *pair, layer, special == "match") for pair in zip(TEXTS, REFERENCES, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("layer", [1, 3])
@pytest.mark.parametrize("rescaled", [False, True])
def test_equals_bert_score(folder, baseline, layer, rescaled):
    bert_score = pytest.importorskip("bert_score", reason="the reference implementation is the oracle")
    expected = bert_score.score(
        TEXTS, REFERENCES, model_type=folder, num_layers=layer, lang="en", device="cpu",
        rescale_with_baseline=rescaled, baseline_path=baseline,
    )  # fmt: skip
    found = scores(Config(model=folder, layer=layer, baseline=baseline if rescaled else None))
    np.testing.assert_allclose(found, np.array([values.numpy() for values in expected]).T, atol=1e-5)


def test_special_tokens_matter_only_as_what_others_match(folder):
    with_them, without = (scores(Config(model=folder, layer=2, special=s)) for s in ("match", "leave-out"))
    assert (with_them >= without - 1e-9).all() and (with_them > without + 1e-6).any()


def test_a_text_like_its_reference_has_one_an_empty_one_nothing(folder, baseline):
    texts, references = ["the sound", "", " ", "a", ""], ["the sound", "the sound", "a", "", ""]
    found = scores(Config(model=folder, layer=2), texts, references)
    np.testing.assert_allclose(found[:3], [[1] * 3, [0] * 3, [0] * 3], atol=1e-6)
    assert np.isnan(found[3:]).all()
    rescaled = scores(Config(model=folder, layer=2, baseline=baseline), texts, references)
    np.testing.assert_allclose(rescaled[1], [-0.4 / 0.6, -0.41 / 0.59, -0.42 / 0.58], atol=1e-9)


def test_the_published_baseline_is_read(data, folder):
    path = data / "expected" / "bert_score_baseline_en_roberta-large.tsv"
    metric = BERTScore(Config(model=folder, layer=17, baseline=str(path)))
    given = [0.9843302369117737, 0.9823839068412781, 0.9833561182022095]
    expected = [0.907000780105591, 0.895456790924072, 0.901383399963379]  # of bert-score's own tests
    b = metric._baseline()
    np.testing.assert_allclose((np.array(given) - b) / (1 - b), expected, atol=2e-6)


def test_a_layer_that_the_model_or_the_baseline_has_not_or_no_file(folder, baseline, tmp_path):
    with pytest.raises(UserError, match="layers 0 to 3, and no layer 17"):
        scores(Config(model=folder, layer=17), ["a"], ["a"])
    (tmp_path / "short.tsv").write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n")
    with pytest.raises(UserError, match="no layer 2"):
        scores(Config(model=folder, baseline=str(tmp_path / "short.tsv"), layer=2), ["a"], ["a"])
    with pytest.raises(UserError, match="no such file"):
        scores(Config(model=folder, baseline="nowhere.tsv", layer=1), ["a"], ["a"])


def test_the_first_word_is_one_like_the_others_to_roberta(tmp_path):
    folder = str(roberta(tmp_path))
    found = scores(Config(model=folder, layer=2))
    pairs = list(zip(TEXTS, REFERENCES, strict=True))
    np.testing.assert_allclose(found, [literal(folder, *pair, 2, True, " ") for pair in pairs], atol=1e-5)
    assert np.abs(found - [literal(folder, *pair, 2, True) for pair in pairs]).max() > 1e-3
