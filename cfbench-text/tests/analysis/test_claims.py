"""Claims of Statement factuality: statistics by hand, intervals against single means, verdicts where they are known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cfbench_core.statistics.bootstrap import resampled_means
from cfbench_core.verdicts import RELATIONS, Interval
from cfbench_text.analysis.claim_rows import RESAMPLES, claim_rows, verdict
from cfbench_text.analysis.claim_statistics import GENERATORS, extent, grids, possible_values, statistic
from cfbench_text.analysis.published_factuality import DOMAINS, OF_REVIEWS, claims, printed_numbers

printed = printed_numbers()
numbers = printed[printed["table"].isin(["III", "IV", "V", "VI", "VII"])]
numbers = numbers.assign(metric=numbers["metric"] + numbers["table"].map({"VII": OF_REVIEWS}).fillna(""))


def means(metric, **of_models):
    """Two data sets; a pair of means for each generator."""
    return pd.DataFrame(
        [
            {"dataset": dataset, "model": model, "metric": metric, "mean": value}
            for model, pair in of_models.items()
            for dataset, value in zip(("a", "b"), pair, strict=True)
        ]
    )


def claim(kind, metric="m", subject=""):
    return {"statistic": kind, "metric": metric, "subject": subject, "relation": ">", "threshold": 0.5}


six = means("m", nrt=(1, 6), att2seq=(2, 5), cer=(3, 3), peter=(4, 4), pepler=(5, 2), xrec=(6, 6))


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("maximum", "", 6),
        ("minimum", "", 1),
        ("share first", "xrec", 0.5),  # the second place is shared with nrt
        ("share last", "nrt", 0.5),
        ("share last", "pepler", 0.5),
        ("share last two", "pepler", 0.5),
        ("share last two", "att2seq", 0.5),  # the second of the last in one, the third best in the other
        ("share transformers above", "", 0.5),  # in the second NRT is the best
        ("first on average", "xrec", 1),
        ("first on average", "peter", 2),
    ],
)
def test_statistics_by_hand(kind, subject, expected):
    assert statistic(claim(kind, subject=subject), grids(six)) == expected


def test_statistics_of_two_metrics_by_hand():
    both = grids(pd.concat([means("m", nrt=(1, 2), cer=(3, 4)), means("other", nrt=(2, 2), cer=(4, 8))]))
    assert statistic(claim("share below", subject="other"), both) == 0.75
    assert statistic(claim("smallest difference", subject="other"), both) == -4


def of_domains(rows):
    """A mean for each data set of the paper (rows) and generator, all of one metric."""
    return {"m": np.array(rows, dtype=float)}


def test_statistics_of_data_sets_by_hand():
    # toys, clothes, beauty, sports, cellphones; six generators
    grid = of_domains([[1, 2, 3, 4, 1, 1], [5] * 6, [2, 1, 2, 4, 2, 2], [4] * 6, [3] * 6])
    lowest = claim("share lowest data", subject="toys")
    assert statistic(lowest, grid, DOMAINS) == 3 / 6  # of the others beauty or cellphones ties or is lower
    lead = statistic(claim("lead of data", subject="clothes sports"), grid, DOMAINS)
    assert lead == pytest.approx(4 - (12 / 6 + 13 / 6 + 3) / 3)
    one = {"m": np.where(np.arange(6) == 5, np.nan, grid["m"])}  # the last generator was not run
    assert statistic(lowest, one, DOMAINS) == 2 / 5
    assert np.isnan(statistic(lowest, grid, ("toys", "b", "c", "d", "e")))
    assert np.isnan(statistic(lowest, grid))


@pytest.mark.parametrize("kind", ["share lowest data", "lead of data"])
def test_draws_of_data_sets_are_computed_as_single_tables_are(kind):
    draws = np.random.default_rng(3).integers(0, 4, (4, 5, 6)).astype(float)
    subject = "toys" if kind == "share lowest data" else "clothes sports"
    found = statistic(claim(kind, subject=subject), {"m": draws}, DOMAINS)
    for value, grid in zip(found, draws, strict=True):
        rows = dict(zip(DOMAINS, grid.tolist(), strict=True))
        if kind == "share lowest data":
            others = [rows[name] for name in DOMAINS if name != "toys"]
            expected = sum(rows["toys"][n] < min(other[n] for other in others) for n in range(6)) / 6
        else:
            mean = {name: sum(row) / 6 for name, row in rows.items()}
            rest = (mean["toys"] + mean["beauty"] + mean["cellphones"]) / 3
            expected = min(mean["clothes"], mean["sports"]) - rest
        assert value == pytest.approx(expected)


def test_claims_about_data_sets_need_those_of_the_paper():
    values = {"St2Exp-F1": [0.1, 0.2, 0.3]}
    found = decided("toys-lowest", measured(values))
    assert (found["verdict_printed"], found["verdict"]) == ("refuted", "not reproducible")
    assert found["reason"] == "it compares the five data sets of the paper, which were not all run"
    rows = pd.concat(measured({"St2Exp-F1": [0.1 * n, 0.1 * n]}, name) for n, name in enumerate(DOMAINS, 1))
    assert decided("toys-lowest", rows)["ours"] == 1.0


@pytest.mark.parametrize(
    "kind", ["share first", "share last", "share last two", "share transformers above", "first on average"]
)
def test_an_order_of_fewer_than_six_generators_decides_nothing(kind):
    value = statistic(
        claim(kind, subject="nrt"), grids(six[six["model"] != ("peter" if "trans" in kind else "xrec")])
    )
    assert np.isnan(value) and verdict(claim(kind), Interval(value)).word == "not reproducible"


@pytest.mark.parametrize(
    ("kind", "value", "present", "whole", "word"),
    [
        # Another generator or data set could have a higher maximum, a lower minimum or difference; it cannot undo what
        # others have reached.
        ("maximum", 0.4, 25, 30, "refuted in part"),
        ("maximum", 0.6, 25, 30, "confirmed"),
        ("minimum", 0.6, 25, 30, "confirmed in part"),
        ("minimum", 0.4, 25, 30, "refuted"),
        ("smallest difference", 0.6, 25, 30, "confirmed in part"),
        ("smallest difference", 0.4, 25, 30, "refuted"),
        # 0.8 of five of six generators is between 0.67 and 0.83, 0.8 of three between 0.4 and 0.9.
        ("share below", 0.8, 25, 30, "confirmed"),
        ("share below", 0.8, 15, 30, "confirmed in part"),
        ("share below", 0.2, 25, 30, "refuted"),
        ("maximum", 0.4, 30, 30, "refuted"),
        ("minimum", 0.6, 30, 30, "confirmed"),
        # Of three of five data sets all, or none: between 0.6 and 1, or 0 and 0.4 of five. Of two of five: up to 0.6.
        ("share first", 1.0, 3, 5, "confirmed"),
        ("share last", 0.0, 3, 5, "refuted"),
        ("share last", 0.0, 2, 5, "refuted in part"),
        ("share last two", 1.0, 2, 5, "confirmed in part"),
        ("share transformers above", 1.0, 1, 5, "confirmed in part"),
        ("first on average", 0.0, 4, 5, "refuted in part"),
        # Of five of six generators 0.6 is between 0.5 and 0.67.
        ("share lowest data", 0.6, 5, 6, "confirmed in part"),
        ("lead of data", 0.6, 5, 6, "confirmed in part"),
    ],
)
def test_a_claim_that_what_was_not_run_could_change_is_decided_in_part(kind, value, present, whole, word):
    bounds = possible_values(kind, value, value, present, whole) if present < whole else ()
    assert verdict(claim(kind), Interval(value), bounds=bounds).word == word


@pytest.mark.parametrize(
    ("kind", "subject", "expected"),
    [
        ("maximum", "", (11, 30)),  # two of the five data sets; one mean is missing
        ("share below", "other", (10, 30)),
        ("share first", "nrt", (1, 5)),
        ("share transformers above", "", (2, 5)),  # without XRec, whose mean is missing
    ],
)
def test_the_extent_of_a_statistic_is_what_it_needs(kind, subject, expected):
    one = grids(six)["m"].copy()
    one[0, GENERATORS.index("xrec")] = np.nan
    other = np.ones_like(one)
    other[1, 0] = np.nan
    of = claim(kind, subject=subject)
    assert extent(of, {"m": one, "other": other}, ("toys", "beauty")) == expected
    draws = {"m": np.stack([one, one]), "other": np.stack([other, other])}
    assert extent(of, draws, ("toys", "beauty")) == expected
    present, whole = expected
    assert extent(of, draws, ("toys", "books")) == (present, whole * 2 / 5)  # other data: whatever was run


def test_a_missing_metric_decides_nothing():
    assert np.isnan(statistic(claim("maximum", metric="absent"), grids(six)))
    assert np.isnan(statistic(claim("share below", subject="absent"), grids(six)))


def test_the_claims_can_be_decided_and_the_printed_tables_contradict_five():
    found = claims().to_dict("records")
    theirs = grids(numbers.rename(columns={"printed": "mean"}))
    verdicts = {
        one["claim"]: verdict(one, Interval(float(statistic(one, theirs, DOMAINS)))).word for one in found
    }
    assert tuple(dict.fromkeys(numbers["dataset"])) == DOMAINS
    assert len(verdicts) == len(found) >= 6 and {one["relation"] for one in found} <= set(RELATIONS)
    assert [name for name, one in verdicts.items() if one == "refuted"] == [
        "lowest-entailment-f1",
        "pepler-bleurt",
        "transformers-more-similar-bart",
        "toys-lowest",
        "clothes-sports-better",
    ]
    assert {name for name, one in verdicts.items() if one == "not reproducible"} == {
        "low-binary-recall",
        "low-binary-f1",
    }


@given(
    st.sampled_from(
        [
            *("maximum", "minimum", "share below", "share first", "share last", "share last two"),
            *("share transformers above", "first on average"),
        ]
    ),
    st.integers(0, 2**32 - 1),
    st.booleans(),
)
def test_draws_are_computed_as_single_tables_are(kind, seed, some_missing):
    """The statistic of an array of draws is that of each draw alone, computed by loops."""
    random = np.random.default_rng(seed)
    draws = random.integers(0, 4, (2, 3, 2, 6)).astype(float)  # metrics, draws, data sets, generators
    if some_missing:
        draws[:, :, 0, 2] = np.nan
    of = claim(kind, subject="other" if kind == "share below" else "cer")
    found = statistic(of, {"m": draws[0], "other": draws[1]})
    for place, grid in enumerate(draws[0]):
        np.testing.assert_equal(found[place], by_loops(kind, grid, draws[1, place]))


def by_loops(kind, grid, other):
    known = [value for row in grid for value in row if value == value]
    if kind in ("maximum", "minimum"):
        return max(known) if kind == "maximum" else min(known)
    if kind == "share below":
        pairs = [
            (one, two)
            for one, two in zip(grid.ravel(), other.ravel(), strict=True)
            if one == one and two == two
        ]
        return sum(one < two for one, two in pairs) / len(pairs)
    complete = [list(row) for row in grid if not np.isnan(row).any()]
    own = GENERATORS.index("cer")
    if kind == "first on average":
        average = [sum(column) / len(complete) for column in zip(*complete, strict=True)]
        return sum(one >= average[own] - 1e-9 for one in average)
    if kind == "share transformers above":
        whole = [
            (nrt, att2seq, *others)
            for nrt, att2seq, *others, _ in grid.tolist()
            if not np.isnan([nrt, att2seq, *others]).any()
        ]
        return sum(min(others) > max(nrt, att2seq) for nrt, att2seq, *others in whole) / len(whole)
    if kind == "share last two":
        return sum(sum(value <= row[own] for value in row) <= 2 for row in complete) / len(complete)
    firsts = [sorted(row, reverse=kind == "share first") for row in complete]
    return sum(row[own] == best[0] != best[1] for row, best in zip(complete, firsts, strict=True)) / len(
        complete
    )


def measured(values, dataset="toys", stand_in="", **columns):
    """Rows of means of NRT: ``values`` by metric, (units,) each."""
    return pd.DataFrame(
        [
            {
                "dataset": dataset,
                "metric": metric,
                "judge": "",
                "model": "nrt",
                "generator": "nrt",
                "ours": float(np.mean(of_metric)),
                "values": pd.Series(of_metric, dtype=float),
                "stand_in": stand_in,
                **columns,
            }
            for metric, of_metric in values.items()
        ]
    )


def decided(name, rows):
    return next(one for one in claim_rows(rows, numbers) if one["metric"] == name)


def test_the_interval_of_a_statistic_is_that_of_resampled_texts():
    values = np.random.default_rng(0).random(50)
    found = decided("low-precision", measured({"St2Exp-P": values}))  # the maximum of one mean is the mean
    limits = np.percentile(resampled_means(values[:, None], RESAMPLES), [2.5, 97.5])
    assert found["ours"] == pytest.approx(values.mean())
    assert [found["ci_low"], found["ci_high"]] == pytest.approx(list(limits))


def test_all_metrics_are_of_the_same_draw():
    values = np.random.default_rng(1).random(50)
    rows = measured({"BERTScore-F": values + 0.45, "St2Exp-P": values[::-1]})
    rows.at[1, "values"] = rows["values"][1][::-1].reset_index(
        drop=True
    )  # now they differ by 0.45 in each unit
    found = decided("disconnected", rows)
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([0.45, 0.45])


def test_units_are_matched_by_name_not_by_order():
    values = pd.Series(np.random.default_rng(1).random(50))
    rows = measured({"BERTScore-F": values + 0.45, "St2Exp-P": values})
    rows.at[1, "values"] = values.sample(frac=1, random_state=0)
    found = decided("disconnected", rows)
    assert [found["ci_low"], found["ci_high"]] == pytest.approx([0.45, 0.45])


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([0.0, 1.0] * 5, "undecided"),  # around the threshold of 0.5
        ([0.9, 1.0] * 5, "refuted"),  # no other generator can lower the maximum
        ([0.0, 0.1] * 5, "confirmed in part"),  # five generators are missing, one of which could be above 0.5
        ([0.9], "undecided"),  # one text has no interval
        ([0.1], "undecided"),
    ],
)
def test_a_claim_is_decided_by_the_whole_interval(values, word):
    assert decided("low-precision", measured({"St2Exp-P": values}))["verdict"] == word


def of_all(metric, data_sets=DOMAINS, **values):
    """Rows of all six generators on some data sets; ``values`` by generator, those of the others are [0.2, 0.3]."""
    return pd.concat(
        measured({metric: values.get(name, [0.2, 0.3] * 20)}, place, model=name, generator=name)
        for place in data_sets
        for name in GENERATORS
    )


def test_a_claim_about_all_six_is_confirmed_only_if_noise_cannot_change_it():
    near, far = ([0.4, 0.6] * 20, [0.2, 0.3] * 20)
    for values, word in ((near, "undecided"), (far, "confirmed")):
        found = decided("low-precision", of_all("St2Exp-P", **dict.fromkeys(GENERATORS, values)))
        assert found["verdict"] == word, found["reason"]


@pytest.mark.parametrize("name", ["low-precision", "nrt-least-precise"])
def test_a_claim_about_data_sets_that_were_not_run_is_decided_in_part(name):
    """On each data set NRT is the last, and no mean is above 0.5."""
    lowest = {"nrt": [0.1, 0.12] * 20}
    assert decided(name, of_all("St2Exp-P", **lowest))["verdict"] == "confirmed"
    found = decided(name, of_all("St2Exp-P", ("toys",), **lowest))
    assert found["verdict"] == "confirmed in part"
    assert "clothes, beauty, sports, cellphones (not run) could change" in found["reason"]


def test_a_mean_that_is_missing_on_one_data_set_could_change_a_claim():
    rows = of_all("St2Exp-P")
    some = rows[(rows["dataset"] != "toys") | (rows["generator"] != "cer")]
    found = decided("low-precision", some)
    assert found["verdict"] == "confirmed in part" and "what was not run could change" in found["reason"]


@pytest.mark.parametrize("name", ["nrt-least-precise", "xrec-best-recall", "aligned-nrt", "toys-lowest"])
def test_an_order_of_equal_means_is_undecided(name):
    """No statement is supported in any text: every generator is both the first and the last."""
    (metric,) = claims().set_index("claim").loc[[name], "metric"]
    nothing = [0.0] * 20
    found = decided(name, of_all(metric, **dict.fromkeys(GENERATORS, nothing)))
    assert found["verdict"] == "undecided" and "by how ties are counted" in found["reason"]


def test_metrics_that_tie_leave_their_order_undecided():
    nothing = dict.fromkeys(GENERATORS, [0.0] * 20)
    rows = pd.concat([of_all("St2Exp-R", **nothing), of_all("St2Exp-P", **nothing)])
    found = decided("recall-below-precision", rows)
    assert found["verdict"] == "undecided" and "by how ties are counted" in found["reason"]


def test_without_any_mean_nothing_is_decided():
    rows = list(claim_rows(measured({"St2Exp-P": [0.5]}).iloc[:0], numbers))
    assert {row["verdict"] for row in rows} == {"not reproducible"} and len(rows) == len(claims())


def test_a_generator_that_wrote_no_statement_was_run():
    """The reason names it, and what was not run apart from it."""
    rows = measured({"St2Exp-P": [0.1, 0.2] * 20})
    by_name = {one["metric"]: one for one in claim_rows(rows, numbers, {"St2Exp-P": {"att2seq"}})}
    silent = "att2seq (run, but no text has a value, as one without statements)"
    reason = by_name["nrt-least-precise"]["reason"]
    assert reason == f"cer, peter, pepler, xrec, clothes, beauty, sports, cellphones (not run) and {silent}"
    assert by_name["xrec-best-recall"]["reason"] == "St2Exp-R (not run)"
    partial = by_name["low-precision"]["reason"]
    assert f"(not run) and {silent} could change" in partial


def test_generators_that_all_wrote_nothing_were_all_run():
    silent = {"St2Exp-P": set(GENERATORS)}
    rows = claim_rows(measured({"St2Exp-P": [0.5]}).iloc[:0], numbers, silent)
    (reason,) = (row["reason"] for row in rows if row["metric"] == "low-precision")
    assert "not run" not in reason and all(name in reason for name in GENERATORS)


def test_what_two_metrics_have_in_place_of_the_papers_models_is_named_once():
    rows = measured({"BERTScore-F": [0.9, 0.8] * 20, "St2Exp-P": [0.1, 0.2] * 20})
    rows["stand_in"] = ["rules in place of A; b in place of B", "rules in place of A; c in place of C"]
    reason = decided("disconnected", rows)["reason"]
    assert reason.split("; ") == ["rules in place of A", "b in place of B", "c in place of C"]
