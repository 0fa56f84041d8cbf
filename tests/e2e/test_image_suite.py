"""A fourth suite, written outside of cfbench: built to a wheel, installed with the core alone, used by every command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .conftest import ROOT, Environment, wheel

EXAMPLE = ROOT / "examples" / "image-suite"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The core and the image suite, from their wheels, in an environment that no other test uses."""
    made = Environment(tmp_path_factory.mktemp("cfbench-images"))
    made.install(wheel("cfbench-core"))
    source = tmp_path_factory.mktemp("image-suite") / "source"
    shutil.copytree(
        EXAMPLE, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "dist", "build")
    )
    built = made.python("-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", source / "dist", source)
    assert built.returncode == 0, built.stderr
    (built_wheel,) = (source / "dist").glob("cfbench_images-0.1.0-*.whl")
    made.install(built_wheel)
    return made


def test_the_suite_is_at_most_300_lines_of_python() -> None:
    sources = (EXAMPLE / "src").rglob("*.py")
    lines = [line for source in sources for line in source.read_text("utf-8").splitlines() if line.strip()]
    assert len(lines) <= 300


def test_its_components_are_listed_and_described(environment: Environment) -> None:
    listed = environment.cfbench("list", "--suite", "images")
    assert listed.returncode == 0, listed.stderr
    assert {"patch-swap", "digits", "softmax", "validity"} <= set(listed.stdout.split())
    described = environment.cfbench("describe", "patch-swap")
    assert "Goyal et al. 2019" in described.stdout


@pytest.fixture(scope="module")
def run(environment: Environment) -> Path:
    """A run of the configuration that ``cfbench init`` writes."""
    for command in (("init", "--suite", "images", "study.yaml"), ("plan", "study.yaml")):
        done = environment.cfbench(*command)
        assert done.returncode == 0, done.stderr
    assert "patch-swap" in done.stdout
    done = environment.cfbench("run", "study.yaml", "--output", "runs/one")
    assert done.returncode == 0, done.stderr
    assert "validity" in done.stdout
    return environment.work / "runs" / "one"


def test_a_second_run_is_from_the_cache_and_equal(environment: Environment, run: Path) -> None:
    done = environment.cfbench("run", "study.yaml", "--output", "runs/two")
    assert done.returncode == 0, done.stderr
    assert (environment.work / "runs/two/scores.parquet").read_bytes() == (
        run / "scores.parquet"
    ).read_bytes()
    compared = environment.cfbench("compare", "runs/one", "runs/two")
    assert compared.returncode == 0, compared.stdout + compared.stderr


def test_its_explanations_can_be_scored_as_external_ones_without_the_column_unit(
    environment: Environment, run: Path
) -> None:
    """The unit is derived from the column that defines it."""
    script = (
        "import pandas as pd\n"
        "table = pd.read_parquet('runs/one/explanations.parquet')\n"
        "keep = ['dataset', 'model', 'explainer', 'image', 'pixel', 'value']\n"
        "table[keep].to_parquet('theirs.parquet')\n"
    )
    assert environment.python("-c", script).returncode == 0
    done = environment.cfbench(
        "evaluate", "study.yaml", "--explanations", "theirs.parquet", "--output", "runs/external"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    script = (
        "import pandas as pd\n"
        "keys = ['dataset', 'model', 'explainer', 'metric', 'unit']\n"
        "one, two = (pd.read_parquet(f'runs/{r}/scores.parquet').set_index(keys)['value'] for r in ('one', 'external'))\n"
        "assert len(one) and one.sort_index().equals(two.sort_index())\n"
    )
    compared = environment.python("-c", script)
    assert compared.returncode == 0, compared.stderr


@pytest.mark.slow
def test_reports_of_every_format_are_made(environment: Environment, run: Path) -> None:
    for format in ("html", "markdown", "latex", "csv"):
        done = environment.cfbench("report", "runs/one", "--format", format)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "component",
    ["images/suite/images", "digits", "softmax", "patch-swap", "nearest-unlike", "validity", "distance"],
)
def test_its_components_pass_the_conformance_kit(environment: Environment, component: str) -> None:
    checked = environment.cfbench("check", component)
    assert checked.returncode == 0, checked.stdout + checked.stderr
