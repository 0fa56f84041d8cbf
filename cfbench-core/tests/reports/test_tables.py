"""What stands in a table: means, who wins, outcomes, notes."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from made_up_run import emphasis, small_run

from cfbench_core.reports import render
from cfbench_core.reports.answer import answer_of
from cfbench_core.reports.labels import label_texts
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run
from cfbench_core.statistics import bootstrap_interval


def test_a_table_by_hand(tmp_path: Path) -> None:
    run = small_run(
        tmp_path / "run",
        {"good": [1.0, 1.0, 1.0, 0.8], "bad": [0.0, 0.0, 0.2, 0.2], "luck": [0.4, 0.5, 0.4, 0.5]},
        roles={"luck": "baseline"},
    )
    (table,) = tables(run)
    assert table.caption == "d, m"
    assert [header.label for header in table.headers] == ["hit ↑"]
    assert [row.label for row in table.rows] == ["good", "bad", "luck (baseline)"]
    assert [row.entries[0].number.mean for row in table.rows] == pytest.approx([0.95, 0.1, 0.45])
    low, high = table.rows[0].entries[0].number[1:3]
    assert (low, high) == (pytest.approx(0.85), 1.0)  # 2.5% of the resamples are below, 0.8 thrice is 1.6%
    assert table.rows[0].entries[0].text == "0.950 ± 0.075"
    assert emphasis(table) == {"good": "best", "bad": "second", "luck": ""}
    assert table.leads[0].names == ("good",)
    assert table.leads[0].baselines_not_beaten == ()


def test_the_smaller_mean_wins_where_lower_is_better(tmp_path: Path) -> None:
    values = {"a": [0.9, 0.8, 0.9, 0.9, 0.8], "b": [0.1, 0.2, 0.2, 0.1, 0.1]}
    (table,) = tables(small_run(tmp_path / "run", values, direction="lower"))
    assert [row.name for row in table.rows] == ["b", "a"]
    assert emphasis(table) == {"b": "best", "a": "second"}


def test_neither_wins_where_no_direction_is_better(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [0.9, 0.8], "b": [0.1, 0.2]}, direction=""))
    assert emphasis(table) == {"a": "", "b": ""}
    assert table.leads == ()


def test_level_means_that_the_paired_difference_may_be_chance(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    base = draw.normal(0.5, 0.1, 200)  # units differ much more than explainers do
    values = {
        "best": base,
        "level": base - 0.001 + draw.normal(0, 0.05, 200),
        "a bit worse on every unit": base - 0.01,
        "worse": base - 0.2,
    }
    (table,) = tables(small_run(tmp_path / "run", {name: list(v) for name, v in values.items()}))
    found = emphasis(table)
    assert found["best"] == "best" and found["level"] == "best"
    assert (
        found["a bit worse on every unit"] == "second"
    )  # its own interval overlaps, the paired one does not
    assert found["worse"] == ""


def test_a_control_never_wins_and_a_baseline_that_is_not_beaten_is_named(tmp_path: Path) -> None:
    values = {"ours": [0.4, 0.6, 0.5, 0.5], "top": [1.0] * 4, "luck": [0.5, 0.5, 0.6, 0.4], "zero": [0.0] * 4}
    run = small_run(
        tmp_path / "run", values, roles={"top": "certified", "luck": "baseline", "zero": "baseline"}
    )
    (table,) = tables(run)
    assert emphasis(table) == {"ours": "best", "top": "", "luck": "", "zero": ""}
    assert table.leads[0].baselines_not_beaten == ("luck",)
    lead = table.lead
    assert lead is not None and lead.over_baseline is not None and not lead.over_baseline.significant
    assert lead.over_baseline.over == "luck" and lead.over_baseline.value == pytest.approx(0.0)
    assert "There is no evidence that the best is better than the baseline luck." in render(run, "html")


def test_a_single_competitor_in_several_tables_is_no_comparison(tmp_path: Path) -> None:
    run = small_run(
        tmp_path / "run", {"ours": [0.9, 0.8, 0.9, 0.7], "luck": [0.5] * 4}, roles={"luck": "baseline"}
    )
    (table,) = tables(run)
    assert table.lead is not None
    assert "By hit, nothing else competes with ours." in answer_of([table.lead, table.lead])
    assert "no evidence of a difference" not in answer_of([table.lead, table.lead])


def test_a_doubtful_column_is_marked_and_its_note_stands_below_the_table(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"a": [0.9, 0.8, 0.9, 0.9, 0.8], "b": [0.1, 0.2, 0.2, 0.1, 0.1]})
    plan = run.directory / "plan.json"
    document = json.loads(plan.read_text())
    for cell in document["cells"]:
        for metric in cell["metrics"]:
            metric |= {"note": "nobody knows", "doubtful": True}
    plan.write_text(json.dumps(document))
    marked = Run(run.directory)

    (table,) = tables(marked)
    assert [header.label for header in table.headers] == ["hit † ↑"]
    assert table.notes == ["† nobody knows"]
    page = render(marked, "html")
    assert "hit (†) rests on what is not shown to be reliable" in page
    assert "<li>† nobody knows</li>" in page
    assert "† nobody knows" in render(marked, "table") and "† nobody knows" in render(marked, "markdown")
    assert "† nobody knows" in render(marked, "latex")


def test_an_incomplete_cell_cannot_win_and_shows_how_many_units_it_stands_on(run: Run) -> None:
    table = tables(run)[0]
    row = next(row for row in table.rows if row.name == "slow & careful_1")
    best_of_complete = min(r.entries[0].number.mean for r in table.rows if not r.role and r.status == "ok")
    assert row.entries[0].number.mean < best_of_complete
    assert row.entries[0].emphasis == ""
    assert row.entries[0].number.coverage == "100 of 300"
    assert table.notes == ["slow & careful_1: incomplete, 2 of 3 chunks: ended after 30 s"]
    assert [r.name for r in table.rows][3:] == ["slow & careful_1", "exact-contribution", "random"]


def test_units_without_a_value_are_counted_with_the_mean(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [1.0, math.nan, 0.5], "b": [1.0, 0.0, 0.5]}))
    coverage = {row.name: row.entries[0].number.coverage for row in table.rows}
    assert coverage == {"a": "2 of 3", "b": ""}


def test_an_explainer_does_not_win_by_answering_only_where_it_is_easy(tmp_path: Path) -> None:
    easy, hard = [0.9] * 4, [0.2] * 16
    values = {
        "picky": [*[0.95] * 4, *[math.nan] * 16],
        "thorough": [*easy, *hard],
        "worse": [*easy, *[0.1] * 16],
    }
    (table,) = tables(small_run(tmp_path / "run", values))
    means = {row.name: row.entries[0].number.mean for row in table.rows}
    assert means == pytest.approx({"picky": 0.95, "thorough": 0.34, "worse": 0.26})
    # average ranks: thorough (4 x 2.5 + 16 x 1) / 20 = 1.3, worse 2.1, picky (4 x 1 + 16 x 3) / 20 = 2.6
    assert emphasis(table) == {"picky": "", "thorough": "best", "worse": "second"}


def test_units_that_nobody_has_a_value_for_change_nothing(tmp_path: Path) -> None:
    values = {"a": [0.9, 0.8, 0.9, math.nan], "b": [0.1, 0.2, 0.3, math.nan]}
    (table,) = tables(small_run(tmp_path / "run", values))
    assert emphasis(table) == {"a": "best", "b": "second"}


def test_what_tells_nobody_apart_is_not_counted(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"a": [1.0] * 5, "b": [1.0] * 5})
    assert "By hit, there is no evidence of a difference between a and b" in render(run, "html")


def test_a_baseline_that_is_better_is_said_with_its_effect(tmp_path: Path) -> None:
    values = {"ours": [0.1, 0.2, 0.1, 0.2, 0.1], "luck": [0.9, 0.8, 0.9, 0.8, 0.9]}
    page = render(small_run(tmp_path / "run", values, roles={"luck": "baseline"}), "html")
    assert "The best baseline, luck, is better still, by 0.720 (0.640 to 0.800)." in page


def test_the_effect_is_the_mean_paired_difference_with_its_interval(tmp_path: Path) -> None:
    first, second = [0.9, 0.7, 0.8, 0.9, 0.7, 0.8], [0.5, 0.5, 0.3, 0.4, 0.6, 0.3]
    (table,) = tables(small_run(tmp_path / "run", {"a": first, "b": second}))
    assert table.lead is not None and table.lead.over_next is not None
    effect = table.lead.over_next
    differences = np.subtract(first, second)
    low, high = bootstrap_interval(differences)
    assert (effect.over, effect.ranked, effect.significant) == ("b", False, True)
    assert (effect.value, effect.low, effect.high) == pytest.approx(
        (differences.mean(), float(low), float(high))
    )


def test_ranks_order_the_rows_the_plot_and_the_sorting_where_they_decide(tmp_path: Path) -> None:
    values = {
        "picky": [*[0.95] * 4, *[math.nan] * 16],
        "thorough": [*[0.9] * 4, *[0.2] * 16],
        "worse": [*[0.9] * 4, *[0.1] * 16],
    }
    run = small_run(tmp_path / "run", values)
    (table,) = tables(run)
    assert [row.name for row in table.rows] == ["thorough", "worse", "picky"]  # by means picky were the first
    assert [row.entries[0].rank for row in table.rows] == pytest.approx([1.3, 2.1, 2.6])
    order = [row.entries[0].order_in(table.headers[0]) for row in table.rows]
    assert order == sorted(order, reverse=True)  # "higher" is better: sorting the column gives the same order
    page = render(run, "html")
    assert "4 of 20, average rank 2.60" in page and "average rank 1.30" in page
    plot = page[page.index("<figure>") : page.index("</figure>")]
    assert [plot.index(f">{name}<") for name in ("thorough", "worse", "picky")] == sorted(
        plot.index(f">{name}<") for name in values
    )
    assert table.lead is not None and table.lead.over_next is not None and table.lead.over_next.ranked


def test_a_declared_primary_metric_orders_the_rows_and_decides(run: Run) -> None:
    (before, *_) = tables(run)
    other = next(h for h in before.headers if h.compared and h != before.headers[before.primary or 0])
    path = run.directory / "plan.json"
    document = json.loads(path.read_text())
    document["layout"]["primary"] = ["no such metric", other.column.name.upper()]
    path.write_text(json.dumps(document))
    (after, *_) = tables(Run(run.directory))
    assert after.primary is not None and after.headers[after.primary] == other
    assert (
        after.lead is not None and after.lead.header == other and after.lead.agreement == pytest.approx(1.0)
    )
    shown = [
        row.entries[after.primary].number.mean for row in after.lines if not row.role and row.status == "ok"
    ]
    assert shown == sorted(shown, reverse=other.arrow == "↑")


def test_one_unit_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [0.25], "b": [0.5]}))
    assert [row.entries[0].text for row in table.rows] == ["0.500", "0.250"]
    assert emphasis(table) == {"a": "best", "b": "best"}  # one unit tells nobody apart


def test_outcomes_stand_where_the_number_would(run: Run) -> None:
    table = tables(run)[3]
    found = {row.name: (row.entries[0].text, row.outcome) for row in table.rows}
    assert found["cosine"] == ("failed", "failed: ValueError: <cosine> of an empty profile, 100% wrong_type")
    reason = "needs access weights, which lightgcn does not offer"
    assert found["exact-contribution"] == ("skipped", f"skipped: {reason}")
    assert found["random"][1] == ""
    assert table.problems == ["cosine: failed: ValueError: <cosine> of an empty profile, 100% wrong_type"]


def test_what_was_skipped_has_no_line_but_a_note(run: Run) -> None:
    table = tables(run)[3]
    assert "exact-contribution" in [row.name for row in table.rows]
    assert "exact-contribution" not in [row.name for row in table.lines]
    assert table.absent == "exact-contribution (needs access weights, which lightgcn does not offer)"
    for format in ("markdown", "latex", "html", "table"):
        assert render(run, format).count("needs access weights, which lightgcn does not offer") >= 2
        assert "skipped: needs access" not in render(run, format)


def test_titles_distinguish_tables_and_show_the_quality(run: Run) -> None:
    assert [table.title for table in tables(run)] == [
        f"{model} · {level} level · top 5" for model in ("mf", "lightgcn") for level in ("item", "list")
    ]
    assert tables(run)[2].caption == (
        "toy-shop, lightgcn, item level, top 5. Quality: HR@10 0.500 (0.460 to 0.540), "
        "NDCG@10 0.320 (0.280 to 0.360), n = 502"
    )


def test_labels_read_as_the_suite_formats_them() -> None:
    formats = {"k": "top {}", "most": {"any": "any number", "-": "", "*": "at most {}"}}
    assert label_texts({"k": 5, "most": "20"}, formats) == ["top 5", "at most 20"]
    assert label_texts({"model": "mf", "most": "any"}, formats) == ["mf", "any number"]
    assert label_texts({"layers": 3, "most": "-"}, formats) == ["layers = 3"]


def test_times_are_shown_in_milliseconds_where_they_are_short(run: Run) -> None:
    table = tables(run)[0]
    assert table.headers[-1].label == "time per explanation (ms) ↓"
    costs = run.costs.groupby("cell")["elapsed_seconds"].mean()
    row = next(row for row in table.rows if row.name == "shap")
    assert row.entries[-1].number.mean == pytest.approx(1000 * costs["toy-shop/mf/shap/item/5"])
    assert emphasis(table, -1) == {
        "cosine": "best", "lime-rs": "second", "shap": "", "slow & careful_1": "",
        "exact-contribution": "", "random": "",
    }  # fmt: skip


def test_rows_with_one_name_are_distinguished_by_their_other_labels(run: Run) -> None:
    plan = json.loads((run.directory / "plan.json").read_text())
    plan["layout"]["by"] = ["dataset", "model", "k"]
    (run.directory / "plan.json").write_text(json.dumps(plan))
    names = [row.name for row in tables(Run(run.directory))[0].rows]
    assert len(set(names)) == len(names) == 12
    assert "shap, item level" in names


def test_values_outside_the_range_that_the_metric_declares_are_counted_and_marked(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", {"a": [1.0 + 1e-12, 1.7, math.nan], "b": [0.0, -0.1, 2.0]})
    (table,) = tables(run)
    assert table.column_notes == ["† hit: 3 values lie outside 0 to 1, the range that the metric declares."]
    assert [header.label for header in table.headers] == ["hit † ↑"]
    assert "3 values lie outside 0 to 1" in render(run, "markdown")


def test_values_within_the_range_have_no_note(tmp_path: Path) -> None:
    (table,) = tables(small_run(tmp_path / "run", {"a": [1.0 + 1e-12, 0.0], "b": [0.0, math.nan]}))
    assert table.column_notes == []
