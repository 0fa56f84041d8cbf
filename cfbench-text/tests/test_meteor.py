import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cfbench_core.errors import UserError
from cfbench_core.registry import installed
from cfbench_core.testing import Subject, checks_for, verify
from cfbench_text.domains import load_domain
from cfbench_text.metrics.base import ObservedTexts
from cfbench_text.metrics.meteor import METEOR, Config, align, chunks, words
from cfbench_text.wordnet import WordNet

pytest.importorskip("snowballstemmer", reason="needs cfbench-text[meteor]")

SYNSETS = {
    "noun": {
        "car": ["00000001"],
        "automobile": ["00000001"],
        "tone": ["00000002", "00000003"],
        "child": ["00000004"],
    },
    "verb": {"buy": ["00000005"], "purchase": ["00000005"], "tone": ["00000006"]},
    "adj": {"good": ["00000007", "00000008"], "sound": ["00000008"]},
    "adv": {"well": ["00000009"]},
}
"""A dictionary of eleven words."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Its files, in WordNet's format: licence, then "lemma pos synset_cnt p_cnt [pointers] sense_cnt tagged offsets"."""
    made = tmp_path_factory.mktemp("wordnet")
    for part, entries in SYNSETS.items():
        lines = ["  1 This software and database is being provided to you  "]
        for word, places in sorted(entries.items()):
            lines.append(f"{word} {part[0]} {len(places)} 2 @ ~ {len(places)} 0 {' '.join(places)}  ")
        (made / f"index.{part}").write_text("\n".join(lines) + "\n")
        (made / f"{part}.exc").write_text({"noun": "children child\n", "verb": "bought buy\n"}.get(part, ""))
    return made


@pytest.fixture(scope="module")
def real():
    """WordNet itself."""
    for place in (os.environ.get("CFBENCH_WORDNET"), "/usr/share/wordnet"):
        if place and (Path(place) / "index.noun").is_file():
            return Path(place)
    pytest.skip("WordNet is not here (apt install wordnet-base, or CFBENCH_WORDNET)")


def score(config, texts, references):
    none = [()] * len(texts)
    return METEOR(config).compute(ObservedTexts(texts, references, none, none, load_domain("toys")))["METEOR"]


EXACT = Config(stages=("exact",))


@pytest.mark.parametrize(
    ("text", "reference", "matches", "of_text", "of_reference", "runs"),
    [
        ("the sound is good", "the sound is good", 4, 4, 4, 1),
        ("the cat", "the cat sat on the mat", 2, 2, 6, 1),
        ("on the mat sat the cat", "the cat sat on the mat", 6, 6, 6, 3),
        ("the president spoke to the audience", "the president then spoke to the audience", 6, 6, 7, 2),
        ("good is the sound", "the sound is good", 4, 4, 4, 3),
        ("The price, low!", "the price is low.", 3, 3, 4, 2),
    ],
)
def test_by_hand(text, reference, matches, of_text, of_reference, runs):
    p, r = matches / of_text, matches / of_reference
    expected = 10 * p * r / (r + 9 * p) * (1 - 0.5 * (runs / matches) ** 3)
    assert score(EXACT, [text], [reference])[0] == pytest.approx(expected, abs=1e-12)


def test_empty_texts_missing_references_and_texts_without_words():
    texts = ["", "  ", "!?", "the sound", "the sound", "the sound", "🎸"]
    references = ["the sound", "the sound", "the sound", "", "no pair", "...", "🎸"]
    found = score(EXACT, texts, references)
    np.testing.assert_array_equal(found, [0, 0, 0, np.nan, 0, 0, 0])


def test_the_parameters_are_those_of_the_formula():
    config = Config(stages=("exact", "stem"), alpha=0.85, beta=0.2, gamma=0.6, weights=(1.0, 0.6, 0.8))
    found = score(config, ["the strings break"], ["the string breaks down"])[0]
    matched = 1 + 0.6 + 0.6
    p, r = matched / 3, matched / 4
    assert found == pytest.approx(p * r / (0.85 * p + 0.15 * r) * (1 - 0.6 * (1 / 3) ** 0.2))


