"""Claims are decided by the statistic of their means, its interval, ties, and what was not run."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cfbench_recsys.analysis.measured_means import MeasuredMeans
from cfbench_recsys.analysis.published_cfexprec import (
    DATASETS,
    claims,
    printed_means,
)
from cfbench_recsys.analysis.published_claims import BEST, ONE_USER, Decided, _verdict, claim_rows, decide


def frame(rows: list[dict[str, object]]) -> MeasuredMeans:
    usual = {"run": "", "dataset": "shop", "model": "mf", "scope": "", "level": "item", "format": "implicit"}
    usual |= {"k": "5", "rank": "", "metric": "POS-P", "variant": ""}
    table = pd.DataFrame([{**usual, **row} for row in rows])
    values = np.array(table.pop("values").tolist(), dtype=float).T
    return MeasuredMeans(table, values)


def claim(**given: object) -> dict[str, object]:
    empty = dict.fromkeys(("explainer", "model", "dataset", "level", "format", "k", "scope", "metric"), "")
    usual = {"contrast": "explainer", "subject": "a", "against": "b c", "relation": ">", "threshold": 0.5}
    return {**empty, **usual, **given}


def test_a_statistic_has_the_interval_of_its_resamples() -> None:
    """Settings "shop" and "store"; in the resamples a is the lowest in both, in one, in none, in both."""
    lower, higher = 0.1, 0.9
    means = frame(
        [
            {"explainer": "a", "values": [lower, lower, lower, higher, lower]},
            {"explainer": "b", "values": [0.5] * 5},
            {"explainer": "a", "dataset": "store", "values": [lower, lower, higher, higher, lower]},
            {"explainer": "b", "dataset": "store", "values": [0.5] * 5},
        ]
    )
    found = decide(claim(statistic="share-lowest", metric="POS-P"), means)
    assert found.statistic.value == 1.0 and found.settings == 2 and found.absent == ("c",)
    low, high = np.percentile([1.0, 0.5, 0.0, 1.0], [2.5, 97.5])
    assert (found.statistic.low, found.statistic.high) == pytest.approx((low, high))


def test_a_claim_about_levels_compares_each_explainer_with_itself() -> None:
    means = frame(
        [
            {"explainer": name, "level": level, "values": [value]}
            for name, pair in {"a": (0.1, 0.3), "b": (0.2, 0.1)}.items()
            for level, value in zip(("item", "list"), pair, strict=True)
        ]
    )
    found = decide(claim(statistic="mean-gap", contrast="level", subject="item", against="list"), means)
    assert found.statistic.value == pytest.approx(0.15) and found.settings == 2


def test_a_claim_about_a_model_that_was_not_run_is_not_decided() -> None:
    means = frame([{"explainer": name, "values": [value]} for name, value in (("a", 0.1), ("b", 0.2))])
    found = decide(claim(statistic="share-lowest", model="mf vae"), means)
    assert np.isnan(found.statistic.value) and found.absent == ("c", "vae")


def test_places_of_the_item_count_only_where_a_claim_compares_them() -> None:
    means = frame(
        [
            {"explainer": "a", "rank": rank, "values": [value]}
            for rank, value in (("", 0.4), ("1", 0.6), ("5", 0.2))
        ]
    )
    places = claim(statistic="mean-difference", contrast="rank", subject="1", against="5", explainer="a")
    assert decide(places, means).statistic.value == pytest.approx(0.4)
    assert decide(claim(statistic="largest", against=""), means).statistic.value == 0.4


def test_the_best_of_several_metrics_is_the_lowest_where_lower_is_better() -> None:
    """a has the lowest POS-P, b the highest NEG-P: none is the best in more than half."""
    means = frame(
        [
            {"explainer": name, "metric": metric, "values": [value]}
            for name, pair in {"a": (0.1, 0.3), "b": (0.2, 0.5)}.items()
            for metric, value in zip(("POS-P", "NEG-P"), pair, strict=True)
        ]
    )
    found = decide(claim(statistic=BEST, subject="", against="", explainer="a b"), means)
    assert found.statistic.value == 0.5 and found.settings == 2


def decided(
    values: dict[str, tuple[float, float]], relation: str, threshold: float, **given: object
) -> tuple[Decided, str, str]:
    """A claim on two settings, with its verdict."""
    means = frame(
        [
            {"explainer": name, "level": level, "values": [value]}
            for name, pair in values.items()
            for level, value in zip(("item", "list"), pair, strict=True)
        ]
    )
    one = claim(relation=relation, threshold=threshold, **given)
    found = decide(one, means)
    return found, *_verdict(one, found)


def test_a_place_that_a_tie_decides_is_undecided() -> None:
    """Three explainers that displace everything: the first is not among the best two, nor is it the last."""
    full = {"a": (1.0, 1.0), "b": (1.0, 1.0), "c": (1.0, 1.0)}
    found, word, reason = decided(full, "<=", 2, statistic="place-from-top")
    assert (found.statistic.value, word) == (2.0, "undecided")
    assert reason == "tied: 1 to 3 by how ties are counted, against <= 2"
    assert decided(full, "<=", 3, statistic="place-from-top")[1] == "confirmed"
    assert decided(full, ">", 0.5, statistic="share-highest")[1] == "undecided"
    below = full | {"a": (0.9, 0.8)}
    assert decided(below, "<=", 2, statistic="place-from-top")[1] == "refuted"
    assert decided(below, ">", 0.5, statistic="share-highest")[1] == "refuted"


def test_equal_means_at_a_ceiling_are_no_evidence_of_stability() -> None:
    levels = {"statistic": "mean-gap", "contrast": "level", "subject": "item", "against": "list"}
    assert decided({"a": (1.0, 1.0)}, "<=", 0.1, **levels)[1:] == ("undecided", "tied: all means are 1")
    assert decided({"a": (1.0, 1.0), "b": (0.5, 0.5)}, "<=", 0.1, **levels)[1] == "confirmed"


def test_an_order_of_explainers_that_all_tie_is_undecided_and_not_unmeasured() -> None:
    levels = {"statistic": "rank-correlation", "contrast": "level", "subject": "item", "against": "list"}
    tied = {"a": (1.0, 0.2), "b": (1.0, 0.4), "c": (1.0, 0.3)}
    found, word, reason = decided(tied, ">", 0.5, **levels)
    assert (word, reason, found.settings) == ("undecided", "all explainers tie", 1)
    two = {name: tied[name] for name in "ab"}
    assert decided(two, ">", 0.5, **levels)[1:] == ("not reproducible", "not measured here")


@pytest.mark.parametrize(("amazon", "word"), [((0.4, 0.45), "confirmed"), ((0.2, 0.9), "refuted")])
def test_places_differ_less_on_amazon_if_their_gap_is_smaller_whatever_its_sign(
    amazon: tuple[float, float], word: str
) -> None:
    """On the others POS-P falls by 0.3; in the second case it rises on Amazon by 0.7, which is a larger gap."""
    others = dict.fromkeys(("ml-1m", "yahoo-music"), (0.6, 0.3))
    rows = [
        {"dataset": name, "explainer": explainer, "rank": rank, "scope": "user-vector", "values": [value]}
        for name, pair in {"amazon-fashion": amazon, **others}.items()
        for explainer in ("lime-rs", "shap", "accent", "lxr")
        for rank, value in zip(("1", "5"), pair, strict=True)
    ]
    table = claims()
    found = {
        row["claim"]: row
        for row in claim_rows(table[table["claim"] == "places-amazon"], printed_means(), frame(rows))
    }
    assert found["places-amazon"]["verdict"] == word
    assert found["places-amazon"]["ours"] == pytest.approx(abs(amazon[0] - amazon[1]) - 0.3)
    of_two = next(
        iter(claim_rows(table[table["claim"] == "places-amazon"], printed_means(), frame(rows[:16])))
    )
    assert of_two["verdict"] == f"{word} in part" and "without yahoo-music" in of_two["reason"]
    alone = next(iter(claim_rows(table[table["claim"] == "places-amazon"], printed_means(), frame(rows[:8]))))
    assert (
        alone["verdict"] == "not reproducible" and "without" in alone["reason"] and "ml-1m" in alone["reason"]
    )


LOWEST = {"statistic": "share-lowest", "metric": "POS-P", "relation": ">", "threshold": 0.5}


@pytest.mark.parametrize(
    ("values", "given", "word"),
    [
        # c was not run. It could be lower than a, but a remains above b whatever c is.
        ({"a": (0.1, 0.1), "b": (0.2, 0.3)}, LOWEST, "confirmed in part"),
        ({"a": (0.2, 0.3), "b": (0.1, 0.1)}, LOWEST, "refuted"),
        ({"a": (0.1, 0.1), "b": (0.2, 0.3), "c": (0.4, 0.4)}, LOWEST, "confirmed"),
        # b is missing on the side of the subject, and could be lower than c.
        ({"a": (0.5, 0.5), "c": (0.2, 0.2)}, LOWEST | {"subject": "a b", "against": "c"}, "refuted in part"),
        ({"a": (0.1, 0.1), "c": (0.2, 0.2)}, LOWEST | {"subject": "a b", "against": "c"}, "confirmed"),
        # a is the best in all; c could be better in some, in all or in none.
        (
            {"a": (0.9, 0.9), "b": (0.1, 0.1)},
            {
                **{"statistic": BEST, "metric": "NEG-P", "relation": "<", "threshold": 1.0},
                **{"subject": "", "against": "", "explainer": "a b c"},
            },
            "refuted in part",
        ),
    ],
)
def test_a_claim_that_a_missing_explainer_could_change_is_decided_in_part(
    values: dict[str, tuple[float, float]], given: dict[str, object], word: str
) -> None:
    rows = [
        {"explainer": name, "level": level, "metric": given["metric"], "values": [value]}
        for name, pair in values.items()
        for level, value in zip(("item", "list"), pair, strict=True)
    ]
    one = claim(**given)
    found, reason = _verdict(one, decide(one, frame(rows)))
    assert found == word, reason
    assert ("what was not run could change" in reason) == word.endswith("in part")


@pytest.mark.parametrize(
    ("gaps", "threshold", "word"),
    [((0.0, 0.0), 0.1, "confirmed in part"), ((0.0, 0.0), 0.4, "confirmed"), ((0.6, 0.6), 0.1, "refuted")],
)
def test_a_mean_over_explainers_is_bounded_by_what_the_missing_one_could_add(
    gaps: tuple[float, float], threshold: float, word: str
) -> None:
    """Two of three explainers were run: with a gap of the third between 0 and 1 their mean is a third of it more."""
    rows = [
        {"explainer": name, "level": level, "values": [value]}
        for name, gap in zip("ab", gaps, strict=True)
        for level, value in (("item", 0.2), ("list", 0.2 + gap))
    ]
    one = claim(
        **{"statistic": "mean-gap", "metric": "POS-P", "contrast": "level", "explainer": "a b c"},
        **{"subject": "item", "against": "list", "relation": "<=", "threshold": threshold},
    )
    assert _verdict(one, decide(one, frame(rows))).word == word


OF_TWO = {"dataset": "shop store"}
HIGHER = {**OF_TWO, "statistic": "largest", "against": "", "contrast": "explainer", "explainer": "a"}
GAP = {**OF_TWO, "statistic": "mean-difference", "against": "b"}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        # a is the lowest in both settings of one data set: in half of all settings at least.
        ({**LOWEST, **OF_TWO, "against": "b", "threshold": 0.4}, "confirmed"),
        ({**LOWEST, **OF_TWO, "against": "b"}, "confirmed in part"),
        ({**LOWEST, **OF_TWO, "subject": "b", "against": "a"}, "refuted"),
        # another data set can only raise the largest mean.
        ({**HIGHER, "threshold": 0.05}, "confirmed"),
        ({**HIGHER, "threshold": 0.5}, "refuted in part"),
        ({**GAP, "relation": "<", "threshold": 0.0}, "confirmed in part"),
        ({**LOWEST, "against": "b"}, "confirmed"),  # of whatever data sets
        # c is missing, too: it could be lower in both settings that were run.
        ({**LOWEST, **OF_TWO, "threshold": 0.4}, "confirmed in part"),
    ],
)
def test_a_claim_that_a_missing_data_set_could_change_is_decided_in_part(
    given: dict[str, object], word: str
) -> None:
    rows = [
        {"explainer": name, "level": level, "values": [value]}
        for name, value in (("a", 0.1), ("b", 0.2))
        for level in ("item", "list")
    ]
    one = claim(**({"metric": "POS-P"} | given))
    found, reason = _verdict(one, decide(one, frame(rows)))
    assert found == word, reason
    assert ("what was not run could change" in reason) == word.endswith("in part")


LISTS = {"statistic": "share-above", "contrast": "level", "subject": "list", "against": "item"}


@pytest.mark.parametrize(
    ("given", "word"),
    [
        # a is the highest in none of two settings, or in one by ties; with two more settings in up to three of four.
        ({"statistic": "share-highest", "k": "5 3"}, "refuted in part"),
        ({"statistic": "share-highest", "k": "5"}, "refuted"),
        # Lists are above items for none of a and b, or for b by ties; with c for up to two of three.
        ({**LISTS, "explainer": "a b c"}, "refuted in part"),
        ({**LISTS, "explainer": "a b"}, "refuted"),
    ],
)
def test_what_was_not_run_could_change_a_claim_together_with_ties(
    given: dict[str, object], word: str
) -> None:
    """a and b are equal for items, b is higher for lists; a is lower for lists than for items, b the same."""
    rows = [
        {"explainer": name, "level": level, "metric": "PN-S", "values": [value]}
        for name, values in (("a", (1.0, 0.5)), ("b", (1.0, 1.0)))
        for level, value in zip(("item", "list"), values, strict=True)
    ]
    one = claim(**({"metric": "PN-S", "against": "b", "level": "item list"} | given))
    found, reason = _verdict(one, decide(one, frame(rows)))
    assert found == word, reason


def test_means_of_one_user_decide_no_claim() -> None:
    """All draws of one user are the same, so their interval has length zero."""
    rows = [
        {"explainer": name, "users": users, "values": drawn(value)}
        for name, value, users in (("a", 0.1, 1), ("b", 0.2, 1), ("c", 0.3, 1))
    ]
    one = claim(**LOWEST)
    assert _verdict(one, decide(one, frame(rows))) == ("undecided", ONE_USER)


def drawn(*values: float) -> list[float]:
    """The mean of all users, and means of forty draws of them, which alternate between the other values."""
    return [values[0], *(values[1:] * (40 // max(len(values) - 1, 1)) or values * 40)]


FALLS = drawn(0.6, 0.58, 0.62), drawn(0.3, 0.31, 0.29)
RISES = FALLS[1], FALLS[0]
EVEN = drawn(0.5), drawn(0.5)
OPEN = drawn(0.5, 0.3, 0.7), drawn(0.4, 0.4, 0.4)
"""Means of the first and the fifth place."""
OF_PLACES = [
    ("lower-places-easier", dict.fromkeys(DATASETS, FALLS), "confirmed"),
    ("lower-places-easier", {"amazon-fashion": FALLS, "ml-1m": RISES}, "refuted"),
    ("lower-places-easier", {**dict.fromkeys(DATASETS, FALLS), "ml-1m": OPEN}, "undecided"),
    ("lower-places-easier", dict.fromkeys(DATASETS, EVEN), "undecided"),
    # By .3; by -.3; by .1, between -.1 and .3. Amazon does not count.
    ("places-movies", {"ml-1m": FALLS}, "confirmed"),
    ("places-movies", {"ml-1m": RISES, "amazon-fashion": FALLS}, "refuted"),
    ("places-movies", {"ml-1m": OPEN}, "undecided"),
    # The gap of Amazon less that of the others, .3 or so: 0; .7; between -.2 and .2.
    ("places-amazon", {"amazon-fashion": EVEN, "ml-1m": FALLS, "yahoo-music": FALLS}, "confirmed"),
    (
        "places-amazon",
        {"amazon-fashion": (drawn(0.2), drawn(0.9)), "ml-1m": FALLS, "yahoo-music": FALLS},
        "refuted",
    ),
    (
        "places-amazon",
        {
            "amazon-fashion": (drawn(0.4), drawn(0.7, 0.5, 0.9)),
            **dict.fromkeys(("ml-1m", "yahoo-music"), (drawn(0.6), drawn(0.3))),
        },
        "undecided",
    ),
    ("clear-c2-places", {"amazon-fashion": RISES}, "confirmed"),
    ("clear-c2-places", {"amazon-fashion": FALLS}, "refuted"),
    ("clear-c2-places", {"amazon-fashion": OPEN}, "undecided"),
    ("clear-c2-places", {"amazon-fashion": EVEN}, "undecided"),
    # Gaps of .02 to .06; of .3; of .05 to .2.
    ("stable-places", {"amazon-fashion": (drawn(0.5), drawn(0.46, 0.48, 0.56))}, "confirmed"),
    ("stable-places", {"amazon-fashion": FALLS}, "refuted"),
    ("stable-places", {"amazon-fashion": (drawn(0.5), drawn(0.4, 0.45, 0.7))}, "undecided"),
]


@pytest.mark.parametrize(("name", "places", "word"), OF_PLACES)
def test_claims_about_places_are_decided_by_their_own_statistic(
    name: str, places: dict[str, tuple[list[float], list[float]]], word: str
) -> None:
    """Every explainer of the claim has the same means; the interval is that of the draws."""
    table = claims()
    own = table[table["claim"] == name]
    (terms,) = own.to_dict("records")
    rows = [
        {
            **{
                label: terms[label].split()[0]
                for label in ("model", "level", "format", "k", "scope", "metric")
            },
            **{"explainer": explainer, "dataset": dataset, "rank": rank, "values": values},
        }
        for explainer in terms["explainer"].split()
        for dataset, both in places.items()
        for rank, values in zip(("1", "5"), both, strict=True)
    ]
    (found,) = claim_rows(own, printed_means(), frame(rows))
    assert found["verdict"] == word, found


@pytest.mark.parametrize(
    ("dataset", "k", "level", "others", "word"),
    [
        # a is below b in both settings of "shop"; with two of another data set it is in half of four at least.
        ("shop", "5 3", "item", {}, "confirmed"),
        ("shop store", "5 3", "item", {}, "confirmed in part"),
        ("shop store", "5 3", "item", {"threshold": 0.4}, "confirmed"),
        ("shop", "5 3 1", "item", {"threshold": 0.7}, "confirmed in part"),
        ("shop", "5 3", "item list", {}, "confirmed in part"),
        # What is true of two settings of four is not true of all, whatever the missing ones are.
        ("shop store", "5 3", "item", {"subject": "b", "against": "a", "threshold": 0.5}, "refuted"),
        # The mean difference is .4 in both; the missing settings lie between -1 and 1.
        (
            "shop",
            "5 3",
            "item",
            {"statistic": "mean-difference", "subject": "b", "against": "a", "threshold": 0},
            "confirmed",
        ),
        (
            "shop store",
            "5 3",
            "item",
            {"statistic": "mean-difference", "subject": "b", "against": "a", "threshold": 0},
            "confirmed in part",
        ),
        (
            "shop store",
            "5 3",
            "item",
            {"statistic": "mean-difference", "subject": "b", "against": "a", "threshold": -0.31},
            "confirmed",
        ),
    ],
)
def test_a_claim_that_missing_data_lengths_or_levels_could_change_is_decided_in_part(
    dataset: str, k: str, level: str, others: dict[str, object], word: str
) -> None:
    rows = [
        {"explainer": name, "k": length, "values": [value]}
        for name, value in (("a", 0.1), ("b", 0.5))
        for length in ("5", "3")
    ]
    terms = {"statistic": "share-lowest", "metric": "POS-P", "subject": "a", "against": "b", "claim": "one"}
    given = claim(
        **{**terms, "dataset": dataset, "k": k, "level": level, "section": "", "sentence": "", **others}
    )
    (found,) = claim_rows(pd.DataFrame([given]), printed_means(), frame(rows))
    assert found["verdict"] == word, found
    for name, label in (("store", dataset), ("K = 1", "K = 1" if "1" in k else ""), ("level list", level)):
        assert (name in found["reason"]) == (name.split()[-1] in label.split()), found["reason"]


@pytest.mark.parametrize(
    ("differ", "word"),
    [(1, "undecided"), (2, "undecided"), (30, "refuted")],
)
def test_the_sign_of_a_difference_that_few_users_have_is_undecided(differ: int, word: str) -> None:
    """Of 100 users, ``differ`` have 1 with b and 0 with a, all others the same; the bootstrap has no draw below 0."""
    random = np.random.default_rng(0)
    users = np.zeros(100)
    users[:differ] = 1.0
    draws = [users.mean(), *(users[random.integers(0, 100, 100)].mean() for _ in range(1000))]
    rows = [
        {"explainer": "a", "values": [0.5] * 1001},
        {"explainer": "b", "values": [0.5 + one for one in draws]},
    ]
    terms = {
        "statistic": "mean-difference",
        "metric": "POS-P",
        "subject": "b",
        "against": "a",
        "claim": "one",
    }
    given = claim(**terms, relation="<", threshold=0, section="", sentence="")
    (found,) = claim_rows(pd.DataFrame([given]), printed_means(), frame(rows))
    assert found["verdict"] == word, found
    assert ("too few users differ" in found["reason"]) == (word == "undecided")
