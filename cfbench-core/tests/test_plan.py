"""From a plan to how each of its cells ended: statuses, reasons, exit codes; full disks, damage, and company."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from small_disk import small_disk

from cfbench_core.api import Prepared, execute, prepare
from cfbench_core.errors import UserError
from cfbench_core.plan import Cell, Column, Plan, TableLayout
from cfbench_core.registry import Registry
from cfbench_core.run_directory import Run
from cfbench_core.stages import UNITS, Stage
from cfbench_core.store import Store

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(SAMPLES)


def configuration(**changes: Any) -> dict[str, Any]:
    return {
        "suite": "toy",
        "data": {"name": "numbers", "count": 8},
        "models": "times",
        "explainers": ["digits"],
        "executor": "inline",
        "chunk": 4,
        **changes,
    }


def run(registry: Registry, out: Path, fresh: bool = False, **changes: Any) -> Run:
    return execute(prepare(configuration(**changes), registry=registry), out=out, fresh=fresh)


def cell(name: str, **targets: str) -> Cell:
    """A cell of the toy suite, with other functions behind some of its stages."""
    target = {
        "data": "toy_suite:make_data",
        "model": "toy_suite:fit",
        "units": "toy_suite:choose",
        "explanations": "toy_suite:explain",
        "scores": "toy_suite:score",
        **{role: f"awkward_stages:{function}" for role, function in targets.items()},
    }
    data = Stage("data", "numbers", target["data"], {"data": {"options": {"count": 8}}})
    model = Stage("model", "times", target["model"], {"model": {"options": {"factor": 2}}}, {"data": data})
    units = Stage("units", "units", target["units"], {}, {"data": data, "model": model})
    options = {"explainer": {"options": {"misbehave": ""}}}
    explained = Stage(
        "explanations", name, target["explanations"], options, {"model": model, UNITS: units}, chunked=True
    )
    scored = Stage(
        "scores", name, target["scores"], {}, {"explanations": explained, UNITS: units}, chunked=True
    )
    stages = {"model": model, "units": units, "explanations": explained, "scores": scored}
    labels = {"dataset": "numbers", "model": "times", "explainer": name}
    return Cell(labels, (Column("sum"), Column("noise")), stages)


def prepared_with(
    registry: Registry, *cells: Cell, chunk: int = 4, unit_columns: tuple[str, ...] = ()
) -> Prepared:
    plan = Plan("toy", cells, TableLayout(("dataset", "model"), "explainer", unit_columns=unit_columns))
    return dataclasses.replace(prepare(configuration(chunk=chunk), registry=registry), plan=plan)


def ends(directory: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in (directory / "outcomes.jsonl").read_text().splitlines()]


# How cells end


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


# Whose directory it is


def test_a_directory_with_somebody_elses_config_is_left_alone(registry: Registry, tmp_path: Path) -> None:
    for content in ("- not\n- ours\n", "{", "text", ""):
        (tmp_path / "config.yaml").write_text(content)
        with pytest.raises(UserError, match="is not the configuration of a run; give another --out"):
            run(registry, tmp_path)
        assert (tmp_path / "config.yaml").read_text() == content


def test_a_refusal_leaves_the_directory_free_while_its_error_is_still_looked_at(
    registry: Registry, tmp_path: Path
) -> None:
    run(registry, tmp_path / "run")
    with pytest.raises(UserError, match="another configuration") as caught:
        run(registry, tmp_path / "run", seed=1)
    assert caught.tb  # as a debugger or a notebook would hold it
    assert run(registry, tmp_path / "run").exit_code == 0


def test_scores_of_a_table_made_elsewhere_do_not_replace_a_run(registry: Registry, tmp_path: Path) -> None:
    run(registry, tmp_path / "run")
    theirs = tmp_path / "theirs.parquet"
    prepared = prepare(configuration(), registry=registry, explanations=theirs)
    with pytest.raises(UserError, match=r"another configuration \(different: --explanations\)"):
        execute(prepared, out=tmp_path / "run")
    execute(prepared, out=tmp_path / "evaluated")
    assert execute(prepared, out=tmp_path / "evaluated").exit_code == 0
    with pytest.raises(UserError, match="--explanations"):
        run(registry, tmp_path / "evaluated")


def test_a_line_that_a_killed_writer_left_half_does_not_spoil_the_next(
    registry: Registry, tmp_path: Path
) -> None:
    run(registry, tmp_path / "run")
    log = tmp_path / "run" / "outcomes.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"key": "a')
    run(registry, tmp_path / "run")
    lines = log.read_text().splitlines()
    assert lines[: len(whole.splitlines()) + 1] == [*whole.splitlines(), '{"key": "a']
    assert all(json.loads(line)["status"] == "cached" for line in lines[len(whole.splitlines()) + 1 :])


class StopsAfter:
    """An observer that presses Ctrl-C when so much work is done."""

    def __init__(self, count: int) -> None:
        self.count = count

    def started(self, work: Any) -> None: ...

    def progress(self, work: Any, done: int, total: int) -> None: ...

    def finished(self, work: Any, outcome: Any, done: int, known: int) -> None:
        if done == self.count:
            raise KeyboardInterrupt


@pytest.mark.parametrize("count", [1, 3, 5])
def test_what_was_finished_before_ctrl_c_is_kept_and_the_directory_is_free(
    registry: Registry, tmp_path: Path, count: int
) -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        execute(prepare(configuration(), registry=registry), out=tmp_path / "run", observer=StopsAfter(count))
    assert caught.tb
    assert [c.status for c in Run(tmp_path / "run").cells()] == ["planned"]
    done = run(registry, tmp_path / "run")
    assert [c.status for c in done.cells()] == ["ok"]
    assert [end["status"] for end in ends(done.directory)].count("cached") == count


# Full disks


def assert_nothing_is_half_written(folder: Path) -> None:
    for path in folder.rglob("*"):
        assert not path.name.endswith(".tmp"), path
        if path.suffix == ".parquet":
            pq.read_table(path)
        if path.suffix == ".json":
            json.loads(path.read_text())
        if path.suffix == ".jsonl":
            assert all(json.loads(line) for line in path.read_text().splitlines())


def fill(disk: Path, leaving: int) -> Path:
    """A file that leaves so many bytes free."""
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize - leaving))
    return ballast


def lines_of_the_error(registry: Registry, out: Path) -> tuple[str, ...]:
    """Keeps no traceback: what is open in its frames would keep the disk from being unmounted."""
    with pytest.raises(UserError) as caught:
        run(registry, out)
    return caught.value.lines


@pytest.mark.parametrize("pages", [0, 1, 2, 4, 7, 10])
def test_a_full_disk_under_the_run_directory_is_one_line_and_room_completes_the_run(
    registry: Registry, tmp_path: Path, pages: int
) -> None:
    undisturbed = run(registry, tmp_path / "undisturbed")
    with small_disk(tmp_path) as disk:
        ballast = fill(disk, leaving=4096 * pages)
        (line,) = lines_of_the_error(registry, disk / "run")
        assert str(disk / "run") in line and ("the disk is full" in line or "No space left" in line)
        if (disk / "run").exists():
            assert_nothing_is_half_written(disk / "run")
        ballast.unlink()
        done = run(registry, disk / "run")
        assert done.exit_code == 0
        files = {path.name for path in done.directory.iterdir()}
        assert files == {path.name for path in undisturbed.directory.iterdir()}
        assert (disk / "run" / "scores.parquet").read_bytes() == (
            undisturbed.directory / "scores.parquet"
        ).read_bytes()


@pytest.mark.parametrize("pages", [0, 3, 6, 12])
def test_a_full_disk_under_the_cache_fails_the_cells_and_room_completes_the_run(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    undisturbed = run(registry, tmp_path / "undisturbed")
    with small_disk(tmp_path) as disk:
        monkeypatch.setenv("CFBENCH_CACHE_DIR", str(disk / "cache"))
        ballast = fill(disk, leaving=4096 * pages)
        failed = run(registry, tmp_path / "run")
        assert failed.exit_code == 1
        (reason,) = {c.reason for c in failed.cells()}
        assert "the disk is full" in reason and "CFBENCH_CACHE_DIR" in reason and "\n" not in reason
        store = Store()
        assert [problem for entry in store.entries() for problem in store.verify(entry)] == []
        ballast.unlink()
        done = run(registry, tmp_path / "run")
        assert done.exit_code == 0
        assert done.scores.equals(undisturbed.scores)
        assert list((disk / "cache").glob("artifacts/tmp/*")) == []


# Damage


def artifacts(kind: str) -> list[Path]:
    return [entry.path for entry in Store().entries() if entry.kind == kind]


def test_a_truncated_or_lost_file_of_an_artifact_is_computed_again(
    registry: Registry, tmp_path: Path
) -> None:
    first = run(registry, tmp_path / "a")
    before = first.scores
    cut, lost = artifacts("explanations")
    (cut / "explanations.parquet").write_bytes((cut / "explanations.parquet").read_bytes()[:50])
    (lost / "costs.parquet").unlink()
    second = run(registry, tmp_path / "b")
    assert second.scores.equals(before)
    computed = [end["kind"] for end in ends(second.directory) if end["status"] == "ok"]
    assert computed == ["explanations", "explanations"]


def test_damage_that_keeps_the_size_is_one_line_found_by_verify_and_mended(
    registry: Registry, tmp_path: Path
) -> None:
    before = run(registry, tmp_path / "a").scores
    damaged = artifacts("scores")[0] / "scores.parquet"
    damaged.write_bytes(bytes(damaged.stat().st_size))
    with pytest.raises(UserError) as caught:
        run(registry, tmp_path / "b")
    (line,) = caught.value.lines
    assert str(damaged) in line and "'cfbench cache verify --remove'" in line
    store = Store()
    found = {entry.path: store.verify(entry) for entry in store.entries() if store.verify(entry)}
    assert found == {damaged.parent: ["scores.parquet has changed since it was written (SHA-256)"]}
    store.remove(next(entry for entry in store.entries() if entry.path == damaged.parent))
    assert run(registry, tmp_path / "b").scores.equals(before)


# Company

DRIVER = """
import sys; sys.path.insert(0, {samples!r})
from cfbench_core.api import execute, prepare
from cfbench_core.registry import Component, Plugin, Registry
import cfbench_core.plugin, toy_suite
def plugin(name, specs): return Plugin(name, name, "1", name, tuple(Component(s, name, "1") for s in specs))
registry = Registry([plugin("toy", toy_suite.SPECS), plugin("core", cfbench_core.plugin.cfbench_components())])
execute(prepare({configuration!r}, registry=registry), out={out!r})
"""


def start(flag: Path, out: Path, **changes: Any) -> subprocess.Popen[str]:
    """A run in a process of its own, which stops at number 7 until a file appears."""
    waiting = configuration(explainers=[{"name": "digits", "misbehave": f"wait:{flag}"}], **changes)
    script = DRIVER.format(samples=str(SAMPLES), configuration=waiting, out=str(out))
    return subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)


def wait_for(child: subprocess.Popen[str], out: Path) -> None:
    """Until its first explanations are there."""
    deadline = time.monotonic() + 120
    log = out / "outcomes.jsonl"
    while not (log.exists() and '"explanations"' in log.read_text()):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.02)


def test_two_runs_at_once_with_one_cache_end_in_the_same_bytes(registry: Registry, tmp_path: Path) -> None:
    flag = tmp_path / "go"
    folders = [tmp_path / "a", tmp_path / "b"]
    children = [start(flag, folder) for folder in folders]
    try:
        for child, folder in zip(children, folders, strict=True):
            wait_for(child, folder)
        flag.touch()
        for child in children:
            _, said = child.communicate(timeout=120)
            assert child.returncode == 0, said
    finally:
        for child in children:
            child.kill()
    scores = [(folder / "scores.parquet").read_bytes() for folder in folders]
    assert scores[0] == scores[1]
    store = Store()
    assert [problem for entry in store.entries() for problem in store.verify(entry)] == []
    assert len(artifacts("explanations")) == 2


def test_a_second_run_in_the_same_directory_is_refused_and_the_first_goes_on(
    registry: Registry, tmp_path: Path
) -> None:
    flag, folder = tmp_path / "go", tmp_path / "run"
    child = start(flag, folder)
    try:
        wait_for(child, folder)
        for fresh in (False, True):
            with pytest.raises(UserError) as caught:
                run(registry, folder, fresh=fresh)
            assert caught.value.lines == (
                f"{folder}: another cfbench is running in it; wait, or give another --out",
            )
        flag.touch()
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said
    finally:
        child.kill()
    assert [c.status for c in Run(folder).cells()] == ["ok"]
    assert not (folder / ".lock").exists()


def test_a_run_that_was_killed_leaves_its_directory_free(registry: Registry, tmp_path: Path) -> None:
    flag, folder = tmp_path / "go", tmp_path / "run"
    child = start(flag, folder)
    wait_for(child, folder)
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    flag.touch()
    waiting = [{"name": "digits", "misbehave": f"wait:{flag}"}]
    assert [c.status for c in run(registry, folder, explainers=waiting).cells()] == ["ok"]
