"""From a plan to how each of its cells ended: statuses, reasons, exit codes, tables."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from toy_runs import cell, ends, prepared_with

from cfbench_core.api import execute
from cfbench_core.plan import Plan, TableLayout
from cfbench_core.registry import Registry


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
        assert (ended.status, done.exit_code) == ("failed", 1)
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
    alone = execute(prepared_with(registry, nothing), out=tmp_path / "alone")
    assert alone.exit_code == 3 and alone.scores.empty
    assert (alone.directory / "report.html").exists()


def test_units_without_a_result_are_told_by_the_columns_that_others_have(
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


def test_a_stages_remark_stands_beside_a_cell_that_went_well(registry: Registry, tmp_path: Path) -> None:
    remarked = cell("remarked", explanations="explains_the_first_group", scores="scores_with_a_colour")
    prepared = prepared_with(registry, remarked, chunk=100)
    for status in ("ok", "cached"):
        done = execute(prepared, out=tmp_path / "run")
        assert [(c.status, c.reason) for c in done.cells()] == [(status, "2 numbers were small")]
        assert done.exit_code == 0


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
