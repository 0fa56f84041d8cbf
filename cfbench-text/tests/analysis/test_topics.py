"""Shares of statements by topic and sentiment: by hand, then counted one by one."""

import io

import numpy as np
import pandas as pd
import pytest

from cfbench_core import api
from cfbench_core.analyses import find, run_analysis
from cfbench_core.registry import installed
from cfbench_text.analysis.topics import Topics, counts, shares


def said(*lines):
    return counts(pd.DataFrame(lines, columns=["user", "side", "verdict"]), ["side", "user"])


def test_a_small_example_by_hand():
    found = shares(
        said(
            ("u", "text", "entailed"),
            ("u", "text", "contradicted"),
            ("v", "text", "unsupported"),
            ("v", "text", "unsupported"),
            ("u", "reference", "entailed"),
            ("v", "reference", "unsupported"),
        )
    )
    assert (found["in_texts"], found["in_references"]) == (4, 2)
    assert (found["precision"], found["recall"], found["contradicted"]) == (0.25, 0.5, 0.25)
    assert found["F1"] == pytest.approx(1 / 3)
    assert (found["hallucinated"], found["omitted"]) == (0.75, 0.5)
    # Of u one of two, of v both: a resample of users has 1/2, 3/4 or 1.
    assert (found["hallucinated_low"], found["hallucinated_high"]) == (0.5, 1.0)


def test_a_side_without_statements_has_no_share():
    found = shares(said(("u", "reference", "unsupported"), ("v", "reference", "unsupported")))
    assert np.isnan([found["precision"], found["hallucinated"], found["F1"], found["hallucinated_low"]]).all()
    assert found["omitted"] == 1


def test_a_side_with_undecided_verdicts_alone_has_no_share_either():
    found = shares(said(("u", "text", "undecided"), ("u", "reference", "unsupported")))
    assert np.isnan([found["precision"], found["F1"], found["contradicted"]]).all()
    assert found["recall"] == 0


@pytest.mark.slow
def test_a_judge_of_support_alone_finds_no_contradictions(run, tmp_path, monkeypatch):
    """Not 0: it was never tested whether the review denies a statement."""
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    run = api.run({**run.config, "metrics": ["st2exp"]}, out=tmp_path / "run")
    found = run_analysis(find("topics", [run], installed()), [run], installed(), {})
    assert found.table["contradicted"].isna().all() and found.table["hallucinated"].notna().any()
    shown = [line.split() for line in found.text.splitlines() if line.strip().startswith("item-review")]
    assert shown and all(line[-2] == "–" for line in shown)


def test_a_judge_of_pairs_has_contradictions_even_where_it_found_none(run, answer):
    assert answer("topics").table.query("model == 'reference'")["contradicted"].eq(0).any()


def test_nothing_entailed_is_f1_zero():
    assert shares(said(("u", "text", "unsupported"), ("u", "reference", "unsupported")))["F1"] == 0


def test_the_table_agrees_with_counting_one_by_one(run, answer):
    table = answer("topics").table
    statements = run.table("statements.parquet")
    for row in table.itertuples():
        counts = {"text": [0, 0], "reference": [0, 0]}
        for one in statements[statements["model"] == row.model].itertuples():
            if getattr(one, row.by) == row.group:
                counts[one.side][0] += one.verdict == "entailed"
                counts[one.side][1] += 1
        assert (row.in_texts, row.in_references) == (counts["text"][1], counts["reference"][1])
        for value, (right, every) in zip((row.precision, row.recall), counts.values(), strict=True):
            assert value == pytest.approx(right / every if every else np.nan, nan_ok=True)


def test_topics_and_sentiments_each_hold_every_statement(run, answer):
    table, statements = answer("topics").table, run.table("statements.parquet")
    sums = table.groupby(["model", "by"])["in_texts"].sum().unstack()
    every = statements[statements["side"] == "text"].groupby("model").size()
    assert (sums["topic"] == every).all() and (sums["sentiment"] == every).all()


def test_the_reference_is_without_fault(answer):
    table = answer("topics").table.set_index("model").loc["reference"]
    assert (table["hallucinated"] == 0).all() and (table["omitted"] == 0).all() and (table["F1"] == 1).all()


def test_a_stored_table_gives_the_same_figures(answer):
    found = answer("topics")
    assert len(found.figures) == 6 and all(figure.svg.startswith("<svg") for figure in found.figures)
    assert "reference (reference)" in found.figures[0].svg and "NaN" not in found.figures[0].svg
    again = pd.read_csv(io.StringIO(found.table.to_csv(index=False)))
    assert [figure.svg for figure in Topics().figures(again)] == [figure.svg for figure in found.figures]
    assert Topics().words(again) == found.words != ""


def test_a_terminal_has_a_line_for_each_generator_and_group(answer):
    found = answer("topics")
    lines = found.text.splitlines()
    row = found.table[found.table["model"] == "reference"].iloc[0]
    assert [str(row["in_texts"]), "1.000"] == next(
        line.split()[2:5:2] for line in lines if line.split()[:2] == ["reference", row["group"]]
    )
    assert len(lines) == len(found.table) + 2 * 2 + 1 and max(map(len, lines)) < 120


def test_it_is_incompatible_with_runs_without_verdicts(run):
    class WithoutTexts:
        columns = ()

        def cells(self):
            return []

    assert Topics().incompatibility([run]) == ""
    assert Topics().incompatibility([WithoutTexts()]) == "no texts were written"


def test_of_two_runs_with_the_same_cells_the_later_counts(run, answer):
    from cfbench_core.run_directory import Run

    again = Topics().table([Run(run.directory), run, run])
    pd.testing.assert_frame_equal(again, answer("topics").table)
