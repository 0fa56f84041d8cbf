"""``analyse``: which analyses a run permits, and their tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import click
import pytest

from cfbench_core.cli.commands.analyse import command
from cfbench_core.cli.completions import analyses

from .conftest import Command, Install

PLUGIN = """
from cfbench_core.hooks import hookimpl

@hookimpl
def cfbench_components():
    import toy_analyses
    return toy_analyses.SPECS
"""


@pytest.fixture
def requested(toy: Path, install: Install, cfbench: Command) -> Path:
    """The toy suite has analyses, and a run is there: ``runs/one``."""
    install("cfbench-asks", "2.0", PLUGIN)
    assert cfbench("run", "study.yaml", "--output", "runs/one", "--quiet").code == 0
    return toy


def test_without_a_name_all_that_can_be_computed_is_listed(requested: Path, cfbench: Command) -> None:
    shown = cfbench("analyse", "runs/one")
    assert shown.code == 0
    assert shown.out.splitlines() == [
        "means",
        "  How large are the digits?",
        "never",
        "  When does the tide come?",
        "  does not apply to this run: it has no tides",
        "",
        "Run one: cfbench analyse NAME runs/one",
    ]
    listed = json.loads(cfbench("analyse", "runs/one", "--format", "json").out)
    assert [(line["analysis"], line["applies"]) for line in listed] == [("means", True), ("never", False)]


def test_with_a_name_the_answer_is_words_and_a_table(requested: Path, cfbench: Command) -> None:
    shown = cfbench("analyse", "means", "runs/one")
    assert shown.code == 0
    lines = [line.split() for line in shown.out.splitlines()]
    assert shown.out.startswith("How large are the digits?\nThe first mean is 5.50.\n")
    assert ["run", "dataset", "model", "explainer", "mean", "units"] in lines
    assert lines[-1] == ["one", "numbers", "times", "digits", "5.5", "20"]


def test_several_runs_are_analysed_together_and_options_are_set(requested: Path, cfbench: Command) -> None:
    cfbench("run", "study.yaml", "--output", "runs/two", "--quiet")
    shown = cfbench("analyse", "means", "runs/one", "runs/two", "--set", "most=5", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    assert [(row["run"], row["units"], row["mean"]) for row in rows] == [
        ("one", "5", "4.0"),
        ("two", "5", "4.0"),
    ]


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("a.html", "<!DOCTYPE html>"),
        ("a.csv", "run,dataset"),
        ("a.md", "### How large"),
        ("a.json", "{"),
        ("a.txt", "How large"),
    ],
)
def test_the_name_of_the_file_implies_the_format(
    requested: Path, cfbench: Command, name: str, beginning: str
) -> None:
    assert cfbench("analyse", "means", "runs/one", "--output", f"deep/{name}").out == f"wrote deep/{name}\n"
    assert (requested / "deep" / name).read_text(encoding="utf-8").lstrip().startswith(beginning)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["mean", "runs/one"], "no analysis 'mean'. Did you mean 'means'?"),
        (["never", "runs/one"], "never does not apply to runs/one: it has no tides"),
        (["means"], "means: say of which run: cfbench analyse means RUN"),
        (["runs/none"], "runs/none: no such directory"),
        (["means", "runs/none"], "runs/none: no such directory"),
        (["means", "runs/one", "--set", "most=0"], "--set most=0: most: must be a whole number >= 1"),
        (["means", "runs/one", "--set", "mist=1"], "mist: unknown key. Did you mean 'most'?"),
        (["means", "runs/one", "--output", "a.xls"], "say --format"),
        (["runs/one", "--format", "csv"], "needs the NAME of an analysis"),
        (["runs/one", "--set", "most=1"], "need the NAME of an analysis"),
    ],
)
def test_a_wrong_call_is_one_error_line(
    requested: Path, cfbench: Command, arguments: list[str], said: str
) -> None:
    refused = cfbench("analyse", *arguments)
    assert refused.code == 2 and said in refused.err
    assert "Traceback" not in refused.err


def test_a_run_warns_of_an_analysis_that_fails_and_is_no_failure_itself(
    toy: Path, install: Install, cfbench: Command
) -> None:
    install("cfbench-asks", "2.0", PLUGIN.replace("toy_analyses.SPECS", "[toy_analyses.BROKEN]"))
    done = cfbench("run", "study.yaml", "--output", "runs/one")
    said = "analysis broken failed: ZeroDivisionError: too few <units>  (cfbench analyse broken runs/one --debug)"
    assert done.code == 0 and said in done.err
    again = cfbench("report", "runs/one", "--format", "html")
    assert again.code == 0 and said in again.err and "wrote" in again.out
    shown = cfbench("analyse", "broken", "runs/one", "--debug")
    assert shown.code == 2 and "raise ZeroDivisionError" in shown.err


def test_analyses_are_listed_and_described_like_other_components(requested: Path, cfbench: Command) -> None:
    listed = cfbench("list", "analyses", "--suite", "toy").out
    assert listed == cfbench("list", "analysis", "--suite", "toy").out
    assert "How large are the digits?" in listed
    described = cfbench("describe", "means").out
    assert "cfbench analyse means RUN" in described and "units, the first ones" in described


def test_names_are_offered_where_a_name_may_stand(requested: Path) -> None:
    (parameter,) = [p for p in command.params if p.name == "arguments"]
    context = click.Context(command)
    offered = [item for item in analyses(context, parameter, "m") if isinstance(item, str)]
    assert offered == ["means"]
    context.params["arguments"] = ("means",)
    assert [item for item in analyses(context, parameter, "") if isinstance(item, str)] == []
