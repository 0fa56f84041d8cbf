"""The presets of graph explainers: options that there are, and how each was found."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.config import create
from cfbench_core.presets import Preset, presets_of
from cfbench_explainers_gnn.plugin import cfbench_explainers

SHIPPED = [(spec, preset) for spec in cfbench_explainers() for preset in presets_of(spec).values()]


def test_the_options_of_paper_variants_are_shipped() -> None:
    published = {spec.name for spec, preset in SHIPPED if preset.name == "paper"}
    assert {"cf-gnnexplainer", "cf2", "c2explainer", "clear", "unr-explainer"} <= published


@pytest.mark.parametrize(("spec", "preset"), SHIPPED, ids=[f"{spec.name}-{p.name}" for spec, p in SHIPPED])
def test_a_preset_has_options_of_its_explainer_and_is_no_worse_than_these(spec: Any, preset: Preset) -> None:
    create({"target": spec.target, "config": spec.config, "options": preset.options})
    search = preset.search
    if "source" in search:  # published
        assert search["source"]
        return
    assert search["command"].startswith("cfbench tune ") and f"explainer/{spec.name}" in search["command"]
    assert search["metric"].startswith("PN-S")
    assert search["value"] >= search["as_configured"]
    assert set(search["space"]) <= set(preset.options)
