"""``advise``: the analysis "advice" of the runs' suite."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Command, Install

PLUGIN = """
from cfbench_core.hooks import hookimpl

@hookimpl
def cfbench_components():
    import toy_analyses
    return [toy_analyses.ADVICE]
"""


@pytest.fixture
def ran(toy: Path, cfbench: Command) -> Path:
    assert cfbench("run", "study.yaml", "--out", "runs/one", "--quiet").code == 0
    return toy


def test_it_is_the_analysis_and_its_text_stands_for_the_table(
    ran: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-advises", "2.0", PLUGIN)
    advised, analysed = cfbench("advise", "runs/one"), cfbench("analyse", "advice", "runs/one")
    assert advised.code == 0 and advised.out == analysed.out
    assert advised.out == "What should be taken?\nThe first mean is 5.50.\n\ntake digits\n"


def test_options_formats_and_files_are_those_of_an_analysis(
    ran: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-advises", "2.0", PLUGIN)
    rows = json.loads(cfbench("advise", "runs/one", "--set", "most=1", "--format", "json").out)["rows"]
    assert {row["units"] for row in rows} == {1}
    assert cfbench("advise", "runs/one", "--out", "advice.html").code == 0
    assert "Means by run" in (ran / "advice.html").read_text()
    wrong = cfbench("advise", "runs/one", "--set", "mots=1")
    assert wrong.code == 2 and "most" in wrong.err


def test_a_suite_without_an_advisor_says_so(ran: Path, cfbench: Command) -> None:
    answer = cfbench("advise", "runs/one")
    assert answer.code == 2
    assert answer.err == "the suite toy has no advisor (an analysis called 'advice')\n"
