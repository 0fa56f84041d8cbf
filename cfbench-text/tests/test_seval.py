import json

import numpy as np
import pytest

from cfbench_core.errors import IncompleteWarning
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.seval import SYSTEM, Config, SEval
from cfbench_text.models.chat_types import Completion, OptionProbabilities


class Model:
    """Finds a statement at every full stop, and supports one whose words are all in the text. Counts its questions."""

    def __init__(self, says=None):
        self.says, self.divided, self.judged = says or {}, [], []

    def write(self, prompts, tokens):
        for place, prompt in reversed(list(enumerate(prompts))):
            text = prompt.user.removeprefix("Text:\n").removesuffix("\n\nList its statements.")
            self.divided.append(text)
            yield place, self.says.get(text, Completion(json.dumps(statements_of(text))))

    def choose(self, prompts, options):
        assert options == ("1", "0")
        for place, prompt in enumerate(prompts):
            text, _, rest = prompt.user.removeprefix("Text:\n").partition("\n\nStatement:\n")
            statement = rest.partition("\n\nIs the statement")[0]
            self.judged.append((text, statement))
            yield place, self.says.get(statement, OptionProbabilities(sureness(text, statement)))


def statements_of(text):
    return [one.strip() for one in text.split(".") if one.strip()]


def sureness(text, statement):
    """The share of the statement's words that are in the text, never 0.5."""
    said = statement.split()
    share = sum(word in text.replace(".", " ").split() for word in said) / len(said)
    return share if share != 0.5 else 0.49


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))


def score(texts, references, model=None, empty="zero", **options):
    metric, model = SEval(Config(endpoint="http://127.0.0.1:9/v1", **options)), model or Model()
    metric._chat._back_end = model
    none = [()] * len(texts)
    found = metric.compute(ObservedTexts(texts, references, none, none, load_domain("toys"), empty))
    assert list(found) == [column.name for column in metric.columns({})]
    return np.stack(list(found.values()), axis=1)


def test_one_statement_of_two_is_supported_and_one_of_three_covered():
    found = score(["red. big."], ["red. new. cheap."])
    np.testing.assert_allclose(found, [[1 / 2, 1 / 3, 0.4]])


TEXTS = ["a b. c. d e f.", "a. a. b c.", "", "x y z.", "a b.", ""]
REFERENCES = ["a b c. d. q", "c b a.", "a b.", "", "a b.", ""]


@pytest.mark.parametrize("answer", ["hard", "soft"])
@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_equals_equation_3_read_literally(answer, empty):
    model = Model()
    found = score(TEXTS, REFERENCES, model, empty, answer=answer)
    for row, (text, reference) in enumerate(zip(TEXTS, REFERENCES, strict=True)):
        mine, other = set(statements_of(text)), set(statements_of(reference))
        nothing = 0.0 if empty == "zero" else np.nan

        def mean(statements, against, document, without):
            if not statements:
                return np.nan
            if not against:
                return without
            values = [sureness(document, one) for one in statements]
            return np.mean([value > 0.5 for value in values] if answer == "hard" else values)

        p, r = mean(mine, other, reference, nothing), mean(other, mine, text, nothing)
        if not mine and not other:
            f = np.nan
        elif empty == "zero":
            f = 0.0 if not mine or not other or p + r == 0 else 2 * p * r / (p + r)
        else:
            f = np.nan if not mine or not other else 0.0 if p + r == 0 else 2 * p * r / (p + r)
        np.testing.assert_allclose(found[row], [p, r, f], err_msg=str(row))
    assert sorted(model.divided) == sorted(
        {*TEXTS, *REFERENCES} - {""}
    )  # each once, and the empty text never
    assert len(set(model.judged)) == len(model.judged)


def test_the_second_line_of_the_papers_equation_is_recall():
    here, there = score(TEXTS, REFERENCES), score(REFERENCES, TEXTS)
    np.testing.assert_array_equal(here[:, 0], there[:, 1])
    np.testing.assert_array_equal(here[:, 2], there[:, 2])


def test_a_text_that_cannot_be_divided_is_missing_and_reported_not_empty():
    says = {"bad": Completion("I cannot do that."), "cut": Completion('["it is red", "it is b', cut=True)}
    says |= {"gone": Completion(failure="HTTP 500"), "copied": Completion('["<first statement>", ...]')}
    texts = ["bad", "cut", "gone", "copied", "it is red."]
    with pytest.warns(UserWarning, match="3 of 5 texts could not be divided") as reported:
        found = score(texts, ["it is red."] * 5, Model(says))
    (message,) = [text for text in map(str, (one.message for one in reported)) if "divided" in text]
    assert "no response: HTTP 500: 1" in message and "no array: 1" in message
    assert "placeholder of the prompt: 1" in message
    assert np.isnan(found[[0, 2, 3]]).all()
    np.testing.assert_array_equal(found[4], [1, 1, 1])
    np.testing.assert_array_equal(
        found[1], [1, 0, 0]
    )  # one whole statement; "cut" itself says nothing of red


def test_an_empty_list_is_an_answer():
    found = score(["hm"], ["it is red."], Model({"hm": Completion("[]")}))
    np.testing.assert_array_equal(found, [[np.nan, 0, 0]])


def test_a_long_text_is_divided_in_pieces_and_loses_nothing():
    model = Model()
    text = " ".join(f"part {place} is good." for place in range(30))
    found = score([text], [text], model, words=10)
    np.testing.assert_array_equal(found, [[1, 1, 1]])
    assert len(model.divided) > 10 and len(model.judged) == 30


def test_an_undecided_verdict_is_missing_from_the_mean_and_reported():
    says = {"it is red": OptionProbabilities(None)}
    with pytest.warns(UserWarning, match="1 of 3 verdicts of metric seval are undecided"):
        found = score(["it is red. big."], ["big."], Model(says))
    assert found[0, 0] == 1.0  # of "big" alone


@pytest.mark.parametrize("empty", ["zero", "skip"])
def test_a_text_without_any_verdict_has_no_score(empty):
    says = {"it is blue": OptionProbabilities(None, failure="HTTP 500")}
    with pytest.warns(IncompleteWarning, match="1 of 2 prompts to .* have no response"):
        found = score(["it is blue."], ["it is big."], Model(says), empty=empty)
    assert np.isnan(found).all()


def test_template_words_belong_to_the_text_and_no_topic_is_needed():
    assert "topic" not in SYSTEM and "sentiment" not in SYSTEM
    model = Model()
    score(["The user would appreciate this product because a."], ["a."], model)
    assert ("a.", "The user would appreciate this product because a") in model.judged
    assert ("The user would appreciate this product because a.", "a") in model.judged


def test_responses_are_cached_and_the_signature_records_model_and_prompts():
    first = score(TEXTS, REFERENCES)

    class Silent:
        def write(self, prompts, tokens):
            pytest.fail("it is queried again")

        choose = write

    np.testing.assert_array_equal(score(TEXTS, REFERENCES, Silent()), first)
    signature = SEval(Config(endpoint="http://127.0.0.1:9/v1", model="m")).signature()
    assert signature["model"] == "m" and {"prompts", "direction", "decoding"} <= set(signature)
