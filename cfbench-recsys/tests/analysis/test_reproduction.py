"""Runs next to CFExpRec's tables: verdicts of numbers by hand, and whole small runs."""

from __future__ import annotations

import io
import itertools
import json
import re
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd
import pytest
import yaml

from cfbench_core import run
from cfbench_core.run_directory import Run
from cfbench_recsys.analysis import published_cfexprec
from cfbench_recsys.analysis.measured_means import best_measured, measure, of_the_same_users, split_label
from cfbench_recsys.analysis.published_cfexprec import EXPLAINERS
from cfbench_recsys.analysis.reproduction import COLUMNS, PAPERS, Config, Reproduction, _cell, _decided
from cfbench_recsys.analysis.shared import settings

USERS = 30
reproduction = Reproduction(Config())
AMAZON = {"dataset": "amazon-fashion", "k": 3}
"""Table 3 prints, at item level with K = 3: LXR 0.1161 +- 0.2154, LIME-RS 0.1471 +- 0.2260 (POS-P@3)."""


def around(mean: float, spread: float = 0.001) -> list[float]:
    """A value for each of three items of USERS users, with this mean."""
    deviations = np.random.default_rng(0).normal(0, spread, 3 * USERS)
    return [*(mean + deviations - deviations.mean())]


def configured(directory: Run, **protocol: Any) -> Run:
    """The run with a configuration of its own."""
    (directory.directory / "config.yaml").write_text(yaml.safe_dump({"seed": 0, "protocol": protocol}))
    return Run(directory.directory)


def numbers(table: pd.DataFrame, item: str) -> pd.DataFrame:
    return table[(table["item"] == item) & table["ours"].notna()]


def test_a_paper_of_the_configuration_is_one_of_the_registry() -> None:
    assert set(get_args(get_args(get_type_hints(Config, include_extras=True)["paper"])[0])) == set(PAPERS)


def test_sizes_alone_have_verdicts() -> None:
    """Those of table 2, for a run whose means are of no table; they have no interval."""
    size = {"item": "table-2", "explainer": "", "deviation": 0.0, "reason": ""}
    found = _decided(
        pd.DataFrame(
            [{**size, "ours": 6037.0, "printed": 6037.0}, {**size, "ours": 6040.0, "printed": 6037.0}]
        )
    )
    assert found["verdict"].tolist() == ["confirmed", "refuted"]


def test_counts_of_a_data_set_are_shown_without_decimals() -> None:
    sizes = {"users": (942, 6037), "items": (1283, 3381), "interactions per user": (58.61, 95.27)}
    rows = [
        {"item": "table-2", "metric": metric, "ours": ours, "printed": printed, "verdict": "refuted"}
        for metric, (ours, printed) in sizes.items()
    ]
    text = Reproduction(Config()).text(pd.DataFrame(rows).reindex(columns=list(COLUMNS)))
    for cell in ("942 (6,037, -5,095) ✗", "1,283 (3,381, -2,098) ✗", "58.61 (95.27, -36.66) ✗"):
        assert cell in text


def test_a_mean_over_one_user_is_undecided_whatever_it_is() -> None:
    """It has no interval, and is no size that would be exact."""
    mean = {"item": "table-3", "explainer": "lxr", "deviation": 0.0, "reason": "", "printed": 0.4809}
    found = _decided(pd.DataFrame([{**mean, "ours": ours} for ours in (0.4809, 0.9)]))
    assert found["verdict"].tolist() == ["undecided", "undecided"]
    assert set(found["reason"]) == {"one user or one batch, whose means have no interval"}


