import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.questeval import Config, QuestEval
from cfbench_text.models.loading import Source
from cfbench_text.models.questions import AnswerSource, QuestionSource, Seq2SeqAnswers, Seq2SeqQuestions
from cfbench_text.models.seq2seq import Seq2SeqWriter
from cfbench_text.models.tiny import t5

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

TEXTS = ["the sound is good", "price", "strings break and they may " * 5, "", "the tone is rich", "a user"]
WORD = "bad"
NO_END = pytest.mark.filterwarnings("ignore:.* answers have no end", "ignore:.* questions have no end")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(t5(tmp_path_factory.mktemp("model")))


def literal(folder, text, tokens):
    """The likeliest token, again and again, without a cache: (text, whether it was cut, p of WORD at the first place)."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder).eval()
    ids = torch.tensor([tokenizer(text)["input_ids"]], dtype=torch.long)
    written, first = [model.config.decoder_start_token_id], None
    while len(written) <= tokens:
        with torch.no_grad():
            logits = model(input_ids=ids, decoder_input_ids=torch.tensor([written])).logits[0, -1]
        first = torch.softmax(logits.double(), dim=-1) if first is None else first
        if int(logits.argmax()) == model.config.eos_token_id:
            break
        written.append(int(logits.argmax()))
    word = float(first[tokenizer.convert_tokens_to_ids(WORD)])
    return tokenizer.decode(written[1:], skip_special_tokens=True), len(written) > tokens, word


@pytest.mark.parametrize("batch", [1, 4])
def test_writing_is_greedy_whatever_is_in_the_batch(folder, batch):
    texts = [
        *(text for text in TEXTS if text),
        "The user </s> price",
        "sv1 </s> The user </s> The sound is good.",
    ]
    found = Seq2SeqWriter(Source(model=folder, batch=batch)).write(texts, 10, WORD)
    expected = [literal(folder, text, 10) for text in texts]
    assert [(one.text, one.cut) for one in found] == [one[:2] for one in expected]
    np.testing.assert_allclose([one.first for one in found], [one[2] for one in expected], rtol=1e-4)
    assert {one.cut for one in found} == {True, False}


def test_the_models_own_beams_and_penalties_do_not_count(folder, tmp_path):
    model = transformers.T5ForConditionalGeneration.from_pretrained(folder)
    model.generation_config.update(num_beams=3, no_repeat_ngram_size=2, repetition_penalty=4.0)
    model.save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    assert Seq2SeqWriter(Source(model=str(tmp_path))).write(TEXTS[:3], 10) == Seq2SeqWriter(
        Source(model=folder)
    ).write(TEXTS[:3], 10)


def test_outputs_are_cached_and_computed_once(folder, monkeypatch):
    first = Seq2SeqWriter(Source(model=folder)).write(["price", "price", "a user"], 5, WORD)
    assert first[0] == first[1]
    again = Seq2SeqWriter(Source(model=folder))
    monkeypatch.setattr(again, "_written", lambda *_: pytest.fail("it is asked again"))
    assert again.write(["a user", "price"], 5, WORD) == [first[2], first[0]]


def test_a_text_beyond_what_the_model_reads_is_cut_with_a_warning(folder):
    with pytest.warns(UserWarning, match="1 texts are longer than the 512 tokens"):
        long, short = Seq2SeqWriter(Source(model=folder)).write(["price " * 600, "price " * 512], 5)
    assert long == short


@NO_END
def test_forms_are_filled_and_answerability_is_what_the_word_leaves(folder):
    pairs = [("good {text}", "the sound {answer} is good"), ("price", "the price is low")]
    questions = Seq2SeqQuestions(QuestionSource(model=folder, form="easy {answer} : {text}", tokens=6))
    inputs = [f"easy {answer} : {text}" for answer, text in pairs]
    with pytest.warns(UserWarning, match="questions have no end within 6 tokens"):
        assert questions.generate(pairs) == [literal(folder, text, 6)[0] for text in inputs]
    answers = Seq2SeqAnswers(AnswerSource(model=folder, unanswerable=WORD, tokens=40))
    replies = answers.answer(pairs)
    expected = [literal(folder, f"{question} </s> {text}", 40) for question, text in pairs]
    assert [reply.text for reply in replies] == [one[0] for one in expected]
    np.testing.assert_allclose(
        [reply.answerable for reply in replies], [1 - one[2] for one in expected], rtol=1e-5
    )
    with pytest.raises(UserError, match="no token for 'unanswerable'"):
        Seq2SeqAnswers(AnswerSource(model=folder)).answer([("sound", "the tone")])


@NO_END
def test_the_metric_runs_on_it_and_equals_a_loop_over_rows(folder):
    given = {
        "generator": QuestionSource(model=folder, tokens=5),
        "answerer": AnswerSource(model=folder, tokens=5, unanswerable=WORD),
    }
    texts = ["The sound is good.", "price", "", "the strings break"]
    references = ["the sound is bad and the tone is rich", "low price", "the tone and the price", ""]
    domain = load_domain("toys")

    def score(rows):
        some = [texts[row] for row in rows], [references[row] for row in rows]
        none = [()] * len(rows)
        return np.stack(
            list(QuestEval(Config(**given)).compute(ObservedTexts(*some, none, none, domain)).values()),
            axis=1,
        )

    together = score(range(4))
    np.testing.assert_allclose(together, np.concatenate([score([row]) for row in range(4)]))
    assert (together[:2] > 0).all() and np.isnan(together[2, 0]) and together[2, 1] == 0
    signature = QuestEval(Config(**given)).signature()
    assert {"generator files", "answerer files", "selector rules", "mean", "weights"} <= set(signature)
