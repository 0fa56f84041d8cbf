"""The paragraph and its exact inverse."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_text.triplets import FIRST, LATER, SENTIMENTS, Triplet, canonical, parse, render, sentence

PAPER = (
    Triplet("it is very comfortable", "comfort", "positive"),
    Triplet("it causes feet to feel hotter", "comfort", "negative"),
    Triplet("it is a bit larger", "fit", "neutral"),
)
NASTY = st.sampled_from(
    [
        ", and ", ", ", "and ", '"', '""', '", and "', ".", ". ", "..", " ", "\n", ". However, they may dislike that ",
        ". They seem indifferent to ", ". The user may dislike that", "3.5", "e.g.", "However, they", "ö", "🎸", "مرحبا",
        *FIRST.values(), *LATER.values(),
    ]
)  # fmt: skip
STATEMENT = st.lists(st.one_of(NASTY, st.text(max_size=6)), min_size=1, max_size=5).map("".join)
TRIPLETS = st.lists(st.builds(Triplet, STATEMENT, st.just("t"), st.sampled_from(SENTIMENTS)), max_size=6)


def test_the_example_of_the_paper():
    text = (
        "The user would appreciate this product because it is very comfortable. However, they may dislike that it "
        "causes feet to feel hotter. They seem indifferent to it is a bit larger."
    )
    assert render(PAPER) == text
    topics = {triplet.statement: triplet.topic for triplet in PAPER}
    assert parse(text, topics.__getitem__) == PAPER


def test_the_first_sentence_names_the_user_whatever_its_sentiment():
    assert render(PAPER[1:]).startswith("The user may dislike that it causes")
    assert render(PAPER[2:]) == "The user seems indifferent to it is a bit larger."
    assert render(()) == "" and parse("", str) == ()


def test_duplicates_are_removed_and_sentiments_come_in_order():
    twice = (PAPER[2], PAPER[0], PAPER[2], PAPER[0])
    assert canonical(twice) == (PAPER[0], PAPER[2])
    assert render(twice).count("comfortable") == 1


@pytest.mark.parametrize(
    "statement", ["red, and blue", '"quoted" it is', "a. However, they may dislike that b", " "]
)
def test_what_looks_like_the_template_stands_in_quotation_marks(statement):
    triplets = (Triplet(statement, "t", "positive"), Triplet("plain", "t", "positive"))
    assert '"' in render(triplets)
    assert parse(render(triplets), lambda _: "t") == triplets


@settings(max_examples=1500, deadline=None)
@given(TRIPLETS)
def test_parse_is_the_inverse_of_render_for_any_text(triplets):
    triplets = canonical(triplets)
    assert parse(render(triplets), lambda _: "t") == triplets


@settings(max_examples=300, deadline=None)
@given(TRIPLETS)
def test_topics_come_back_where_they_are_known(triplets):
    topics = {t.statement: f"topic {place}" for place, t in enumerate(triplets)}
    named = canonical(Triplet(t.statement, topics[t.statement], t.sentiment) for t in triplets)
    assert parse(render(named), topics.__getitem__) == named


def test_a_text_that_a_model_cut_short_is_read_as_far_as_it_goes():
    found = parse("The user would appreciate this product because it is red, and it is bl", lambda _: "")
    assert [t.statement for t in found or ()] == ["it is red", "it is bl"]


@pytest.mark.parametrize("text", ["I love it.", "The user would like it.", " The user may dislike that x."])
def test_other_texts_are_not_in_the_form(text):
    assert parse(text, str) is None


def test_a_statement_alone_is_a_sentence_with_its_sentiment():
    assert sentence(PAPER[1]) == "The user may dislike that it causes feet to feel hotter."
