import importlib.metadata
import sys

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.bleurt import BLEURT, Config
from cfbench_text.models import tiny
from cfbench_text.models.pair_values import first_only, longest_first

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = ["the sound is good", "price", "the strings break . they may", "", "the tone", "price"]
REFERENCES = [
    "the sound is bad",
    "the price is low",
    "easy tone",
    "bad tone and rich sound",
    "",
    "the price is low",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT with one output, as the PyTorch copies of the published checkpoints are."""
    return str(tiny.classifier(tmp_path_factory.mktemp("model"), ["LABEL_0"]))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def score(config, texts=TEXTS, references=REFERENCES):
    none = [()] * len(texts)
    return BLEURT(config).compute(ObservedTexts(texts, references, none, none, load_domain("toys")))["BLEURT"]


def literal(folder, reference, text, cut=None):
    """One pair by itself, put together by hand: [CLS] reference [SEP] text [SEP]."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    first, second = (tokenizer(one, add_special_tokens=False)["input_ids"] for one in (reference, text))
    if cut is not None:
        while len(first) + len(second) > cut - 3:
            (first if len(first) > len(second) else second).pop()
    ids = [2, *first, 3, *second, 3]
    kinds = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    with torch.no_grad():
        return float(model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([kinds])).logits[0, 0])


@pytest.mark.parametrize("batch", [1, 2, 32])
def test_equals_one_pair_at_a_time_reference_first(folder, batch):
    found = score(Config(model=folder, batch=batch))
    expected = [literal(folder, reference, text) for text, reference in zip(TEXTS, REFERENCES, strict=True)]
    known = [0, 1, 2, 3, 5]
    np.testing.assert_allclose(found[known], np.array(expected)[known], atol=1e-5)
    assert np.isnan(found[4])  # no reference
    swapped = literal(folder, TEXTS[0], REFERENCES[0])
    assert abs(found[0] - swapped) > 1e-3


def test_long_pairs_lose_the_end_of_the_longer_text_and_are_counted(folder):
    texts = ["the sound is good and rich", "the price " * 20, "good", "sound " * 9]
    references = ["easy tone", "the strings may break " * 8, "bad " * 30, "rich " * 9]
    with pytest.warns(
        UserWarning, match=r"3 of 4 pairs are longer than the 16 tokens that .* reads, and are cut"
    ):
        found = score(Config(model=folder, limit=16), texts, references)
    expected = [literal(folder, *pair, cut=16) for pair in zip(references, texts, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_limit_of_the_model_holds_when_none_is_given(folder):
    with pytest.warns(UserWarning, match="longer than the 512 tokens"):
        found = score(Config(model=folder), ["the sound " * 300], ["the tone " * 300])
    assert found == pytest.approx(literal(folder, "the tone " * 300, "the sound " * 300, cut=512), abs=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_of_two_texts_is_what_taking_one_token_after_the_other_leaves(seed):
    draw = np.random.default_rng(seed)
    for _ in range(50):
        first, second = draw.integers(0, 40, size=2).tolist()
        room = int(draw.integers(1, max(first + second, 2)))
        if first + second > room:
            left = [first, second]
            while sum(left) > room:
                left[0 if left[0] > left[1] else 1] -= 1
            assert list(longest_first(first, second, room)) == left
            claim = first_only(first, second, room)
            assert sum(claim) == room and (claim[1] == second or second >= room)


def test_a_pair_is_computed_once_and_cached(folder, monkeypatch):
    config = Config(model=folder)
    first = score(config)
    requested = []
    monkeypatch.setattr(BLEURT, "_load", lambda self: requested.append(self))
    np.testing.assert_array_equal(score(config), first)
    assert not requested


def test_no_rows(folder):
    assert score(Config(model=folder), [], []).shape == (0,)


def test_a_model_with_several_outputs_is_no_bleurt(tmp_path):
    model = str(tiny.classifier(tmp_path, ["entailment", "neutral", "contradiction"]))
    with pytest.raises(UserError, match="has 3 outputs: BLEURT needs one") as error:
        score(Config(model=model))
    assert "\n" not in str(error.value)


def test_a_model_with_code_of_its_own_is_refused_with_one_line(folder, tmp_path):
    import json
    import shutil
    from pathlib import Path

    shutil.copytree(folder, tmp_path / "model")
    settings = tmp_path / "model" / "config.json"
    settings.write_text(json.dumps(json.loads(Path(settings).read_text()) | {"model_type": "bleurt"}))
    with pytest.raises(UserError, match=r"cannot be loaded.*bleurt") as error:
        score(Config(model=str(tmp_path / "model")))
    assert "\n" not in str(error.value)


def test_without_the_extra_the_error_names_what_to_install(folder, monkeypatch):
    def version(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"needs transformers: pip install 'cfbench-text\[models\]'"):
        score(Config(model=folder))


def test_the_signature_records_order_limit_and_files(folder):
    signature = BLEURT(Config(model=folder, limit=128)).signature()
    assert signature["direction"] == "reference, then text" and signature["limit"] == "128"
    assert signature["files"] and signature["transformers"] and folder not in str(signature)