def test_numbers_are_confirmed_refuted_or_undecided(write: Any, make_cell: Any) -> None:
    """The printed mean of 500 users is uncertain by 1.96 * 0.2154 / sqrt(500) = 0.0189."""
    run = write(
        make_cell("lxr-paper", {"POS-P@3": around(0.1161 + 0.01)}, **AMAZON),
        make_cell("lxr-cfbench", {"POS-P@3": around(0.05)}, **AMAZON),
        make_cell("lime-rs-paper", {"POS-P@3": around(0.1471, 0.5)}, **AMAZON),
        make_cell("random", {"POS-P@3": around(0.5)}, role="baseline", **AMAZON),
    )
    assert reproduction.incompatibility([run]) == ""
    table = reproduction.table([run])
    assert list(table.columns) == list(COLUMNS)
    found = numbers(table, "table-3")
    keys = ["explainer", "variant", "metric", "printed", "printed_deviation", "verdict"]
    assert found[keys].values.tolist() == [
        ["lxr", "paper", "POS-P@3", 0.1161, 0.2154, "confirmed"],
        ["lxr", "cfbench", "POS-P@3", 0.1161, 0.2154, "refuted"],
        ["lime-rs", "paper", "POS-P@3", 0.1471, 0.226, "undecided"],
    ]
    assert found["reason"].iloc[0] == "within 0.0972 to 0.135"
    assert found["difference"].tolist() == pytest.approx([0.01, 0.05 - 0.1161, 0.0])
    assert (found["ci_low"] < found["ours"]).all() and found["n"].tolist() == [3 * USERS] * 3


def test_what_is_printed_and_was_not_run_is_not_reproducible(write: Any, make_cell: Any) -> None:
    table = reproduction.table([write(make_cell("lxr", {"POS-P@3": around(0.1)}, **AMAZON))])
    absent = table[(table["item"] == "table-3") & table["ours"].isna()]
    assert set(absent["verdict"]) == {"not reproducible"} and len(absent) == 143
    reasons = absent.groupby("dataset")["reason"].unique()
    assert reasons["yahoo-music"].tolist() == ["its data needs a signed agreement"]
    assert reasons["ml-1m"].tolist() == ["not in these runs"]


def test_a_failed_cell_is_a_row_with_its_state(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("lxr", {"POS-P@3": around(0.1)}, **AMAZON),
        make_cell("shap-paper", {"POS-P@3": around(0.1)}, status="timeout", **AMAZON),
    )
    table = reproduction.table([run])
    row = table[
        (table["explainer"] == "shap") & (table["variant"] == "paper") & (table["metric"] == "POS-P@3")
    ]
    assert row[["item", "printed", "verdict", "reason"]].values.tolist() == [
        ["table-3", 0.1312, "not reproducible", "timeout"]
    ]
    assert re.search(r"timeout \(0\.1312 ±0\.\d{4}\) ∅", reproduction.text(table))


def test_a_cell_has_both_numbers_with_their_spread_the_difference_and_the_verdict(
    write: Any, make_cell: Any
) -> None:
    run = write(make_cell("lxr-paper", {"POS-P@3": around(0.05)}, **AMAZON))
    table = reproduction.table([run])
    row = numbers(table, "table-3").iloc[0]
    half = (row["ci_high"] - row["ci_low"]) / 2
    text, latex = reproduction.text(table), reproduction.latex(table)
    assert f"0.0500 ±{half:.4f} (0.1161 ±0.2154, -0.0661) ✗" in text and "✗ refuted" in text
    assert rf"0.0500 $\pm${half:.4f} (0.1161 $\pm$0.2154, -0.0661) $\times$" in latex


def test_a_cell_that_the_paper_has_no_number_of_says_so() -> None:
    """PRINCE explains no lists in the paper."""
    row = {"reason": "the paper: not supported", "printed": np.nan, "verdict": "not comparable"}
    assert _cell(row | {"ours": np.nan}) == "- (not supported)"
    assert _cell(row | {"ours": 0.25}) == "0.2500 (not supported)"


def test_the_margin_is_an_option(write: Any, make_cell: Any) -> None:
    run = write(make_cell("lxr-paper", {"POS-P@3": around(0.16)}, **AMAZON))
    wide = Reproduction(Config(margin=0.5)).table([run])
    assert numbers(reproduction.table([run]), "table-3")["verdict"].tolist() == ["refuted"]
    assert numbers(wide, "table-3")["verdict"].tolist() == ["confirmed"]


