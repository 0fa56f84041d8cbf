"""What the how-to page on replications shows is complete: its example passes the checks that need no run."""

from __future__ import annotations

import contextlib
import io
import re
import tomllib
from pathlib import Path
from typing import Any

from cfbench_core.reproduction_levels import LEVELS, ReproductionLevel

PAGE = (Path(__file__).parents[2] / "docs/how-to/reproduce-a-paper.md").read_text("utf-8")


def block(language: str, containing: str) -> str:
    """The one block of code that contains some text."""
    blocks: list[str] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (found,) = [text for text in blocks if containing in text]
    return found


def executed(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "my_paper"}
    exec(text, names)
    return names


def test_the_example_cites_its_paper() -> None:
    names = executed(block("python", "def my_paper"))
    assert names["my_paper"]().paper in names["SPEC"].papers
    assert "papers.toml" in PAGE


def test_the_verdicts_are_those_of_the_comment() -> None:
    text = block("python", "claim_verdict")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        executed(text)
    assert printed.getvalue().strip() == text.rstrip().rpartition("# ")[2]


def test_the_levels_are_all_there_and_the_example_is_one() -> None:
    (table,) = tomllib.loads(block("toml", "evidence")).values()
    assert ReproductionLevel(**table).level in LEVELS
    assert re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE) == list(LEVELS)
