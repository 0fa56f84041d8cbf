"""A made-up run with every kind of outcome, for the tests of reports."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_up_run import write_run

from cfbench_core.run_directory import Run, write_summary


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = write_run(tmp_path_factory.mktemp("runs") / "run")
    write_summary(Run(directory))
    return directory


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Run:
    return Run(shutil.copytree(original, tmp_path / "run"))
