"""What the viewer shows equals what Run and the report say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from made_up_run import small_run, write_run

from cfbench_core.errors import UserError
from cfbench_core.reports.tables import tables
from cfbench_core.run_directory import Run
from cfbench_core.view.queries import TIME_COLUMN, RunView, comparison
from cfbench_core.view.viewers import known_store


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write_run(tmp_path_factory.mktemp("runs") / "shop"))


@pytest.fixture(scope="module")
def view(run: Run) -> RunView:
    return RunView(run)


def test_a_cell_of_a_table_leads_to_the_units_behind_it(tmp_path: Path) -> None:
    view = RunView(small_run(tmp_path / "run", {"good": [1.0, 0.5, 0.75], "bad": [0.0, 0.25, 0.5]}))
    (table,) = view.overview()["tables"]
    assert [(row["name"], row["entries"][0]["mean"]) for row in table["rows"]] == [
        ("good", 0.75),
        ("bad", 0.25),
    ]
    units = view.units(table["rows"][0]["cell"], sort="hit", descending=True)
    assert [row[:2] for row in units["rows"]] == [["u0", 1.0], ["u2", 0.75], ["u1", 0.5]]


def test_the_tables_have_the_numbers_and_the_emphasis_of_the_report(run: Run, view: RunView) -> None:
    shown = view.overview()["tables"]
    for table, expected in zip(shown, tables(run), strict=True):
        rows = [row for row in expected.rows if row.status != "skipped"]
        assert [row["name"] for row in table["rows"]] == [row.name for row in rows]
        for row, whole in zip(table["rows"], rows, strict=True):
            assert [entry["text"] for entry in row["entries"]] == [entry.text for entry in whole.entries]
            assert [e["emphasis"] for e in row["entries"]] == [e.emphasis for e in whole.entries]


def test_without_significance_the_numbers_are_the_same_and_nothing_is_emphasised(
    run: Run, view: RunView
) -> None:
    fresh = RunView(Run(run.directory))  # whose tables nobody computed yet
    quick, whole = fresh.overview(significance=False), view.overview()
    for table, other in zip(quick["tables"], whole["tables"], strict=True):
        assert [[e["text"] for e in row["entries"]] for row in table["rows"]] == [
            [e["text"] for e in row["entries"]] for row in other["rows"]
        ]
        assert not any(entry["emphasis"] for row in table["rows"] for entry in row["entries"])


def test_the_units_of_a_cell_are_those_of_the_scores_and_have_the_mean_of_the_table(
    run: Run, view: RunView
) -> None:
    for table in view.overview()["tables"]:
        for row in table["rows"]:
            if row["outcome"]:
                continue
            found = view.all_units(row["cell"])
            cell = run.cells()[row["cell"]].id
            scores = run.scores[run.scores["cell"] == cell].pivot(
                index="unit", columns="metric", values="value"
            )
            assert len(found["rows"]) == len(scores) == found["all"]
            names = [column["name"] for column in found["columns"]]
            for metric in scores:
                values = {line[0]: line[names.index(metric)] for line in found["rows"]}
                np.testing.assert_array_equal(
                    [np.nan if values[unit] is None else values[unit] for unit in scores.index],
                    scores[metric],
                )
            means = {
                column["metric"]: e["mean"]
                for column, e in zip(table["columns"], row["entries"], strict=True)
            }
            for metric, spread in found["distributions"].items():
                shown = means["time" if metric == TIME_COLUMN else metric]
                assert spread["mean"] == pytest.approx(shown)
                assert sum(spread["counts"]) + spread["missing"] == found["all"]


def test_pages_together_are_the_sorted_whole_and_missing_values_come_last(view: RunView) -> None:
    partial = next(n for n, cell in enumerate(view.run.cells()) if cell.status == "partial")
    pages, page = [], 0
    while True:
        found = view.units(partial, sort="POS-P@5", descending=True, page=page, size=70)
        pages += found["rows"]
        page += 1
        if page * 70 >= found["total"]:
            break
    place = [column["name"] for column in found["columns"]].index("POS-P@5")
    values = [row[place] for row in pages]
    known = [value for value in values if value is not None]
    assert known == sorted(known, reverse=True) and values[len(known) :] == [None] * (
        len(values) - len(known)
    )
    assert 0 < len(known) < len(values) and len({row[0] for row in pages}) == found["all"] == len(pages)


def test_search_finds_units_by_any_part_of_their_names(view: RunView) -> None:
    found = view.units(0, search="U17")
    assert found["total"] == 5 and {row[0].split("/")[0] for row in found["rows"]} == {"u17"}
    assert view.units(0, search="(")["total"] == 0  # text, not a pattern


def test_an_unknown_column_cell_or_unit_is_one_line(view: RunView) -> None:
    with pytest.raises(UserError, match=r"no column 'POS-P@6'. Did you mean 'POS-P@5'"):
        view.units(0, sort="POS-P@6")
    with pytest.raises(UserError, match="no cell 24: there are 24"):
        view.units(24)
    with pytest.raises(UserError, match="'u99/1' was not explained in table 0"):
        view.unit(0, "u99/1")


def test_a_unit_has_the_scores_and_times_of_the_run(run: Run, view: RunView) -> None:
    found = view.unit(0, "u3/2")
    assert (found["before"], found["after"]) == ("u3/1", "u3/3")
    cells = run.cells()
    for row in found["rows"]:
        own = run.scores[(run.scores["cell"] == cells[row["cell"]].id) & (run.scores["unit"] == "u3/2")]
        expected = own.set_index("metric")["value"]
        for column, value in zip(found["columns"], row["values"], strict=True):
            assert value == expected[column["name"]]
        costs = run.costs[(run.costs["cell"] == cells[row["cell"]].id) & (run.costs["unit"] == "u3/2")]
        assert row["seconds"] == costs["elapsed_seconds"].item()
    assert [block["title"] for block in found["blocks"]] == [row["name"] for row in found["rows"]]


def test_disagreement_is_the_range_over_the_competitors(run: Run, view: RunView) -> None:
    found = view.disagreement(0, "POS-P@5", size=1000)
    done = [
        c
        for c in run.cells()
        if not c.role and c.done and c.labels["model"] == "mf" and c.labels["level"] == "item"
    ]
    scores = run.scores[
        (run.scores["metric"] == "POS-P@5") & run.scores["cell"].isin([cell.id for cell in done])
    ]
    ranges = scores.groupby("unit")["value"].agg(lambda values: values.max() - values.min())
    assert {row["unit"]: row["spread"] for row in found["rows"]} == pytest.approx(ranges.to_dict())
    spreads = [row["spread"] for row in found["rows"]]
    assert spreads == sorted(spreads, reverse=True)


def test_two_runs_are_compared_as_cfbench_compare_does(tmp_path: Path) -> None:
    first = small_run(tmp_path / "a", {"x": [0.1, 0.2, 0.3, 0.25] * 10})
    second = small_run(tmp_path / "b", {"x": [value + 0.5 for value in [0.1, 0.2, 0.3, 0.25] * 10]})
    found = comparison(first, second)
    (difference,) = [one for one in found["differences"] if one["metric"] == "hit"]
    assert difference["difference"] == pytest.approx(0.5) and difference["verdict"] == "better"


def test_all_answers_are_strict_json(view: RunView) -> None:
    for found in (view.overview(), view.units(0), view.unit(0, "u3/2"), view.disagreement(0, "gini")):
        json.dumps(found, allow_nan=False)


def test_the_cache_is_the_one_that_the_environment_names_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "other", "one"):
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / name))
        assert known_store().root == tmp_path / name / "artifacts"
