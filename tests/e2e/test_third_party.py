"""Somebody else's explainer: built to a wheel, installed beside cfbench, listed, checked, run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Environment

EXAMPLE = ROOT / "examples" / "third-party-explainer"
OF_ITS_OWN = {
    Path("src/cfbench_explainer_lift/lift.py"),
    Path("src/cfbench_explainer_lift/papers.toml"),
    Path("tests/test_lift.py"),
}
"""What its author wrote; all else is as ``cfbench new-plugin`` writes it."""


@pytest.fixture(scope="module")
def environment(
    environment_with: Callable[..., Environment], tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    """cfbench with the recommender suite, and the example from its own wheel."""
    made = environment_with("cfbench-core", "cfbench-recsys")
    source = tmp_path_factory.mktemp("third-party") / "source"
    shutil.copytree(EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", ".*", "dist", "build"))
    built = made.python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", source / "dist", source)
    assert built.returncode == 0, built.stderr
    (wheel,) = (source / "dist").glob("cfbench_explainer_lift-0.1.0-*.whl")
    made.install(f"{wheel}[test]")
    return made


def files_of(folder: Path) -> dict[Path, str]:
    skipped = {"__pycache__", ".pytest_cache", ".ruff_cache", "dist", "build"}
    return {
        path.relative_to(folder): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file() and not skipped & set(path.relative_to(folder).parts)
    }


def test_it_is_listed_and_described_with_where_it_comes_from(environment: Environment) -> None:
    listed = environment.cfbench("list", "explainers", "--suite", "recsys")
    assert listed.returncode == 0, listed.stderr
    (line,) = [line for line in listed.stdout.splitlines() if line.startswith("lift")]
    assert "cfbench-explainer-lift" in line and "Brin et al. 1997" in line
    described = environment.cfbench("describe", "lift")
    assert "average_users" in described.stdout and "recsys/explainer/lift" in described.stdout


def test_it_passes_the_conformance_kit(environment: Environment) -> None:
    checked = environment.cfbench("check", "lift")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "is-deterministic" in checked.stdout and checked.stdout.endswith("All checks passed.\n")


@pytest.mark.slow
def test_its_own_tests_pass_against_its_wheel(environment: Environment) -> None:
    tested = environment.python("-m", "pytest", "-q", "-p", "no:cacheprovider", EXAMPLE / "tests")
    assert tested.returncode == 0, tested.stdout


def test_planning_it_imports_no_torch(environment: Environment) -> None:
    code = (
        "import sys; from cfbench_core.cli import main; "
        "sys.exit(main(sys.argv[1:]) or 'torch' in sys.modules)"
    )
    planned = environment.python("-c", code, "plan", EXAMPLE / "study.yaml")
    assert planned.returncode == 0, planned.stdout + planned.stderr
    assert "  run   lift" in planned.stdout.splitlines()


def test_it_runs_and_its_scores_are_in_the_tables(environment: Environment) -> None:
    arguments = ("--set", "protocol.users=10", "--output", "runs/lift")
    done = environment.cfbench("run", EXAMPLE / "study.yaml", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(line.startswith("lift") for line in done.stdout.splitlines())
    summary = (environment.work / "runs" / "lift" / "summary.csv").read_text().splitlines()
    assert any("/lift/" in line and "POS-P" in line for line in summary)


def test_it_is_as_new_plugin_writes_it_but_for_the_method(environment: Environment) -> None:
    # In an environment without the example, whose name would be taken.
    assert (
        environment.python("-m", "pip", "uninstall", "--quiet", "-y", "cfbench-explainer-lift").returncode
        == 0
    )
    summary = "Items that make the explained one likelier: P(target | item) / P(target)"
    written = environment.cfbench(
        "new-plugin",
        "lift",
        "--suite",
        "recsys",
        "--summary",
        summary,
        "--output",
        "lift",
    )
    assert written.returncode == 0, written.stderr
    rendered, example = files_of(environment.work / "lift"), files_of(EXAMPLE)
    assert rendered.keys() == example.keys()
    assert {path for path in example if example[path] != rendered[path]} == OF_ITS_OWN


@pytest.mark.slow
def test_what_new_plugin_writes_works_as_it_is(environment: Environment) -> None:
    written = environment.cfbench("new-plugin", "mine", "--suite", "recsys")
    assert written.returncode == 0, written.stderr
    environment.install(f"{environment.work / 'cfbench-explainer-mine'}[test]")
    tests = environment.work / "cfbench-explainer-mine" / "tests"
    tested = environment.python("-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert tested.returncode == 0, tested.stdout
    assert environment.cfbench("check", "mine").returncode == 0