def test_stages_let_more_words_match(folder):
    text, reference = "she bought good cars loudly", "purchase sound automobile tone loud"
    pairs = {}
    for stages in (("exact",), ("exact", "stem"), ("exact", "stem", "synonym")):
        config = Config(stages=stages, wordnet=str(folder))
        text_words = words(text)
        found = align(text_words, words(reference), METEOR(config)._kin)
        pairs[stages[-1]] = {(text_words[one], words(reference)[other]) for one, other, _ in found}
    assert pairs["exact"] == set()
    assert pairs["stem"] == {("loudly", "loud")} or pairs["stem"] == set()  # Porter leaves "loudli"
    assert pairs["synonym"] >= {("bought", "purchase"), ("good", "sound"), ("cars", "automobile")}


def test_synonyms_share_a_synset_whatever_their_form(folder):
    dictionary = WordNet(folder)
    assert dictionary.synsets("cars") == dictionary.synsets("automobile") == {("noun", "00000001")}
    assert dictionary.synsets("children") == {("noun", "00000004")}
    assert dictionary.synsets("bought") == dictionary.synsets("purchasing") == {("verb", "00000005")}
    assert dictionary.synsets("tone") == {("noun", "00000002"), ("noun", "00000003"), ("verb", "00000006")}
    assert dictionary.synsets("good") & dictionary.synsets("sound")
    assert dictionary.synsets("guitar") == frozenset()


def brute(text, reference, kin, weights):
    """Over all pairings: (pairs, chunks, weight) of the one with most pairs, then fewest chunks, then most weight."""
    found = []

    def go(place, used, pairs):
        if place == len(text):
            found.append((-len(pairs), chunks(pairs), -sum(weights[stage] for *_, stage in pairs)))
            return
        go(place + 1, used, pairs)
        for other, word in enumerate(reference):
            stage = kin(text[place], word)
            if stage is not None and other not in used:
                go(place + 1, used | {other}, [*pairs, (place, other, stage)])

    go(0, frozenset(), [])
    return min(found)


@pytest.mark.parametrize("seed", range(40))
def test_the_pairing_equals_the_best_of_all_pairings(seed):
    draw = np.random.default_rng(seed)
    for _ in range(20):
        letters = "abcdef"[: draw.integers(2, 7)]
        stages = {}
        for one in letters:
            for other in letters:
                drawn = draw.choice([None, None, None, None, 1, 2])
                stages.setdefault(frozenset((one, other)), 0 if one == other else drawn)
        text, reference = (draw.choice(list(letters), size=draw.integers(0, 7)).tolist() for _ in range(2))

        def kin(one, other, stages=stages):
            return stages[frozenset((one, other))]

        weights = ((1.0, 1.0, 1.0), (1.0, 0.6, 0.8))[int(draw.integers(2))]
        pairs = align(text, reference, kin, weights)
        assert len({one for one, _, _ in pairs}) == len({other for _, other, _ in pairs}) == len(pairs)
        weight = -sum(weights[stage] for *_, stage in pairs)
        assert (-len(pairs), chunks(pairs), pytest.approx(weight)) == brute(text, reference, kin, weights)


def test_long_texts_have_as_many_pairs_as_can_be_and_are_one_chunk_with_themselves():
    def kin(one, other):
        return 0 if one == other else 1 if one.lower() == other.lower() else None

    draw = np.random.default_rng(0)
    for _ in range(5):
        one, other = (draw.choice(list("abcdefghiABCDEFGHI"), size=70).tolist() for _ in range(2))
        counts = (Counter("".join(words_).lower()) for words_ in (one, other))
        most = (next(counts) & next(counts)).total()
        assert len(align(one, other, kin)) == most
        assert chunks(align(one, one, kin)) == 1


@pytest.mark.slow
def test_long_texts_with_many_repetitions_are_paired_in_seconds():
    draw = np.random.default_rng(0)
    long = [f"w{number}" for number in (600 * draw.random(1600) ** 3).astype(int).tolist()]
    kin = METEOR(EXACT)._kin
    for text, reference in ((long, long), (long[:800], long[800:]), (["a"] * 700, ["a"] * 500)):
        pairs = align(text, reference, kin)
        assert len(pairs) == (Counter(text) & Counter(reference)).total()
    assert chunks(align(long, long, kin)) == chunks(pairs) == 1


