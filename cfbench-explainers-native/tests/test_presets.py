"""The presets of explainers: options that there are, and how each was found."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from cfbench_core.config import create
from cfbench_core.presets import Preset, presets_of
from cfbench_explainers_native.plugin import cfbench_explainers

SHIPPED = [(spec, preset) for spec in cfbench_explainers() for preset in presets_of(spec).values()]


def test_presets_are_shipped() -> None:
    assert {spec.name for spec, _ in SHIPPED} >= {"accent", "lime-rs", "lxr", "shap"}


@pytest.mark.parametrize(("spec", "preset"), SHIPPED, ids=[f"{spec.name}-{p.name}" for spec, p in SHIPPED])
def test_a_preset_has_options_of_its_explainer_and_a_source(spec: Any, preset: Preset) -> None:
    create({"target": spec.target, "config": spec.config, "options": preset.options})
    search = preset.search
    if "source" in search:  # published
        assert search["source"]
        return
    assert search["command"].startswith("cfbench tune ") and f"explainer/{spec.name}" in search["command"]
    better = search["as_configured"] - search["value"]
    # POS-P, of importances, is better when it is lower; PN-S, of edits, when it is higher.
    assert better >= 0 if search["metric"].startswith("POS-P") else better <= 0
    assert set(search["space"]) <= set(preset.options)


@pytest.mark.parametrize("name", ["grease", "lime-rs", "lxr", "shap"])
def test_describe_shows_the_options_of_a_preset_so_that_they_can_be_pasted(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from cfbench_core.cli import main

    main(["describe", name])
    shown = capsys.readouterr().out
    presets = [preset for spec, preset in SHIPPED if spec.name == name]
    assert presets
    for preset in presets:
        (line,) = re.findall(rf"^  preset: {re.escape(preset.name)}   # (.*)$", shown, re.MULTILINE)
        assert yaml.safe_load(f"{{{line}}}") == dict(preset.options)