def test_other_lists_budgets_users_and_machines_are_not_comparable(write: Any, make_cell: Any) -> None:
    graph = {"dataset": "amazon-fashion", "model": "lightgcn", "format": "explicit", "scope": "k-hop-3"}
    plain = write(
        make_cell("lxr", {"POS-P@5": [0.1] * 50}, **AMAZON | {"k": 5}),
        make_cell("lxr", {"POS-P@10": [0.1] * 50}, **AMAZON | {"k": 10}),
        make_cell("grease", {"PN-S@3": around(0.85), "#Perturb": [5.0] * 3 * USERS}, k=3, **graph),
    )
    run = configured(plain, postprocess={"verify": True})
    table = reproduction.table([run])
    reasons = {
        (row["item"], row["metric"]): row["reason"] for row in table[table["ours"].notna()].to_dict("records")
    }
    assert reasons["table-3", "POS-P@10"] == "the paper has no lists of 10"
    assert reasons["table-6", "time"] == "another machine"
    assert reasons["table-5", "#Perturb"].startswith("edits of failures are not counted")
    assert reasons["figure-4", "PN-S@3"] == "the paper draws this figure without numbers"
    verdicts = table[table["ours"].notna() & (table["metric"] == "PN-S@3")].set_index("item")["verdict"]
    assert verdicts.to_dict() == {"table-5": "confirmed", "figure-4": "not comparable"} or set(
        verdicts.index
    ) == {"table-5", "figure-4"}

    chosen = configured(run, users_file="users.csv", postprocess={"verify": False})
    table = reproduction.table([chosen])
    assert set(numbers(table, "table-5")["reason"]) == {"users of a file, not a draw"}


def test_claims_have_a_verdict_for_each_variant(write: Any, make_cell: Any) -> None:
    """As published LXR has the lowest POS-P, ours has not."""
    values = {"lxr-paper": 0.1, "lxr-cfbench": 0.4, "lime-rs-paper": 0.2, "lime-rs-cfbench": 0.2}
    values |= {"shap": 0.3, "accent": 0.35}
    cells = [make_cell(name, {"POS-P@3": around(value)}, **AMAZON) for name, value in values.items()]
    table = reproduction.table([write(*cells)])
    rows = table[table["claim"] == "lxr-lowest-pos-p"].set_index("variant")
    assert rows["ours"].to_dict() == {"paper": 1.0, "cfbench": 0.0}
    # One of twelve settings was run.
    assert rows["verdict"].to_dict() == {"paper": "confirmed in part", "cfbench": "refuted in part"}
    assert rows["reason"]["paper"] == (
        "1 against > 0.5, which what was not run could change; without ml-1m, yahoo-music, K = 5, level list"
    )
    assert set(rows["verdict_printed"]) == {"confirmed"} and set(rows["printed"]) == {1.0}
    words = reproduction.words(table)
    assert "Claims of CFExpRec here (variant paper): 1 confirmed in part" in words
    assert "By its own printed numbers: " in words and "Table 3: " in words


def test_a_claim_that_a_missing_explainer_could_change_is_decided_in_part(write: Any, make_cell: Any) -> None:
    """ACCENT could be lower than LXR as published; LXR of cfbench is not the lowest, whatever ACCENT is."""
    values = {"lxr-paper": 0.1, "lxr-cfbench": 0.4, "lime-rs": 0.2, "shap": 0.3}
    cells = [make_cell(name, {"POS-P@3": around(value)}, **AMAZON) for name, value in values.items()]
    table = reproduction.table([write(*cells)])
    rows = table[table["claim"] == "lxr-lowest-pos-p"].set_index("variant")
    assert rows["verdict"].to_dict() == {"paper": "confirmed in part", "cfbench": "refuted in part"}
    assert rows["reason"]["cfbench"].endswith("without accent, ml-1m, yahoo-music, K = 5, level list")


def test_users_are_drawn_together_for_measure(write: Any, make_cell: Any) -> None:
    """Two explainers that differ by the same amount for every user: their difference is the same in every resample."""
    values = np.random.default_rng(1).random(3 * USERS)
    run = write(
        make_cell("lxr", {"POS-P@3": values}, **AMAZON),
        make_cell("shap", {"POS-P@3": values + 0.01}, **AMAZON),
    )
    means = measure([run], EXPLAINERS, ("POS-P",), ("POS-P",))
    assert means.frame["rank"].tolist() == ["", "1", "2", "3"] * 2
    np.testing.assert_allclose(means.values[:, 4:] - means.values[:, :4], 0.01)
    assert means.values[0, :4].tolist() == pytest.approx(
        [values.mean(), *(values[place::3].mean() for place in range(3))]
    )
    spread = np.percentile(means.values[1:, 0], [2.5, 97.5])
    low, high = means.frame[["ci_low", "ci_high"]].iloc[0]
    assert spread == pytest.approx([low, high], abs=0.01)