def test_equals_nltk_if_no_word_repeats():
    meteor = pytest.importorskip("nltk.translate.meteor_score", reason="the oracle of the formula")
    stem = pytest.importorskip("nltk.stem.porter").PorterStemmer(mode="ORIGINAL_ALGORITHM")

    class NoSynonyms:
        @staticmethod
        def synsets(word):
            return []

    draw = np.random.default_rng(1)
    known = ["sound", "strings", "price", "tone", "breaks", "easily", "richly", "playing", "neck", "bodies"]
    texts, references = (
        [" ".join(draw.permutation(known)[: draw.integers(1, 11)].tolist()) for _ in range(50)]
        for _ in range(2)
    )
    found = score(Config(stages=("exact", "stem"), alpha=0.8, beta=2.0, gamma=0.4), texts, references)
    for value, text, reference in zip(found, texts, references, strict=True):
        expected = meteor.single_meteor_score(
            reference.split(), text.split(), stemmer=stem, wordnet=NoSynonyms, alpha=0.8, beta=2.0, gamma=0.4
        )
        assert value == pytest.approx(expected, abs=1e-12)


def test_nltk_leaves_more_chunks_than_there_need_be():
    meteor = pytest.importorskip("nltk.translate.meteor_score", reason="the library that departs")
    text, reference = ["the", "cat"], ["the", "cat", "sat", "on", "the", "mat"]
    theirs = meteor.exact_match(text, reference)[0]
    assert chunks([(one, other, 0) for one, other in theirs]) == 2
    assert chunks(align(text, reference, METEOR(EXACT)._kin)) == 1


def test_without_wordnet_it_stops_with_one_line_unless_synonyms_are_left_out(tmp_path):
    with pytest.raises(
        ValueError, match=r"METEOR needs WordNet for synonyms: .* set 'stages: \[exact, stem\]'"
    ):
        Config()
    with pytest.raises(UserError, match=r"has no index\.noun; needs the folder") as error:
        score(Config(wordnet=str(tmp_path)), ["a"], ["a"])
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="three numbers"):
        Config(stages=("exact",), weights=(1.0,))


def test_the_signature_records_the_options_and_not_the_path_of_wordnet(folder):
    signature = METEOR(Config(wordnet=str(folder))).signature()
    assert signature["stages"] == "exact stem synonym" and len(signature["wordnet"]) == 16
    assert str(folder) not in str(signature)
    assert "wordnet" not in METEOR(EXACT).signature()


@pytest.mark.parametrize("check", checks_for("text/metric/meteor"), ids=str)
def test_conformance_with_synonyms(check, folder):
    spec = next(c.spec for c in installed().components(suite="text") if c.spec.id == "text/metric/meteor")
    verify(check, Subject(spec, Config(wordnet=str(folder))))


def test_real_wordnet(real):
    dictionary = WordNet(real)
    assert dictionary.synsets("car") & dictionary.synsets("automobiles")
    assert dictionary.synsets("children") & dictionary.synsets("kid")
    assert dictionary.synsets("bought") & dictionary.synsets("purchases")
    assert dictionary.synsets("cheaper") & dictionary.synsets("inexpensive")
    assert set(dictionary.bases("axes", "noun")) >= {"ax", "axis"}
    assert dictionary.bases("guitars", "noun") == ["guitar"]
    assert not dictionary.synsets("the") and not dictionary.synsets("this")
    text, reference = "the children bought an automobile", "the kids purchase a car"
    with_synonyms = score(Config(wordnet=str(real)), [text], [reference])[0]
    assert with_synonyms > score(Config(stages=("exact", "stem")), [text], [reference])[0]
    assert align(words(text), words(reference), METEOR(Config(wordnet=str(real)))._kin) == [
        (0, 0, 0),
        (1, 1, 2),
        (2, 2, 2),
        (4, 4, 2),
    ]
