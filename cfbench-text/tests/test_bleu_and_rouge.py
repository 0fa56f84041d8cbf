"""BLEU is that of sacrebleu, ROUGE that of rouge-score."""

import random
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.bleu import BLEU
from cfbench_text.metrics.fmr import FMR
from cfbench_text.metrics.rouge import ROUGE, longest_common, rouge
from cfbench_text.triplets import Triplet

SCORER = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=False)
WORDS = ["the", "bass", "is", "warm", "and", "clear", "3.5", "mm,", "don't", "it's", "US-made", "é"]


def answers(texts, references, evidence=None):
    nothing = [()] * len(texts)
    return ObservedTexts(texts, references, nothing, evidence or nothing, load_domain("toy-reviews"))


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), max_size=30), st.lists(st.sampled_from(WORDS), min_size=1, max_size=30)
)
def test_rouge_is_that_of_the_library(text, reference):
    text, reference = " ".join(text), " ".join(reference)
    expected = SCORER.score(reference, text)
    assert rouge(text, reference) == pytest.approx([expected[f"rouge{n}"].fmeasure for n in "12L"])


def test_the_longest_common_subsequence_by_hand_and_by_table():
    assert longest_common("abcbdab", "bdcaba") == 4
    draw = random.Random(0)
    for _ in range(200):
        one, other = ([draw.choice("abcd") for _ in range(draw.randrange(12))] for _ in range(2))
        table = np.zeros((len(one) + 1, len(other) + 1), dtype=int)
        for i, left in enumerate(one):
            for j, right in enumerate(other):
                table[i + 1, j + 1] = (
                    table[i, j] + 1 if left == right else max(table[i, j + 1], table[i + 1, j])
                )
        assert longest_common(one, other) == table[-1, -1]


def test_bleu_is_that_of_the_library():
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 20))) for _ in range(50)]
    references = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 20))) for _ in range(50)]
    found = BLEU().compute(answers(texts, references))["BLEU"]
    expected = [sacrebleu.sentence_bleu(t, [r]).score / 100 for t, r in zip(texts, references, strict=True)]
    np.testing.assert_allclose(found, np.clip(expected, 0, 1))


def test_an_empty_text_is_worth_nothing_and_without_a_reference_there_is_no_value():
    found = {
        **BLEU().compute(answers(["", "x"], ["x", ""])),
        **ROUGE().compute(answers(["", "x"], ["x", ""])),
    }
    for values in found.values():
        assert values[0] == 0 and np.isnan(values[1])


def test_fmr_is_the_share_of_the_users_keywords_in_the_text():
    said = (Triplet("the bass and the treble are fine", "sound", "positive"),)
    found = FMR().compute(answers(["Bass? No.", "basses", "x"], ["r"] * 3, [said, said, ()]))["FMR"]
    np.testing.assert_array_equal(found, [0.5, 0.0, np.nan])


def test_bleu_has_its_signature_where_no_text_has_a_reference():
    code = (
        "from cfbench_text.metrics.bleu import BLEU\n"
        "from cfbench_text.metrics.base import ObservedTexts\n"
        "from cfbench_text.domains import load_domain\n"
        "seen = ObservedTexts(['warm'], [''], [()], [()], load_domain('toy-reviews'))\n"
        "metric = BLEU()\n"
        "print(metric.compute(seen)['BLEU'], metric.signature()['sacrebleu'])\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    library = sacrebleu.BLEU(effective_order=True)
    library.sentence_score("warm", ["warm"])
    assert found == f"[nan] {library.get_signature()}\n"