def test_times_are_drawn_by_batch(write: Any, make_cell: Any) -> None:
    """Six users in three batches: as many means as three batches have draws, the same draws for both explainers."""
    seconds = [1.0, 1.0, 2.0, 2.0, 6.0, 6.0]
    of_units = [one for one in seconds for _ in range(3)]
    run = write(
        *(
            make_cell(
                name,
                {"POS-P@3": [0.5] * 18},
                **{**AMAZON, "seconds": [factor * one for one in of_units]},
            )
            for name, factor in (("lxr", 1.0), ("shap", 2.0))
        )
    )
    means = measure([run], EXPLAINERS, ("time",), ())
    assert means.frame[["explainer", "mean", "users"]].values.tolist() == [["lxr", 3, 3], ["shap", 6, 3]]
    np.testing.assert_allclose(means.values[:, 1], 2 * means.values[:, 0])
    draws = {round(sum(three) / 3, 9) for three in itertools.product((1.0, 2.0, 6.0), repeat=3)}
    assert set(means.values[1:, 0].round(9).tolist()) == draws


def test_the_time_of_one_batch_has_no_interval(write: Any, make_cell: Any) -> None:
    run = write(make_cell("lxr", {"POS-P@3": [0.5] * 18}, **{**AMAZON, "seconds": [2.0] * 18}))
    means = measure([run], EXPLAINERS, ("time",), ())
    assert means.frame["users"].tolist() == [1] and set(means.values[1:, 0]) == {2.0}


def test_a_sample_of_users_counts_alone(write: Any, make_cell: Any) -> None:
    """The first two users have three units each."""
    values = np.random.default_rng(1).random(3 * USERS)
    run = write(make_cell("lxr", {"POS-P@3": values}, **AMAZON))
    (method,) = (method for one in settings([run], lambda cell: True) for method in one.methods)
    users = method.values.clusters
    chosen = list(dict.fromkeys(users.tolist()))[:2]
    means = measure([run], EXPLAINERS, ("POS-P",), ("POS-P",), sample=chosen)
    counted = np.isin(users, chosen)
    assert counted.sum() == 6 and means.frame["n"].tolist() == [6, 2, 2, 2]
    assert means.values[0].tolist() == pytest.approx(
        [values[counted].mean(), *(values[counted][place::3].mean() for place in range(3))]
    )
    assert means.values[1:].min() >= values[counted].min() and means.values[1:].max() <= values[counted].max()


def test_runs_with_other_seeds_are_settings_of_their_own(write: Any, make_cell: Any) -> None:
    runs = []
    for seed in (0, 1):
        one = write(make_cell("lxr", {"POS-P@3": around(0.1 + seed)}, **AMAZON), name=f"seed{seed}")
        (one.directory / "config.yaml").write_text(f"seed: {seed}\n")
        runs.append(Run(one.directory))
    means = measure(runs, EXPLAINERS, ("POS-P",), ())
    assert means.frame["run"].tolist() == ["seed 0", "seed 1"]
    assert means.frame["mean"].tolist() == pytest.approx([0.1, 1.1])


def test_of_a_cell_that_two_runs_have_the_larger_counts(write: Any, make_cell: Any) -> None:
    small = write(make_cell("lxr", {"POS-P@3": [0.5] * 6}, **AMAZON), name="small")
    large = write(make_cell("lxr", {"POS-P@3": [0.2] * 12}, **AMAZON), name="large")
    for runs in ([small, large], [large, small]):
        means = best_measured(measure(runs, EXPLAINERS, ("POS-P",), ()))
        assert means.frame[["run", "mean", "n"]].values.tolist() == [["", pytest.approx(0.2), 12]]


