"""Tables in the paper's form: means and deviations against the scores, the best value determined by hand."""

import pandas as pd
import pytest

from cfbench_core.reports.analysis import render
from cfbench_text.analysis.paper_tables import PaperTables, best, printed, table_of


@pytest.mark.parametrize(
    ("metric", "table"),
    [
        ("St2Exp-P (overlap)", "III"),
        ("StEnt-bin-R (nli)", "IV"),
        ("StCoh-P (nli)", "IV"),
        ("SummaC-ZS-P", "V"),
        ("BLEU", "VI"),
        ("somebody-elses", "VI"),
    ],
)
def test_each_metric_is_where_the_paper_has_it(metric, table):
    assert table_of(metric) == table


def rows(*values, direction="higher"):
    found = [{"model": model, "role": role, "mean": mean} for model, role, mean in values]
    return pd.DataFrame(found).assign(direction=direction)


def test_the_best_is_a_competitor_and_alone():
    models = [
        ("a", "", 0.3),
        ("b", "", 0.2),
        ("reference", "reference", 1.0),
        ("most-frequent", "baseline", 0.0),
    ]
    assert best(rows(*models)) == "a"
    assert best(rows(*models, direction="lower")) == "b"
    assert best(rows(("a", "", 0.3), ("b", "", 0.3))) == ""
    assert best(rows(("a", "", 0.3), ("b", "", float("nan")))) == ""
    assert best(rows(*models, direction="neither")) == ""


def test_means_and_deviations_are_those_of_the_scores(run, answer):
    found = answer("paper-tables")
    line = found.table.query("model == 'item-review' and metric == 'ROUGE-L'").iloc[0]
    values = run.scores.query("model == 'item-review' and metric == 'ROUGE-L'")["value"].dropna()
    assert (line["mean"], line["std"], line["n"]) == pytest.approx((values.mean(), values.std(), len(values)))
    assert f"{values.mean():.4f}±{values.std():.4f}" in found.text


def test_a_missing_mean_is_a_dash_and_one_value_has_no_deviation():
    table = rows(("a", "", 0.25), ("b", "", float("nan")), ("c", "", 0.5))
    table = table.assign(metric="m", std=[0.125, float("nan"), float("nan")])
    table = pd.concat([table, table.iloc[:1].assign(metric="n")])
    found = printed(table)
    assert found.loc["m"].tolist() == ["0.2500±0.1250", "–", "0.5000*"]
    assert found.loc["n"].tolist() == ["0.2500±0.1250", "–", "–"]


def test_all_scores_are_in_it_and_controls_come_last(run, answer):
    found = answer("paper-tables")
    assert set(found.table["metric"]) == {column.name for column in run.columns}
    heads = found.text.splitlines()[1].split()
    assert heads[:2] == ["item-review", "again"] and set(heads[2:]) == {
        "most-frequent",
        "reference",
        "shuffled-reference",
    }


def test_a_stored_table_is_printed_identically(answer, tmp_path):
    found = answer("paper-tables")
    found.table.to_csv(tmp_path / "kept.csv", index=False)
    kept = pd.read_csv(tmp_path / "kept.csv")
    assert PaperTables().text(kept) == found.text and PaperTables().words(kept) == found.words


@pytest.mark.parametrize("name", ["paper-tables", "gap", "topics", "examples"])
@pytest.mark.parametrize("form", ["table", "markdown", "json", "html"])
def test_every_analysis_of_verdicts_says_how_reliable_the_judge_is(run, answer, name, form):
    assert "† judge overlap has AUC 0." in render(answer(name), [run], form)
