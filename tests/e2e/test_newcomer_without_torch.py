"""What a newcomer does with little: the core alone, the suite of tables and that of texts, in an environment each."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .conftest import ROOT, Environment
from .pages import follow

Make = Callable[..., Environment]


def test_the_core_alone_says_kindly_what_to_install(environment_with: Make) -> None:
    environment = environment_with("cfbench-core")
    listed = environment.cfbench("list")
    assert listed.returncode == 0
    assert "cfbench-explainers-native" in listed.stdout + listed.stderr
    run = environment.cfbench("run")
    assert run.returncode in (2, 3) and "pip install" in run.stderr and "Traceback" not in run.stderr


def test_the_tabular_suite_needs_no_recommender_and_no_torch(environment_with: Make) -> None:
    environment = environment_with("cfbench-core", "cfbench-tabular")
    assert environment.python("-c", "import torch").returncode != 0
    assert "growing-spheres" in environment.cfbench("list", "explainers").stdout
    done = environment.cfbench("run", "--output", "runs/default", "--set", "protocol.factuals=5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Example:" in done.stdout
    assert environment.python("-m", "pip", "check").returncode == 0


def test_the_text_suite_needs_no_model_and_no_download(environment_with: Make) -> None:
    environment = environment_with("cfbench-core", "cfbench-text")
    assert environment.python("-c", "import torch").returncode != 0
    assert "most-frequent" in environment.cfbench("list", "generators").stdout
    done = environment.cfbench("run", "--offline", "--output", "runs/default")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Example:" in done.stdout and "synthetic" in done.stderr
    assert environment.python("-m", "pip", "check").returncode == 0


@pytest.mark.slow
def test_every_command_of_the_tutorial_for_tables_runs(environment_with: Make) -> None:
    environment = environment_with("cfbench-core", "cfbench-tabular")
    follow(environment, (ROOT / "docs/tutorial-tables.md").read_text(encoding="utf-8"))


def test_every_command_of_the_tutorial_for_texts_runs(environment_with: Make) -> None:
    environment = environment_with("cfbench-core", "cfbench-text")
    follow(environment, (ROOT / "docs/tutorial-texts.md").read_text(encoding="utf-8"))
