"""Whose directory it is, and what an interrupted run leaves in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from toy_runs import configuration, ends, run

from cfbench_core.api import execute, prepare
from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.reports.render import render
from cfbench_core.run_directory import Run
from cfbench_core.run_writer import new_run_directory


def test_a_directory_with_somebody_elses_config_is_left_alone(registry: Registry, tmp_path: Path) -> None:
    for content in ("- not\n- ours\n", "{", "text", ""):
        (tmp_path / "config.yaml").write_text(content)
        with pytest.raises(UserError, match="is not the configuration of a run; give another --output"):
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


def test_runs_that_begin_in_the_same_moment_get_directories_of_their_own(tmp_path: Path) -> None:
    names = [new_run_directory(tmp_path / "runs").name for _ in range(3)]
    assert len({*names}) == 3
    (tmp_path / "file").touch()
    assert not new_run_directory(tmp_path / "file").exists()


def test_scores_of_external_explanations_do_not_replace_a_run(registry: Registry, tmp_path: Path) -> None:
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

    def started(self, task: Any) -> None: ...

    def progress(self, task: Any, done: int, total: int) -> None: ...

    def finished(self, task: Any, outcome: Any, done: int, total: Any) -> None:
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


def interrupt(registry: Registry, out: Path, fresh: bool = False, **changes: Any) -> Run:
    with pytest.raises(KeyboardInterrupt):
        execute(
            prepare(configuration(**changes), registry=registry),
            out=out,
            fresh=fresh,
            observer=StopsAfter(1),
        )
    return Run(out)


def test_an_interrupted_run_into_a_finished_directory_leaves_the_environment_of_its_tables(
    registry: Registry, tmp_path: Path
) -> None:
    first = run(registry, tmp_path / "run")
    assert "computed_by" in first.environment
    for fresh in (False, True):
        interrupted = interrupt(registry, tmp_path / "run", fresh)
        assert interrupted.environment == first.environment
        assert interrupted.scores.equals(first.scores)
        if not fresh:
            assert run(registry, tmp_path / "run").environment == first.environment


def test_an_interrupted_run_does_not_show_the_tables_of_the_configuration_that_it_replaces(
    registry: Registry, tmp_path: Path
) -> None:
    run(registry, tmp_path / "run")
    interrupted = interrupt(registry, tmp_path / "run", fresh=True, count=12)
    assert interrupted.config["data"]["count"] == 12
    assert interrupted.table_names == [] and len(interrupted.outcomes) == 1
    with pytest.raises(UserError, match=r"is missing; the same cfbench run"):
        render(interrupted, "csv")
    assert {path.suffix for path in (tmp_path / "run").iterdir()} <= {".yaml", ".json", ".jsonl", ""}
    assert len(run(registry, tmp_path / "run", count=12).scores["unit"].unique()) == 12


def test_an_evaluation_that_ended_before_its_plan_was_written_is_resumed(
    registry: Registry, tmp_path: Path
) -> None:
    prepared = prepare(configuration(), registry=registry, explanations=tmp_path / "theirs.parquet")
    execute(prepared, out=tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        if path.is_file() and path.name != "config.yaml":
            path.unlink()
    assert execute(prepared, out=tmp_path / "run").exit_code == 0
