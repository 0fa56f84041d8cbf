"""Point of view, sentences and clauses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_text.sentence_segmentation import clauses, sentences
from cfbench_text.third_person import as_statement, third_person


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("I love my strings", "they love their strings"),
        ("I'm glad it suits me", "they are glad it suits them"),
        ("I was told we've won", "they were told they have won"),
        ("I’d say it fits our needs", "they would say it fits their needs"),
        ("this one is mine", "this one is theirs"),
    ],
)
def test_the_first_person_becomes_the_third(said, reported):
    assert third_person(said) == reported


@pytest.mark.parametrize(
    "text",
    [
        "made in the US",
        "made in the U.S.A.",
        "the Mark I pedal",
        "works with type I batteries",
        "strings, i.e. nickel",
        "a gold mine",
        "the mine worker",
        "runs Windows ME",
        "Fender I/O box",
        "army of ants",
    ],
)
def test_what_only_looks_like_a_pronoun_stays(text):
    assert third_person(text) == text


@given(st.text(alphabet="abcdefgh .,", max_size=40))
def test_texts_without_a_first_person_stay(text):
    assert third_person(text) == text


def test_a_capital_goes_only_where_it_is_no_name():
    assert as_statement("The tone is  warm") == "the tone is warm"
    assert as_statement("Fender makes it") == "Fender makes it"


def test_sentences():
    assert sentences("It costs 3.5 dollars. Nice!Great tone.It hums... Yes? \"Really.\" e.g. this one. End") == [
        "It costs 3.5 dollars.", "Nice!", "Great tone.", "It hums...", "Yes?", '"Really."', "e.g. this one.", "End",
    ]  # fmt: skip


def test_clauses():
    assert clauses("And the tone is warm, but the strap broke; it hums, and the price is fair.") == [
        "the tone is warm", "the strap broke", "it hums", "the price is fair",
    ]  # fmt: skip


@given(st.text(max_size=60))
def test_no_letter_is_lost_by_splitting_into_sentences(text):
    kept = "".join("".join(sentences(text)).split())
    assert kept == "".join(text.split())
