import itertools

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.documents import Document
from cfbench_text.judges.nli import NLI, Config
from cfbench_text.models.pairs import Pairs, PairSource, label_order
from cfbench_text.models.tiny import classifier
from cfbench_text.triplets import Triplet, render, sentence

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

LABELS = ["entailment", "neutral", "contradiction"]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def statements():
    return [
        Triplet("the sound is good", "sound", "positive"),
        Triplet("the sound is bad", "sound", "negative"),
        Triplet("the price is low and the strings break", "price", "positive"),
        Triplet("the tone", "sound", "neutral"),
    ]


def literal(folder, premise, hypothesis):
    """One pair at a time, by the names of the labels."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
    with torch.no_grad():
        logits = model(**tokenizer(premise, hypothesis, return_tensors="pt")).logits[0]
    p = torch.softmax(logits, dim=-1)
    return [float(p[model.config.label2id[name]]) for name in ("entailment", "contradiction", "neutral")]


def test_probabilities_are_the_models_own(tmp_path):
    folder = classifier(tmp_path / "model", LABELS)
    pairs = list(itertools.product(statements(), repeat=2))
    found = NLI(Config(model=str(folder), batch=3)).entailment(pairs)
    expected = [literal(folder, sentence(one), sentence(other)) for one, other in pairs]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.ptp(found[:, 0]) > 0.01  # the model does tell pairs apart


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_order_of_labels_is_the_models(tmp_path, order):
    pairs = [(statements()[0], statements()[1]), (statements()[2], statements()[0])]
    plain = NLI(Config(model=str(classifier(tmp_path / "plain", LABELS)))).entailment(pairs)
    folder = classifier(tmp_path / "other", [LABELS[place].upper() for place in order], list(order))
    other = NLI(Config(model=str(folder))).entailment(pairs)
    np.testing.assert_allclose(other, plain, atol=1e-6)


def test_labels_in_any_spelling_two_labels_and_unknown_ones():
    assert label_order(["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], "m") == (2, 0, 1)
    assert label_order(["not_entailment", "entailment"], "m") == (1, None, 0)
    assert label_order(["Entailed", "Contradicted", "Neutral"], "m") == (0, 1, 2)
    for labels in (["LABEL_0", "LABEL_1", "LABEL_2"], ["entailment", "entailment", "neutral"], ["neutral"]):
        with pytest.raises(UserError, match="labels"):
            label_order(labels, "m")


def test_labels_can_be_given_for_a_model_that_does_not_name_them(tmp_path):
    folder = str(classifier(tmp_path / "model", ["LABEL_0", "LABEL_1", "LABEL_2"]))
    named = Pairs(PairSource(model=str(classifier(tmp_path / "named", LABELS))))
    reported = Pairs(PairSource(model=folder, labels=tuple(LABELS)))
    pairs = [("the sound is good", "the sound is bad")]
    np.testing.assert_allclose(reported.probabilities(pairs), named.probabilities(pairs), atol=1e-6)
    with pytest.raises(UserError, match="LABEL_0"):
        Pairs(PairSource(model=folder)).probabilities(pairs)


def test_a_model_of_two_labels_sees_no_contradiction(tmp_path):
    folder = classifier(tmp_path / "model", ["entailment", "not_entailment"])
    found = Pairs(PairSource(model=str(folder))).probabilities([("the sound", "the price"), ("", "a")])
    assert (found[:, 1] == 0).all() and np.allclose(found.sum(axis=1), 1)


def test_each_distinct_pair_is_computed_once_and_cached(tmp_path, monkeypatch):
    folder = str(classifier(tmp_path / "model", LABELS))
    computed = []
    plain = Pairs._computed

    def counted(self, pairs):
        computed.extend(pairs)
        return plain(self, pairs)

    monkeypatch.setattr(Pairs, "_computed", counted)
    pairs = [("a", "the"), ("the", "a"), ("a", "the")] * 50
    first = Pairs(PairSource(model=folder)).probabilities(pairs)
    again = Pairs(PairSource(model=folder)).probabilities([*pairs, ("sound", "sound")])
    assert len(computed) == 3
    np.testing.assert_array_equal(again[: len(pairs)], first)


def test_support_is_that_of_the_best_statement(tmp_path):
    judge = NLI(Config(model=str(classifier(tmp_path / "model", LABELS))))
    said, requested = tuple(statements()[:3]), statements()[3]
    found = judge.support([(Document("", ()), requested), (Document(render(said), said), requested)])
    best = max(judge.entailment([(one, requested)])[0, 0] for one in said)
    np.testing.assert_allclose(found, [0, best], atol=1e-6)


def test_a_model_that_is_not_there_is_one_clear_line(tmp_path):
    for name, why in [
        ("nobody/no-such-model", "download: true"),
        (str(tmp_path / "nowhere"), "no such folder"),
        ("package:no_such_package_at_all", "is installed; pip install no-such-package-at-all"),
    ]:
        with pytest.raises(UserError, match=why) as error:
            Pairs(PairSource(model=name)).probabilities([("a", "b")])
        assert len(error.value.lines) == 1 and "\n" not in str(error.value)


def test_a_pair_that_is_too_long_is_cut_with_a_warning(tmp_path):
    pairs = Pairs(PairSource(model=str(classifier(tmp_path / "model", LABELS))))
    with pytest.warns(UserWarning, match="1 pairs are longer than the 512"):
        found = pairs.probabilities([("sound " * 600, "the sound"), ("a", "the")])
    assert np.isfinite(found).all()


def test_the_signature_depends_on_the_files_and_never_on_the_path(tmp_path):
    one = NLI(Config(model=str(classifier(tmp_path / "a" / "model", LABELS)))).signature()
    same = NLI(Config(model=str(classifier(tmp_path / "b" / "model", LABELS)))).signature()
    other = NLI(Config(model=str(classifier(tmp_path / "c" / "model", LABELS[::-1])))).signature()
    assert one == same != other
    assert str(tmp_path) not in str(one) and {"files", "torch", "transformers"} <= set(one)
