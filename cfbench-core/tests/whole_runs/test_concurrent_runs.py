"""Runs that share a cache or want the same directory at the same time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from child_processes import popen
from toy_runs import artifacts, configuration, run, script_of, wait_for

from cfbench_core.errors import UserError
from cfbench_core.registry import Registry
from cfbench_core.run_directory import Run
from cfbench_core.store import Store


def start(flag: Path, out: Path) -> subprocess.Popen[str]:
    """A run in a process of its own, which stops at number 7 until a file appears."""
    waiting = configuration(explainers=[{"name": "digits", "misbehave": f"wait:{flag}"}])
    return popen([sys.executable, "-c", script_of(waiting, out)], stderr=subprocess.PIPE, text=True)


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


def test_a_second_run_in_the_same_directory_is_refused_and_the_first_continues(
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
                f"{folder}: another cfbench is running in it; wait, or give another --output",
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
