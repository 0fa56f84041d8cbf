"""A stranger follows the pages on writing components: every command on them is run as it is printed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import ROOT, Environment

PAGES = ("explainer", "recommender", "classifier", "dataset", "metric", "analysis")


@pytest.fixture(scope="module")
def environment(environment_with: Callable[..., Environment]) -> Environment:
    made = environment_with("cfbench-core", "cfbench-recsys", "cfbench-tabular", "cfbench-explainers-native")
    made.install("pytest")
    return made


def commands_of(page: Path) -> list[str]:
    """The lines of the shell blocks of a page."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip()]


@pytest.mark.slow
@pytest.mark.parametrize("kind", PAGES)
def test_the_commands_of_a_page_work_as_printed(environment: Environment, kind: str) -> None:
    (page,) = (ROOT / "docs" / "how-to").glob(f"write-a*-{kind}.md")
    commands = commands_of(page)
    assert commands[0].startswith("cfbench new-plugin")
    for command in commands:
        done = environment.shell(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
