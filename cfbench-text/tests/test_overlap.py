"""The judge that compares words, against tf-idf of scikit-learn's formula written out."""

import math

import numpy as np
import pytest

from cfbench_text.documents import Document
from cfbench_text.judges.overlap import Overlap
from cfbench_text.triplets import Triplet

SAID = ["the bass is warm", "the bass is loud", "warm tone", "the strap broke"]


def judge():
    found = Overlap()
    found.prepare(SAID)
    return found


def of(statement, topic="sound", sentiment="positive"):
    return Triplet(statement, topic, sentiment)


def test_cosine_of_tf_idf_by_hand():
    idf = {"bass": math.log(5 / 3) + 1, "warm": math.log(5 / 3) + 1, "loud": math.log(5 / 2) + 1}
    one = np.array([idf["bass"], idf["warm"], 0])
    other = np.array([idf["bass"], 0, idf["loud"]])
    expected = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert judge().similarity(SAID[0], SAID[1]) == pytest.approx(expected)


def test_topic_and_sentiment_decide_what_similarity_means():
    same = of("the bass is warm")
    cases = [
        (same, [1, 0, 0]),
        (of("the bass is warm", sentiment="negative"), [0, 1, 0]),
        (of("the bass is warm", sentiment="neutral"), [0, 0, 1]),
        (of("the bass is warm", topic="price"), [0, 0, 1]),
    ]
    for other, expected in cases:
        np.testing.assert_allclose(judge().entailment([(same, other)])[0], expected)


def test_a_document_supports_as_its_best_statement_does():
    document = Document("", (of("the bass is loud"), of("the bass is warm")))
    assert judge().support([(document, of("the bass is warm"))])[0] == 1.0
    assert judge().support([(Document("", ()), of("the bass is warm"))])[0] == 0.0


def test_statements_of_stop_words_alone_are_equal_to_themselves_only():
    assert judge().similarity("it is", "it is") == 1.0
    assert judge().similarity("it is", "they are") == 0.0
