"""From a plan to how each of its cells ended: statuses, reasons, exit codes, tables."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from toy_runs import cell, ends, prepared_with

from cfbench_core.api import execute
from cfbench_core.plan import Plan, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.reports.render import render


def test_a_plan_names_each_stage_once_after_those_it_reads(registry: Registry) -> None:
    first, second = cell("a"), cell("b")
    stages = Plan("toy", (first, second), TableLayout((), "explainer")).stages()
    assert [stage.kind for stage in stages] == [
        "data",
        "model",
        "units",
        "explanations",
        "scores",
    ]  # fmt: skip  (labels do not count: the second cell needs nothing new)
    for place, stage in enumerate(stages):
        assert {needed.key for needed in stage.inputs.values()} <= {done.key for done in stages[:place]}


def test_a_model_that_fails_fails_its_cells_with_its_reason_and_no_other(
    registry: Registry, tmp_path: Path
) -> None:
    broken = cell("broken", model="fails")
    done = execute(prepared_with(registry, cell("fine"), broken), out=tmp_path / "run")
    assert [(c.status, c.reason) for c in done.cells()] == [
        ("ok", ""),
        ("failed", "the factor is not for me"),
    ]
    assert done.exit_code == 1
    lost = done.scores[done.scores["explainer"] == "broken"]
    # its units are not known: one row for each metric
    assert lost["metric"].tolist() == ["sum", "noise"] and lost["unit"].isna().all()
    assert set(lost["status"]) == {"failed"} and lost["value"].isna().all()
    assert (done.scores["explainer"] == "fine").sum() == 16
    summary = done.summary.set_index(["explainer", "metric"])
    assert summary.loc[("broken", "sum"), "n"] == 0 and summary.loc[("fine", "sum"), "n"] == 8


def test_what_could_not_be_tried_took_no_time_and_has_no_story_of_its_own(
    registry: Registry, tmp_path: Path
) -> None:
    done = execute(prepared_with(registry, cell("broken", model="fails")), out=tmp_path / "run")
    by_kind = {end["kind"]: end for end in ends(done.directory)}
    assert by_kind["units"]["reason"] == "the factor is not for me"
    assert by_kind["units"]["elapsed_seconds"] == 0
    assert len(list((done.directory / "logs").glob("*.txt"))) == 1


def test_a_run_of_which_everything_fails_has_its_tables_and_report(
    registry: Registry, tmp_path: Path
) -> None:
    for role in ("data", "model", "units", "explanations", "scores"):
        done = execute(prepared_with(registry, cell(role, **{role: "fails"})), out=tmp_path / role)
        (ended,) = done.cells()
        code = 2 if role == "data" else 1  # data that cannot be read are wrong input
        assert (ended.status, done.exit_code) == ("failed", code)
        assert ended.reason.endswith("the factor is not for me")
        assert set(done.scores["status"]) == {"failed"}
        assert set(done.summary[done.summary["metric"] != "time"]["n"]) == {0}
        assert (done.directory / "report.html").exists()


def test_a_cell_without_units_is_skipped_with_the_reason(registry: Registry, tmp_path: Path) -> None:
    nothing = cell("nothing", units="chooses_nothing")
    done = execute(prepared_with(registry, nothing, cell("fine")), out=tmp_path / "both")
    assert [(c.status, c.reason) for c in done.cells()] == [
        ("skipped", "every number is too large"),
        ("ok", ""),
    ]
    assert done.exit_code == 0 and set(done.scores["explainer"]) == {"fine"}
    warned = cell("warned", model="fits_with_a_warning", units="chooses_nothing_at_all")
    (ended,) = execute(prepared_with(registry, warned), out=tmp_path / "warned").cells()
    assert (ended.status, ended.reason) == ("skipped", "there is nothing to explain")
    alone = execute(prepared_with(registry, nothing), out=tmp_path / "alone")
    assert alone.exit_code == 3 and alone.scores.empty
    assert (alone.directory / "report.html").exists()


def test_units_without_a_result_are_described_by_the_columns_that_others_have(
    registry: Registry, tmp_path: Path
) -> None:
    half = cell(
        "half",
        units="chooses_with_more_columns",
        explanations="explains_the_first_group",
        scores="scores_with_a_colour",
    )
    done = execute(prepared_with(registry, half, chunk=1, unit_columns=("colour",)), out=tmp_path / "run")
    assert [(c.status, c.reason) for c in done.cells()] == [
        ("partial", "1 of 2 chunks: ValueError: only the first, please")
    ]
    assert list(done.scores.columns[-5:]) == ["metric", "unit", "value", "status", "colour"]
    sums = done.scores[done.scores["metric"] == "sum"]
    assert sums[["unit", "status", "colour"]].to_numpy().tolist() == [
        ["0", "ok", "r"], ["1", "ok", "g"], ["2", "failed", "r"], ["3", "failed", "g"],
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore:somebody else's")
def test_the_warnings_of_a_component_are_stored_and_shown_below_the_table(
    registry: Registry, tmp_path: Path
) -> None:
    remarked = cell("remarked", explanations="explains_with_warnings", scores="scores_with_a_colour")
    prepared = prepared_with(registry, remarked, chunk=100)
    for status in ("ok", "cached"):
        done = execute(prepared, out=tmp_path / "run")
        said = "2 numbers were small; 1 number was cut"
        assert [(c.status, c.reason) for c in done.cells()] == [(status, said)]
        for format in ("table", "markdown", "html"):
            assert render(done, format).count("1 number was cut") == 1


def test_the_warning_of_a_stage_is_shown_for_a_cell_that_succeeded(
    registry: Registry, tmp_path: Path
) -> None:
    remarked = cell("remarked", explanations="explains_the_first_group", scores="scores_with_a_colour")
    prepared = prepared_with(registry, remarked, chunk=100)
    for status in ("ok", "cached"):
        done = execute(prepared, out=tmp_path / "run")
        assert [(c.status, c.reason) for c in done.cells()] == [(status, "2 numbers were small")]
        assert done.exit_code == 0


def test_a_cell_that_lacks_something_is_partial_in_every_run(registry: Registry, tmp_path: Path) -> None:
    lacking = cell("lacking", explanations="explains_while_the_server_is_down", scores="scores_with_a_colour")
    prepared = prepared_with(registry, lacking, chunk=100)
    for _ in range(2):
        done = execute(prepared, out=tmp_path / "run")
        (ended,) = done.cells()
        assert (ended.status, done.exit_code) == ("partial", 1)
        assert "the server is down" in ended.reason
        assert ended.reason.endswith("; the same command computes what is missing")


@pytest.mark.parametrize(
    ("scores", "status", "more"),
    [
        ("scores_with_failures", "ok", ""),
        ("scores_with_too_many_failures", "failed", ", more than the permitted"),
    ],
)
def test_more_failed_units_than_permitted_fail_the_cell(
    registry: Registry, tmp_path: Path, scores: str, status: str, more: str
) -> None:
    counted = cell("counted", explanations="explains_the_first_group", scores=scores)
    (ended,) = execute(prepared_with(registry, counted, chunk=100), out=tmp_path / "run").cells()
    assert ended.status == status
    assert f"scores of 1 of 2 units could not be determined{more}" in ended.reason


def test_plan_json_says_how_each_cell_ended(registry: Registry, tmp_path: Path) -> None:
    cells = (
        cell("fine"),
        cell("broken", model="fails"),
        dataclasses.replace(cell("none"), skipped="it cannot"),
    )
    done = execute(prepared_with(registry, *cells), out=tmp_path / "run")
    written = json.loads((done.directory / "plan.json").read_text())
    assert [(entry["status"], entry["reason"]) for entry in written["cells"]] == [
        ("ok", ""), ("failed", "the factor is not for me"), ("skipped", "it cannot"),
    ]  # fmt: skip
    assert written["cells"][0]["stages"].keys() == {"model", "units", "explanations", "scores"}


def test_further_tables_of_a_layout_are_joined_from_the_chunks_that_wrote_them(
    registry: Registry, tmp_path: Path
) -> None:
    """Of the doubles of 0, ..., 7 those of 5, 6 and 7 have two digits: 10, 12, 14."""
    cells = (
        cell("plain"),
        cell("lists", scores="scores_and_lists_digits"),
        cell("broken", explanations="fails", scores="scores_and_lists_digits"),
        cell("again", scores="scores_and_lists_digits"),
    )
    tables = {"digits.parquet": "scores"}
    prepared = prepared_with(registry, *cells, chunk=2, tables=tables)  # two of four chunks have such numbers
    done = execute(prepared, out=tmp_path / "run")
    found = done.table("digits.parquet")
    assert list(found.columns) == [
        "cell", "suite", "dataset", "model", "explainer", "unit", "place", "digit",
    ]  # fmt: skip
    digits = [["5", 0, "1"], ["5", 1, "0"], ["6", 0, "1"], ["6", 1, "2"], ["7", 0, "1"], ["7", 1, "4"]]
    assert found[["explainer", "unit", "place", "digit"]].to_numpy().tolist() == [
        [explainer, *row] for explainer in ("lists", "again") for row in digits
    ]
    assert set(found["cell"]) == {"numbers/times/lists", "numbers/times/again"}
    assert set(found["dataset"]) == {"numbers"} and set(found["suite"]) == {"toy"}
    assert done.layout.tables == tables

    before = (done.directory / "digits.parquet").read_bytes()
    execute(prepared, out=tmp_path / "run")
    assert (done.directory / "digits.parquet").read_bytes() == before
    whole = execute(prepared_with(registry, *cells, chunk=100, tables=tables), out=tmp_path / "whole")
    assert whole.table("digits.parquet").equals(found)


def test_a_further_table_that_nobody_wrote_is_no_file_and_read_as_empty(
    registry: Registry, tmp_path: Path
) -> None:
    prepared = prepared_with(registry, cell("plain"), tables={"digits.parquet": "scores"})
    done = execute(prepared, out=tmp_path / "run")
    assert done.exit_code == 0
    assert not (done.directory / "digits.parquet").exists()
    found = done.table("digits.parquet")
    assert found.empty and list(found.columns) == ["cell", "unit"]
    assert not (execute(prepared_with(registry, cell("plain")), out=tmp_path / "none")).layout.tables