def test_scopes_are_compared_by_the_means_of_the_same_users(write: Any, make_cell: Any) -> None:
    """Four users in one scope, and the first two of them in two: table 5 shows the four, what compares scopes the two."""
    graph = {"dataset": "amazon-fashion", "model": "lightgcn", "format": "explicit", "k": 3}
    large = write(make_cell("cf2", {"PN-S@3": [0.0] * 6 + [1.0] * 6}, scope="k-hop-3", **graph), name="large")
    small = write(
        make_cell("cf2", {"PN-S@3": [0.0] * 6}, scope="k-hop-3", **graph),
        make_cell("cf2", {"PN-S@3": [0.0, 0.0, 0.0, 0.0, 0.0, 0.3]}, scope="full", **graph),
        name="small",
    )
    for runs in ([large, small], [small, large]):
        table, _ = published_cfexprec.compare(runs, other_data=False)
        means = table[table["ours"].notna()].set_index(["item", "scope"])["ours"].to_dict()
        assert means["table-5", "k-hop-3"] == 0.5
        assert means["figure-6", "k-hop-3"] == 0 and means["figure-6", "full"] == pytest.approx(0.05)
    means = of_the_same_users(measure([large, small], EXPLAINERS, ("PN-S",), ()), "scope")
    assert means.frame["n"].tolist() == [6, 6]
    alone = write(make_cell("cf2", {"PN-S@3": [0.0] * 12}, scope="k-hop-3", **graph), name="alone")
    assert of_the_same_users(measure([alone], EXPLAINERS, ("PN-S",), ()), "scope").frame.empty


def test_a_claim_about_scopes_is_decided_by_the_same_users(write: Any, make_cell: Any) -> None:
    graph = {"dataset": "amazon-fashion", "model": "lightgcn", "format": "explicit", "k": 3}
    large = write(make_cell("grease", {"PN-S@3": [1.0] * 12}, scope="k-hop-3", **graph), name="large")
    small = write(
        *(make_cell("grease", {"PN-S@3": [0.0] * 6}, scope=scope, **graph) for scope in ("k-hop-3", "full")),
        name="small",
    )
    _, claims = published_cfexprec.compare([large, small], other_data=False)
    (gap,) = {claim["ours"] for claim in claims if claim["claim"] == "khop-same"}
    assert gap == 0, "with the users of the large run it is 1"


def test_labels_name_the_explainer_and_its_variant() -> None:
    remove, add = {"edit": "remove"}, {"edit": "remove-or-add"}
    assert split_label("cf2-paper", remove, EXPLAINERS) == ("cf2", "paper")
    assert split_label("prince", remove, EXPLAINERS) == ("prince", "")
    assert split_label("c2explainer-cfbench", add, EXPLAINERS) == ("c2explainer-add", "cfbench")
    assert split_label("cf2-paper", add, EXPLAINERS) == ("", "")
    assert split_label("lxr-threshold", remove, EXPLAINERS) == ("", "")


def test_other_data_is_compared_on_demand(write: Any, make_cell: Any) -> None:
    run = write(
        make_cell("lxr", {"POS-P@3": around(0.1)}, k=3), make_cell("shap", {"POS-P@3": around(0.2)}, k=3)
    )
    assert "needs an explainer of CFExpRec on amazon-fashion" in reproduction.incompatibility([run])
    any_data = Reproduction(Config(other_data=True))
    assert any_data.incompatibility([run]) == ""
    table = any_data.table([run])
    assert set(table.loc[table["item"] != "claims", "dataset"]) == {"shop"}  # none of those in the paper
    found = numbers(table, "table-3")
    assert set(found["reason"]) == {"the paper prints no such number of shop"}
    assert set(found["verdict"]) == {"not comparable"}


