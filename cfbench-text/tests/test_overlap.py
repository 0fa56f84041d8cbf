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
    alike = judge().similarity("the bass is warm", "the bass is loud")
    assert 0.3 < alike < Overlap.near_identical
    cases = [
        (of("the bass is loud"), [alike, 0, 1 - alike]),
        (of("the bass is loud", sentiment="negative"), [0, alike, 1 - alike]),
        (of("the bass is loud", sentiment="neutral"), [0, 0, 1]),
        (of("the bass is loud", topic="price"), [0, 0, 1]),
        (of("the bass is warm", sentiment="negative"), [0, 1, 0]),
    ]
    for other, expected in cases:
        np.testing.assert_allclose(judge().entailment([(same, other)])[0], expected)


@pytest.mark.parametrize(
    "other",
    [
        of("the headband is comfortable", topic="comfort", sentiment="neutral"),
        of("the headband is comfortable", topic="build"),
        of("this has a very comfortable headband", topic="build", sentiment="neutral"),
    ],
)
def test_labels_of_the_extractor_do_not_separate_near_identical_statements(other):
    said = of("the headband is very comfortable", topic="comfort")
    for pair in ((said, other), (other, said)):
        entailed, contradicted, _ = judge().entailment([pair])[0]
        assert entailed > 0.5
        assert contradicted == 0


def test_a_document_supports_as_its_best_statement_does():
    document = Document("", (of("the bass is loud"), of("the bass is warm")))
    assert judge().support([(document, of("the bass is warm"))])[0] == 1.0
    assert judge().support([(Document("", ()), of("the bass is warm"))])[0] == 0.0


def test_statements_of_stop_words_alone_are_equal_to_themselves_only():
    assert judge().similarity("it is", "it is") == 1.0
    assert judge().similarity("it is", "they are") == 0.0
