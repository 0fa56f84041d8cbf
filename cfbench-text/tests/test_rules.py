"""Reviews into statements by rules."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_text.datasets.toy_reviews import Config as ToyConfig
from cfbench_text.datasets.toy_reviews import ToyReviews
from cfbench_text.domains import load_domain
from cfbench_text.extractors.rules import Config, Rules
from cfbench_text.sentence_segmentation import clauses, sentences
from cfbench_text.triplets import Triplet, parse, render

DOMAIN = load_domain("musical-instruments")


def statements(text, domain=DOMAIN, **options):
    return Rules(Config(**options)).extract([text], domain)[0]


def test_clauses_with_a_topic_are_statements_and_opinions_are_not():
    found = statements("I love it! The tone is beautiful, but the strap broke. My sister bought one.")
    assert found.triplets == (
        Triplet("the tone is beautiful", "sound", "positive"),
        Triplet("the strap broke", "playability", "negative"),
    )


def test_toy_reviews_have_an_exact_answer():
    reviews = ToyReviews(ToyConfig(users=60, seed=3)).load()
    domain = load_domain(reviews.domain)
    found = Rules(Config()).extract(list(reviews.texts), domain)
    assert [one.triplets for one in found] == list(reviews.known)


def test_what_rules_extract_comes_back_from_the_paragraph_with_its_topics():
    reviews = ToyReviews(ToyConfig()).load()
    domain = load_domain(reviews.domain)
    for one in Rules(Config()).extract(list(reviews.texts), domain):
        assert parse(render(one.triplets), domain.topic_of) == one.triplets


@pytest.mark.parametrize("text", ["", "   \n", "👍👍", "!!!", "ok"])
def test_nothing_to_extract_is_empty_not_failed(text):
    assert (statements(text).triplets, statements(text).status) == ((), "empty")


def test_a_review_of_20_000_words_is_read_to_its_end():
    text = "This sentence says nothing at all. " * 4_000 + "The tone is great."
    assert statements(text).triplets[-1].statement == "the tone is great"


def test_a_single_sentence_of_20_000_words_without_any_mark_is_no_problem():
    found = statements("good tone " * 10_000)
    assert [t.sentiment for t in found.triplets] == ["positive"]


def test_right_to_left_text_and_emoji_do_no_harm():
    found = statements("الصوت جميل. The tone is great 🎸! עברית")
    assert [t.topic for t in found.triplets] == ["sound"]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=4))
def test_a_text_is_read_the_same_alone_and_among_others(texts):
    together = Rules(Config()).extract(texts, DOMAIN)
    assert [statements(text) for text in texts] == together


def test_numbers_and_abbreviations_end_no_sentence():
    found = statements("The cable is 3.5 mm wide, e.g. for a mixer. It costs 9.99 dollars.")
    assert [t.statement for t in found.triplets] == [
        "the cable is 3.5 mm wide, e.g. for a mixer",
        "it costs 9.99 dollars",
    ]


@pytest.mark.parametrize("run", [" ", "\n", ".", "!", ")", ".)", "e.g. ", " ,", " -"])
def test_long_runs_of_one_mark_take_time_in_proportion(run):
    """A regular expression that tries every part of a run takes minutes for these 50,000 marks."""
    text = "The tone is warm" + run * 50_000 + "x and bright"
    begun = time.process_time()
    pieces = [clause for sentence in sentences(text) for clause in clauses(sentence)]
    pieces += clauses(text)
    assert time.process_time() - begun < 5
    assert pieces[0].startswith("The tone is warm") and pieces[-1].endswith("bright")
