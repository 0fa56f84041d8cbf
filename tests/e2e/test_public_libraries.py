"""Public libraries as plugins: dice-ml and cfnow wrapped, built to wheels, installed from them, listed, tested, run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Environment

pytestmark = pytest.mark.slow  # it installs both libraries
PLUGINS = ["cfnow", "dice-ml"]


def example(plugin: str) -> Path:
    return ROOT / "examples" / f"{plugin}-explainer"


@pytest.fixture(scope="module")
def environment(
    environment_with: Callable[..., Environment], tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """cfbench with the tabular suite, and both plugins from their own wheels with the libraries they declare."""
    made = environment_with("cfbench-core", "cfbench-tabular")
    wheels = tmp_path_factory.mktemp("public-libraries")
    for plugin in PLUGINS:
        source = wheels / plugin
        shutil.copytree(
            example(plugin), source, ignore=shutil.ignore_patterns("__pycache__", ".*", "dist", "build")
        )
        built = made.python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, source)
        assert built.returncode == 0, built.stderr
    made.install(*(f"{wheel}[test]" for wheel in wheels.glob("*.whl")))
    return made


def test_both_are_listed_with_where_they_come_from(environment: Environment) -> None:
    listed = environment.cfbench("list", "explainers", "--suite", "tabular")
    assert listed.returncode == 0, listed.stderr
    for plugin in PLUGINS:
        (line,) = [line for line in listed.stdout.splitlines() if line.startswith(f"{plugin} ")]
        assert f"cfbench-explainer-{plugin}" in line


@pytest.mark.parametrize("plugin", PLUGINS)
def test_their_own_tests_pass_against_their_wheels(environment: Environment, plugin: str) -> None:
    tested = environment.python("-m", "pytest", "-q", "-p", "no:cacheprovider", example(plugin) / "tests")
    assert tested.returncode == 0, tested.stdout


@pytest.mark.parametrize("plugin", PLUGINS)
def test_their_studies_run_and_their_scores_are_in_the_tables(environment: Environment, plugin: str) -> None:
    arguments = ("--set", "protocol.factuals=3", "--set", "data=[iris]", "--output", f"runs/{plugin}")
    done = environment.cfbench("run", example(plugin) / "study.yaml", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    summary = (environment.work / "runs" / plugin / "summary.csv").read_text().splitlines()
    assert any(f"/mlp/{plugin},iris," in line and ",validity," in line for line in summary)


def test_planning_them_imports_neither_library(environment: Environment) -> None:
    code = (
        "import sys; from cfbench_core.cli import main; "
        "sys.exit(main(sys.argv[1:]) or bool({'cfnow', 'dice_ml', 'torch'} & set(sys.modules)))"
    )
    for plugin in PLUGINS:
        planned = environment.python("-c", code, "plan", example(plugin) / "study.yaml")
        assert planned.returncode == 0, planned.stdout + planned.stderr
