"""The presets of graph explainers: options that there are, and how each was found."""

from __future__ import annotations

from typing import Any

import pytest

from cfbench_core.config import create
from cfbench_core.errors import UserError
from cfbench_core.presets import Preset, presets_of
from cfbench_core.tuning.search import open_search
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


@pytest.mark.parametrize(
    ("algorithm", "searched"), [("gnnexplainer", ["learning_rate"]), ("pgexplainer", ["learning_rate"])]
)
def test_options_of_an_algorithm_are_searched(algorithm: str, searched: list[str]) -> None:
    search = open_search(of_algorithm(algorithm), component="pyg")
    assert [dimension.name for dimension in search.space] == searched


@pytest.mark.parametrize("algorithm", ["captum", "attention"])
def test_an_algorithm_without_options_to_search_cannot_be_tuned(algorithm: str) -> None:
    with pytest.raises(UserError, match="cannot be tuned: none of its options that apply here"):
        open_search(of_algorithm(algorithm), component="pyg")


def of_algorithm(name: str) -> dict[str, object]:
    return {
        "suite": "recsys",
        "data": "debian-python",
        "recommenders": [{"name": "lightgcn", "epochs": 1}],
        "explainers": [{"name": "pyg", "algorithm": name}],
        "protocol": {"k": 3, "users": 30, "format": "explicit"},
    }
