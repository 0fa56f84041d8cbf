import json

import numpy as np
import pytest

from cfbench_text.documents import Document
from cfbench_text.domains import load_domain
from cfbench_text.extractors.llm import Config, LLMExtractor, pieces, system_prompt
from cfbench_text.judges.llm import Config as JudgeConfig
from cfbench_text.judges.llm import LLMJudge
from cfbench_text.models.chat import Chat
from cfbench_text.models.chat_types import ChatSource, Prompt
from cfbench_text.models.tiny import causal
from cfbench_text.response_parsing import read_answer
from cfbench_text.triplets import Triplet

transformers = pytest.importorskip("transformers", reason="needs cfbench-text[models]")

PROMPTS = [
    Prompt("the user", text) for text in ("the sound is good", "price", "strings break and they may " * 5, "")
]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(causal(tmp_path_factory.mktemp("model")))


def literal(folder, prompt, tokens):
    """The likeliest token, again and again, without a cache; and the probabilities of the first."""
    import torch

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = tokenizer(f"{prompt.system} {prompt.user} ")["input_ids"]
    written, first = [], None
    while len(written) < tokens:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids + written])).logits[0, -1]
        first = torch.softmax(logits, dim=-1) if first is None else first
        if int(logits.argmax()) == model.config.eos_token_id:
            break
        written.append(int(logits.argmax()))
    ones = [float(first[tokenizer.convert_tokens_to_ids(digit)]) for digit in "10"]
    return tokenizer.decode(written, skip_special_tokens=True), len(written) == tokens, ones


def test_writing_is_greedy_whatever_is_in_the_batch(folder):
    expected = [literal(folder, prompt, 12)[:2] for prompt in PROMPTS]
    for batch in (1, 4):
        source = ChatSource(model=folder, batch=batch, revision=str(batch))
        found = list(Chat(source)._model().write(PROMPTS, 12))
        assert [(said.text, said.cut) for _, said in sorted(found, key=lambda one: one[0])] == expected


def test_decoding_is_greedy_regardless_of_the_models_settings(folder, tmp_path):
    model = causal(tmp_path)
    settings = json.loads((model / "generation_config.json").read_text())
    own = {"repetition_penalty": 5.0, "no_repeat_ngram_size": 2, "num_beams": 3, "min_new_tokens": 9}
    (model / "generation_config.json").write_text(json.dumps(settings | own | {"do_sample": True}))
    assert Chat(ChatSource(model=str(model))).write(PROMPTS, 12) == Chat(ChatSource(model=folder)).write(
        PROMPTS, 12
    )


def test_choices_are_probabilities_of_the_next_token(folder):
    ones = [literal(folder, prompt, 1)[2] for prompt in PROMPTS]
    found = Chat(ChatSource(model=folder, batch=3)).choose(PROMPTS)
    np.testing.assert_allclose([choice.p for choice in found], [p / (p + q) for p, q in ones], atol=1e-5)
    np.testing.assert_allclose([choice.mass for choice in found], [p + q for p, q in ones], atol=1e-5)


def test_responses_are_cached(folder, monkeypatch):
    first = Chat(ChatSource(model=folder)).write(PROMPTS, 5)
    chat = Chat(ChatSource(model=folder))
    monkeypatch.setattr(chat, "_model", lambda: pytest.fail("the model is queried again"))
    assert chat.write(PROMPTS, 5) == first


def test_a_prompt_that_does_not_fit_is_a_failure_and_never_cut(tmp_path):
    chat = Chat(ChatSource(model=str(causal(tmp_path, context=40))))
    fits, long = chat.write([Prompt("", "price"), Prompt("", "price " * 100)], 10)
    assert not fits.failure and "exceeds the context of the model" in long.failure
    assert chat.choose([Prompt("", "price " * 100)])[0].failure


def test_a_base_model_without_a_chat_template_gets_plain_paragraphs(tmp_path):
    assert Chat(ChatSource(model=str(causal(tmp_path, template=None)))).write(PROMPTS[:1], 3)[0].text


def test_extractor_and_judge_run_on_it(folder):
    domain = load_domain("toy-reviews")
    found = LLMExtractor(Config(model=folder, tokens=5)).extract(["the sound is good", ""], domain)
    assert [one.status for one in found] == ["failed", "empty"]  # it writes nonsense, and that is counted
    assert found[0].left_out == {"no array": 1}
    claim = Triplet("the sound is good", "sound", "positive")
    pairs = [(Document("the sound is good", ()), claim), (Document("", ()), claim)]
    judge = LLMJudge(JudgeConfig(model=folder, min_mass=0.0))
    support = judge.support(pairs)
    assert 0 < support[0] < 1 and support[1] == 0
    with pytest.warns(UserWarning, match="1 of 1 verdicts of judge llm are undecided"):  # a random model is
        support = LLMJudge(JudgeConfig(model=folder)).support(pairs)
    np.testing.assert_array_equal(support, [np.nan, 0.0])
    assert {"prompt", "files", "decoding"} <= set(judge.signature())
    long = [(Document("sound " * 3000, ()), claim)]
    with pytest.warns(UserWarning, match="exceeds the context of the model"):
        assert np.isnan(judge.support(long)).all()


@pytest.mark.parametrize("words", [10, 25, 400])
def test_pieces_lose_no_word_and_end_at_sentence_ends(words):
    text = " ".join(f"Sentence {place} has some seven words here." for place in range(40))
    found = pieces(text, words)
    assert " ".join(found).split() == text.split()
    assert all(len(piece.split()) <= words for piece in found)
    if words >= 7:
        assert all(piece.endswith(".") for piece in found)


def test_a_sentence_longer_than_a_piece_is_divided_between_words():
    assert pieces("one two three four five six seven eight nine ten eleven. Twelve.", 10) == [
        "one two three four five six seven eight nine ten",
        "eleven. Twelve.",
    ]
    assert pieces("word " * 20_000, 400) == [" ".join(["word"] * 400)] * 50
    assert pieces("  ", 10) == [] and pieces("x.\ny", 10) == ["x.\ny"]


def test_what_a_model_copies_from_the_prompt_is_no_statement():
    domain = load_domain("toys")
    assert (
        read_answer(system_prompt(domain).split("The form of the answer:")[1], domain.topics).triplets == ()
    )
