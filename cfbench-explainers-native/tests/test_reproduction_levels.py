"""The levels of reproduction of this package: complete, and shown."""

from __future__ import annotations

import json

import pytest

from cfbench_core.cli import main
from cfbench_core.component_specs import component_specs
from cfbench_core.reproduction_levels import level_of

PACKAGE = "cfbench_explainers_native"


def test_every_method_that_competes_and_cites_a_paper_states_its_level() -> None:
    for spec in component_specs(PACKAGE, "explainer"):
        if not spec.role and spec.papers:
            assert level_of(spec) is not None, spec.id


def test_the_level_is_described_and_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "lime-rs"]) == 0
    assert "agrees with the code, not with the paper (variant: paper)" in capsys.readouterr().out
    assert main(["describe", "lime-rs", "--format", "json"]) == 0
    described = json.loads(capsys.readouterr().out)
    described = described[0] if isinstance(described, list) else described
    assert described["reproduction"]["level"] == "agrees with the code, not with the paper"
    assert main(["list", "explainers", "--suite", "recsys", "--format", "json"]) == 0
    listed = {one["id"]: one for one in json.loads(capsys.readouterr().out)}
    assert "authors-native" in listed["recsys/explainer/accent"]["reproduction"]["evidence"]
