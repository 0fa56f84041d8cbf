import pytest

from cfbench_text.models.phrases import Phrases, normal


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The sound is warm.", ["The sound", "warm"]),
        ("I broke the string after two days", ["the string", "two days"]),
        ("They hold tune well.", ["tune"]),
        ("The neck of the guitar gave me a bright tone.", ["The neck", "the guitar", "a bright tone"]),
        ("Bought this Fender Stratocaster in 2012 for $3.50!", ["this Fender Stratocaster", "2012", "3.50"]),
        ("It didn’t break, and it’s long enough to reach my amp", ["long", "my amp"]),
        ("They dislike that the cable is too short", ["the cable", "short"]),
        ("the price it has", ["the price"]),
        ("a top-notch set of D'Addario strings", ["a top-notch set", "D'Addario strings"]),
        ("It is.", []),
        ("", []),
        ("🎸👍 ...", []),
        ("الصوت جميل", ["الصوت جميل"]),
    ],
)
def test_phrases_of_one_sentence(text, expected):
    assert Phrases().select([text]) == [expected]


def test_a_phrase_is_there_once_whatever_its_case_and_article():
    assert Phrases().select(["The sound! A sound? sound. the warm sound"]) == [
        ["The sound", "the warm sound"]
    ]


def test_all_sentences_count_by_default():
    text = " ".join(f"The part{place} is here." for place in range(8))
    assert len(Phrases().select([text])[0]) == 8
    assert Phrases(5).select([text])[0] == [f"The part{place}" for place in range(5)]


def test_phrases_stand_in_the_text_and_long_texts_take_linear_time():
    text = "word the other " * 20_000
    found = Phrases().select([text])[0]
    assert found and all(phrase in text for phrase in found)


def test_answers_are_compared_as_squad_does():
    assert normal("The U.S. is, an  example-text!") == ("us", "is", "exampletext")
    assert normal("a the an") == ()
