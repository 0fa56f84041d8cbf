"""Printed next to measured: the printed data against the paper's text, and small runs whose numbers are known."""

import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed
from cfbench_core.reports.analysis import render
from cfbench_text.analysis.published_claims import CONFIRMED, NOT_RUN, REFUTED, claims, verdict
from cfbench_text.analysis.reproduction import (
    ALL_FIVE,
    GENERATORS,
    Reproduction,
    generator_of,
    printed_numbers,
)

analysis = Reproduction()
FIVE = ("toys", "clothes", "beauty", "sports", "cellphones")
STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "generators": [
        {"name": "item-review", "label": "nrt"},
        {"name": "most-frequent", "label": "att2seq-paper"},
        {"name": "most-frequent", "of": "item", "label": "peter"},
        "reference",
    ],
    "judges": ["overlap"],
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One whose generators write explanations, one whose generators write reviews."""
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        for reference in ("paragraph", "written"):
            given = {**STUDY, "protocol": {"reference": reference}}
            made.append(api.run(given, out=tmp_path_factory.mktemp("runs") / reference))
    return made


@pytest.fixture(scope="module")
def table(runs):
    return analysis.table(runs[:1])


def of_item(item, metric):
    printed = printed_numbers()
    return printed[(printed["item"] == item) & (printed["metric"] == metric)].set_index(["dataset", "model"])[
        "printed"
    ]


def test_every_table_is_whole():
    printed = printed_numbers()
    sizes = printed.groupby("item").size().to_dict()
    assert sizes == {
        "table II": 11 * 5,
        "table III": 3 * 5 * 6,
        "table IV": 5 * 5 * 6,
        "table V": 4 * 5 * 6,
        "table VI": 6 * 5 * 6,
        "table VII": 6 * 5 * 5,
    }
    assert set(printed["dataset"]) == set(FIVE) and set(printed["model"]) == {"", *GENERATORS}
    assert not printed.duplicated(["item", "dataset", "metric", "model"]).any()
    assert printed["printed"].notna().all()


@pytest.mark.parametrize(
    ("item", "metric", "low", "high"),
    [
        ("table III", "St2Exp-P", 0.0438, 0.3288),  # "ranging from merely 4.38% to 32.88%"
        ("table III", "St2Exp-R", 0.0027, 0.2986),  # "0.27% on Sports", "29.86% on Beauty"
        ("table III", "St2Exp-F1", 0.0005, 0.1913),  # "from 0.05% to 19.13%"
        ("table IV", "StEnt-P", 0.0466, 0.2480),  # "from 4.66% to 24.80%"
        ("table IV", "StEnt-F1", 0.0061, 0.1381),  # "from 0.61% to 13.81%"
        ("table V", "AlignScore-P", 0.0720, 0.6046),  # the text says 60.48% where the table has 0.6046
    ],
)
def test_the_printed_numbers_have_the_extremes_that_the_text_names(item, metric, low, high):
    numbers = of_item(item, metric)
    assert (numbers.min(), numbers.max()) == (low, high)


def test_sizes_and_harmonic_means_agree_with_one_another():
    sizes = (
        printed_numbers()
        .query("item == 'table II'")
        .pivot(index="dataset", columns="metric", values="printed")
    )
    # What is not in training is dropped from validation and test, so the parts are fewer than the interactions.
    assert (sizes[["train", "validation", "test"]].sum(axis=1) < sizes["interactions"]).all()
    for per, of in (("interaction", "interactions"), ("user", "users"), ("item", "items")):
        assert (sizes[f"statements per {per}"] * sizes[of] / sizes["statements"]).between(0.9, 1.1).all()
    for item in ("table VI", "table VII"):
        p, r, f = (of_item(item, f"BERTScore-{part}") for part in "PRF")
        assert ((2 * p * r / (p + r)) - f).abs().max() < 1.5e-3  # a mean of harmonic means is near


def means_of(numbers):
    return lambda metric: numbers.get(metric, {})


def test_claims_are_decided_by_the_means():
    def said(test, numbers, other="", value=""):
        claim = {"test": test, "metric": "m", "other": other, "value": value}
        return verdict(claim, means_of(numbers))

    two = {"m": {"nrt": 0.1, "peter": 0.3}, "n": {"nrt": 0.2, "peter": 0.4}, "few": {"nrt": 1.0}}
    assert (
        said("max below", two, value="0.31") == CONFIRMED and said("max below", two, value="0.3") == REFUTED
    )
    assert (
        said("min above", two, value="0.1") == CONFIRMED and said("min above", two, value="0.11") == REFUTED
    )
    assert (
        said("mean below", two, value="0.21") == CONFIRMED and said("mean below", two, value="0.2") == REFUTED
    )
    assert said("mean below other", two, other="n") == CONFIRMED
    assert said("mean below other", two, other="few") == NOT_RUN
    assert (
        said("lowest is", two, value="nrt") == CONFIRMED and said("highest is", two, value="nrt") == REFUTED
    )
    assert said("highest is", two, value="xrec") == NOT_RUN
    assert said("transformers above recurrent", two) == CONFIRMED
    assert said("transformers above recurrent", {"m": {"nrt": 0.1}}) == NOT_RUN
    assert said("max below", {}, value="1") == NOT_RUN


def test_every_claim_names_a_printed_metric_or_figure_2():
    known = {*printed_numbers()["metric"], "StEnt-bin-F1", "StEnt-bin-R"}
    table = claims()
    assert len(table) >= 6 and set(table["metric"]) <= known and set(table["other"]) <= {*known, ""}
    assert set(table["items"]) <= {*printed_numbers()["item"], "figure 2"}
    for value in table["value"]:
        assert value == "" or value in GENERATORS or float(value) >= 0


def test_what_the_printed_numbers_say_of_the_claims(table):
    shares = table[table["item"] == "claims"].drop_duplicates("metric").set_index("metric")["printed"]
    lowest = of_item("table III", "St2Exp-P").unstack()
    assert shares["NRT has the lowest precision"] == (lowest.idxmin(axis=1) == "nrt").mean()
    bleurt = of_item("table VI", "BLEURT").unstack()
    # The paper's text says "consistently"; its table has another generator in front on each data set.
    assert shares["PEPLER has the highest BLEURT"] == (bleurt.idxmax(axis=1) == "pepler").mean() == 0.0
    assert shares["BERTScore is at least 0.8 although precision is low"] == 1.0
    assert pd.isna(shares["Binary entailment: F1 stays under 12.5%"])  # figure 2 prints no numbers


def test_labels_name_generators_of_the_paper():
    assert [generator_of(label) for label in ("nrt", "cer-paper", "peter-cfbench", "reference", "nrt-2")] == [
        "nrt",
        "cer",
        "peter",
        "",
        "",
    ]


def test_means_are_those_of_the_scores(runs, table):
    scores = runs[0].scores
    values = scores.query("model == 'nrt' and metric == 'StEnt-R (overlap)'")["value"].dropna()
    row = table.query("model == 'nrt' and metric == 'StEnt-R'").iloc[0]
    assert (row["ours"], row["std"], row["n"]) == pytest.approx((values.mean(), values.std(), len(values)))
    assert (row["item"], row["judge"], row["printed_of"]) == ("table IV", "overlap", ALL_FIVE)
    assert row["printed"] == pytest.approx(of_item("table IV", "StEnt-R").xs("nrt", level="model").mean())
    assert pd.isna(row["difference"])  # of other texts
    assert "reference" not in set(table["model"]) and "att2seq-paper" in set(table["model"])


def test_statistics_are_those_of_the_data(runs, table):
    own = table[table["item"] == "table II"].set_index("metric")["ours"]
    summary = runs[0].summaries("data")["toy-reviews"]
    assert own["users"] == summary["users"] == 12
    assert own["interactions"] == summary["train"] + summary["validation"] + summary["test"]
    assert own["statements per user"] == pytest.approx(own["statements"] / 12)


def test_a_data_set_of_the_paper_has_differences(runs, monkeypatch):
    monkeypatch.setattr(
        "cfbench_text.analysis.reproduction.printed_numbers",
        lambda: printed_numbers().replace({"dataset": {"toys": "toy-reviews"}}),
    )
    row = analysis.table(runs[:1]).query("model == 'nrt' and metric == 'StEnt-R'").iloc[0]
    assert row["printed_of"] == "toy-reviews" and row["printed"] == 0.0127
    assert row["difference"] == pytest.approx(row["ours"] - 0.0127)


def test_written_references_are_table_vii(runs, monkeypatch):
    with_words = printed_numbers().replace({"metric": {"STS": "ROUGE-L"}})  # which needs no model
    monkeypatch.setattr("cfbench_text.analysis.reproduction.printed_numbers", lambda: with_words)
    for given, item in ((runs[:1], "table VI"), (runs[1:], "table VII")):
        found = analysis.table(given).query("metric == 'ROUGE-L' and model == 'peter'").iloc[0]
        expected = with_words.query("item == @item and metric == 'ROUGE-L' and model == 'peter'")[
            "printed"
        ].mean()
        assert (found["item"], found["printed"]) == (item, pytest.approx(expected))


def test_runs_without_the_papers_generators_are_refused(run):
    assert analysis.incompatibility([run]).startswith("needs texts of the paper's generators")


@pytest.mark.parametrize("form", ["terminal", "latex", "markdown", "html", "json", "csv"])
def test_every_format_can_be_written(runs, form):
    given = runs[:1]
    answer = run_analysis(find("reproduction", given, installed()), given, installed())
    text = render(answer, given, form)
    assert "nrt" in text
    if form == "terminal":
        assert "Table IV, toy-reviews, judge overlap: ours (printed)" in text and "(0.0442)" in text
        assert "The paper has no numbers of toy-reviews" in text


def test_the_table_can_be_drawn_from_csv(table, tmp_path):
    table.to_csv(tmp_path / "table.csv", index=False)
    again = pd.read_csv(tmp_path / "table.csv")
    assert analysis.text(again) == analysis.text(table) and analysis.latex(again) == analysis.latex(table)
    assert analysis.words(again) == analysis.words(table)
    assert len(analysis.figures(again)) == len(analysis.figures(table)) > 0
