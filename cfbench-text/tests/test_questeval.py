import importlib.util
import json
import sys

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.questeval import Config, QuestEval, token_f1
from cfbench_text.models.loading import find_local
from cfbench_text.models.questions import AnswerSource, QuestionSource, Reply


class Words:
    """Every word is an answer, as often as it is there."""

    def select(self, texts):
        return [text.split() for text in texts]


class WhatFollows:
    """Asks what comes after the word before the answer; nothing of the first word. Counts its questions."""

    def __init__(self):
        self.requested = []

    def generate(self, pairs):
        self.requested += pairs
        return [question_of(answer, text) for answer, text in pairs]


class Reader:
    """Answers with the two words after the one in question; more certain for long texts."""

    def __init__(self):
        self.requested = []

    def answer(self, pairs):
        self.requested += pairs
        return [answer_of(question, text) for question, text in pairs]


def question_of(answer, text):
    place = text.split().index(answer)
    return "" if place == 0 else f"after {text.split()[place - 1]}?"


def answer_of(question, text):
    words, before = text.split(), question.removeprefix("after ").removesuffix("?")
    if before not in words:
        return Reply("unanswerable", 0.1)
    place = words.index(before)
    return Reply(" ".join(words[place + 1 : place + 3]), 1 - 1 / len(words))


def measured(texts, references, empty="zero", **options):
    metric = QuestEval(Config(**options))
    metric._selector, metric._generator, metric._answerer = Words(), WhatFollows(), Reader()
    none = [()] * len(texts)
    found = metric.compute(ObservedTexts(texts, references, none, none, load_domain("toys"), empty))
    assert list(found) == [column.name for column in metric.columns({})]
    return np.stack(list(found.values()), axis=1), metric


def test_the_smallest_example():
    """Of the text: what follows red? car. Of the reference: what follows red? bus; what follows bus? stop."""
    found, _ = measured(["red car"], ["red bus stop"], scores=("f1",))
    # P: "car" against "bus stop": 0. R: "bus" against "car": 0; "stop" against "unanswerable": 0.
    np.testing.assert_allclose(found, [[0, 0, 0]])
    found, _ = measured(["red bus"], ["red bus stop"], scores=("f1",))
    # P: "bus" against "bus stop": 2/3. R: "bus" against "bus": 1; "stop" against nothing: 0.
    np.testing.assert_allclose(found, [[2 / 3, 1 / 2, 4 / 7]])
    found, _ = measured(["red bus"], ["red bus stop"], scores=("f1",), mean="arithmetic")
    np.testing.assert_allclose(found, [[2 / 3, 1 / 2, 7 / 12]])


TEXTS = ["a red bus is red", "a bus", "", "one two three four", "x", "a red bus is red", ""]
REFERENCES = ["the red bus is a bus", "a red bus is red", "a bus", "", "one two", "one two three four", ""]


def literal_f1(answer, other):
    """Words taken off one by one."""

    def words(text):
        bare = "".join(c for c in text.lower() if c not in "?.,!'\"-")
        return [word for word in bare.split() if word not in ("a", "an", "the")]

    mine, left = words(answer), words(other)
    if not mine or not left:
        return float(mine == left)
    shared, n = 0, len(left)
    for word in mine:
        if word in left:
            left.remove(word)
            shared += 1
    precision, recall = shared / n, shared / len(mine)
    return 0.0 if shared == 0 else 2 * precision * recall / (precision + recall)


def literal_side(mine, other, scores, empty):
    """Questions about ``mine``, answered in ``other``, one at a time."""

    def requested(text):
        return [(q, word) for word in text.split() if (q := question_of(word, text))]

    if not requested(mine):
        return np.nan
    if not requested(other):
        return 0.0 if empty == "zero" else np.nan
    values = []
    for question, answer in requested(mine):
        reply = answer_of(question, other)
        every = {"f1": literal_f1(answer, reply.text), "answerability": reply.answerable}
        values += [every[score] for score in scores]
    return np.mean(values)


