"""Short statements by rules: lists, frames, filters, topics, sentiment."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cfbench_text.atomic.frames import list_items, reasons
from cfbench_text.domains import load_domain
from cfbench_text.extractors.atomic import Atomic, Config
from cfbench_text.triplets import Triplet, parse, render

DOMAIN = load_domain("musical-instruments")
GENERAL = load_domain("general")


def triplets(text, domain=DOMAIN, **options):
    return Atomic(Config(**options)).extract([text], domain)[0].triplets


def short(text, domain=DOMAIN):
    return [(one.statement, one.topic, one.sentiment) for one in triplets(text, domain)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Great value.", [("great value", "price", "positive")]),
        ("Easy to use!", [("easy to use", "setup", "positive")]),
        (
            "This stand is solid, easy to use, and accurate.",
            [
                ("this stand is solid", "build", "positive"),
                ("easy to use", "setup", "positive"),
                ("accurate", "tuning", "positive"),
            ],
        ),
        (
            "It sounds great but the price is ridiculous.",
            [("it sounds great", "sound", "positive"), ("the price is ridiculous", "price", "negative")],
        ),
        ("The bag barely fits the guitar.", [("the bag barely fits the guitar", "fit", "negative")]),
        ("No more noise.", [("no more noise", "sound", "positive")]),
        ("It is cheap.", [("it is cheap", "price", "positive")]),
        ("I like the grip of it.", [("they like the grip of it", "playability", "positive")]),
    ],
)
def test_statements(text, expected):
    assert short(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "I bought this stand last year and I have used many tuners.",
        "My son plays guitar.",
        "If you need a solid stand, buy one with a good price.",
        "Most tuners are not accurate.",
        "Would it stay in tune?",
        "I love it! Highly recommended. A great product.",
        "Try a cheaper one.",
        "",
        "👍👍",
    ],
)
def test_no_statements_about_the_product(text):
    assert triplets(text) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The tone is not so harsh.", ("sound", "positive")),
        ("It doesn't make any unwanted or distracting noise.", ("sound", "positive")),
        ("It is hard to play.", ("playability", "negative")),
        ("The battery compartment cover comes off.", ("build", "negative")),
        ("It reduces the noise.", ("sound", "positive")),
        ("It is sturdier than the flimsy plastic ones.", None),
        ("It is as sturdy as any flimsy one.", ("build", "positive")),
        ("It is very light.", ("fit", "positive")),
    ],
)
def test_sentiment_of_negations_comparisons_and_phrases(text, expected):
    found = [(topic, sentiment) for _, topic, sentiment in short(text)]
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    "text", ["It is no big deal.", "Cool little light.", "It took a long time.", "It looks cheap."]
)
def test_words_with_another_sense_and_two_topics_give_no_statement(text):
    assert triplets(text) == ()


def test_descriptions_leave_out_what_is_nearer_to_another_topic(monkeypatch):
    from cfbench_text.atomic import descriptions

    class Fake:
        """1 for the description with the first word of the statement, which is no keyword here."""

        def __init__(self, source):
            assert source.model == "folder"

        def cosines(self, pairs):
            return [
                float(text.startswith("Price") == statement.startswith("great")) for statement, text in pairs
            ]

    monkeypatch.setattr(descriptions, "Embeddings", Fake)
    text = "Great price. Great sound."
    assert [one.topic for one in triplets(text)] == ["price", "sound"]
    extractor = Atomic(Config(encoder="folder"))
    assert [one.topic for one in extractor.extract([text], DOMAIN)[0].triplets] == ["price"]
    assert extractor.signature()["encoder"] == "folder" and "encoder" not in Atomic(Config()).signature()


def test_a_frame_gives_the_sentiment_and_its_conclusion_is_no_reason():
    text = (
        "The user would enjoy the business because of clean and modern rooms, friendly staff, and good food, despite "
        "the high price, making it a great place."
    )
    assert short(text, GENERAL) == [
        ("clean and modern rooms", "general", "positive"),
        ("friendly staff", "general", "positive"),
        ("good food", "general", "positive"),
        ("the high price", "general", "negative"),
    ]


def test_items_of_lists():
    assert list_items("a story of love, loss, and hope, with good characters and a happy end") == [
        "a story of love, loss, and hope",
        "good characters",
        "a happy end",
    ]
    assert list_items("a strong, independent woman and a charming hero") == [
        "a strong, independent woman",
        "a charming hero",
    ]


def test_a_sentence_without_a_frame_has_no_reasons():
    assert reasons("The tone is warm, and the strap is soft.") is None


def test_statements_of_a_paragraph_in_the_template_are_found_with_their_sentiment():
    known = (
        Triplet("the tone is warm", "sound", "positive"),
        Triplet("the strap broke", "build", "negative"),
    )
    assert parse(render(known), DOMAIN.topic_of) is not None
    found = triplets(render(known))
    assert [(one.statement, one.sentiment) for one in found] == [
        ("the tone is warm", "positive"),
        ("the strap broke", "negative"),
    ]


def test_long_texts_are_read_to_their_end():
    text = "This sentence says nothing at all. " * 4_000 + "The tone is great."
    assert triplets(text)[-1].statement == "the tone is great"


def test_a_statement_is_not_longer_than_its_limit():
    text = "The tone is great for " + "very " * 100 + "loud music."
    assert all(len(one.statement.split()) <= 18 for one in triplets(text))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=4))
def test_a_text_is_read_the_same_alone_and_among_others(texts):
    together = Atomic(Config()).extract(texts, DOMAIN)
    assert [Atomic(Config()).extract([text], DOMAIN)[0] for text in texts] == together


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "the",
                "tone",
                "is",
                "great",
                ",",
                "and",
                ".",
                "but",
                "I",
                "price",
                "of",
                "a",
                "with",
                "because",
                "strap",
                '"',
                "'",
                "--",
                "(",
            ]
        ),
        max_size=25,
    )
)
def test_any_words_give_triplets_of_the_domain(words):
    for one in triplets(" ".join(words)):
        assert one.topic in DOMAIN.topics and one.statement.strip() == one.statement


@pytest.mark.parametrize(
    "text",
    [
        "good tone " * 10_000,
        "great " * 20_000,
        "tone" + " " * 50_000 + "great",
        "A. " * 5_000,
        "The user would buy it because " + "good sound and " * 2_000,
        "it is, " * 10_000,
        "(" * 20_000,
    ],
)
def test_unusual_texts_take_no_unusual_time(text):
    start = time.process_time()
    triplets(text)
    assert time.process_time() - start < 5