@pytest.mark.parametrize(
    ("places", "word"),
    [
        (("amazon-fashion",), "confirmed in part"),
        (("shop",), "confirmed in part"),
        (("amazon-fashion", "shop"), "confirmed in part"),
        (published_cfexprec.DATASETS, "confirmed"),
    ],
)
def test_a_choice_among_the_data_of_the_paper_is_no_other_data(
    write: Any, make_cell: Any, places: tuple[str, ...], word: str
) -> None:
    """LXR is the sparsest on all data of the paper; the runs have some of these, or others, which decide in part."""
    cells = [
        make_cell(name, {"Gini": around(gini)}, dataset=place, k=k, level=level, scope="user-vector")
        for name, gini in (("lxr", 0.9), ("shap", 0.5), ("lime-rs", 0.5), ("accent", 0.5))
        for place in places
        for k in (3, 5)
        for level in ("item", "list")
    ]
    table = Reproduction(Config(other_data=True)).table([write(*cells)]).set_index("claim")
    assert table.loc["lxr-sparsest", "verdict"] == word, table.loc["lxr-sparsest", "reason"]
    assert ("shop in place of amazon-fashion" in table.loc["lxr-sparsest", "reason"]) == ("shop" in places)


def test_controls_alone_are_nothing_to_compare(write: Any, make_cell: Any) -> None:
    run = write(make_cell("random", {"POS-P@3": around(0.5)}, role="baseline", **AMAZON))
    assert reproduction.incompatibility([run])


# A whole run

STUDY = {
    "suite": "recsys",
    "data": "debian-python",
    "recommenders": [{"name": "mf", "epochs": 5}, {"name": "lightgcn", "epochs": 2}],
    "explainers": [
        {"import": "my_lab:ByIndex", "label": "lxr"},
        {"import": "my_lab:TakesTheFirst", "label": "prince"},
        {"import": "my_lab:TakesTheFirst", "label": "accent-paper"},
    ],
    "protocol": {"k": [3, 5], "users": 12, "max_edits": None, "postprocess": {"verify": False}},
    "metrics": ["pos-p", "neg-p", "gini", "pn-s", "pn-r", "num-edits"],
    "executor": "inline",
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Run:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CFBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.chdir(Path(__file__).parents[1] / "samples")
        return run(STUDY, out=tmp_path_factory.mktemp("reproduction") / "run")


def test_a_whole_run_has_its_means_and_sizes_in_the_tables(done: Run) -> None:
    table = Reproduction(Config(other_data=True)).table([done])
    summary = done.summary.set_index(["model", "explainer", "level", "format", "k", "metric"])["mean"]
    own = table[table["ours"].notna() & table["item"].isin(["table-3", "table-4", "table-6"])]
    assert {"table-2", "table-3", "table-4", "table-6", "figure-3", "claims"} <= set(table["item"])
    for row in own.to_dict("records"):
        label = row["explainer"] + ("-paper" if row["variant"] else "")
        key = (row["model"], label, row["level"], row["format"], row["k"], row["metric"])
        assert row["ours"] == pytest.approx(summary[key]), key
    sizes = table[table["item"] == "table-2"].set_index("metric")["ours"]
    assert sizes["users"] == 1685 and sizes["interactions per user"] == pytest.approx(
        sizes["interactions"] / 1685
    )
    decided = table[(table["item"] == "claims") & table["ours"].notna()]
    assert {"lxr-best-explicit", "lxr-more-edits"} <= set(decided["claim"])
    assert "list-slower" not in set(decided["claim"])  # several users in a task share its time
    assert decided["ci_low"].notna().all() and (decided["ci_low"] <= decided["ci_high"]).all()


def test_the_table_from_a_csv_file_has_the_same_words_text_and_latex(done: Run) -> None:
    any_data = Reproduction(Config(other_data=True))
    table = any_data.table([done])
    again = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    for shown in (any_data.words, any_data.text, any_data.latex):
        assert shown(again) == shown(table)
    assert len(any_data.figures(again)) == len(any_data.figures(table))
    text = any_data.text(table)
    assert "Table 4 of CFExpRec (edits, MF): debian-python · mf · item level · top 5, ours (printed)" in text
    latex = any_data.latex(table)
    assert (
        latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == text.count("ours (printed)") + 1
    )


def test_the_command_shows_the_comparison(done: Run, capsys: pytest.CaptureFixture[str]) -> None:
    from cfbench_core.cli import main

    main(["analyse", "reproduction", str(done.directory), "--set", "other_data=true", "--format", "csv"])
    shown = pd.read_csv(io.StringIO(capsys.readouterr().out))
    assert list(shown.columns) == list(COLUMNS)
    assert json.loads((done.directory / "plan.json").read_text())["suite"] == "recsys"
