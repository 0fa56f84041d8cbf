"""The classifier of pairs of statements: its training against the objective written out, its file, its made pairs."""

import dataclasses
import json

import numpy as np
import pytest
from scipy.optimize import minimize

from cfbench_core.errors import UserError
from cfbench_text.judges import lexical
from cfbench_text.judges.made_pairs import made_pairs, negated, with_antonym
from cfbench_text.judges.pair_classifier import (
    INTERCEPT,
    PENALTY,
    WEIGHT,
    PairSet,
    fit,
    read,
    write,
)
from cfbench_text.judges.pair_classifier import _weights as within_sets
from cfbench_text.judges.pair_features import NAMES
from cfbench_text.triplets import Triplet

F = len(NAMES)
TRUE = np.zeros(F)
TRUE[:3] = 2.0, -1.0, 0.5


def drawn(seed, rows=400, shift=0.0, known=True):
    """Pairs whose label follows a logistic model of three features; another set has another intercept."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(rows, F)) + shift
    entailed = draw.random(rows) < 1 / (1 + np.exp(-((x - shift) @ TRUE + shift)))
    denied = draw.random(rows) < 1 / (1 + np.exp(-3 * (x[:, 4] - shift)))
    contradicted = np.where(entailed, 0.0, denied) if known else np.full(rows, np.nan)
    return PairSet(f"set {seed}", x, entailed, contradicted.astype(float), np.arange(rows) // 2)


def test_weights_minimise_the_penalised_likelihood_with_an_intercept_for_each_set():
    sets = [drawn(0), drawn(1, rows=150, shift=2.0)]
    found = fit(sets)
    x = (np.vstack([one.features for one in sets]) - found.mean) / found.scale
    own = np.repeat(np.eye(2) * INTERCEPT, [400, 150], axis=0)
    x, y = np.hstack([x, own]), np.concatenate([one.entailed for one in sets])
    share = np.repeat([WEIGHT / 400, WEIGHT / 150], [400, 150])

    def loss(theta):
        margin = (x @ theta[:-1] + theta[-1]) * np.where(y, 1, -1)
        return PENALTY * (share * np.logaddexp(0, -margin)).sum() + theta[:-1] @ theta[:-1] / 2

    best = minimize(loss, np.zeros(x.shape[1] + 1), method="L-BFGS-B", options={"ftol": 1e-15}).x[:F]
    # Calibration multiplies them by a positive slope.
    slope = found.support.weights @ best / (best @ best)
    assert slope > 0
    np.testing.assert_allclose(found.support.weights, slope * best, atol=2e-3)


def test_sets_with_other_rates_do_not_teach_what_tells_the_sets_apart():
    """Feature 9 tells the sets apart, and labels follow the set alone: within sets it says nothing."""
    draw = np.random.default_rng(3)
    inputs, labels = [], []
    for number, rate in enumerate((0.1, 0.9)):
        x = draw.normal(size=(4000, F))
        x[:, 9] += 6 * number
        inputs.append(x)
        labels.append(draw.random(4000) < rate)
    pooled = np.corrcoef(np.vstack(inputs)[:, 9], np.concatenate(labels))[0, 1]
    assert pooled > 0.7
    assert abs(within_sets(inputs, labels)[9]) < 0.1
    # The same rows as one set: the feature takes the place of the intercepts.
    assert within_sets([np.vstack(inputs)], [np.concatenate(labels)])[9] > 0.5


def test_probabilities_are_calibrated_on_a_set_of_the_same_kind():
    found = fit([drawn(0), drawn(1), drawn(2)])
    held = drawn(7, rows=20_000)
    p = found.probabilities(held.features)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    for low in (0.2, 0.4, 0.6, 0.8):
        some = (p[:, 0] >= low - 0.1) & (p[:, 0] < low + 0.1)
        assert held.entailed[some].mean() == pytest.approx(p[some, 0].mean(), abs=0.06)
    neither = p[:, 1] / (p[:, 1] + p[:, 2])
    denied = held.contradicted > 0
    assert np.corrcoef(neither[~held.entailed], denied[~held.entailed])[0, 1] > 0.5


def test_without_known_contradictions_nothing_is_contradicted():
    found = fit([drawn(0, known=False)])
    assert found.contradiction is None
    assert (found.probabilities(drawn(1).features)[:, 1] == 0).all()


def test_a_set_with_one_label_is_refused():
    one = drawn(0)
    with pytest.raises(UserError, match="set 0: needs pairs that are entailed and pairs that are not"):
        fit([dataclasses.replace(one, entailed=np.ones(400, dtype=bool))])


def test_a_file_restores_the_probabilities(tmp_path):
    found = dataclasses.replace(fit([drawn(0)]), encoder={"model": "m"}, seen=frozenset({"ab", "cd"}))
    write(found, tmp_path / "judge.json")
    again = read(tmp_path / "judge.json")
    x = drawn(5).features
    np.testing.assert_array_equal(again.probabilities(x), found.probabilities(x))
    assert (again.encoder, again.seen) == (found.encoder, found.seen)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="x"), "no trained judge of this version"),
        (lambda d: d["features"].pop(), "no trained judge of this version"),
        (lambda d: d["mean"].pop(), "is damaged .*finite numbers"),
        (lambda d: d["scale"].__setitem__(0, 0.0), "is damaged .*not positive"),
        (lambda d: d["support"].update(intercept=float("nan")), "is damaged .*not finite"),
        (lambda d: d.pop("support"), "is damaged .*support"),
        (lambda d: d.update(encoder=[1]), "is damaged"),
    ],
)
def test_a_damaged_file_is_one_clear_error(tmp_path, change, message):
    path = tmp_path / "judge.json"
    document = fit([drawn(0)]).document()
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(UserError, match=message):
        read(path)


def test_a_file_that_is_no_judge_says_how_to_make_one(tmp_path):
    path = tmp_path / "judge.json"
    with pytest.raises(UserError, match="no such file; make it with 'cfbench train-judge"):
        read(path)
    path.write_text("[1, 2]")
    with pytest.raises(UserError, match="no trained judge"):
        read(path)
    path.write_bytes(b"\x80\x04\x95")
    with pytest.raises(UserError, match="is not a trained judge"):
        read(path)


# Words


def compared(premise, hypothesis):
    found = lexical.compared(lexical.read(premise), lexical.read(hypothesis))
    return dict(zip(lexical.NAMES, found, strict=True))


def test_words_by_hand():
    found = compared("The strap is soft and long.", "The strap is not soft")
    assert found["word recall"] == 1.0  # strap, soft
    assert found["word precision"] == pytest.approx(2 / 3)
    assert found["bigram recall"] == pytest.approx(2 / 4)  # "the strap", "strap is"
    assert found["log length ratio"] == pytest.approx(np.log(6 / 7))
    assert found["negation differs"] == found["negation added"] == 1.0
    assert found["antonyms"] == found["new numbers"] == found["new names"] == 0.0
    assert compared("It isn’t soft", "It is not soft")["negation differs"] == 0.0


def test_numbers_names_antonyms_and_sentiment_by_hand():
    assert compared("It has 7 strings", "It has 12 strings")["new numbers"] == 1.0
    assert compared("It has 7 strings", "It has strings")["new numbers"] == 0.0
    assert compared("A capo by Shubb", "A capo by Kyser")["new names"] == 1.0
    assert compared("The cable is long", "The cable is short")["antonyms"] == 1.0
    assert compared("Not short but long", "It is short")["antonyms"] == 0.0
    opposite = compared("The sound is great", "The sound is awful")
    assert opposite["opposite sentiment"] > 0.2 and opposite["sentiment gap"] > 1.0


def test_a_pair_of_blank_statements_has_finite_features():
    assert np.isfinite([*compared("", "").values(), *compared("!", "").values()]).all()


# Made pairs


SAID = [
    Triplet("the headband is very comfortable", "comfort", "positive"),
    Triplet("the bass is warm", "sound", "positive"),
    Triplet("the treble sounds harsh", "sound", "negative"),
    Triplet("it weighs 250 grams", "build", "neutral"),
]


def test_made_pairs_follow_their_rules():
    found = {
        (one.premise, one.hypothesis): (one.entailed, one.contradicted)
        for one in made_pairs(SAID, np.random.default_rng(0))
    }
    very, plain = "the headband is very comfortable", "the headband is comfortable"
    assert found[very, plain] == found[plain, very] == found[very, very] == (True, False)
    assert found[very, "the headband is not very comfortable"] == (False, True)
    assert found[very, "the headband is very uncomfortable"] == (False, True)
    numbers = [
        outcome for (one, other), outcome in found.items() if other.startswith("it weighs") and one != other
    ]
    assert (False, None) in numbers
    joined = [
        (one, other) for one, other in found if " and " in one and found[one, other][0] and one != other
    ]
    assert joined and all(found[other, one] == (False, False) for one, other in joined)
    assert found["the bass is warm", "the treble sounds harsh"] == (False, None)


def test_made_pairs_are_drawn_by_the_seed_alone():
    one, other = (made_pairs(SAID, np.random.default_rng(4)) for _ in range(2))
    assert one == other
    assert {pair.document for pair in one} == set(range(4))


def test_negation_and_antonym():
    assert negated("it was loud and is cheap") == "it was not loud and is cheap"
    assert negated("it isn't loud") is None
    assert negated("works well") is None
    assert with_antonym("The cable is long") in ("The cable is short",)
    assert with_antonym("a tuner") is None