@pytest.mark.parametrize("empty", ["zero", "skip"])
@pytest.mark.parametrize("mean", ["harmonic", "arithmetic"])
@pytest.mark.parametrize("scores", [("f1",), ("answerability",), ("f1", "answerability")])
def test_equals_the_definition_read_literally(scores, mean, empty):
    found, metric = measured(TEXTS, REFERENCES, empty, scores=scores, mean=mean)
    for row, (text, reference) in enumerate(zip(TEXTS, REFERENCES, strict=True)):
        p, r = literal_side(text, reference, scores, empty), literal_side(reference, text, scores, empty)
        a, b = (np.nan_to_num(p), np.nan_to_num(r)) if empty == "zero" else (p, r)
        f = (a + b) / 2 if mean == "arithmetic" else 2 * a * b / (a + b) if a + b != 0 else 0.0
        f = np.nan if np.isnan(p) and np.isnan(r) else f
        np.testing.assert_allclose(found[row], [p, r, f], err_msg=str(row))
    for plugin in (metric._generator, metric._answerer):
        assert len(set(plugin.requested)) == len(plugin.requested)  # each question once


def test_no_question_is_generated_if_one_side_is_empty():
    found, metric = measured(["", "a bus"], ["a bus", "x"])
    np.testing.assert_array_equal(found, [[np.nan, 0, 0], [0, np.nan, 0]])
    assert metric._answerer.requested == []


def test_directions_are_not_swapped():
    here, _ = measured(TEXTS, REFERENCES)
    there, _ = measured(REFERENCES, TEXTS)
    np.testing.assert_array_equal(here[:, 0], there[:, 1])
    np.testing.assert_array_equal(here[:, 2], there[:, 2])
    assert (here[:, 0] != here[:, 1])[:2].all()


def test_f1_of_answers():
    assert token_f1("The red bus.", "a RED bus!") == 1
    assert token_f1("bus", "unanswerable") == 0
    assert token_f1("two two one", "two one one") == pytest.approx(2 / 3)
    assert token_f1("", "the") == 1 and token_f1("", "bus") == 0
    draw = np.random.default_rng(0)
    for _ in range(200):
        one, other = (" ".join(draw.choice(["a", "b", "c", "the", "d."], draw.integers(0, 6))) for _ in "12")
        assert token_f1(one, other) == pytest.approx(literal_f1(one, other))


def test_bertscore_of_answers_is_that_of_the_metric(tmp_path, monkeypatch):
    pytest.importorskip("transformers", reason="needs cfbench-text[models]")
    from cfbench_text.metrics import bertscore
    from cfbench_text.metrics.questeval import Similarity
    from cfbench_text.models.tiny import encoder

    folder = str(encoder(tmp_path))
    text, reference = "the sound is good", "the sound is bad and the tone is rich"
    found, metric = measured(
        [text], [reference], scores=("bertscore", "f1"), similarity=Similarity(model=folder, layer=2)
    )
    oracle = bertscore.BERTScore(bertscore.Config(model=folder, layer=2))

    def similar(answer, reply):
        one = ObservedTexts([reply], [answer], [()], [()], load_domain("toys"))
        return float(np.clip(oracle.compute(one)["BERTScore-F"][0], 0, 1))

    requested = [(question_of(word, text), word) for word in text.split()[1:]]
    pairs = [(word, answer_of(question, reference).text) for question, word in requested]
    expected = np.mean([(similar(*pair) + literal_f1(*pair)) / 2 for pair in pairs])
    assert found[0, 0] == pytest.approx(expected, abs=1e-6)
    assert any("similarity" in key for key in metric.signature())


def test_errors_of_wrong_options_name_valid_ones(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="each once"):
        Config(scores=())
    with pytest.raises(ValueError, match=r"\{question\} and \{text\}"):
        AnswerSource(form="{question}")
    with pytest.raises(UserError, match="must be rules, or import:MODULE:CLASS"):
        QuestEval(Config(selector="spacy"))._selector  # noqa: B018
    with pytest.raises(UserError, match="no_such_module"):
        QuestEval(Config(selector="import:no_such_module:Mine"))._selector  # noqa: B018


