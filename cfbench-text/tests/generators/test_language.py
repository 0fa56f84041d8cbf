from hypothesis import given
from hypothesis import strategies as st

from cfbench_text.generators.language import END, SPECIAL, UNKNOWN, Vocabulary, joined, words_of


def test_punctuation_is_split_off_and_carries_the_space_before_it():
    assert words_of("Great, it's 3.5 kg (heavy).") == [
        " Great",
        ",",
        " it's",
        " 3.5",
        " kg",
        " (",
        "heavy",
        ")",
        ".",
    ]


def test_runs_of_blanks_become_one():
    assert words_of("  a \n\n b\t") == [" a", " b"]
    assert words_of(" \n ") == []


@given(st.text())
def test_a_text_comes_back(text):
    assert joined(words_of(text)) == " ".join(text.split())


@given(st.text(alphabet="ab ,.\"'1.", max_size=40))
def test_a_text_of_much_punctuation_comes_back(text):
    assert joined(words_of(text)) == " ".join(text.split())


def test_the_most_frequent_words_are_known_the_first_seen_of_equals():
    assert Vocabulary.of(["b a", "a c b"], 2).words == (" b", " a")
    assert len(Vocabulary.of(["b a", "a c b"], 2)) == SPECIAL + 2


def test_other_words_are_unknown_and_the_end_is_always_there():
    known = Vocabulary((" a", " b"))
    assert known.encode("a c b", 10) == [SPECIAL, UNKNOWN, SPECIAL + 1, END]
    assert known.encode("a c b", 1) == [SPECIAL, END]


def test_a_text_without_words_has_not_even_an_end():
    assert Vocabulary((" a",)).encode("  ", 10) == []


def test_decoding_stops_at_the_end():
    known = Vocabulary((" a", " b", "."))
    assert known.decode([SPECIAL, SPECIAL + 2, END, SPECIAL + 1]) == "a."
    assert known.decode(known.encode("b a.", 9)) == "b a."
