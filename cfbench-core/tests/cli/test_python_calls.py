"""What commands show is also what one Python call returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cfbench_core import run
from cfbench_core.component_documentation import describe
from cfbench_core.diagnosis import diagnose
from cfbench_core.errors import UserError
from cfbench_core.initial_configuration import initial_configuration
from cfbench_core.run_status import status
from cfbench_core.sentences import explain

from .conftest import Command


def test_status_is_that_of_the_command(toy: Path, cfbench: Command) -> None:
    found = run("study.yaml", out="runs/one")
    progress = status("runs/one")
    assert progress == status(found)
    assert (progress.state, progress.cells, progress.problems) == ("finished", {"ok": 1}, ())
    assert progress.tasks == {"ok": 13} and progress.seconds > 0  # data, model, units, 5 + 5 chunks
    shown = json.loads(cfbench("status", "runs/one", "--format", "json").out)
    assert shown["tasks"] == {"ok": 13} and shown["state"] == "finished"


def test_status_has_the_reasons_of_failures(toy: Path) -> None:
    found = run("study.yaml", set=["explainers=[{name: digits, misbehave: raise}]"], out="runs/one")
    progress = status(found)
    assert progress.cells == {"partial": 1} and progress.tasks["failed"]
    (problem,) = progress.problems
    assert problem.cell == found.cells()[0].id and problem.status == "partial" and problem.reason


def test_explain_returns_a_sentence_for_each_cell(toy: Path, cfbench: Command) -> None:
    run("study.yaml", set=["explainers=[digits, plain]"], out="runs/one")
    found = explain("runs/one")
    assert [one.labels["explainer"] for one in found] == ["digits", "plain"]
    assert len({one.units for one in found}) == 1
    (unit,) = found[0].units
    assert explain("runs/one", unit) == found
    shown = json.loads(cfbench("explain", "runs/one", "--unit", unit, "--format", "json").out)
    assert [one["sentence"] for one in shown] == [one.sentence for one in found]
    with pytest.raises(UserError, match=r"'x' was not explained in runs/one"):
        explain("runs/one", "x")


def test_describe_is_that_of_the_command(toy: Path, cfbench: Command) -> None:
    found = describe("digits")
    assert found["id"] == "toy/explainer/digits" and found["distribution"] == "cfbench-toy"
    shown = json.loads(cfbench("describe", "digits", "--format", "json").out)
    assert {key["name"] for key in shown["configuration"]} == {key["name"] for key in found["configuration"]}
    with pytest.raises(UserError, match=r"no component 'digit'\. Did you mean 'digits'"):
        describe("digit")


def test_the_initial_configuration_is_that_of_init(toy: Path, cfbench: Command) -> None:
    assert initial_configuration("toy") == cfbench("init", "-", "--suite", "toy").out
    with pytest.raises(UserError, match="target: names a column of a CSV file; name that file as well"):
        initial_configuration("toy", target="price")


def test_diagnose_finds_a_cache_that_cannot_be_written_to(
    toy: Path, cfbench: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not any(finding.advice for finding in diagnose() if finding.subject == "cache")
    (toy / "file").write_text("")
    monkeypatch.setenv("CFBENCH_CACHE_DIR", str(toy / "file" / "cache"))
    (cache,) = (finding for finding in diagnose() if finding.subject == "cache")
    assert "cannot be written to" in cache.found and "CFBENCH_CACHE_DIR" in cache.advice