def test_user_plugins_are_imported_and_reported(tmp_path, monkeypatch):
    (tmp_path / "my_questions.py").write_text(
        "class Two:\n"
        "    def select(self, texts):\n"
        "        return [['one', 'two'] for text in texts]\n"
        "class Ask:\n"
        "    def __init__(self, source):\n"
        "        self.source = source\n"
        "    def generate(self, pairs):\n"
        "        return [f'{answer} {{text}}?' for answer, text in pairs]\n"
        "    def signature(self):\n"
        "        return {'questions': 'mine'}\n"
        "class Few:\n"
        "    def __init__(self, source): ...\n"
        "    def answer(self, pairs):\n"
        "        return []\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    metric = QuestEval(
        Config(
            selector="import:my_questions:Two",
            generator=QuestionSource(model="import:my_questions:Ask"),
            answerer=AnswerSource(model="import:my_questions:Few"),
        )
    )
    reported = metric.signature()
    assert reported["generator questions"] == "mine" and reported["mean"] == "harmonic"
    assert reported["answerer plugin"] == "import:my_questions:Few"
    with pytest.raises(UserError, match="returned 0 results for 4 queries"):
        metric.compute(ObservedTexts(["x"], ["y"], [()], [()], load_domain("toys")))
    sys.modules.pop("my_questions")


def test_the_published_values_imply_the_harmonic_mean(data):
    """They were made by three models that are not here; that the reference counts where it is better than the source,
    and that the corpus score is the plain mean of the texts', can be read off them without."""
    published = json.loads((data / "expected" / "metric_expected_values.json").read_text())["questeval_t2t"]
    res = published["res"]
    for scored in res.values():
        np.testing.assert_allclose(np.mean(scored["ex_level_scores"]), scored["corpus_score"], atol=1e-8)
    best = np.maximum(res["source"]["ex_level_scores"], res["reference"]["ex_level_scores"])
    np.testing.assert_allclose(best, res["source_reference"]["ex_level_scores"], atol=1e-8)


PUBLISHED = ("ThomasNLG/t5-qg_squad1-en", "ThomasNLG/t5-qa_squad2neg-en", "bert-base-multilingual-cased")


def absent():
    """What of the published set-up is not on this machine."""
    if any(importlib.util.find_spec(name) is None for name in ("spacy", "transformers", "en_core_web_sm")):
        return "spacy with en_core_web_sm, and transformers"
    from huggingface_hub import try_to_load_from_cache

    here = [
        find_local(name) or isinstance(try_to_load_from_cache(name, "config.json"), str) for name in PUBLISHED
    ]
    return ", ".join(name for name, there in zip(PUBLISHED, here, strict=True) if not there)


@pytest.mark.slow
@pytest.mark.skipif(bool(absent()), reason=f"the published values need {absent()}")
def test_published_values(data, tmp_path, monkeypatch):
    """With the library's models, selector, scores and mean. Never run where the models were not in the local cache."""
    import spacy

    class Spacy:
        pipeline = spacy.load("en_core_web_sm")

        def select(self, texts):
            found = []
            for text in texts:
                doc = self.pipeline(text)
                first = self.pipeline(" ".join(str(sentence) for sentence in list(doc.sents)[:5]))
                found.append([*map(str, first.ents), *map(str, first.noun_chunks)])
            return found

    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    published = json.loads((data / "expected" / "metric_expected_values.json").read_text())["questeval_t2t"]
    metric = QuestEval(
        Config(
            generator=QuestionSource(tokens=19),
            answerer=AnswerSource(tokens=19),
            scores=("answerability", "bertscore", "f1"),
            mean="arithmetic",
        )
    )
    metric._selector = Spacy()
    none = [()] * 3
    references = [one for (one,) in published["ref"]]
    for name, others in (("reference", references), ("source", published["src"])):
        given = ObservedTexts(published["hyp"], others, none, none, load_domain("toys"))
        expected = published["res"][name]["ex_level_scores"]
        # spaCy's chunks differ a little between its versions
        np.testing.assert_allclose(metric.compute(given)["QuestEval-F"], expected, atol=0.02)
